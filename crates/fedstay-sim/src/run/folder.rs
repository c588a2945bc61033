//! A run's folder, written so that a killed process loses nothing that was finished.
//!
//! | file | what |
//! |---|---|
//! | `config.toml` | the whole experiment, with seed and version |
//! | `rounds.jsonl` | a header, then one line per round |
//! | `gram.jsonl` | with `record_gram`: the agents' Gram matrix, one line per round |
//! | `checkpoint` | what `--resume` needs |
//! | `model.safetensors` | the delivered weights, under the names PyTorch gives the layers |
//! | `SHA256SUMS` | the hashes of these files, once the run is over |
//! | `summary.json` | the verdict; there only once the run is over |
//!
//! A line goes to the operating system as soon as its round is over. A checkpoint is taken now and
//! then, and records how long the files were at that moment and their hashes; resuming cuts them
//! back to it and computes what follows again, to the same bytes. Only one process at a time may
//! write a folder: see `lock.rs`.

use super::checkpoint::{Asked, Checkpoint, hash_of};
use super::disk::{named, sync_folder_of, with_room, write_whole};
use super::journal::{Journal, to_line};
use super::lock::RunLock;
use super::model::{TensorShapes, model_bytes};
use super::seal::{hash_of_bytes, hash_of_file, seal};
use crate::experiment::SpecError;
use fedstay::record::{GramLine, Header, RoundLine, Summary};
use fedstay::{BetweenRounds, Book, Error, RoundRecord, SessionState};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The most work, in time, that a killed run has to do again, where checkpoints are small.
const BETWEEN_CHECKPOINTS: Duration = Duration::from_millis(500);
/// For large checkpoints: the next waits for this multiple of the time that the last one took.
const TIMES_THE_LAST: u32 = 20;

/// What can go wrong with a run's folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The disk is full, a folder is missing or may not be written to.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The folder holds something other than what was asked for.
    #[error("{0}")]
    Content(String),
    /// There is a run in it already, or another process is writing it now.
    #[error("{0}")]
    Taken(String),
    /// A file of the run is not what the run had written; it is not continued.
    #[error("{} {how}", file.display())]
    Changed {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        how: String,
    },
    /// Its experiment cannot be used.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The run cannot be saved or continued.
    #[error(transparent)]
    Run(#[from] Error),
}

/// Who drives a run, and so how it is continued: what error messages say depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// The command line, whose agents are computed here.
    Command,
    /// A program in Python that has the agents, such as Flower's. They may join late.
    Python,
}

impl Driver {
    fn to_continue(self, path: &Path) -> String {
        match self {
            Self::Command => format!("continue it with `fedstay run --resume {}`", path.display()),
            Self::Python => "continue it with resume=True".to_owned(),
        }
    }

    fn elsewhere(self) -> &'static str {
        match self {
            Self::Command => "choose another --out",
            Self::Python => "choose another folder",
        }
    }

    fn anew(self, path: &Path) -> String {
        match self {
            Self::Command => {
                let config = path.join("config.toml");
                format!("start again with `fedstay run {} --out ANOTHER`", config.display())
            }
            Self::Python => "start again in another folder".to_owned(),
        }
    }

    /// The error about a checkpoint that is not one of this run.
    pub fn changed(self, path: &Path, error: &Error) -> FolderError {
        let how = format!("does not fit the experiment: {error}");
        self.told(path, FolderError::Changed { file: path.join("checkpoint"), how })
    }

    /// An error, with what can be done about it.
    fn told(self, path: &Path, error: FolderError) -> FolderError {
        match error {
            FolderError::Changed { file, how } => FolderError::Content(format!(
                "{} {how}; put the file back as it was, or {}",
                file.display(),
                self.anew(path)
            )),
            other => other,
        }
    }
}

/// What a run begins with.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The text of `config.toml`.
    pub config: &'a str,
    /// The first line of `rounds.jsonl`.
    pub header: &'a Header,
    /// Whether the agents' Gram matrices are kept as well.
    pub gram: bool,
    /// What a resumed run must do too.
    pub asked: Asked,
    /// The instructions that agents' work is computed with, where results depend on them.
    pub instructions: Option<&'a str>,
}

