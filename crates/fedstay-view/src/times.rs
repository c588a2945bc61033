//! When a run began, how long it took, and how much longer it may take, by the times of its files.

use crate::inside::Place;
use fedstay_draw::words::Standing;
use serde::Serialize;
use std::time::{Duration, SystemTime};

/// The times of a run. A folder that was copied has the times of its copy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Times {
    /// When it began, in milliseconds since 1970.
    began: u64,
    /// How many seconds it has been computing, or took.
    elapsed: f64,
    /// How many seconds the rounds that are left take at the mean pace so far; it may end sooner.
    left: Option<f64>,
}

/// When the run in a folder began: `config.toml` is written before the first round. Without that file, when the
/// folder was made, where the system knows it.
pub(crate) fn began(place: &Place) -> Option<u64> {
    let made = || std::fs::symlink_metadata(&place.folder).ok()?.created().ok();
    let when = began_at(place).or_else(made)?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(when.as_millis()).ok()
}

fn began_at(place: &Place) -> Option<SystemTime> {
    place.stamp("config.toml").map(|(when, _)| when)
}

impl Times {
    /// The times of a run that is in this round of this number.
    pub(crate) fn of(place: &Place, status: Standing, round: u32, asked: u32) -> Option<Self> {
        let (last, _) = place.stamp("rounds.jsonl")?;
        let until = if status.is_live() { SystemTime::now() } else { last };
        let elapsed = until.duration_since(began_at(place)?).ok()?;
        let left = remaining(elapsed, round, asked).filter(|_| status.is_live());
        Some(Self { began: began(place)?, elapsed: elapsed.as_secs_f64(), left })
    }
}

fn remaining(elapsed: Duration, round: u32, asked: u32) -> Option<f64> {
    let each = elapsed.as_secs_f64() / f64::from(round);
    (round > 0).then(|| each * f64::from(asked.saturating_sub(round)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_at_the_pace_so_far() {
        assert_eq!(remaining(Duration::from_secs(30), 60, 100), Some(20.0));
        assert_eq!(remaining(Duration::from_secs(30), 100, 100), Some(0.0));
        assert_eq!(remaining(Duration::from_secs(30), 0, 100), None);
    }

    #[test]
    fn a_run_that_stopped_took_as_long_as_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let place = Place::new(&root, &root).unwrap();
        assert_eq!(Times::of(&place, Standing::Finished, 1, 1), None);
        let start = SystemTime::now() - Duration::from_secs(100);
        for (name, after) in [("config.toml", 0), ("rounds.jsonl", 40)] {
            let file = std::fs::File::create(root.join(name)).unwrap();
            file.set_modified(start + Duration::from_secs(after)).unwrap();
        }
        let times = Times::of(&place, Standing::Stopped, 20, 50).unwrap();
        assert!((times.elapsed - 40.0).abs() < 1e-3 && times.left.is_none());
        let times = Times::of(&place, Standing::Running, 20, 50).unwrap();
        assert!(times.elapsed >= 99.9 && times.left.unwrap() >= 149.0);
    }
}
