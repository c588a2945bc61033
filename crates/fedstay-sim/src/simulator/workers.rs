//! The threads among which a server's long sums are shared: those that simulate the agents, which have
//! nothing to do meanwhile.

use fedstay::numerics::{Machine, Workers};
use rayon::prelude::*;
use std::sync::Arc;

/// The pool that the caller runs in.
struct Pool;

impl Workers for Pool {
    fn share(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        (0..parts).into_par_iter().for_each(part);
    }
}

/// What servers in the simulator compute with.
pub(super) fn machine() -> Machine {
    Machine::default().with_workers(Arc::new(Pool))
}
