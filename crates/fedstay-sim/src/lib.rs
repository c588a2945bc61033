//! The parts of fedstay that hold data: models, data sets, local work, and the in-process engine
//! that runs them.

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

pub(crate) use fedstay::record::is_default;
pub use fedstay_kernels::lock;
