//! The status of a run, by its files.

use crate::inside::Place;
use serde::Serialize;
use std::time::{Duration, SystemTime};

/// A run without a summary that wrote nothing for this long has probably been stopped.
const SILENCE: Duration = Duration::from_secs(30);

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Status {
    /// Rounds are being written.
    Running,
    /// Nothing has been written for a while, and there is no summary.
    Silent,
    /// There is a summary.
    Finished,
}

impl Status {
    /// The status of the run in a folder. The caller says whether it has a summary: the list asks
    /// only whether the file exists, and the page whether it could be read.
    pub(crate) fn of(place: &Place, has_summary: bool) -> Self {
        if has_summary {
            return Self::Finished;
        }
        let written = place.stamp("rounds.jsonl").map(|(when, _)| when);
        let quiet = written.and_then(|when| SystemTime::now().duration_since(when).ok());
        match quiet {
            Some(quiet) if quiet > SILENCE => Self::Silent,
            _ => Self::Running,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_summary_is_silent_once_it_has_not_written_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let place = Place::new(&root, &root).unwrap();
        let rounds = std::fs::File::create(root.join("rounds.jsonl")).unwrap();
        assert_eq!(Status::of(&place, false), Status::Running);
        rounds.set_modified(SystemTime::now() - SILENCE - Duration::from_secs(1)).unwrap();
        assert_eq!(Status::of(&place, false), Status::Silent);
        assert_eq!(Status::of(&place, true), Status::Finished);
    }
}
