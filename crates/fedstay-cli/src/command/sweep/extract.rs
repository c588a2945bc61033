//! `fedstay sweep extract`: one stored run as a run's folder.
//!
//! The store keeps what figures need. Everything else about a run follows from its configuration:
//! it is run again, and its summary must be the stored one.

use super::{Study, wheres};
use crate::command::Usage;
use crate::picture;
use crate::progress::Progress;
use anyhow::{Context, Result};
use fedstay_sim::observe::Folder;
use fedstay_sim::sweep::{Outcome, Plan, same_value};
use fedstay_sim::trial::{Trial, Watch};
use std::io::Write;
use std::path::PathBuf;

/// Turn one stored run into a run's folder, with every round.
#[derive(Debug, clap::Args)]
pub(super) struct Extract {
    #[command(flatten)]
    study: Study,
    /// Which run: `--where epsilon=0.2 --where seed=0`, or `--where key=…`
    #[arg(long = "where", value_name = "KEY=VALUE", required = true)]
    wheres: Vec<String>,
    /// The folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Extract {
    pub(super) fn run(self) -> Result<()> {
        let plan = self.study.plan()?;
        let store = self.study.read()?;
        let run = self.find(&plan)?;
        let stored = store.get(&run.key)?.ok_or_else(|| {
            Usage(format!("run {} is not computed yet; `fedstay sweep` does it", run.key))
        })?;
        let mut trial = Trial::new(run.experiment.clone())?;
        let mut folder =
            Folder::create(&self.out, &trial).map_err(|error| Usage(error.to_string()))?;
        let mut progress = Progress::new(&trial);
        let summary = trial.run(&mut [&mut progress as &mut dyn Watch, &mut folder]);
        progress.finish();
        let summary = match (summary, &stored.outcome) {
            (Err(error), _) => return Err(error).context("the run ends here, as it did before"),
            (Ok(summary), Outcome::Finished(known)) if summary == **known => summary,
            _ => anyhow::bail!(
                "run {} does not come out as it is stored in {}: another machine's arithmetic, or a \
                 damaged store",
                run.key,
                store.path().display()
            ),
        };
        picture::run::write(folder.path()).context("the run is kept; its picture failed")?;
        picture::report::write(folder.path(), Some(&summary))?;
        folder.finish(&trial, &summary)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "run {}, the same as stored, in {}", run.key, self.out.display())?;
        Ok(())
    }

    fn find<'a>(&self, plan: &'a Plan) -> Result<&'a fedstay_sim::sweep::Planned> {
        let wanted = wheres(&self.wheres)?;
        let mut found = plan.runs.iter().filter(|run| {
            wanted.iter().all(|(key, value)| match key.as_str() {
                "key" => value.as_str().is_some_and(|prefix| run.key.starts_with(prefix)),
                _ => {
                    let known = key.split('.').try_fold(&run.config, |v, part| v.get(part));
                    known.is_some_and(|known| same_value(known, value))
                }
            })
        });
        let first = found.next().ok_or_else(|| {
            Usage("no run of the sweep has these settings; see `fedstay sweep status`".into())
        })?;
        match found.count() {
            0 => Ok(first),
            more => Err(Usage(format!(
                "{} runs have these settings; name more of them with --where",
                more + 1
            ))
            .into()),
        }
    }
}
