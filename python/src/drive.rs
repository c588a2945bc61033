//! A session whose engine is written in Python.

use crate::convert::Numbers;
use crate::engine::PyEngine;
use crate::error::{Raised, error, from_core, with_sources};
use crate::listener::Listener;
use crate::lists::Behaviour;
use crate::outcome::Outcome;
use fedstay::record::{Header, RoundLine};
use fedstay::{About, Rule, Server, Session};
use fedstay_draw::picture::{self, Subject};
use fedstay_sim::experiment::{rule_label, to_table};
use fedstay_sim::run::{Asked, Driver, Folder, Recorded, Start, read_rounds};
use pyo3::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Table;

/// Runs rounds with the agents of `engine` until the rule stops, nobody is left, or `rounds` are
/// over.
///
/// `engine` is a `fedstay.engine.Engine`; `fedstay.simulate` and `fedstay.flower` have one each.
/// `settings` (JSON) goes to config.toml under its own name, `layout` names the tensors of
/// model.safetensors. `worth` names the ways to say what agents are worth, and `judge` tells the loss of
/// weights on rows that nobody trains on, which some of them need.
#[pyfunction]
#[pyo3(signature = (engine, weights, rule, *, step_size, rounds, policy=None, behaviour=None,
    on="python", seed=0, out=None, resume=false, seconds_between_checkpoints=0.5,
    settings="{}", layout=Vec::new(), worth=Vec::new(), judge=None))]
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
    layout: Vec<(String, Vec<usize>)>,
    worth: Vec<String>,
    judge: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    if rounds == 0 {
        return Err(error("`rounds` is 0: nothing would happen; set it to 1 or more"));
    }
    let weights = Numbers::new(weights, "`weights`", None)?.widened(py)?;
    let raised = Raised::default();
    let rule = crate::rule::read(rule, &raised)?;
    let policies = crate::server::policies(policy)?;
    let behaviour = Behaviour::read(behaviour)?;
    let about = About {
        label: rule_label(&rule, &policies, behaviour.inner()),
        behaviour: behaviour.inner().name().to_owned(),
        on: on.to_owned(),
        seed,
        ..About::default()
    };
    let server = Server::new(weights, rule, step_size)
        .and_then(|server| server.with_policy(policies))
        .map_err(from_core)?;
    let mut listener = Listener::new(engine.clone(), raised.clone());
    let engine = PyEngine::new(engine, server.weights().len(), raised.clone())?;
    let mut session = Session::new(server, engine, rounds, about).map_err(from_core)?;
    let mut methods = Vec::new();
    if let Some((book, names)) = crate::worth::book(&worth, judge, &raised)? {
        session = session.with_book(book);
        methods = names;
    }
    let mut lines: Vec<RoundLine> = Vec::new();
    let mut folder = None;
    if let Some(path) = out {
        let config = config(session.server(), session.header(), &behaviour, &methods, settings)?;
        let pause = Duration::try_from_secs_f64(seconds_between_checkpoints).map_err(error)?;
        let opened = open(&path, &config, resume, &mut session, &mut lines);
        let opened = opened.map_err(|why| raised.take().unwrap_or(why))?;
        folder = Some(opened.with_pause(pause));
    }
    let ended = session.run(&mut [&mut lines, &mut folder, &mut listener]);
    let mut summary = match ended.map_err(|why| raised.behind_run(why, session.header()))? {
        Some(summary) => summary,
        None => match listener.stopped {
            Some(reason) => session.conclude(reason).map_err(|why| raised.behind(why))?,
            None => return Err(error("interrupted")),
        },
    };
    summary.warnings.extend(listener.warnings()?);
    if let Some(folder) = &mut folder {
        let (header, rounds) = (session.header().clone(), std::mem::take(&mut lines));
        let recorded = Recorded { header, rounds, unreadable: Vec::new() };
        let subject = Subject::ending(folder.path(), recorded, summary.clone());
        picture::run::write(&subject).map_err(|why| error(with_sources(&why)))?;
        picture::report::write(&subject).map_err(|why| error(with_sources(&why)))?;
        lines = subject.recorded.rounds;
        let state = session.state().map_err(|why| raised.behind(why))?;
        let finished = folder.finish(state, session.server().delivered(), &layout, &summary);
        finished.map_err(|why| raised.take().unwrap_or_else(|| error(why)))?;
    }
    Outcome::new(session.header(), &lines, &summary, session.server().delivered())
}

/// Creates the folder of a new run, or continues the run that was cut off there, with its lines.
fn open(
    path: &Path,
    config: &str,
    resume: bool,
    session: &mut Session<PyEngine<'_>>,
    lines: &mut Vec<RoundLine>,
) -> PyResult<Folder> {
    if !(resume && path.join("config.toml").exists()) {
        let start = Start {
            config,
            header: session.header(),
            gram: false,
            asked: Asked::default(),
            instructions: None,
        };
        return Folder::create(path, &start, Driver::Python).map_err(error);
    }
    let found = Folder::resume(path, Driver::Python).map_err(error)?;
    if found.config != config {
        return Err(error(format!(
            "the run in {} was begun with other settings (see its config.toml); continue with the \
             same ones, or choose another folder",
            path.display()
        )));
    }
    *lines = read_rounds(&path.join("rounds.jsonl")).map_err(error)?.rounds;
    if let Some(state) = found.state {
        session.resume(state).map_err(from_core)?;
    }
    Ok(found.folder)
}

/// The text of config.toml.
fn config(
    server: &Server,
    header: &Header,
    behaviour: &Behaviour,
    worth: &[String],
    settings: &str,
) -> PyResult<String> {
    let settings: Value = serde_json::from_str(settings).map_err(error)?;
    let mut table = Table::new();
    let number = |value: u64| toml::Value::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    table.insert("seed".into(), number(header.seed));
    table.insert("rounds".into(), number(u64::from(header.rounds)));
    table.insert("step_size".into(), server.step_size().into());
    table.insert("on".into(), header.on.clone().into());
    let rule = match server.rule() {
        // The parameters of a rule from outside are for its own program to keep.
        Rule::Custom(rule) => [("kind", "custom"), ("name", rule.name())]
            .map(|(key, value)| (key.to_owned(), value.into()))
            .into_iter()
            .collect(),
        rule => to_table(rule).map_err(error)?,
    };
    table.insert("rule".into(), rule.into());
    table.extend(to_table(&BTreeMap::from([("policy", server.policies())])).map_err(error)?);
    table.insert("behaviour".into(), to_table(behaviour.inner()).map_err(error)?.into());
    if !worth.is_empty() {
        let methods = worth.iter().map(|name| toml::Value::from(name.as_str())).collect::<Vec<_>>();
        let section = Table::from_iter([("methods".to_owned(), methods.into())]);
        table.insert("worth".into(), section.into());
    }
    for (name, value) in Table::try_from(settings).map_err(error)? {
        table.insert(name, value);
    }
    let version = env!("CARGO_PKG_VERSION");
    let text = toml::to_string(&table).map_err(error)?;
    Ok(format!(
        "# fedstay {version}, schema fedstay.config/1. The agents of this run are in Python: start \
         the same\n# program again, it continues where it was.\n\n{text}"
    ))
}
