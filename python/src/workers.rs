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
        match is_owner() {
            true => (0..parts).into_par_iter().for_each(part),
            false => (0..parts).for_each(part),
        }
    }

    fn host(&self, work: &mut (dyn FnMut() + Send)) {
        match is_owner() {
            true => fedstay_sim::simulator::host(work),
            false => work(),
        }
    }
}

/// Whether the threads are this process's: a forked child would wait for threads that only its parent has.
fn is_owner() -> bool {
    *OWNER.get_or_init(std::process::id) == std::process::id()
}

/// Takes note that the threads are this process's, for a caller that is about to start them by other means.
pub(crate) fn own() {
    OWNER.get_or_init(std::process::id);
}

/// What servers in Python compute with.
pub(crate) fn machine() -> Machine {
    Machine::default().with_workers(Arc::new(Pool))
}
