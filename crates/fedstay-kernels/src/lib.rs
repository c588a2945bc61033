//! The arithmetic behind fedstay. It knows neither agents nor rules, and it starts no threads.
//!
//! | room | what |
//! |---|---|
//! | `isa` | [`Isa`]: which instruction sets there are, and how one function is compiled for all of them |
//! | [`numerics`] | long vectors of any precision, small systems, projections, seeds |
//! | [`layer`] | the layers of models: rows of images times weights, convolutions, activations, losses |
//!
//! Users find what is meant for them under `fedstay::numerics` and `fedstay_sim::model`: everything
//! else here may change with any version.

pub mod isa;
pub mod layer;
pub mod numerics;

pub use isa::Isa;
pub use numerics::{Bf16, Seed, Vector, linalg};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a lock guards, also where a thread that held it has panicked: everything guarded here, and in the crates
/// that use this, is whole between any two of its changes.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
