//! Instruction sets: which there are, which this machine has, and how a function is compiled for each.

mod dispatch;

pub(crate) use dispatch::{Family, dispatch};

/// An instruction set that this machine has: there is no other way to come by one. They are ordered:
/// a later one includes the earlier ones.
///
/// Everything that is computed by hand-written vector code is told which one to use, and tests tell it
/// each of [`Isa::available`]. Long vectors ([`numerics`](crate::numerics)) come to the same bits with
/// all of them; sums in the [`layers`](crate::layer) of models differ in rounding where the layer says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isa(Level);

/// What an [`Isa`] is, for [`dispatch!`](dispatch).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Level {
    Portable,
    Avx2,
    Avx512,
    Vnni,
}

impl Isa {
    /// What every machine of the target has.
    pub const PORTABLE: Self = Self(Level::Portable);

    /// The strongest one that this machine has. The answer is cached by the standard library.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            if !is_x86_feature_detected!("avx512f") {
                return Self(Level::Avx2);
            }
            let integers = is_x86_feature_detected!("avx512bw");
            return match integers && is_x86_feature_detected!("avx512vnni") {
                true => Self(Level::Vnni),
                false => Self(Level::Avx512),
            };
        }
        Self::PORTABLE
    }

    /// All that this machine has, weakest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let all = [Level::Portable, Level::Avx2, Level::Avx512, Level::Vnni];
        let best = Self::detect();
        all.map(Self).into_iter().filter(|isa| *isa <= best).collect()
    }

    /// `portable`, `avx2` (256-bit vectors with fused products), `avx512` (512-bit vectors) or `vnni`
    /// (those, with dot products of 8-bit integers).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
            Level::Vnni => "vnni",
        }
    }

    /// Whether it includes 512-bit vectors.
    #[must_use]
    pub fn has_avx512(self) -> bool {
        self.0 >= Level::Avx512
    }

    /// Whether it includes dot products of 8-bit integers.
    #[must_use]
    pub fn has_vnni(self) -> bool {
        self.0 >= Level::Vnni
    }

    pub(crate) fn level(self) -> Level {
        self.0
    }
}

/// What this machine computes agents' work with. Sums in single precision are taken in another
/// order, and fused or not, where this differs; machines that say the same give the same bytes.
#[must_use]
pub fn instructions() -> String {
    format!("{} {}", std::env::consts::ARCH, Isa::detect().name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_are_available_end_with_the_strongest() {
        let all = Isa::available();
        assert_eq!((all.first(), all.last()), (Some(&Isa::PORTABLE), Some(&Isa::detect())));
        assert!(all.is_sorted());
    }

    dispatch! {
        fn scale(values: &mut [f32], by: f32) {
            values.iter_mut().for_each(|value| *value *= by);
        }
    }

    dispatch! {
        fn longest(lengths: &[usize]) -> usize {
            assert!(!lengths.is_empty(), "nothing is not long");
        } = most over Widths
    }

    /// Numbers in a register, as types.
    struct Widths;
    struct One;
    #[cfg(target_arch = "x86_64")]
    struct Eight;
    #[cfg(target_arch = "x86_64")]
    struct Sixteen;

    impl Family for Widths {
        type Portable = One;
        #[cfg(target_arch = "x86_64")]
        type Avx2 = Eight;
        #[cfg(target_arch = "x86_64")]
        type Avx512 = Sixteen;
    }

    trait Width {
        const WIDTH: usize;
    }
    impl Width for One {
        const WIDTH: usize = 1;
    }
    #[cfg(target_arch = "x86_64")]
    impl Width for Eight {
        const WIDTH: usize = 8;
    }
    #[cfg(target_arch = "x86_64")]
    impl Width for Sixteen {
        const WIDTH: usize = 16;
    }

    unsafe fn most<W: Width>(lengths: &[usize]) -> usize {
        lengths.iter().max().map_or(0, |most| most * W::WIDTH)
    }

    #[test]
    fn a_function_is_run_as_the_set_wants_it() {
        for isa in Isa::available() {
            let mut values = [1.0, 2.0];
            scale(isa, &mut values, 3.0);
            assert_eq!(values, [3.0, 6.0]);
            let width = match isa.name() {
                "portable" => 1,
                "avx2" => 8,
                _ => 16,
            };
            assert_eq!(longest(isa, &[2, 5]), 5 * width, "{isa:?}");
        }
    }

    #[test]
    #[should_panic(expected = "nothing is not long")]
    fn what_is_checked_is_checked_first() {
        longest(Isa::PORTABLE, &[]);
    }
}
