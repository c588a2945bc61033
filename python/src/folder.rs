//! The folder of a run whose agents are in Python: the same files as the simulator's.
//!
//! A round's line, the header (agents may join late) and the checkpoint are written in the moment
//! after the round. Whoever is killed before that computes the round again. The lock, the journal and
//! the checkpoint with its hashes are the simulator's.

use crate::engine::Roll;
use crate::error::{error, with_sources};
use fedstay::record::{Header, RoundLine, Summary};
use fedstay::verdict::Ledger;
use fedstay::{Engine, Error, Observer, RoundView, Server, ServerState};
use fedstay_draw::picture::{self, Subject};
use fedstay_sim::observe::{
    Asked, Checkpoint, FolderError, Journal, Recorded, RunLock, hash_of, read_rounds, write_whole,
};
use pyo3::PyResult;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Server, agents and books between two rounds.
#[derive(Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) server: ServerState,
    pub(crate) engine: Value,
    pub(crate) ledger: Ledger,
}

/// A tensor of the model: its name and shape, in the order of the weights.
pub(crate) type Layout = Vec<(String, Vec<usize>)>;

/// Where a run is kept.
pub(crate) struct Folder {
    path: PathBuf,
    config: String,
    rounds: Journal,
    between_checkpoints: Duration,
    last_checkpoint: Option<Instant>,
    /// Last, so that it is given back when everything else is closed.
    _lock: RunLock,
}

/// How a folder was found.
pub(crate) enum Found {
    /// No run in it yet.
    New,
    /// A run that was cut off, and where it stood: before its first checkpoint, nowhere.
    CutOff(Option<Box<State>>, Vec<RoundLine>),
}

impl Folder {
    /// Makes the folder of a new run, or takes up the one that was cut off.
    pub(crate) fn open(
        path: &Path,
        config: &str,
        header: &Header,
        resume: bool,
        between_checkpoints: Duration,
    ) -> PyResult<(Self, Found)> {
        let shown = path.display();
        let unfinished = || match path.join("summary.json").exists() {
            false => Ok(()),
            true => Err(error(format!(
                "the run in {shown} is over, its result is in summary.json; choose another folder"
            ))),
        };
        // Before the lock too, so that a run that is over keeps its folder as it is.
        unfinished()?;
        std::fs::create_dir_all(path).map_err(named(path))?;
        let lock = RunLock::take(path).map_err(error)?;
        unfinished()?;
        let place = path.join("config.toml");
        let there = match std::fs::read_to_string(&place) {
            Ok(text) => Some(text),
            Err(why) if why.kind() == io::ErrorKind::NotFound => None,
            Err(why) => return Err(named(&place)(why).into()),
        };
        let (rounds, found) = match there {
            Some(_) if !resume => {
                return Err(error(format!(
                    "{shown} holds a run already; go on with resume=True, or choose another folder"
                )));
            }
            Some(there) if there != config => {
                return Err(error(format!(
                    "the run in {shown} was begun with other settings (see its config.toml); go on \
                     with the same ones, or choose another folder"
                )));
            }
            Some(_) => take_up(path, config).map_err(|why| match why {
                FolderError::Changed { .. } => error(format!(
                    "{why}; put the file back as it was, or begin anew in another folder"
                )),
                other => error(other),
            })?,
            None => (Journal::create(&path.join("rounds.jsonl"), header)?, Found::New),
        };
        let mut folder = Self {
            path: path.to_owned(),
            config: hash_of(config),
            rounds,
            between_checkpoints,
            last_checkpoint: None,
            _lock: lock,
        };
        if matches!(found, Found::New) {
            folder.checkpoint(None)?;
            // Last, because a folder with a config.toml is a run that can be resumed.
            write_whole(&place, config.as_bytes())?;
        }
        Ok((folder, found))
    }

    /// Writes a round, and a checkpoint where one is due.
    fn keep(
        &mut self,
        header: &Header,
        round: &RoundLine,
        state: &dyn Fn() -> State,
    ) -> io::Result<()> {
        // Agents that joined late stand in the header too.
        self.rounds.replace_first(header)?;
        self.rounds.append(round)?;
        let due = self.last_checkpoint.is_none_or(|at| at.elapsed() >= self.between_checkpoints);
        if due || round.stop.is_some() {
            self.checkpoint(Some(state()))?;
            self.last_checkpoint = Some(Instant::now());
        }
        Ok(())
    }