/// A run that was cut off.
#[derive(Debug)]
pub struct CutOff {
    /// Its folder, cut back to the last checkpoint.
    pub folder: Folder,
    /// The text of its `config.toml`.
    pub config: String,
    /// Where it stood; `None` before its first round.
    pub state: Option<SessionState>,
}

/// The folder of a run that is being written. It is a [`Book`].
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    driver: Driver,
    config: String,
    rounds: Journal,
    gram: Option<Journal>,
    asked: Asked,
    instructions: Vec<String>,
    between_checkpoints: Duration,
    last_checkpoint: Option<Instant>,
    last_took: Duration,
    /// Last, so that it is released after everything else is closed.
    _lock: RunLock,
}

impl Folder {
    /// Creates a folder for a run that has not begun.
    ///
    /// # Errors
    /// When there is a run in it already, another process is making one, or it cannot be written to.
    pub fn create(path: &Path, start: &Start<'_>, driver: Driver) -> Result<Self, FolderError> {
        let config = path.join("config.toml");
        // Before the lock, so that a run that is over keeps its folder as it is.
        if config.exists() && path.join("summary.json").exists() {
            return Err(FolderError::Taken(format!(
                "the run in {} is over: its result is in summary.json; {}",
                path.display(),
                driver.elsewhere()
            )));
        }
        if path.exists() && !path.is_dir() {
            return Err(FolderError::Taken(format!(
                "{} is a file, and a run needs a folder; {}",
                path.display(),
                driver.elsewhere()
            )));
        }
        std::fs::create_dir_all(path).map_err(named(path))?;
        let lock = RunLock::take(path)?;
        if config.exists() {
            return Err(FolderError::Taken(format!(
                "{} holds a run already; {}, or {}",
                path.display(),
                driver.to_continue(path),
                driver.elsewhere()
            )));
        }
        sync_folder_of(path)?;
        let made = Self::begin(path, start, driver, lock);
        Ok(made.map_err(with_room(|| "start the run again".to_owned()))?)
    }

    fn begin(path: &Path, start: &Start<'_>, driver: Driver, lock: RunLock) -> io::Result<Self> {
        let gram = serde_json::json!({ "schema": GramLine::SCHEMA });
        let gram =
            start.gram.then(|| Journal::create(&path.join("gram.jsonl"), &gram)).transpose()?;
        let mut folder = Self {
            path: path.to_owned(),
            driver,
            config: hash_of(start.config),
            rounds: Journal::create(&path.join("rounds.jsonl"), start.header)?,
            gram,
            asked: start.asked,
            instructions: start.instructions.map(str::to_owned).into_iter().collect(),
            between_checkpoints: BETWEEN_CHECKPOINTS,
            last_checkpoint: None,
            last_took: Duration::ZERO,
            _lock: lock,
        };
        folder.checkpoint(None)?;
        // Last, because a folder with a config.toml is a run that can be resumed.
        write_whole(&path.join("config.toml"), start.config.as_bytes())?;
        Ok(folder)
    }

