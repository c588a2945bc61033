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
//! then, and tells how long the files were at that moment and their hashes; resuming cuts them back
//! to it and computes what follows again, to the same bytes. One process at a time: see `lock.rs`.

use super::checkpoint::{Asked, Checkpoint, hash_of};
use super::disk::{named, sync_folder_of, write_whole};
use super::journal::{Journal, to_line};
use super::lock::RunLock;
use crate::experiment::{Experiment, SpecError};
use crate::trial::{Trial, TrialState, Watch};
use fedstay::record::{GramLine, Header, RoundLine, Summary};
use fedstay::{Error, RoundView};
use safetensors::tensor::{Dtype, TensorView};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
    /// There is a run in it already, or another process is writing it now.
    #[error("{0}")]
    Taken(String),
    /// A file of the run is not what the run had written; it is not continued.
    #[error("{} {how}", file.display())]
    Changed {
        /// Which.
        file: PathBuf,
        /// What is the matter with it.
        how: String,
    },
    /// Its experiment cannot be used.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// The folder of a run that is being written. A [`Watch`].
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    config: String,
    rounds: Journal,
    gram: Option<Journal>,
    asked: Asked,
    last_checkpoint: Option<Instant>,
    /// Last, so that it is given back when everything else is closed.
    _lock: RunLock,
}

impl Folder {
    /// A new folder for a trial that has not begun. `asked` is what a resumed run must do too.
    ///
    /// # Errors
    /// When there is a run in it already, another process is making one, or it cannot be written to.
    pub fn create(path: &Path, trial: &Trial, asked: Asked) -> Result<Self, FolderError> {
        let config = path.join("config.toml");
        let vacant = || match config.exists() {
            false => Ok(()),
            true => Err(FolderError::Taken(format!(
                "{0} holds a run already; continue it with `fedstay run --resume {0}`, or choose \
                 another --out",
                path.display()
            ))),
        };
        // Before the lock too, so that a run that is over keeps its folder as it is.
        vacant()?;
        std::fs::create_dir_all(path).map_err(named(path))?;
        let lock = RunLock::take(path)?;
        vacant()?;
        sync_folder_of(path)?;
        let gram = serde_json::json!({ "schema": GramLine::SCHEMA });
        let gram = trial
            .experiment()
            .record_gram
            .then(|| Journal::create(&path.join("gram.jsonl"), &gram))
            .transpose()?;
        let text = config_text(trial.experiment())?;
        let mut folder = Self {
            path: path.to_owned(),
            config: hash_of(&text),
            rounds: Journal::create(&path.join("rounds.jsonl"), &trial.header())?,
            gram,
            asked,
            last_checkpoint: None,
            _lock: lock,
        };
        folder.checkpoint(None)?;
        // Last, because a folder with a config.toml is a run that can be resumed.
        write_whole(&config, text.as_bytes())?;
        Ok(folder)
    }

    /// The folder of a run that was cut off, and its trial where it stood at the last checkpoint.
    ///
    /// # Errors
    /// When there is no run, it is over, another process is writing it, or one of its files was
    /// changed since.
    pub fn resume(path: &Path) -> Result<(Self, Trial), FolderError> {
        let config = path.join("config.toml");
        let read = || {
            std::fs::read_to_string(&config).map_err(|error| {
                FolderError::Content(format!(
                    "{}: {error}; there is no run to resume in {}",
                    config.display(),
                    path.display()
                ))
            })
        };
        let unfinished = || match path.join("summary.json").exists() {
            false => Ok(()),
            true => Err(FolderError::Content(format!(
                "the run in {} is over: its result is in summary.json",
                path.display()
            ))),
        };
        // Nothing is touched, not even by the lock, where there is nothing to resume.
        if let Some(on) = made_in_python(&read()?) {
            return Err(FolderError::Content(format!(
                "the agents of the run in {} are in Python ({on}): start the same program again, it \
                 continues where it was",
                path.display()
            )));
        }
        unfinished()?;
        let lock = RunLock::take(path)?;
        unfinished()?;
        Self::take_up(path, &read()?, lock).map_err(|error| match error {
            FolderError::Changed { file, how } => FolderError::Content(format!(
                "{} {how}; put the file back as it was, or begin anew with `fedstay run {} --out \
                 ANOTHER`",
                file.display(),
                config.display()
            )),
            other => other,
        })
    }

