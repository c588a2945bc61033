//! What has data: models, data sets, local work, and the in-process engine that runs them.

mod agent;
pub mod data;
pub mod experiment;
pub mod kernel;
pub mod local_work;
pub mod model;
pub mod observe;
pub mod partition;
pub mod population;
pub mod simulator;
pub mod sweep;
pub mod text;
pub mod trial;
mod unseen;
