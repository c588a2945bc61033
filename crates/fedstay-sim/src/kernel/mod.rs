//! The inner loops: matrix products, the first layer on 8-bit images, and the scalar functions.
//!
//! Nothing here knows what a model is. Every entry point is safe and checks the shapes it is
//! given; the instruction set is picked at run time, so one binary serves every machine:
//!
//! | [`Isa`] | first layer, training | first layer, evaluation of 8-bit rows | the rest |
//! |---|---|---|---|
//! | `Portable`, `Avx2` | `gemm` crate | `gemm` crate, rows widened to `f32` | `gemm` crate |
//! | `Avx512` | panels | panels | `gemm` crate |
//! | `Vnni` | panels | digits: exact integer sums | `gemm` crate |
//!
//! Convolutions are in `conv`, with kernels of their own for `Portable`, `Avx2` and `Avx512`.
//!
//! All of it runs on the calling thread, and a row's result never depends on which other rows
//! share its tile: that is what lets an evaluation visit rows in any order.

pub(crate) mod buffer;
pub(crate) mod conv;
pub(crate) mod gram;
pub(crate) mod head;
pub(crate) mod limbs;
pub(crate) mod matmul;
pub(crate) mod panel;
pub mod rows;
pub mod scalar;

/// The instruction set the kernels use. They are ordered: a later one includes the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// What every machine of the target has.
    Portable,
    /// 256-bit vectors.
    Avx2,
    /// 512-bit vectors.
    Avx512,
    /// 512-bit vectors with 8-bit integer dot products.
    Vnni,
}

impl Isa {
    /// Every instruction set, weakest first.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Avx2, Self::Avx512, Self::Vnni];

    /// The strongest one this machine has.
    #[must_use]
    pub fn detect() -> Self {
        *Self::ALL.iter().rev().find(|isa| isa.is_available()).unwrap_or(&Self::Portable)
    }

    /// `portable`, `avx2`, `avx512` or `vnni`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Vnni => "vnni",
        }
    }

    /// Whether this machine has it. The answer is cached by the standard library.
    #[must_use]
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            match self {
                Self::Portable => true,
                Self::Avx2 => is_x86_feature_detected!("avx2"),
                Self::Avx512 => Self::Avx2.is_available() && is_x86_feature_detected!("avx512f"),
                Self::Vnni => {
                    Self::Avx512.is_available()
                        && is_x86_feature_detected!("avx512bw")
                        && is_x86_feature_detected!("avx512vnni")
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self == Self::Portable
        }
    }
}

/// What agents' work is computed with on this machine. Sums in single precision are taken in another
/// order, and fused or not, where this differs; machines that say the same give the same bytes.
#[must_use]
pub fn instructions() -> String {
    format!("{} {}", std::env::consts::ARCH, Isa::detect().name())
}

/// Compiles one body for several instruction sets and picks among them at run time.
///
/// The body must be plain, branch-free Rust that the compiler vectorises. It is never contracted
/// to fused multiply-adds, so every version gives the same bits.
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        $vis fn $name(isa: $crate::kernel::Isa, $($arg: $type),*) {
            #[inline(always)]
            fn body($($arg: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $type),*) {
                    body($($arg),*);
                }
                #[target_feature(enable = "avx512f")]
                fn avx512($($arg: $type),*) {
                    body($($arg),*);
                }
                assert!(isa.is_available(), "this machine lacks {isa:?}");
                // SAFETY: the instructions are available, as just asserted.
                if isa >= $crate::kernel::Isa::Avx512 {
                    return unsafe { avx512($($arg),*) };
                }
                if isa == $crate::kernel::Isa::Avx2 {
                    return unsafe { avx2($($arg),*) };
                }
            }
            let _ = isa;
            body($($arg),*);
        }
    };
}
pub(crate) use multiversion;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_the_strongest() {
        let best = Isa::detect();
        assert!(best.is_available());
        assert!(Isa::ALL.iter().all(|isa| !isa.is_available() || *isa <= best));
        assert!(Isa::Portable.is_available());
    }
}
