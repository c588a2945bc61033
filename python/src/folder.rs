//! The folder of a run whose agents are in Python: the same files as the simulator's.
//!
//! A round's line, the header (agents may join late) and the checkpoint are written in the moment
//! after the round. Whoever is killed before that computes the round again.

use crate::engine::Roll;
use crate::error::error;
use fedstay::record::{Header, RoundLine, Summary};
use fedstay::verdict::Ledger;
use fedstay::{Engine, Error, Observer, RoundView, Server, ServerState};
use fedstay_cli::picture;
use fedstay_sim::observe::{read_rounds, write_whole};
use pyo3::PyResult;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SCHEMA: &str = "fedstay.checkpoint/1";

/// What resuming needs, in the simulator's form.
#[derive(Serialize, Deserialize)]
struct Checkpoint {
    schema: String,
    rounds_bytes: u64,
    gram_bytes: Option<u64>,
    state: State,
}

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
    header: Vec<u8>,
    rounds: File,
    between_checkpoints: Duration,
    last_checkpoint: Option<Instant>,
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
        let there = std::fs::read_to_string(path.join("config.toml")).ok();
        if path.join("summary.json").exists() {
            return Err(error(format!(
                "the run in {shown} is over, its result is in summary.json; choose another folder"
            )));
        }
        let found = match there {
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
            Some(_) => take_up(path)?,
            None => {
                std::fs::create_dir_all(path).map_err(named(path))?;
                write_whole(&path.join("rounds.jsonl"), &line(header)?)?;
                // Last, because a folder with a config.toml is a run that can be resumed.
                write_whole(&path.join("config.toml"), config.as_bytes())?;
                Found::New
            }
        };
        let rounds = path.join("rounds.jsonl");
        let folder = Self {
            path: path.to_owned(),
            header: first_line(&rounds)?,
            rounds: OpenOptions::new().append(true).open(&rounds).map_err(named(&rounds))?,
            between_checkpoints,
            last_checkpoint: None,
        };
        Ok((folder, found))
    }

    /// Writes a round, and a checkpoint where one is due.
    fn keep(
        &mut self,
        header: &Header,
        round: &RoundLine,
        state: &dyn Fn() -> State,
    ) -> io::Result<()> {
        let first = line(header)?;
        if first != self.header {
            self.replace_header(first)?;
        }
        self.rounds.write_all(&line(round)?)?;
        let due = self.last_checkpoint.is_none_or(|at| at.elapsed() >= self.between_checkpoints);
        if due || round.stop.is_some() {
            self.checkpoint(state())?;
            self.last_checkpoint = Some(Instant::now());
        }
        Ok(())
    }

    /// Agents that joined late stand in the header too.
    fn replace_header(&mut self, header: Vec<u8>) -> io::Result<()> {
        let path = self.path.join("rounds.jsonl");
        let bytes = std::fs::read(&path)?;
        let mut whole = header.clone();
        whole.extend_from_slice(bytes.get(self.header.len()..).unwrap_or_default());
        write_whole(&path, &whole)?;
        self.rounds = OpenOptions::new().append(true).open(&path)?;
        self.header = header;
        Ok(())
    }

    fn checkpoint(&mut self, state: State) -> io::Result<()> {
        self.rounds.sync_data()?;
        let rounds_bytes = self.rounds.metadata()?.len();
        let schema = SCHEMA.to_owned();
        let checkpoint = Checkpoint { schema, rounds_bytes, gram_bytes: None, state };
        write_whole(&self.path.join("checkpoint"), &serde_json::to_vec(&checkpoint)?)
    }

    /// Draws, and writes the model and the summary; the run is then over.
    pub(crate) fn finish(
        &mut self,
        summary: &Summary,
        server: &Server,
        layout: &Layout,
        state: State,
    ) -> PyResult<()> {
        self.checkpoint(state)?;
        picture::run::write(&self.path).map_err(|why| error(format!("{why:#}")))?;
        picture::report::write(&self.path, Some(summary))
            .map_err(|why| error(format!("{why:#}")))?;
        let model = model_bytes(server.delivered(), layout).map_err(error)?;
        write_whole(&self.path.join("model.safetensors"), &model)?;
        let mut text = serde_json::to_vec_pretty(summary).map_err(error)?;
        text.push(b'\n');
        Ok(write_whole(&self.path.join("summary.json"), &text)?)
    }
}

/// Reads the checkpoint and cuts the rounds back to it.
fn take_up(path: &Path) -> PyResult<Found> {
    let rounds = path.join("rounds.jsonl");
    let checkpoint = path.join("checkpoint");
    let (length, state) = if checkpoint.exists() {
        let unusable = |why: String| error(format!("{}: {why}", checkpoint.display()));
        let bytes = std::fs::read(&checkpoint).map_err(named(&checkpoint))?;
        let saved: Checkpoint =
            serde_json::from_slice(&bytes).map_err(|why| unusable(why.to_string()))?;
        if saved.schema != SCHEMA {
            return Err(unusable(format!("its schema is {}, not {SCHEMA}", saved.schema)));
        }
        (saved.rounds_bytes, Some(Box::new(saved.state)))
    } else {
        (first_line(&rounds)?.len() as u64, None)
    };
    let file = OpenOptions::new().write(true).open(&rounds).map_err(named(&rounds))?;
    let there = file.metadata().map_err(named(&rounds))?.len();
    if there < length {
        return Err(error(format!(
            "{} has {there} bytes where the checkpoint counted {length}; it was cut by something \
             else, so start the run anew",
            rounds.display()
        )));
    }
    file.set_len(length).map_err(named(&rounds))?;
    let lines = read_rounds(&rounds).map_err(error)?.rounds;
    Ok(Found::CutOff(state, lines))
}

fn first_line(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = std::fs::read(path).map_err(named(path))?;
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    Ok(bytes[..end].to_vec())
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
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