    /// Opens the folder of a run that was cut off, as it was at the last checkpoint.
    ///
    /// # Errors
    /// When there is no run, it is over, another process is writing it, or one of its files was
    /// changed since.
    pub fn resume(path: &Path, driver: Driver) -> Result<CutOff, FolderError> {
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
                "the run in {} is over: its result is in summary.json{}",
                path.display(),
                if driver == Driver::Python { "; choose another folder" } else { "" }
            ))),
        };
        // Nothing is touched, not even by the lock, where there is nothing to resume.
        let text = read()?;
        if let (Driver::Command, Some(on)) = (driver, made_in_python(&text)) {
            return Err(FolderError::Content(format!(
                "the agents of the run in {} are in Python ({on}): start the same program again, it \
                 continues where it was",
                path.display()
            )));
        }
        unfinished()?;
        let lock = RunLock::take(path)?;
        unfinished()?;
        Self::take_up(path, read()?, driver, lock).map_err(|error| driver.told(path, error))
    }

    fn take_up(
        path: &Path,
        config: String,
        driver: Driver,
        lock: RunLock,
    ) -> Result<CutOff, FolderError> {
        let saved: Checkpoint<SessionState> = Checkpoint::read(path)?;
        saved.check_config(path, &config)?;
        let rounds = path.join("rounds.jsonl");
        let rounds = match driver {
            Driver::Command => Journal::resume(&rounds, &saved.rounds)?,
            // Somebody may have joined in a round that was lost: the next one rewrites the header.
            Driver::Python => Journal::resume_under_any_header(&rounds, &saved.rounds)?,
        };
        let gram = saved.gram.as_ref();
        let gram = gram.map(|mark| Journal::resume(&path.join("gram.jsonl"), mark)).transpose()?;
        let folder = Self {
            path: path.to_owned(),
            driver,
            config: saved.config,
            rounds,
            gram,
            asked: saved.asked,
            instructions: saved.instructions,
            between_checkpoints: BETWEEN_CHECKPOINTS,
            last_checkpoint: None,
            last_took: Duration::ZERO,
            _lock: lock,
        };
        Ok(CutOff { folder, config, state: saved.state })
    }

    /// The same folder with another interval between two checkpoints.
    #[must_use]
    pub fn with_pause(self, between_checkpoints: Duration) -> Self {
        Self { between_checkpoints, ..self }
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is asked for beyond the experiment.
    pub fn asked(&self) -> Asked {
        self.asked
    }

    /// Notes the instructions that the run is continued with, and says what that means where they are
    /// others than before. Of a run that was begun without such a note nothing is known.
    pub(crate) fn continues_with(&mut self, instructions: String) {
        if !self.instructions.is_empty() && !self.instructions.contains(&instructions) {
            self.instructions.push(instructions);
        }
    }

    /// What to know about a run whose rounds were computed on machines that round differently.
    pub fn warning(&self) -> Option<String> {
        let [first, rest @ ..] = &self.instructions[..] else { return None };
        (!rest.is_empty()).then(|| {
            format!(
                "this run was begun on a machine that computes with {first} and continued on one with \
                 {}; sums are rounded differently there, so its files are not, byte for byte, those of \
                 a run on either",
                rest.join(", then ")
            )
        })
    }

    /// Asks for more than the run was begun with.
    pub fn ask(&mut self, more: Asked) {
        self.asked.story |= more.story;
        self.asked.counterfactual |= more.counterfactual;
        self.asked.without = more.without.or(self.asked.without);
    }

    /// Writes the delivered model and the summary; the run is then over.
    ///
    /// # Errors
    /// When the disk is full; resuming then ends the run again.
    pub fn finish(
        &mut self,
        state: SessionState,
        weights: &[f64],
        layout: &TensorShapes,
        summary: &Summary,
    ) -> Result<(), FolderError> {
        self.check_there()?;
        // When a checkpoint was due depends on the clock; the last one must not.
        self.checkpoint(Some(state))?;
        let model = model_bytes(weights, layout).map_err(FolderError::Content)?;
        let summary = summary_text(summary)?;
        let room = || self.driver.to_continue(&self.path);
        self.end(&model, &summary).map_err(with_room(room))?;
        self.check_there()
    }

    /// Writes what a run ends with; the summary last, because it says that the run is over.
    fn end(&self, model: &[u8], summary: &[u8]) -> io::Result<()> {
        let mut sums = vec![("config.toml", self.config.clone())];
        for journal in [Some(&self.rounds), self.gram.as_ref()].into_iter().flatten() {
            let name =
                if journal.path().ends_with("gram.jsonl") { "gram.jsonl" } else { "rounds.jsonl" };
            sums.push((name, hash_of_file(journal.path())?));
        }
        sums.push(("model.safetensors", hash_of_bytes(model)));
        sums.push(("summary.json", hash_of_bytes(summary)));
        write_whole(&self.path.join("model.safetensors"), model)?;
        seal(&self.path, &sums)?;
        write_whole(&self.path.join("summary.json"), summary)
    }

    /// Says so if what was written is gone: the system writes on into a file that was deleted, and
    /// nothing of it is left at the end.
    fn check_there(&self) -> Result<(), FolderError> {
        let gram = self.gram.as_ref().filter(|gram| !gram.is_there());
        let gone = match (self.rounds.is_there(), gram) {
            (false, _) => self.rounds.path().to_owned(),
            (true, Some(gram)) => gram.path().to_owned(),
            (true, None) => self.path.join("config.toml"),
        };
        if self.rounds.is_there() && gram.is_none() && gone.is_file() {
            return Ok(());
        }
        Err(FolderError::Content(format!(
            "{} was deleted or replaced while the run was writing it: its rounds are lost; start the run \
             again, and leave {} alone until it is over",
            gone.display(),
            self.path.display()
        )))
    }

    fn checkpoint(&mut self, state: Option<SessionState>) -> io::Result<()> {
        let checkpoint = Checkpoint {
            config: self.config.clone(),
            rounds: self.rounds.mark()?,
            gram: self.gram.as_mut().map(Journal::mark).transpose()?,
            asked: self.asked,
            instructions: self.instructions.clone(),
            state,
        };
        checkpoint.write(&self.path)
    }

    /// Writes what a round leaves behind; says which file failed.
    fn append(&mut self, record: &RoundRecord<'_>) -> Result<(), (&'static str, io::Error)> {
        let failed = |name: &'static str| move |error: io::Error| (name, error);
        if record.header_changed {
            // Agents that joined late appear in the header too.
            self.rounds.replace_first(record.header).map_err(failed("rounds.jsonl"))?;
        }
        self.rounds.append(&record.line).map_err(failed("rounds.jsonl"))?;
        if let Some(gram) = &mut self.gram {
            gram.append(&GramLine::new(record)).map_err(failed("gram.jsonl"))?;
        }
        Ok(())
    }
}

