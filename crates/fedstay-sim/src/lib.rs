//! The parts of fedstay that hold data: models, data sets, local work, and the in-process engine
//! that runs them.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub mod data;
pub mod experiment;
pub mod measure;
pub mod model;
pub mod partition;
pub mod plan;
pub mod run;
pub mod simulator;
pub mod sweep;
pub mod text;
pub mod training;

/// What a lock guards, also where a thread that held it has panicked: everything guarded here is whole
/// between any two of its changes.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a field still has its default, so that it can be left out of a file.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
