//! A run to draw and to write about.

use fedstay::record::{AsJson, GramLine, Header, Summary};
use fedstay_sim::run::{Recorded, changed_since, read_gram, read_rounds};
use std::path::{Path, PathBuf};

/// The model whose loss an agent compares with its target loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossOf {
    /// The server's, which it received.
    Server,
    /// Its own, after its local work.
    Own,
    /// The one it was shown, which may not be the server's.
    Shown,
}

impl LossOf {
    /// As far as a run's header says.
    pub fn of(header: &Header) -> Self {
        match (header.own, header.previews) {
            (true, _) => Self::Own,
            (false, true) => Self::Shown,
            (false, false) => Self::Server,
        }
    }
}

/// A run with everything that is known about it.
#[derive(Debug)]
pub struct Subject {
    /// Where it is.
    pub folder: PathBuf,
    /// Its rounds.
    pub recorded: Recorded,
    /// What came of it, if it is over.
    pub summary: Option<Summary>,
    /// Its files that are no longer what the run wrote.
    pub changed: Vec<&'static str>,
    /// What is wrong with its summary.
    pub(super) unusable: Option<String>,
    pub(super) config: Option<String>,
    pub(super) gram: Option<Vec<GramLine>>,
}

impl Subject {
    /// A run that is just ending: its rounds and its summary are in memory, and the folder has its
    /// configuration and gradients.
    pub fn ending(folder: &Path, recorded: Recorded, summary: Summary) -> Self {
        Self {
            folder: folder.to_owned(),
            recorded,
            summary: Some(summary),
            changed: Vec::new(),
            unusable: None,
            config: std::fs::read_to_string(folder.join("config.toml")).ok(),
            gram: read_gram(&folder.join("gram.jsonl")).ok(),
        }
    }

    /// Reads a run's folder.
    ///
    /// # Errors
    /// When there is no run in the folder.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let recorded = read_rounds(&folder.join("rounds.jsonl"))?;
        let kept = std::fs::read(folder.join("summary.json")).ok();
        let parsed = kept.map(|bytes| Summary::from_json(&bytes));
        let (summary, unusable) = match parsed {
            Some(Ok(summary)) => (Some(summary), None),
            Some(Err(error)) => (None, Some(format!("summary.json: {error}"))),
            None => (None, None),
        };
        Ok(Self {
            folder: folder.to_owned(),
            recorded,
            summary,
            changed: changed_since(folder),
            unusable,
            config: std::fs::read_to_string(folder.join("config.toml")).ok(),
            gram: read_gram(&folder.join("gram.jsonl")).ok(),
        })
    }

    /// What its agents compare with their target loss.
    pub(super) fn loss_of(&self) -> LossOf {
        let table = self.config_table();
        let own = table.is_some_and(|table| {
            table.get("decides_on").and_then(toml::Value::as_str) == Some("own")
        });
        match own {
            true => LossOf::Own,
            false => LossOf::of(&self.recorded.header),
        }
    }

    /// Its configuration, where it can be read.
    pub(super) fn config_table(&self) -> Option<toml::Table> {
        toml::from_str(self.config.as_deref()?).ok()
    }
}
