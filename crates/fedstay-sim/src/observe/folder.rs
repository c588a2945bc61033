//! A run's folder, written so that a killed process loses nothing that was finished.
//!
//! | file | what |
//! |---|---|
//! | `config.toml` | the whole experiment, with seed and version |
//! | `rounds.jsonl` | a header, then one line a round |
//! | `gram.jsonl` | with `record_gram`: the agents' Gram matrix, one line a round |
//! | `checkpoint` | what `--resume` needs |
//! | `model.safetensors` | the delivered weights, under the names PyTorch gives the layers |
//! | `summary.json` | the verdict; there only once the run is over |
//!
//! A line goes to the operating system as soon as its round is over. A checkpoint is taken now and
//! then, and tells how long the files were at that moment; resuming cuts them back to it and
//! computes what follows again, to the same bytes.

use super::disk::write_whole;
use crate::spec::{Experiment, SpecError};
use crate::trial::{Trial, TrialState, Watch};
use fedstay::record::{GramLine, Header, RoundLine, Summary};
use fedstay::{Error, RoundView};
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SCHEMA: &str = "fedstay.checkpoint/1";
/// The most work a killed run has to do again.
const BETWEEN_CHECKPOINTS: Duration = Duration::from_millis(500);

/// What can go wrong with a run's folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The disk is full, a folder is missing or may not be written to.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The folder holds something else than what was asked for.
    #[error("{0}")]
    Content(String),
    /// Its experiment cannot be used.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// The folder of a run that is being written. A [`Watch`].
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    rounds: File,
    gram: Option<File>,
    line: Vec<u8>,
    last_checkpoint: Option<Instant>,
}

#[derive(Serialize, Deserialize)]
struct Checkpoint {
    schema: String,
    rounds_bytes: u64,
    gram_bytes: Option<u64>,
    state: TrialState,
}

impl Folder {
    /// A new folder for a trial that has not begun.
    ///
    /// # Errors
    /// When there is a run in it already, or it cannot be written to.
    pub fn create(path: &Path, trial: &Trial) -> Result<Self, FolderError> {
        let config = path.join("config.toml");
        if config.exists() {
            return Err(FolderError::Content(format!(
                "{0} holds a run already; continue it with `fedstay run --resume {0}`, or choose \
                 another --out",
                path.display()
            )));
        }
        std::fs::create_dir_all(path).map_err(named(path))?;
        write_whole(&path.join("rounds.jsonl"), &to_line(&trial.header())?)?;
        if trial.experiment().record_gram {
            let schema = serde_json::json!({ "schema": GramLine::SCHEMA });
            write_whole(&path.join("gram.jsonl"), &to_line(&schema)?)?;
        }
        let text = config_text(trial.experiment())?;
        // Last, because a folder with a config.toml is a run that can be resumed.
        write_whole(&config, text.as_bytes())?;
        Self::open(path, trial.experiment().record_gram)
    }