    fn take_up(path: &Path, text: &str, lock: RunLock) -> Result<(Self, Trial), FolderError> {
        let saved: Checkpoint<TrialState> = Checkpoint::read(path)?;
        saved.check_config(path, text)?;
        let mut trial = Trial::new(Experiment::parse(text, &[])?)?;
        let journal = |name: &str, mark| Journal::resume(&path.join(name), mark);
        let gram = saved.gram.as_ref().map(|mark| journal("gram.jsonl", mark)).transpose()?;
        let folder = Self {
            path: path.to_owned(),
            config: saved.config,
            rounds: journal("rounds.jsonl", &saved.rounds)?,
            gram,
            asked: saved.asked,
            last_checkpoint: None,
            _lock: lock,
        };
        if let Some(state) = saved.state {
            trial.resume(state).map_err(|error| FolderError::Changed {
                file: path.join("checkpoint"),
                how: format!("does not fit the experiment: {error}"),
            })?;
        }
        Ok((folder, trial))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is to be found out beyond the experiment.
    pub fn asked(&self) -> Asked {
        self.asked
    }

    /// Asks for more than the run was begun with.
    pub fn ask(&mut self, more: Asked) {
        self.asked.story |= more.story;
        self.asked.counterfactual |= more.counterfactual;
    }

    /// Writes the delivered model and the summary; the run is then over.
    ///
    /// # Errors
    /// When the disk is full; resuming then ends the run again.
    pub fn finish(&mut self, trial: &Trial, summary: &Summary) -> Result<(), FolderError> {
        // When a checkpoint was due is a matter of time; the last one is not.
        self.checkpoint(Some(trial.state()))?;
        let model = model_bytes(trial).map_err(FolderError::Content)?;
        write_whole(&self.path.join("model.safetensors"), &model)?;
        Ok(write_whole(&self.path.join("summary.json"), &summary_text(summary)?)?)
    }

    fn checkpoint(&mut self, state: Option<TrialState>) -> io::Result<()> {
        let checkpoint = Checkpoint {
            config: self.config.clone(),
            rounds: self.rounds.mark()?,
            gram: self.gram.as_mut().map(Journal::mark).transpose()?,
            asked: self.asked,
            state,
        };
        checkpoint.write(&self.path)
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
        self.rounds.append(&RoundLine::new(view)).map_err(failed("rounds.jsonl"))?;
        if let Some(gram) = &mut self.gram {
            gram.append(&GramLine::new(view)).map_err(failed("gram.jsonl"))?;
        }
        Ok(())
    }

    fn between(&mut self, state: &dyn Fn() -> TrialState, last: bool) -> Result<(), Error> {
        let due = self.last_checkpoint.is_none_or(|last| last.elapsed() >= BETWEEN_CHECKPOINTS);
        if due || last {
            self.checkpoint(Some(state())).map_err(|error| Error::Observer(error.to_string()))?;
            self.last_checkpoint = Some(Instant::now());
        }
        Ok(())
    }
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

/// What says so, if the agents of a run are in Python, Flower's for instance: the program that has
/// them can continue such a run, nobody else can compute it.
pub fn made_in_python(config: &str) -> Option<String> {
    // No experiment has this key; the runs that Python drives all do.
    let table: toml::Table = toml::from_str(config).ok()?;
    Some(format!("on = {}", table.get("on")?))
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
        let mut kept = Folder::create(&whole, &first, Asked::default()).unwrap();
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
                    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
                    self.folder.rounds.file = full.unwrap();
                }
                self.folder.round(view)
            }
            fn between(&mut self, state: &dyn Fn() -> TrialState, last: bool) -> Result<(), Error> {
                self.folder.between(state, last)
            }
        }
        let path = folder.path().join("full");
        let mut second = trial();
        let new = Folder::create(&path, &second, Asked::default()).unwrap();
        let mut filling = Filling { folder: new, room: 20 };
        let error = second.run(&mut filling).unwrap_err().to_string();
        assert!(error.contains("rounds.jsonl") && error.contains("--resume"), "{error}");
        let read = |run: &Path, file: &str| std::fs::read(run.join(file)).unwrap();
        assert_eq!(read(&path, "rounds.jsonl").split(|byte| *byte == b'\n').count(), 22);

        drop(filling);
        let (mut resumed, mut trial) = Folder::resume(&path).unwrap();
        let summary = trial.run(&mut resumed).unwrap();
        resumed.finish(&trial, &summary).unwrap();
        for file in ["rounds.jsonl", "summary.json", "checkpoint", "model.safetensors"] {
            assert_eq!(read(&whole, file), read(&path, file), "{file}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let error = Folder::create(Path::new("/proc/nowhere"), &trial(), Asked::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("/proc/nowhere"), "{error}");
    }
}
