//! What `--resume` needs, tied to the files it belongs to.
//!
//! Two lines: the second is the checkpoint, the first has its schema and the hash of the second.
//! The checkpoint holds the hash of `config.toml` and how far the journals had come, with their
//! hashes, so that a run whose files were changed in between is not continued.

use super::FolderError;
use super::disk::{named, write_private};
use super::journal::{Mark, hex, to_line};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "fedstay.checkpoint/2";
/// The earlier schema had no hashes: nothing says whether its files still belong together.
const WITHOUT_HASHES: &str = "fedstay.checkpoint/1";

/// What was asked for beyond the experiment that changes the summary: a resumed run does it too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Whether to tell every agent's story.
    pub story: bool,
    /// Whether to do the same run with nobody leaving.
    pub counterfactual: bool,
    /// Without whom to do the same run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<Who>,
}

/// One agent after the other, or one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// One after the other.
    Each,
    /// This one.
    Agent(u64),
}

impl Who {
    /// Whether it names nobody who is not among this many agents.
    pub fn is_among(self, agents: usize) -> bool {
        match self {
            Self::Each => true,
            Self::Agent(agent) => agent < agents as u64,
        }
    }
}

impl std::str::FromStr for Who {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "each" => Ok(Self::Each),
            number => match number.parse() {
                Ok(agent) => Ok(Self::Agent(agent)),
                Err(_) => Err("say `each`, or the number of an agent, from 0".to_owned()),
            },
        }
    }
}

/// Where a run stands between two rounds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint<S> {
    /// The hash of `config.toml`.
    pub config: String,
    /// How far `rounds.jsonl` had come.
    pub rounds: Mark,
    /// How far `gram.jsonl` had come, where there is one.
    pub gram: Option<Mark>,
    /// What was asked for beyond the experiment.
    pub asked: Asked,
    /// The instructions that agents' work was computed with, where results depend on them: more than one
    /// where it was continued on another machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<String>,
    /// Server, agents and books; `None` before the first round.
    pub state: Option<S>,
}

#[derive(Serialize, Deserialize)]
struct CheckpointSeal {
    schema: String,
    #[serde(default)]
    sha256: String,
}

fn place(folder: &Path) -> PathBuf {
    folder.join("checkpoint")
}

/// The hash of a configuration's text, as a checkpoint holds it.
pub fn hash_of(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

impl<S: Serialize> Checkpoint<S> {
    /// Writes it into a run's folder, readable only by its owner: it holds every agent's losses.
    ///
    /// # Errors
    /// When the disk is full; the previous checkpoint is then still there.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let body = to_line(self)?;
        let first =
            CheckpointSeal { schema: SCHEMA.to_owned(), sha256: hex(&Sha256::digest(&body)) };
        let mut bytes = to_line(&first)?;
        bytes.extend(body);
        write_private(&place(folder), &bytes)
    }
}

impl<S: DeserializeOwned> Checkpoint<S> {
    /// Reads it from a run's folder.
    ///
    /// # Errors
    /// When there is none, or it is not as it was written.
    pub fn read(folder: &Path) -> Result<Self, FolderError> {
        let path = place(folder);
        let changed = |how: String| FolderError::Changed { file: path.clone(), how };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(changed("is not there".into()));
            }
            Err(error) => return Err(named(&path)(error).into()),
        };
        let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        let (first, body) = bytes.split_at(end);
        let damaged = || changed("is damaged: it is not what the run had written".into());
        let first: CheckpointSeal = serde_json::from_slice(first).map_err(|_| damaged())?;
        match first.schema.as_str() {
            SCHEMA => {}
            WITHOUT_HASHES => {
                let how = "was written by an earlier fedstay, without the hashes that tie it to the \
                           run's other files";
                return Err(changed(how.into()));
            }
            other => return Err(changed(format!("has the schema {other}, not {SCHEMA}"))),
        }
        if hex(&Sha256::digest(body)) != first.sha256 {
            return Err(damaged());
        }
        serde_json::from_slice(body).map_err(|error| changed(format!("cannot be used: {error}")))
    }

    /// Refuses a configuration that is not the one the run was begun with.
    ///
    /// # Errors
    /// When the text of `config.toml` was changed.
    pub fn check_config(&self, folder: &Path, text: &str) -> Result<(), FolderError> {
        if hash_of(text) == self.config {
            return Ok(());
        }
        let how = "was changed after the run had begun".to_owned();
        Err(FolderError::Changed { file: folder.join("config.toml"), how })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Journal;

    #[test]
    fn every_bit_of_a_checkpoint_counts() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut journal = Journal::create(&folder.join("rounds.jsonl"), &1).unwrap();
        let written = Checkpoint {
            config: hash_of("seed = 1"),
            rounds: journal.mark().unwrap(),
            gram: None,
            asked: Asked { story: true, ..Asked::default() },
            instructions: vec!["x86_64 avx2".to_owned()],
            state: Some("some state".to_owned()),
        };
        written.write(folder).unwrap();
        let read = Checkpoint::<String>::read(folder).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), serde_json::to_string(&written).unwrap());
        read.check_config(folder, "seed = 1").unwrap();
        let error = read.check_config(folder, "seed = 2").unwrap_err().to_string();
        assert!(error.contains("config.toml was changed"), "{error}");

        let bytes = std::fs::read(place(folder)).unwrap();
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(place(folder), &flipped).unwrap();
            assert!(Checkpoint::<String>::read(folder).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_checkpoint_without_hashes_is_refused_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let old =
            r#"{"schema":"fedstay.checkpoint/1","rounds_bytes":7,"gram_bytes":null,"state":{}}"#;
        std::fs::write(place(folder.path()), old).unwrap();
        let error = Checkpoint::<()>::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("earlier fedstay"), "{error}");
        std::fs::remove_file(place(folder.path())).unwrap();
        let error = Checkpoint::<()>::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("checkpoint is not there"), "{error}");
    }
}
