//! Arithmetic that knows nothing about agents: long vectors, small systems, draws.

mod bf16;
mod cholesky;
pub(crate) mod eigen;
pub(crate) mod half_space;
mod kernel;
pub mod linalg;
mod machine;
mod normal;
mod number;
pub mod packed;
pub mod projection;
mod seed;
pub(crate) mod simplex;
pub(crate) mod slabs;
mod vector;

pub use bf16::Bf16;
pub use kernel::Isa;
pub use machine::{Machine, Workers};
pub use normal::{normal, uniform};
pub use number::Number;
pub use seed::{Seed, fingerprint};
pub use vector::Vector;

pub(crate) use cholesky::Cholesky;
pub(crate) use machine::Gram;
pub(crate) use normal::{normals, polar};
pub(crate) use number::PerPrecision;
