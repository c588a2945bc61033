//! The core's loop around an engine that is written in Python.

use crate::convert::Numbers;
use crate::engine::PyEngine;
use crate::error::{error, from_core};
use crate::folder::{Books, Folder, Found, Layout, State};
use crate::lists::Behaviour;
use crate::outcome::Outcome;
use fedstay::record::Header;
use fedstay::verdict::{About, Ledger};
use fedstay::{Engine, Observer, Server, StopReason, run};
use fedstay_sim::experiment::rule_label;
use pyo3::prelude::*;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use toml::Table;

/// Runs rounds with the agents of `engine` until the rule stops, nobody is left, or `rounds` are over.
///
/// `engine` is an object with `agents()`, `gather(...)`, `assess(weights)`, `memory()` and
/// `recall(memory)`; `fedstay.simulate` and `fedstay.flower` have one each. `settings` (JSON) goes to
/// config.toml under its own name, `layout` names the tensors of model.safetensors.
#[pyfunction]
#[pyo3(signature = (engine, weights, rule, *, step_size, rounds, policy=None, behaviour=None,
    on="python", seed=0, out=None, resume=false, seconds_between_checkpoints=0.5,
    settings="{}", layout=Vec::new()))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn drive(
    py: Python<'_>,
    engine: Bound<'_, PyAny>,
    weights: &Bound<'_, PyAny>,
    rule: &Bound<'_, PyAny>,
    step_size: f64,
    rounds: u32,
    policy: Option<&Bound<'_, PyAny>>,
    behaviour: Option<&Bound<'_, PyAny>>,
    on: &str,
    seed: u64,
    out: Option<PathBuf>,
    resume: bool,
    seconds_between_checkpoints: f64,
    settings: &str,
    layout: Layout,
) -> PyResult<Outcome> {
    if rounds == 0 {
        return Err(error("`rounds` is 0: nothing would happen; set it to 1 or more"));
    }
    let weights = Numbers::new(weights, "`weights`", None)?.widened(py)?;
    let rule = crate::server::rule(rule)?;
    let policy = crate::server::policy(policy)?;
    let behaviour = Behaviour::read(behaviour)?;
    let label = rule_label(&rule, &policy, behaviour.inner());
    let mut server = Server::new(weights, rule, step_size)
        .and_then(|server| server.with_policy(policy))
        .map_err(from_core)?;
    let mut engine = PyEngine::new(engine, server.weights().len())?;
    let mut header = Header {
        schema: Header::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        rule: label,
        on: on.to_owned(),
        seed,
        rounds,
        agents: engine.roll().borrow().clone(),
        sketch: false,
        own: false,
    };
    let config = config(&server, &header, &behaviour, settings)?;
    let mut ledger = Ledger::default();
    let mut lines = Vec::new();
    let mut folder = None;
    if let Some(path) = out {
        let pause = Duration::try_from_secs_f64(seconds_between_checkpoints).map_err(error)?;
        let (opened, found) = Folder::open(&path, &config, &header, resume, pause)?;
        folder = Some(opened);
        if let Found::CutOff(state, before) = found {
            lines = before;
            if let Some(state) = state {
                server = taken_up(&server, state.server)?;
                engine.recall(&state.engine).map_err(|why| engine.exception(why))?;
                ledger = state.ledger;
            }
        }
    }
    // Whoever joined before the cut is in the roll, and belongs into the header of the rest.
    header.agents = engine.roll().borrow().clone();
    let mut books = Books { header, roll: engine.roll(), ledger, lines, folder };
    let stop = match books.ledger.stop() {
        Some(stop) => stop,
        None => go_on(&mut server, &mut engine, rounds, &mut books)?,
    };
    let about = About {
        rule: server.rule().name().to_owned(),
        policy: server.policy().name().to_owned(),
        behaviour: behaviour.inner().name().to_owned(),
        on: on.to_owned(),
        seed,
        notes: Vec::new(),
    };
    let summary = books.ledger.summary(&server, &mut engine, stop, about);
    let summary = summary.map_err(|why| engine.exception(why))?;
    if let Some(folder) = &mut books.folder {
        let state =
            State { server: server.state(), engine: engine.memory(), ledger: books.ledger.clone() };
        folder.finish(&summary, &server, &layout, state)?;
    }
    Outcome::new(&books.header, &books.lines, &summary, server.delivered())
}

/// The loop, until it ends by itself or the engine ends it.
fn go_on(
    server: &mut Server,
    engine: &mut PyEngine<'_>,
    rounds: u32,
    books: &mut Books,
) -> PyResult<StopReason> {
    match run(server, engine, rounds, &mut [books]) {
        Ok(stop) => Ok(stop),
        Err(why) => match engine.stopped() {
            Some(line) => {
                books.add(line);
                books.between_rounds(server, engine).map_err(from_core)?;
                Ok(StopReason::TooFew)
            }
            None => Err(engine.exception(why)),
        },
    }
}

/// The server of a checkpoint, if it is this run's.
fn taken_up(new: &Server, state: fedstay::ServerState) -> PyResult<Server> {
    let saved = Server::from_state(state).map_err(from_core)?;
    if saved.weights().len() != new.weights().len() {
        return Err(error(format!(
            "the checkpoint has {} weights, the model {}; choose another folder",
            saved.weights().len(),
            new.weights().len()
        )));
    }
    Ok(saved)
}

/// The text of config.toml.
fn config(
    server: &Server,
    header: &Header,
    behaviour: &Behaviour,
    settings: &str,
) -> PyResult<String> {
    let settings: Value = serde_json::from_str(settings).map_err(error)?;
    let mut table = Table::new();
    let number = |value: u64| toml::Value::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    table.insert("seed".into(), number(header.seed));
    table.insert("rounds".into(), number(u64::from(header.rounds)));
    table.insert("step_size".into(), server.step_size().into());
    table.insert("on".into(), header.on.clone().into());
    let section = |value: Result<Table, toml::ser::Error>| value.map_err(error);
    table.insert("rule".into(), section(Table::try_from(server.rule()))?.into());
    table.insert("policy".into(), section(Table::try_from(server.policy()))?.into());
    table.insert("behaviour".into(), section(Table::try_from(behaviour.inner()))?.into());
    for (name, value) in section(Table::try_from(settings))? {
        table.insert(name, value);
    }
    let version = env!("CARGO_PKG_VERSION");
    let text = toml::to_string(&table).map_err(error)?;
    Ok(format!(
        "# fedstay {version}, schema fedstay.config/1. The agents of this run are in Python: start \
         the same\n# program again, it goes on where it was.\n\n{text}"
    ))
}
