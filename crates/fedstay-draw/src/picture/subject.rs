//! A run to draw and to write about.

use fedstay::record::{GramLine, Summary};
use fedstay_sim::run::{Recorded, read_gram, read_rounds};
use fedstay_sim::simulator::DecidesOn;
use std::path::{Path, PathBuf};

/// A run with everything that is known about it.
#[derive(Debug)]
pub struct Subject {
    /// Where it is.
    pub folder: PathBuf,
    /// Its rounds.
    pub recorded: Recorded,
    /// What came of it, if it is over.
    pub summary: Option<Summary>,
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
        let parsed = kept.map(|bytes| serde_json::from_slice::<Summary>(&bytes));
        let (summary, unusable) = match parsed {
            Some(Ok(summary)) => (Some(summary), None),
            Some(Err(error)) => (None, Some(format!("summary.json: {error}"))),
            None => (None, None),
        };
        Ok(Self {
            folder: folder.to_owned(),
            recorded,
            summary,
            unusable,
            config: std::fs::read_to_string(folder.join("config.toml")).ok(),
            gram: read_gram(&folder.join("gram.jsonl")).ok(),
        })
    }

    /// The loss on which its agents decide, by its configuration.
    pub(super) fn decides_on(&self) -> DecidesOn {
        let table = self.config_table();
        let own = table.is_some_and(|table| {
            table.get("decides_on").and_then(toml::Value::as_str) == Some("own")
        });
        if own { DecidesOn::Own } else { DecidesOn::Received }
    }

    /// Its configuration, where it can be read.
    pub(super) fn config_table(&self) -> Option<toml::Table> {
        toml::from_str(self.config.as_deref()?).ok()
    }
}
