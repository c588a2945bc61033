//! The two precisions in which agents compute.

use crate::Vector;

/// A component of a vector, in single or in double precision.
pub trait Number: Copy {
    /// The same number as `f64`, without loss.
    fn widen(self) -> f64;
    /// The nearest number of this precision.
    fn narrow(value: f64) -> Self;
}

impl Number for f32 {
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn narrow(value: f64) -> Self {
        value as f32
    }
}

impl Number for f64 {
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }

    #[inline(always)]
    fn narrow(value: f64) -> Self {
        value
    }
}

/// A tolerance that depends on the precision of the vectors.
#[derive(Debug, Clone, Copy)]
pub struct PerPrecision {
    /// For vectors that are all in double precision.
    pub f64: f64,
    /// Where at least one is in single precision or less.
    pub f32: f64,
}

impl PerPrecision {
    /// The tolerance for computing with all of these vectors.
    pub fn of<'a>(self, vectors: impl IntoIterator<Item = Vector<'a>>) -> f64 {
        let single = vectors.into_iter().any(|vector| !matches!(vector, Vector::F64(_)));
        if single { self.f32 } else { self.f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_vector_in_single_precision_decides() {
        let tolerance = PerPrecision { f64: 1e-12, f32: 1e-6 };
        let (single, double) = (Vector::F32(&[1.0]), Vector::F64(&[1.0]));
        assert_eq!(tolerance.of([double, double]), 1e-12);
        assert_eq!(tolerance.of([double, single]), 1e-6);
        assert_eq!(tolerance.of([]), 1e-12);
    }
}
