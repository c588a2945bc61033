//! The threads among which a server's long sums are shared.

use fedstay::numerics::{Machine, Workers};
use rayon::prelude::*;
use std::sync::{Arc, OnceLock};

/// The process whose threads they are: a fork has none of them.
static OWNER: OnceLock<u32> = OnceLock::new();

/// The process's pool of threads, one per core it may use (`RAYON_NUM_THREADS` says otherwise).
struct Pool;

impl Workers for Pool {
    fn share(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        let here = std::process::id();
        match *OWNER.get_or_init(|| here) == here {
            true => (0..parts).into_par_iter().for_each(part),
            // A forked child would wait for threads that only its parent has.
            false => (0..parts).for_each(part),
        }
    }
}

/// What servers in Python compute with.
pub(crate) fn machine() -> Machine {
    Machine::default().with_workers(Arc::new(Pool))
}
