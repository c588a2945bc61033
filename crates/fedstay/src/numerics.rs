//! Arithmetic that knows nothing about agents: what users need of the crate `fedstay_kernels`.

pub use fedstay_kernels::Isa;
pub use fedstay_kernels::numerics::{
    Bf16, Machine, Number, Seed, Vector, Workers, fingerprint, linalg, normal, packed, uniform,
};

/// The projection off the span of several gradients, for many parameters and few agents.
pub mod projection {
    pub use fedstay_kernels::numerics::projection::{Projection, project_sum, project_sum_with};
}