    fn checkpoint(&mut self, state: Option<State>) -> io::Result<()> {
        let checkpoint = Checkpoint {
            config: self.config.clone(),
            rounds: self.rounds.mark()?,
            gram: None,
            asked: Asked::default(),
            state,
        };
        checkpoint.write(&self.path)
    }

    /// Draws, and writes the model and the summary; the run is then over.
    pub(crate) fn finish(
        &mut self,
        header: &Header,
        lines: &[RoundLine],
        summary: &Summary,
        server: &Server,
        layout: &Layout,
        state: State,
    ) -> PyResult<()> {
        self.checkpoint(Some(state))?;
        let recorded =
            Recorded { header: header.clone(), rounds: lines.to_vec(), unreadable: Vec::new() };
        let subject = Subject::ending(&self.path, recorded, summary.clone());
        picture::run::write(&subject).map_err(|why| error(with_sources(&why)))?;
        picture::report::write(&subject).map_err(error)?;
        let model = model_bytes(server.delivered(), layout).map_err(error)?;
        write_whole(&self.path.join("model.safetensors"), &model)?;
        let mut text = serde_json::to_vec_pretty(summary).map_err(error)?;
        text.push(b'\n');
        Ok(write_whole(&self.path.join("summary.json"), &text)?)
    }
}

/// Reads the checkpoint and cuts the rounds back to it. The header may have been written anew since:
/// somebody joined in a round that was lost, and the next round writes it as it then is.
fn take_up(path: &Path, config: &str) -> Result<(Journal, Found), FolderError> {
    let saved: Checkpoint<State> = Checkpoint::read(path)?;
    saved.check_config(path, config)?;
    let rounds = path.join("rounds.jsonl");
    let journal = Journal::resume_under_any_header(&rounds, &saved.rounds)?;
    let lines = read_rounds(&rounds).map_err(FolderError::Content)?.rounds;
    Ok((journal, Found::CutOff(saved.state.map(Box::new), lines)))
}

fn named(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The delivered weights as safetensors: `f32` tensors under their names, or one `f64` vector.
fn model_bytes(weights: &[f64], layout: &Layout) -> Result<Vec<u8>, safetensors::SafeTensorError> {
    let mut tensors: Vec<(&str, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    let mut rest = weights;
    for (name, shape) in layout {
        let (values, after) = rest.split_at(shape.iter().product::<usize>().min(rest.len()));
        rest = after;
        let bytes = values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect();
        tensors.push((name, Dtype::F32, shape.clone(), bytes));
    }
    if layout.is_empty() {
        let bytes = weights.iter().flat_map(|value| value.to_le_bytes()).collect();
        tensors.push(("weights", Dtype::F64, vec![weights.len()], bytes));
    }
    let views: Result<Vec<(&str, TensorView<'_>)>, _> = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| {
            TensorView::new(*dtype, shape.clone(), bytes).map(|view| (*name, view))
        })
        .collect();
    let about = HashMap::from([("schema".to_owned(), "fedstay.model/1".to_owned())]);
    safetensors::serialize(views?, Some(about))
}

/// Watches a run: the ledger, the lines, and the folder where there is one.
pub(crate) struct Books {
    pub(crate) header: Header,
    pub(crate) roll: Roll,
    pub(crate) ledger: Ledger,
    pub(crate) lines: Vec<RoundLine>,
    pub(crate) folder: Option<Folder>,
}

impl Books {
    /// Enters a round.
    pub(crate) fn add(&mut self, line: RoundLine) {
        self.ledger.add(&line);
        self.lines.push(line);
    }
}

impl Observer for Books {
    fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
        self.add(RoundLine::new(view));
        Ok(())
    }

    fn between_rounds(&mut self, server: &Server, engine: &dyn Engine) -> Result<(), Error> {
        self.header.agents.clone_from(&self.roll.borrow());
        let (Some(folder), Some(line)) = (&mut self.folder, self.lines.last()) else {
            return Ok(());
        };
        let ledger = &self.ledger;
        let state =
            || State { server: server.state(), engine: engine.memory(), ledger: ledger.clone() };
        folder.keep(&self.header, line, &state).map_err(|why| {
            Error::Observer(format!(
                "{}: {why}; the rounds before {} are kept: make room, then go on with resume=True",
                folder.path.display(),
                line.round
            ))
        })
    }
}
