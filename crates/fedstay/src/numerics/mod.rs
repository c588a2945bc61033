//! Arithmetic that knows nothing about agents: long vectors, small systems, draws.

mod cholesky;
pub(crate) mod eigen;
pub(crate) mod half_space;
pub mod linalg;
mod normal;
mod number;
pub mod projection;
mod seed;
pub(crate) mod simplex;
pub(crate) mod slabs;

pub use normal::{normal, uniform};
pub use number::Number;
pub use seed::{Seed, fingerprint};

pub(crate) use cholesky::Cholesky;
pub(crate) use normal::{normals, polar};
pub(crate) use number::PerPrecision;
