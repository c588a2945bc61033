//! Arithmetic for servers: long vectors, small systems, draws.

mod bf16;
pub mod capped;
mod cholesky;
pub mod eigen;
pub mod half_space;
mod kernel;
pub mod linalg;
mod machine;
mod normal;
mod number;
pub mod packed;
pub mod projection;
mod seed;
pub mod simplex;
pub mod slabs;
mod vector;

pub use bf16::Bf16;
pub use cholesky::Cholesky;
pub use kernel::{Combined, Sums};
pub use machine::{Gram, Machine, Workers};
pub use normal::{normal, normals, polar, uniform};
pub use number::{Number, PerPrecision};
pub use seed::{Seed, fingerprint};
pub use vector::Vector;