    /// The folder of a run that was cut off, and its trial where it stood at the last checkpoint.
    ///
    /// # Errors
    /// When there is no run, or it is over.
    pub fn resume(path: &Path) -> Result<(Self, Trial), FolderError> {
        let config = path.join("config.toml");
        let text = std::fs::read_to_string(&config).map_err(|error| {
            FolderError::Content(format!(
                "{}: {error}; there is no run to resume in {}",
                config.display(),
                path.display()
            ))
        })?;
        if path.join("summary.json").exists() {
            return Err(FolderError::Content(format!(
                "the run in {} is over: its result is in summary.json",
                path.display()
            )));
        }
        let mut trial = Trial::new(Experiment::parse(&text, &[])?)?;
        let mut folder = Self::open(path, trial.experiment().record_gram)?;
        let checkpoint = path.join("checkpoint");
        let header = to_line(&trial.header())?.len() as u64;
        let gram_header = to_line(&serde_json::json!({ "schema": GramLine::SCHEMA }))?.len() as u64;
        let mut lengths = (header, gram_header);
        if checkpoint.exists() {
            let bytes = std::fs::read(&checkpoint).map_err(named(&checkpoint))?;
            let unusable =
                |why: String| FolderError::Content(format!("{}: {why}", checkpoint.display()));
            let saved: Checkpoint =
                serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string()))?;
            if saved.schema != SCHEMA {
                return Err(unusable(format!("its schema is {}, not {SCHEMA}", saved.schema)));
            }
            lengths = (saved.rounds_bytes, saved.gram_bytes.unwrap_or(gram_header));
            trial.resume(saved.state).map_err(|error| unusable(error.to_string()))?;
        }
        cut(&mut folder.rounds, lengths.0, &path.join("rounds.jsonl"))?;
        if let Some(gram) = &mut folder.gram {
            cut(gram, lengths.1, &path.join("gram.jsonl"))?;
        }
        Ok((folder, trial))
    }

    fn open(path: &Path, gram: bool) -> Result<Self, FolderError> {
        let append = |name: &str| {
            let path = path.join(name);
            OpenOptions::new().append(true).open(&path).map_err(named(&path))
        };
        Ok(Self {
            path: path.to_owned(),
            rounds: append("rounds.jsonl")?,
            gram: if gram { Some(append("gram.jsonl")?) } else { None },
            line: Vec::new(),
            last_checkpoint: None,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the delivered model and the summary; the run is then over.
    ///
    /// # Errors
    /// When the disk is full; resuming then ends the run again.
    pub fn finish(&mut self, trial: &Trial, summary: &Summary) -> Result<(), FolderError> {
        // When a checkpoint was due is a matter of time; the last one is not.
        self.checkpoint(trial.state())?;
        let model = model_bytes(trial).map_err(FolderError::Content)?;
        write_whole(&self.path.join("model.safetensors"), &model)?;
        Ok(write_whole(&self.path.join("summary.json"), &summary_text(summary)?)?)
    }

    fn checkpoint(&mut self, state: TrialState) -> io::Result<()> {
        self.rounds.sync_data()?;
        let gram_bytes = match &mut self.gram {
            Some(gram) => {
                gram.sync_data()?;
                Some(gram.metadata()?.len())
            }
            None => None,
        };
        let rounds_bytes = self.rounds.metadata()?.len();
        let checkpoint = Checkpoint { schema: SCHEMA.to_owned(), rounds_bytes, gram_bytes, state };
        write_whole(&self.path.join("checkpoint"), &serde_json::to_vec(&checkpoint)?)
    }
}

impl Watch for Folder {
    fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
        let path = &self.path;
        let failed = |name: &'static str| {
            move |error: io::Error| {
                Error::Observer(format!(
                    "{}: {error}; all rounds before {} are kept: make room, then continue with \
                     `fedstay run --resume {}`",
                    path.join(name).display(),
                    view.number,
                    path.display()
                ))
            }
        };
        append(&mut self.rounds, &mut self.line, &RoundLine::new(view))
            .map_err(failed("rounds.jsonl"))?;
        if let Some(gram) = &mut self.gram {
            append(gram, &mut self.line, &GramLine::new(view)).map_err(failed("gram.jsonl"))?;
        }
        Ok(())
    }

    fn between(&mut self, state: &dyn Fn() -> TrialState, last: bool) -> Result<(), Error> {
        let due = self.last_checkpoint.is_none_or(|last| last.elapsed() >= BETWEEN_CHECKPOINTS);
        if due || last {
            self.checkpoint(state()).map_err(|error| Error::Observer(error.to_string()))?;
            self.last_checkpoint = Some(Instant::now());
        }
        Ok(())
    }
}

/// One write for the whole line: a process that is killed leaves it whole or not at all.
fn append(file: &mut File, line: &mut Vec<u8>, value: &impl Serialize) -> io::Result<()> {
    line.clear();
    serde_json::to_writer(&mut *line, value)?;
    line.push(b'\n');
    file.write_all(line)
}

fn summary_text(summary: &Summary) -> Result<Vec<u8>, FolderError> {
    let mut text = serde_json::to_vec_pretty(summary)
        .map_err(|error| FolderError::Content(error.to_string()))?;
    text.push(b'\n');
    Ok(text)
}

/// Writes the folder of a run that is over and known only by its records. Not for keeping: nothing
/// waits for the disk.
pub(crate) fn write_folder(
    path: &Path,
    experiment: &Experiment,
    header: &Header,
    lines: &[RoundLine],
    summary: &Summary,
) -> Result<(), FolderError> {
    std::fs::create_dir_all(path).map_err(named(path))?;
    let mut rounds = to_line(header)?;
    for line in lines {
        rounds.extend(to_line(line)?);
    }
    let write = |name: &str, bytes: &[u8]| {
        let path = path.join(name);
        std::fs::write(&path, bytes).map_err(named(&path))
    };
    write("summary.json", &summary_text(summary)?)?;
    write("config.toml", config_text(experiment)?.as_bytes())?;
    // Last, because a folder with rounds in it is one to look at.
    Ok(write("rounds.jsonl", &rounds)?)
}

