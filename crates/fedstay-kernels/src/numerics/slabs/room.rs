//! Memory that one bundle leaves to the next.

use crate::lock;
use crate::numerics::half_space::ActiveSet;
use std::sync::{Arc, Mutex};

/// The most numbers of a Gram matrix that are kept: 32 MB, a matrix of 2,800 vectors.
const MOST: usize = 1 << 22;

/// Where a bundle leaves its memory to the next one: to ask for it anew, and to have it cleared, takes as long as to
/// measure all vectors several times. Clones share it, and the first that asks has it.
#[derive(Debug, Clone, Default)]
pub struct Room(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) gram: Vec<f64>,
    pub(super) active: ActiveSet,
}

impl Room {
    pub(super) fn take(&self) -> Memory {
        std::mem::take(&mut *lock(&self.0))
    }

    /// Leaves it here, unless it is so much that it is better given back.
    pub(super) fn put(&self, memory: Memory) {
        if memory.gram.capacity() > MOST {
            return;
        }
        *lock(&self.0) = memory;
    }
}

/// All rooms are equal: nothing is computed from what is in them.
impl PartialEq for Room {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
