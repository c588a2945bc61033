//! The Python wheel `fedstay`: a thin layer over the core, the simulator and the drawings.
//!
//! It has no logic of its own. Rules, behaviours and policies are what the core lists; the loop,
//! the records and the verdict are the core's; Python gets them under the same names.

mod baselines;
mod bfloat16;
mod convert;
mod drive;
mod engine;
mod error;
mod listener;
mod lists;
mod native;
mod outcome;
mod participant;
mod progress;
mod rates;
mod report;
mod round;
mod rule;
mod server;
mod sweep;
mod workers;
mod worth;

use pyo3::prelude::*;

/// The part of fedstay that is written in Rust. Use it through the package `fedstay`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let error = module.py().get_type::<error::Error>();
    // What is raised in Python names no agent unless it sets one.
    error.setattr("agent", module.py().None())?;
    module.add("Error", error)?;
    module.add("RuleError", module.py().get_type::<error::RuleError>())?;
    module.add_class::<report::Report>()?;
    module.add_class::<rates::Rates>()?;
    module.add_class::<round::Round>()?;
    module.add_class::<server::Server>()?;
    module.add_class::<server::Decision>()?;
    module.add_class::<lists::Behaviour>()?;
    module.add_class::<participant::Participant>()?;
    module.add_class::<outcome::Outcome>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_function(wrap_pyfunction!(lists::listed, module)?)?;
    module.add_function(wrap_pyfunction!(lists::keys, module)?)?;
    module.add_function(wrap_pyfunction!(lists::complete_rule, module)?)?;
    module.add_function(wrap_pyfunction!(lists::complete_policy, module)?)?;
    module.add_function(wrap_pyfunction!(lists::policy_facts, module)?)?;
    module.add_function(wrap_pyfunction!(lists::policy_of_rule, module)?)?;
    module.add_function(wrap_pyfunction!(lists::refuse_loads, module)?)?;
    module.add_function(wrap_pyfunction!(lists::asks_of_agents, module)?)?;
    module.add_function(wrap_pyfunction!(lists::tau, module)?)?;
    module.add_function(wrap_pyfunction!(worth::worth_methods, module)?)?;
    module.add_function(wrap_pyfunction!(drive::drive, module)?)?;
    module.add_function(wrap_pyfunction!(baselines::baselines, module)?)?;
    module.add_function(wrap_pyfunction!(native::run_experiment, module)?)?;
    module.add_function(wrap_pyfunction!(outcome::read_folder, module)?)?;
    module.add_function(wrap_pyfunction!(outcome::draw, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::run_family, module)?)?;
    Ok(())
}
