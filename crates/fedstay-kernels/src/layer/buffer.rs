//! Scratch memory on cache-line boundaries.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// One cache line, made for its alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct CacheLine([f32; 16]);

/// A growable slice of `f32` that starts on a cache line, so that 512-bit loads never straddle two.
#[derive(Clone, Default)]
pub struct Buffer {
    lines: Vec<CacheLine>,
    len: usize,
}

impl Buffer {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        Self { lines: vec![CacheLine([0.0; 16]); len.div_ceil(16)], len }
    }

    /// Sets the length. The buffer's contents are then unspecified (but always initialised); it
    /// allocates only when it grows beyond any earlier length.
    pub fn resize(&mut self, len: usize) {
        if len > self.lines.len() * 16 {
            self.lines.resize(len.div_ceil(16), CacheLine([0.0; 16]));
        }
        self.len = len;
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `CacheLine` is `repr(C)` over `[f32; 16]` and as large as its alignment, so the lines
        // are `16 * lines.len()` contiguous initialised floats, and `len` never exceeds that.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`; the borrow of `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({})", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_aligned_and_keeps_its_memory() {
        let mut buffer = Buffer::zeros(33);
        assert_eq!(buffer.as_ptr() as usize % 64, 0);
        assert_eq!(buffer.len(), 33);
        buffer[32] = 1.0;
        let before = buffer.as_ptr();
        buffer.resize(5);
        buffer.resize(48);
        assert_eq!(buffer.as_ptr(), before);
        assert_eq!(buffer[32], 1.0);
    }
}