impl Book for Folder {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.append(record).map_err(|(name, error)| {
            Error::Book(format!(
                "{}: {error}; all rounds before {} are kept: make room, then {}",
                self.path.join(name).display(),
                record.line.round,
                self.driver.to_continue(&self.path)
            ))
        })?;
        Ok(ControlFlow::Continue(()))
    }

    fn between(&mut self, moment: &BetweenRounds<'_>) -> Result<(), Error> {
        // What everybody remembers grows with those who were asked; it must not become the work.
        let pause = self.between_checkpoints.max(TIMES_THE_LAST * self.last_took);
        let due = self.last_checkpoint.is_none_or(|last| last.elapsed() >= pause);
        if due || moment.over {
            let begun = Instant::now();
            self.check_there().map_err(|error| Error::Book(error.to_string()))?;
            let state = (moment.state)()?;
            let saved = self.checkpoint(Some(state));
            let room = || self.driver.to_continue(&self.path);
            saved.map_err(with_room(room)).map_err(|error| Error::Book(error.to_string()))?;
            self.last_checkpoint = Some(Instant::now());
            self.last_took = begun.elapsed();
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

/// Writes the folder of a finished run that is known only by its records. Temporary: it is not
/// synced to disk.
pub(crate) fn write_folder(
    path: &Path,
    config: &str,
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
    write("config.toml", config.as_bytes())?;
    // Last, because a folder with rounds in it is one that can be viewed.
    Ok(write("rounds.jsonl", &rounds)?)
}

/// The text that says so, if the agents of a run are in Python, such as Flower's: only the program
/// that has them can continue such a run.
pub fn made_in_python(config: &str) -> Option<String> {
    // No experiment has this key; all runs driven by Python do.
    let table: toml::Table = toml::from_str(config).ok()?;
    Some(format!("on = {}", table.get("on")?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::run::Trial;

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
        let mut kept = first.keep_in(&whole, Asked::default()).unwrap();
        let summary = first.run(&mut [&mut kept]).unwrap().unwrap();
        first.close(&mut kept, &summary).unwrap();

        /// Lets some rounds through, then behaves like a full disk.
        struct Filling {
            folder: Folder,
            room: u32,
        }
        impl Book for Filling {
            fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
                if record.line.round > self.room {
                    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
                    self.folder.rounds.file = full.unwrap();
                }
                self.folder.round(record)
            }
            fn between(&mut self, moment: &BetweenRounds<'_>) -> Result<(), Error> {
                self.folder.between(moment)
            }
        }
        let path = folder.path().join("full");
        let mut second = trial();
        let new = second.keep_in(&path, Asked::default()).unwrap();
        let mut filling = Filling { folder: new, room: 20 };
        let error = second.run(&mut [&mut filling]).unwrap_err().to_string();
        assert!(error.contains("rounds.jsonl") && error.contains("--resume"), "{error}");
        let read = |run: &Path, file: &str| std::fs::read(run.join(file)).unwrap();
        assert_eq!(read(&path, "rounds.jsonl").split(|byte| *byte == b'\n').count(), 22);

        drop(filling);
        let (mut resumed, mut trial) = Trial::resume_in(&path).unwrap();
        let summary = trial.run(&mut [&mut resumed]).unwrap().unwrap();
        trial.close(&mut resumed, &summary).unwrap();
        for file in ["rounds.jsonl", "summary.json", "checkpoint", "model.safetensors"] {
            assert_eq!(read(&whole, file), read(&path, file), "{file}");
        }
    }

    /// The first checkpoint is as likely to find the disk full as any other.
    #[test]
    fn a_disk_that_is_full_at_a_checkpoint_says_to_make_room_and_how_to_continue() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        /// The file that the next checkpoint is written to is one that is always full.
        struct Full(Folder);
        impl Book for Full {
            fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
                let name = format!("checkpoint.{}.tmp", std::process::id());
                let _ = std::os::unix::fs::symlink("/dev/full", self.0.path().join(name));
                self.0.round(record)
            }
            fn between(&mut self, moment: &BetweenRounds<'_>) -> Result<(), Error> {
                self.0.between(moment)
            }
        }
        let mut first = trial();
        let kept = first.keep_in(&path, Asked::default()).unwrap();
        let error = first.run(&mut [&mut Full(kept)]).unwrap_err().to_string();
        let wanted = ["checkpoint", "make room, then continue it with `fedstay run --resume "];
        assert!(wanted.iter().all(|wanted| error.contains(wanted)), "{error}");
        let (mut resumed, mut trial) = Trial::resume_in(&path).unwrap();
        let summary = trial.run(&mut [&mut resumed]).unwrap().unwrap();
        trial.close(&mut resumed, &summary).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let error = trial().keep_in(Path::new("/proc/nowhere"), Asked::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("/proc/nowhere"), "{error}");
    }

    #[test]
    fn a_run_that_continues_with_other_instructions_says_that_its_bytes_are_neither_machines() {
        let set = |rounds: &str| {
            let set = [("rounds", rounds), ("data.per_agent", "20"), ("epsilon", "0.01")];
            set.map(|(key, value)| (key.to_owned(), value.to_owned()))
        };
        let trial =
            |rounds: &str| Trial::new(Experiment::parse("", &set(rounds)).unwrap()).unwrap();
        /// Ends a run after two rounds, as if it was killed.
        struct Cut;
        impl Book for Cut {
            fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
                Ok(match record.line.round {
                    2 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                })
            }
        }
        let here = fedstay_kernels::isa::instructions();
        let begun = |path: &Path, instructions: &[&str]| {
            let mut first = trial("6");
            let mut folder = first.keep_in(path, Asked::default()).unwrap();
            first.run(&mut [&mut folder, &mut Cut]).unwrap();
            drop(folder);
            // As if it had been begun elsewhere.
            let mut saved = Checkpoint::<SessionState>::read(path).unwrap();
            assert_eq!(saved.instructions, [here.as_str()]);
            saved.instructions = instructions.iter().map(|name| (*name).to_owned()).collect();
            saved.write(path).unwrap();
        };
        let temporary = tempfile::tempdir().unwrap();
        let continued = |name: &str, instructions: &[&str]| {
            let path = temporary.path().join(name);
            begun(&path, instructions);
            let (mut folder, mut trial) = Trial::resume_in(&path).unwrap();
            let warning = folder.warning();
            let summary = trial.run(&mut [&mut folder]).unwrap().unwrap();
            trial.close(&mut folder, &summary).unwrap();
            let told = summary.warnings.iter().filter(|told| warning.as_ref() == Some(*told));
            assert_eq!(told.count(), usize::from(warning.is_some()), "the summary says so too");
            (warning, Checkpoint::<SessionState>::read(&path).unwrap().instructions)
        };
        let (warning, kept) = continued("elsewhere", &["abacus"]);
        let warning = warning.unwrap();
        assert!(warning.contains("computes with abacus") && warning.contains(&here), "{warning}");
        assert_eq!(kept, ["abacus", &here], "whoever continues it once more is told too");
        let (warning, kept) = continued("here", &[&here]);
        assert_eq!((warning, kept), (None, vec![here.clone()]));
        let (warning, kept) = continued("earlier", &[]);
        assert_eq!((warning, kept), (None, Vec::new()), "of an earlier folder nothing is known");
    }
}
