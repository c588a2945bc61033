//! The vectors that agents send, where they are and as they are.

use crate::numerics::Bf16;
use std::ops::Range;

/// A borrowed direction or gradient, in the precision its agent computes in.
///
/// Nets compute in `f32`, or send half of it; the named problems, and whatever is called certified, in `f64`. The
/// server reads all where they are, without a copy, and accumulates in `f64`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Vector<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision.
    F64(&'a [f64]),
    /// The 16-bit format of neural networks.
    BF16(&'a [Bf16]),
}

impl<'a> Vector<'a> {
    /// The number of components.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::BF16(values) => values.len(),
        }
    }

    /// Whether there are no components.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of its components.
    pub fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::F32(values) => Self::F32(&values[range]),
            Self::F64(values) => Self::F64(&values[range]),
            Self::BF16(values) => Self::BF16(&values[range]),
        }
    }

    /// Whether it is the same memory.
    pub fn is(&self, other: Self) -> bool {
        match (self, other) {
            (Self::F32(one), Self::F32(other)) => std::ptr::eq(*one, other),
            (Self::F64(one), Self::F64(other)) => std::ptr::eq(*one, other),
            (Self::BF16(one), Self::BF16(other)) => std::ptr::eq(*one, other),
            _ => false,
        }
    }

    /// One component, widened.
    pub fn get(&self, index: usize) -> Option<f64> {
        match self {
            Self::F32(values) => values.get(index).copied().map(f64::from),
            Self::F64(values) => values.get(index).copied(),
            Self::BF16(values) => values.get(index).map(|value| value.widen()),
        }
    }
}
