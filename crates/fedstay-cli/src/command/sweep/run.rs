//! `fedstay sweep FILE`: computes what is missing.

use super::{Study, Threads, told};
use crate::progress::SweepProgress;
use anyhow::Result;
use fedstay_draw::words::duration;
use fedstay_sim::sweep::{Options, Plan, Store, SweepError, Tally, estimate, families, run};
use indicatif::ProgressBar;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Compute what is missing from a sweep.
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    #[command(flatten)]
    study: Study,
    /// Say how many runs are missing and how long they would take, but compute none
    #[arg(long)]
    dry_run: bool,
    /// For comparison: compute every run from its start, sharing nothing
    #[arg(long)]
    no_share: bool,
    /// For comparison: evaluate every loss in full, without the early exit
    #[arg(long)]
    full_losses: bool,
    #[command(flatten)]
    threads: Threads,
}

impl Run {
    pub(super) fn run(self) -> Result<()> {
        let plan = self.study.plan()?;
        let path = self.study.store_path()?;
        let threads = self.threads.count()?;
        if self.dry_run {
            return dry_run(&plan, &path, threads);
        }
        let options = Options { threads, share: !self.no_share, full_losses: self.full_losses };
        let before = Instant::now();
        report(&compute(&plan, &path, &options)?, &path, before.elapsed())
    }
}

/// Computes what is missing of a plan, with a progress bar.
pub(crate) fn compute(plan: &Plan, store: &Path, options: &Options) -> Result<Tally> {
    let bar = SweepProgress::new();
    let tally = run(plan, store, options, &bar);
    bar.finish();
    match tally {
        Ok(tally) => Ok(tally),
        // What is wrong with an experiment is the caller's to mend.
        Err(SweepError::Spec(error)) => Err(error.into()),
        Err(error) => Err(error.into()),
    }
}

fn report(tally: &Tally, path: &Path, took: Duration) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let Tally { planned, there, damaged, computed, elsewhere, work, .. } = tally;
    let took = took.as_secs_f64();
    writeln!(
        out,
        "{planned} runs: {there} were there, {computed} computed now in {}{}",
        duration(took),
        if *elsewhere > 0 { format!(", {elsewhere} by another process") } else { String::new() }
    )?;
    if *damaged > 0 {
        writeln!(out, "{damaged} rows of the store were damaged and have been forgotten")?;
    }
    if *computed > 0 && work.nobody_leaves > 0 {
        writeln!(
            out,
            "local steps: {:.1}% not needed because agents had left; of the rest {:.1}% shared between \
             runs",
            100.0 * work.departed(),
            100.0 * work.shared()
        )?;
    }
    writeln!(out, "kept in {}", path.display())?;
    Ok(())
}

/// Counts what is missing and estimates how long it will take.
fn dry_run(plan: &Plan, path: &Path, threads: usize) -> Result<()> {
    let there = match path.exists() {
        true => Store::read(path).map_err(told)?.keys()?,
        false => Default::default(),
    };
    let missing: Vec<_> =
        plan.runs.iter().filter(|run| !there.contains(&run.key)).cloned().collect();
    let mut out = std::io::stdout().lock();
    let axes: Vec<String> =
        plan.axes.iter().map(|axis| format!("{} {}", axis.values.len(), axis.key)).collect();
    writeln!(out, "{} runs ({})", plan.runs.len(), axes.join(" × "))?;
    let done = plan.runs.len() - missing.len();
    let alone = families(&missing, true).len();
    writeln!(
        out,
        "{done} in {}, {} missing, in {alone} families that share work",
        path.display(),
        missing.len()
    )?;
    if missing.is_empty() {
        return Ok(());
    }
    let spinner = ProgressBar::new_spinner().with_message("measuring a few rounds of each kind");
    spinner.enable_steady_tick(Duration::from_millis(120));
    let estimate = estimate(&missing)?;
    spinner.finish_and_clear();
    let threads = threads as f64;
    writeln!(
        out,
        "{} kinds of cell measured: {} on {threads} threads if runs share everything, {} if they share \
         nothing; agents that leave make it less",
        estimate.kinds,
        duration(estimate.shared / threads),
        duration(estimate.alone / threads)
    )?;
    Ok(())
}
