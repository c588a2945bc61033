//! All that a step may be computed with: every instruction set there is, and several numbers of threads.

use fedstay::numerics::{Isa, Machine, Workers};
use std::sync::Arc;

/// So many threads; each takes every n-th part.
struct Threads(usize);

impl Workers for Threads {
    fn share(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for first in 0..self.0 {
                scope.spawn(move || (first..parts).step_by(self.0).for_each(part));
            }
        });
    }
}

pub(crate) fn with_threads(count: usize) -> Machine {
    Machine::default().with_workers(Arc::new(Threads(count)))
}

pub(crate) fn machines() -> Vec<Machine> {
    Isa::available().into_iter().map(Machine::new).chain([1, 2, 8].map(with_threads)).collect()
}
