//! `fedstay sweep extract`: stored runs as run folders, for `fedstay view`, `report` and `story`.
//!
//! The store keeps what figures need. Everything else about a run follows from its configuration:
//! it is run again, and its summary must match the stored one.

use super::{Study, wheres};
use anyhow::{Context, Result};
use fedstay::record::Summary;
use fedstay_sim::run::{Asked, Trial};
use fedstay_sim::sweep::{Outcome, Plan, Planned, Store, same_value};
use fedstay_terminal::{Progress, Screen, Usage};
use std::path::{Path, PathBuf};

/// Turn stored runs into run folders, with every round.
#[derive(Debug, clap::Args)]
pub(super) struct Extract {
    #[command(flatten)]
    study: Study,
    /// Which run: `--where epsilon=0.2 --where seed=0`, or `--where key=…`
    #[arg(long = "where", value_name = "KEY=VALUE", required = true)]
    wheres: Vec<String>,
    /// The folder; with --all, the folder for the runs' folders
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Keep what is computed here even where it differs from what is stored, as on a machine with other
    /// instructions
    #[arg(long)]
    anyway: bool,
    /// Every run with these settings, each in a folder of its own, to be compared in `fedstay view`
    #[arg(long)]
    all: bool,
}

impl Extract {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        let plan = self.study.plan()?;
        let store = self.study.read()?;
        let found = self.find(&plan)?;
        if !self.all {
            return extract(found[0], &store, &self.out, self.anyway, screen);
        }
        // What cannot be extracted is reported before anything is computed.
        let mut stored = Vec::new();
        for run in found {
            match store.get(&run.key)? {
                Some(finished) if finished.summary().is_some() => stored.push(run),
                Some(_) => screen.say(&format!("{}: left out, it diverged", plan.label(run)))?,
                None => {
                    screen.say(&format!("{}: left out, not computed yet", plan.label(run)))?;
                }
            }
        }
        for run in stored {
            let out = self.out.join(plan.label(run));
            match out.join("summary.json").exists() {
                true => screen.mention(&format!("{} is already there", out.display()))?,
                false => extract(run, &store, &out, self.anyway, screen)?,
            }
        }
        screen.mention(&format!("\nNext:\n  fedstay view {}", self.out.display()))
    }

    fn find<'a>(&self, plan: &'a Plan) -> Result<Vec<&'a Planned>> {
        let wanted = wheres(&self.wheres)?;
        let matches = |run: &&Planned| {
            wanted.iter().all(|(key, value)| match key.as_str() {
                "key" => value.as_str().is_some_and(|prefix| run.key.starts_with(prefix)),
                _ => run.setting(key).is_some_and(|known| same_value(known, value)),
            })
        };
        let found: Vec<&Planned> = plan.runs.iter().map(AsRef::as_ref).filter(matches).collect();
        match found.len() {
            0 => Err(Usage(
                "no run of the sweep has these settings; see `fedstay sweep status`".into(),
            )
            .into()),
            1 => Ok(found),
            _ if self.all => Ok(found),
            more => Err(Usage(format!(
                "{more} runs have these settings; name more of them with --where, or take all of them \
                 with --all"
            ))
            .into()),
        }
    }
}

/// Runs it again, which must give the stored result unless it is to be kept anyway.
fn extract(run: &Planned, store: &Store, out: &Path, anyway: bool, screen: &Screen) -> Result<()> {
    let stored = store.get(&run.key)?.ok_or_else(|| {
        Usage(format!("run {} is not computed yet; `fedstay sweep` does it", run.key))
    })?;
    let mut trial = Trial::new(run.experiment.clone())?;
    let folder = trial.keep_in(out, Asked::default());
    let mut folder = folder.map_err(|error| Usage(error.to_string()))?;
    let mut progress = Progress::new(&trial, screen);
    let summary = trial.run(&mut [&mut progress, &mut folder]);
    progress.finish();
    let summary = match (summary, &stored.outcome) {
        (Err(error), Outcome::Diverged(_)) => {
            return Err(error).context("the run ends here, as it did before");
        }
        (Ok(Some(summary)), Outcome::Finished(known)) if summary == **known => summary,
        (Ok(Some(mut summary)), Outcome::Finished(known)) if anyway => {
            summary.warnings.push(other_than_stored(&summary, known));
            summary
        }
        _ => anyhow::bail!(
            "run {} does not match what is stored in {}: another machine's arithmetic, or a \
             damaged store; to keep what this machine computes, with a warning in it, type the same with \
             --anyway and another --out",
            run.key,
            store.path().display()
        ),
    };
    crate::command::run::draw(folder.path(), &summary)?;
    trial.close(&mut folder, &summary)?;
    match &stored.outcome {
        Outcome::Finished(known) if summary != **known => {
            screen.say(&format!("run {}: {}", run.key, other_than_stored(&summary, known)))?;
        }
        _ => screen.mention(&format!("run {}, the same as stored", run.key))?,
    }
    screen.written(out)
}

/// The warning in a run that was computed again and came out differently.
fn other_than_stored(here: &Summary, stored: &Summary) -> String {
    let told = |summary: &Summary| {
        format!("mean loss {}, {} left", summary.score.loss.mean, summary.leavers())
    };
    format!(
        "computed again, and not as it is stored in the sweep: {} here, {} there. Machines with other \
         instructions round differently; what figures and queries show is what is stored",
        told(here),
        told(stored)
    )
}
