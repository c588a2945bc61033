//! All that a step may be computed with: every instruction set there is, and several numbers of threads.

use fedstay::numerics::{Isa, Machine, Workers};
use std::sync::Arc;
use threads::Threads;

#[path = "../../../fedstay-kernels/src/numerics/kernel/tests/threads.rs"]
mod threads;

pub(crate) fn with_threads(count: usize) -> Machine {
    Machine::default().with_workers(Arc::new(Threads(count)))
}

pub(crate) fn machines() -> Vec<Machine> {
    Isa::available().into_iter().map(Machine::new).chain([1, 2, 8].map(with_threads)).collect()
}
