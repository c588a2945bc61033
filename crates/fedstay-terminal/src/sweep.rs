//! A sweep at the terminal: computed with a progress bar, and safe to interrupt.

use crate::interrupt::Interrupt;
use crate::progress::hide;
use crate::screen::Screen;
use anyhow::Result;
use fedstay_draw::words::duration;
use fedstay_sim::sweep::{self, Options, Plan, SweepError, Tally, run};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::time::Instant;

/// Computes what is missing of a plan, with a progress bar.
///
/// # Errors
/// When an experiment of the plan cannot run, or the store cannot be written.
pub fn compute(plan: &Plan, store: &Path, options: &Options, screen: &Screen) -> Result<Tally> {
    let bar = SweepProgress::new(screen);
    Interrupt::watch("nothing is lost: the same command continues".to_owned());
    let tally = run(plan, store, options, &bar);
    bar.finish();
    match tally {
        Ok(tally) => Ok(tally),
        // What is wrong with an experiment is the caller's to mend.
        Err(SweepError::Spec(error)) => Err(error.into()),
        Err(error) => Err(error.into()),
    }
}

/// The progress bar of a sweep: runs, throughput, time left. It is silent where there is no
/// terminal.
struct SweepProgress(ProgressBar, Instant);

/// Seconds before a sweep's bar says how fast it is.
const WARMING: f64 = 5.0;

/// The number of positions of the bar: finer than anybody can see.
const FINE: f64 = 10_000.0;

impl SweepProgress {
    /// The bar of a sweep that starts now.
    fn new(screen: &Screen) -> Self {
        let bar = ProgressBar::new(FINE as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:16} {percent:>3}%  {wide_msg}") {
            bar.set_style(style);
        }
        hide(&bar, screen.shows_progress());
        Self(bar, Instant::now())
    }

    /// Removes the bar.
    fn finish(self) {
        self.0.finish_and_clear();
    }
}

impl sweep::SweepWatch for SweepProgress {
    fn advanced(&self, tally: &sweep::Tally) {
        if self.0.is_hidden() {
            return;
        }
        let elapsed = self.1.elapsed().as_secs_f64();
        let left = elapsed * (1.0 - tally.share) / tally.share.max(1e-9);
        let runs = tally.there + tally.elsewhere + tally.computed;
        let mut message = format!("{runs}/{} runs", tally.planned);
        // Before there is something to measure, a pace and a time left would be guesses.
        if elapsed > WARMING && tally.computed > 0 {
            let pace = 60.0 * tally.computed as f64 / elapsed;
            message = format!("{message} · {pace:.1} per minute · about {} left", duration(left));
        }
        self.0.set_position((FINE * tally.share) as u64);
        self.0.set_message(message);
    }

    fn finished(&self, run: &sweep::Finished) {
        if let (sweep::Outcome::Diverged(why), false) = (&run.outcome, self.0.is_hidden()) {
            self.0.println(format!("run {} diverged: {why}", run.key));
        }
    }
}
