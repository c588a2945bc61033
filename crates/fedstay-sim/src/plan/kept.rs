//! Runs that are finished, one file each in the plan's folder: the same question goes on with them.
//!
//! A sweep's store keeps summaries. A plan compares models row by row, so it keeps the models, which are small
//! where tables are planned, and judges them again: the same bytes whether a plan was interrupted or not.

use super::compute::PlanRun;
use crate::run::write_whole;
use std::io;
use std::path::{Path, PathBuf};

/// The runs that a folder keeps; none without a folder.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptRuns(Option<PathBuf>);

impl KeptRuns {
    /// The runs in a plan's folder.
    pub(super) fn within(folder: Option<&Path>) -> io::Result<Self> {
        let Some(folder) = folder.map(|folder| folder.join("runs")) else {
            return Ok(Self::default());
        };
        std::fs::create_dir_all(&folder)?;
        Ok(Self(Some(folder)))
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        self.0.as_ref().map(|folder| folder.join(format!("{key}.json")))
    }

    /// The run with this key. A file that cannot be read is as if it were not there.
    pub(super) fn find(&self, key: &str) -> Option<PlanRun> {
        let text = std::fs::read(self.path(key)?).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Keeps a run.
    pub(super) fn keep(&self, key: &str, run: &PlanRun) -> io::Result<()> {
        let Some(path) = self.path(key) else { return Ok(()) };
        write_whole(&path, &serde_json::to_vec(run)?)
    }
}
