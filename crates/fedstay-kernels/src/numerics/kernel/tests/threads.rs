//! Threads that share sums out, for tests of this crate and of those above it.

use super::Workers;

/// A number of threads; each takes every n-th part.
pub(crate) struct Threads(pub(crate) usize);

impl Workers for Threads {
    fn share(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for first in 0..self.0 {
                scope.spawn(move || (first..parts).step_by(self.0).for_each(part));
            }
        });
    }
}
