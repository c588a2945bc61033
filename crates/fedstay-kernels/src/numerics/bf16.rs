//! The 16-bit format of neural networks: the upper half of a number in single precision.

/// A number in bfloat16: the sign, the exponent and the first seven bits of the fraction of an `f32`.
///
/// ```
/// # extern crate fedstay_kernels as fedstay;
/// use fedstay::numerics::Bf16;
///
/// let numbers = Bf16::from_bits(&[0x3f80, 0xc000]);
/// assert_eq!([numbers[0].widen(), numbers[1].widen()], [1.0, -2.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(u16);

impl Bf16 {
    /// Zero.
    pub(crate) const ZERO: Self = Self(0);

    /// Numbers whose bits are already in memory, where they are.
    pub fn from_bits(bits: &[u16]) -> &[Self] {
        // SAFETY: `Bf16` is a transparent `u16`, for which every pattern of bits is valid.
        unsafe { std::slice::from_raw_parts(bits.as_ptr().cast(), bits.len()) }
    }

    /// The bits of numbers, where they are.
    pub fn to_bits(numbers: &[Self]) -> &[u16] {
        // SAFETY: as in `from_bits`.
        unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len()) }
    }

    /// The same number in single precision, without loss.
    pub fn single(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    /// The same number as `f64`, without loss.
    pub fn widen(self) -> f64 {
        f64::from(self.single())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_the_upper_half_of_a_single() {
        let all: Vec<u16> = (0..=u16::MAX).collect();
        assert_eq!(Bf16::to_bits(Bf16::from_bits(&all)), all);
        for (bits, number) in all.iter().zip(Bf16::from_bits(&all)) {
            let wide = number.widen();
            if wide.is_nan() {
                assert!(bits & 0x7f80 == 0x7f80 && bits & 0x7f != 0);
                continue;
            }
            assert_eq!((wide as f32).to_bits(), u32::from(*bits) << 16);
        }
        assert_eq!(Bf16::from_bits(&[0x7f80])[0].widen(), f64::INFINITY);
    }
}
