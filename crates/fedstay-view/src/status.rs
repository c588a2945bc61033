//! How far a run has come, by its files.

use crate::inside::Place;
use fedstay_draw::words::{Standing, Traces};
use std::time::SystemTime;

/// How far the run in a folder has come. The caller says whether it has a summary that can be read, and what else
/// it saw; how long nothing was written is looked up here.
pub(crate) fn standing(place: &Place, has_summary: bool, traces: Traces) -> Standing {
    if has_summary {
        return Standing::Finished;
    }
    let written = place.stamp("rounds.jsonl").map(|(when, _)| when);
    let quiet = written.and_then(|when| SystemTime::now().duration_since(when).ok());
    Standing::of(&Traces { quiet: quiet.unwrap_or_default(), ..traces })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_run_without_a_summary_has_stopped_once_it_has_not_written_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let place = Place::new(&root, &root).unwrap();
        let rounds = std::fs::File::create(root.join("rounds.jsonl")).unwrap();
        let traces = Traces { header: Some(true), rounds: true, ..Traces::default() };
        assert_eq!(standing(&place, false, traces), Standing::Running);
        rounds.set_modified(SystemTime::now() - Duration::from_secs(31)).unwrap();
        assert_eq!(standing(&place, false, traces), Standing::Stopped);
        assert_eq!(standing(&place, true, traces), Standing::Finished);
    }
}