fn to_line(value: &impl Serialize) -> Result<Vec<u8>, FolderError> {
    let mut line =
        serde_json::to_vec(value).map_err(|error| FolderError::Content(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

fn cut(file: &mut File, length: u64, path: &Path) -> Result<(), FolderError> {
    let there = file.metadata().map_err(named(path))?.len();
    if there < length {
        return Err(FolderError::Content(format!(
            "{} has {there} bytes where the checkpoint counted {length}; it was cut by something \
             else, so start the run anew",
            path.display()
        )));
    }
    file.set_len(length).map_err(named(path))?;
    file.seek(io::SeekFrom::End(0)).map_err(named(path))?;
    Ok(())
}

fn named(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn config_text(experiment: &Experiment) -> Result<String, FolderError> {
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!(
        "# fedstay {version}, schema fedstay.config/1. Run it again: fedstay run config.toml\n\n{}",
        experiment.to_toml()?
    ))
}

/// The delivered weights as safetensors: `f32` layers for a net, one `f64` vector for a problem.
fn model_bytes(trial: &Trial) -> Result<Vec<u8>, String> {
    let weights = trial.server().delivered();
    let mut tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    match trial.simulator() {
        Some(simulator) => {
            for tensor in simulator.network().layout().tensors() {
                let values = &weights[tensor.range.clone()];
                let bytes = values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect();
                tensors.push((tensor.name.clone(), Dtype::F32, tensor.shape.clone(), bytes));
            }
        }
        None => {
            let bytes = weights.iter().flat_map(|value| value.to_le_bytes()).collect();
            tensors.push(("weights".into(), Dtype::F64, vec![weights.len()], bytes));
        }
    }
    let views: Result<Vec<(&str, TensorView<'_>)>, _> = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| {
            TensorView::new(*dtype, shape.clone(), bytes).map(|view| (name.as_str(), view))
        })
        .collect();
    let views = views.map_err(|error| error.to_string())?;
    let about = HashMap::from([("schema".to_owned(), "fedstay.model/1".to_owned())]);
    safetensors::serialize(views, Some(about)).map_err(|error| error.to_string())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn trial() -> Trial {
        let set = [("problem.kind", "observation-3"), ("rule.kind", "fedavg")];
        let set: Vec<(String, String)> =
            set.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        Trial::new(Experiment::parse("", &set).unwrap()).unwrap()
    }

    #[test]
    fn a_full_disk_loses_no_finished_round_and_the_run_goes_on_once_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole");
        let mut first = trial();
        let mut kept = Folder::create(&whole, &first).unwrap();
        let summary = first.run(&mut kept).unwrap();
        kept.finish(&first, &summary).unwrap();

        /// Lets some rounds through; then the disk is full.
        struct Filling {
            folder: Folder,
            room: u32,
        }
        impl Watch for Filling {
            fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
                if view.number > self.room {
                    self.folder.rounds = OpenOptions::new().write(true).open("/dev/full").unwrap();
                }
                self.folder.round(view)
            }
            fn between(&mut self, state: &dyn Fn() -> TrialState, last: bool) -> Result<(), Error> {
                self.folder.between(state, last)
            }
        }
        let path = folder.path().join("full");
        let mut second = trial();
        let mut filling = Filling { folder: Folder::create(&path, &second).unwrap(), room: 20 };
        let error = second.run(&mut filling).unwrap_err().to_string();
        assert!(error.contains("rounds.jsonl") && error.contains("--resume"), "{error}");
        let read = |run: &Path, file: &str| std::fs::read(run.join(file)).unwrap();
        assert_eq!(read(&path, "rounds.jsonl").split(|byte| *byte == b'\n').count(), 22);

        let (mut resumed, mut trial) = Folder::resume(&path).unwrap();
        let summary = trial.run(&mut resumed).unwrap();
        resumed.finish(&trial, &summary).unwrap();
        for file in ["rounds.jsonl", "summary.json", "checkpoint", "model.safetensors"] {
            assert_eq!(read(&whole, file), read(&path, file), "{file}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let error = Folder::create(Path::new("/proc/nowhere"), &trial()).unwrap_err().to_string();
        assert!(error.contains("/proc/nowhere"), "{error}");
    }
}
