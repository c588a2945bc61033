//! `fedstay sweep FILE`: computes what is missing.

use super::{Study, told};
use anyhow::Result;
use fedstay_draw::words::{count, duration};
use fedstay_sim::sweep::{Options, Plan, Store, Tally, estimate, families};
use fedstay_terminal::{Screen, Threads, compute, hide};
use indicatif::ProgressBar;
use std::path::Path;
use std::time::{Duration, Instant};

/// Compute what is missing from a sweep.
#[derive(Debug, clap::Args)]
pub(super) struct SweepRun {
    #[command(flatten)]
    study: Study,
    /// Say how many runs are missing and how long they would take, but compute none
    #[arg(long)]
    dry_run: bool,
    /// Disable work sharing: every run is computed from its start (for benchmarks)
    #[arg(long)]
    no_share: bool,
    /// For comparison: evaluate every loss in full, without the early exit
    #[arg(long)]
    full_losses: bool,
    #[command(flatten)]
    threads: Threads,
}

impl SweepRun {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        let plan = self.study.plan()?;
        let path = self.study.store_path()?;
        let threads = self.threads.count()?;
        if self.dry_run {
            return dry_run(&plan, &path, threads, screen);
        }
        let options = Options { threads, share: !self.no_share, full_losses: self.full_losses };
        let before = Instant::now();
        let tally = compute(&plan, &path, &options, screen)?;
        report(&tally, &path, before.elapsed(), screen)
    }
}

fn report(tally: &Tally, path: &Path, took: Duration, screen: &Screen) -> Result<()> {
    let Tally { planned, there, damaged, computed, elsewhere, work, .. } = tally;
    let took = took.as_secs_f64();
    screen.say(&format!(
        "{}: {there} already there, {computed} computed now in {}{}",
        count(*planned, "run"),
        duration(took),
        if *elsewhere > 0 { format!(", {elsewhere} by another process") } else { String::new() }
    ))?;
    if *damaged > 0 {
        let (were, have) = if *damaged == 1 { ("was", "has") } else { ("were", "have") };
        let rows = count(*damaged, "row");
        screen.say(&format!("{rows} of the store {were} damaged and {have} been forgotten"))?;
    }
    if *computed > 0 && work.nobody_leaves > 0 {
        screen.mention(&format!(
            "local steps: {:.1}% not needed because agents had left; of the rest {:.1}% shared between \
             runs",
            100.0 * work.departed(),
            100.0 * work.shared()
        ))?;
    }
    screen.written(path)
}

/// Counts what is missing and estimates how long it will take.
fn dry_run(plan: &Plan, path: &Path, threads: usize, screen: &Screen) -> Result<()> {
    let there = match path.exists() {
        true => Store::read(path).map_err(told)?.keys()?,
        false => Default::default(),
    };
    let missing: Vec<_> =
        plan.runs.iter().filter(|run| !there.contains(&run.key)).cloned().collect();
    let axes: Vec<String> =
        plan.axes.iter().map(|axis| format!("{} {}", axis.values.len(), axis.key)).collect();
    let lengths = plan.axes.iter().map(|axis| axis.values.len());
    let cells = lengths.fold(1_usize, usize::saturating_mul);
    let skipped = match cells.saturating_sub(plan.runs.len()) {
        0 => String::new(),
        skipped => format!("; {skipped} of {cells} combinations are left out, or are the same run"),
    };
    let runs = count(plan.runs.len(), "run");
    screen.say(&format!("{runs} ({}{skipped})", axes.join(" × ")))?;
    let done = plan.runs.len() - missing.len();
    let families = match families(&missing, true).len() {
        1 => "1 family that shares work".to_owned(),
        alone => format!("{alone} families that share work"),
    };
    screen.say(&format!(
        "{done} in {}, {} missing, in {families}",
        path.display(),
        missing.len()
    ))?;
    if missing.is_empty() {
        return Ok(());
    }
    let spinner = ProgressBar::new_spinner().with_message("measuring a few rounds of each kind");
    hide(&spinner, screen.shows_progress());
    spinner.enable_steady_tick(Duration::from_millis(120));
    let estimate = estimate(&missing)?;
    spinner.finish_and_clear();
    let cores = threads as f64;
    screen.say(&format!(
        "{} of cell measured: {} on {} if runs share everything, {} if they share nothing; agents that \
         leave make it less",
        count(estimate.kinds, "kind"),
        duration(estimate.shared / cores),
        count(threads, "thread"),
        duration(estimate.alone / cores)
    ))
}
