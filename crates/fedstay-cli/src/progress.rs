//! Progress bars: for a run, with the last measured loss, who is about to leave and who left, and
//! for a sweep. They are silent when standard error is not a terminal.

use crate::terminal::Screen;
use fedstay::{Book, Error, RoundRecord};
use fedstay_draw::words::{RunProgress, duration};
use fedstay_sim::run::Trial;
use fedstay_sim::sweep;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The bar appears once a run has taken this long.
const PATIENCE: Duration = Duration::from_millis(500);

/// A run's progress bar. It is a [`Book`].
pub(crate) struct Progress {
    bar: ProgressBar,
    since: Instant,
    last: Option<Instant>,
    seen: RunProgress,
}

impl Progress {
    /// The bar of a trial.
    pub(crate) fn new(trial: &Trial, screen: &Screen) -> Self {
        Self::named(trial, "", screen)
    }

    /// A bar with a name in front, for one of several runs.
    pub(crate) fn named(trial: &Trial, name: &str, screen: &Screen) -> Self {
        Self::shown(trial, name, screen.shows_progress())
    }

    /// The same, where it is known whether it is shown.
    pub(crate) fn shown(trial: &Trial, name: &str, shown: bool) -> Self {
        let bar = ProgressBar::new(u64::from(trial.experiment().rounds));
        // The message takes what is left of the line and is cut there: a bar that needs a second
        // line is drawn again and again below itself.
        let template = "{prefix}round {pos}/{len} {bar:12} {eta} left  {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        hide(&bar, shown);
        bar.set_prefix(if name.is_empty() { String::new() } else { format!("{name}: ") });
        bar.set_position(u64::from(trial.server().round()));
        Self { bar, since: Instant::now(), last: None, seen: RunProgress::default() }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

impl Book for Progress {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        let line = &record.line;
        self.seen.add(line);
        let due = self.last.is_none_or(|last| last.elapsed() >= Duration::from_millis(100));
        if !self.bar.is_hidden() && self.since.elapsed() >= PATIENCE && due {
            self.last = Some(Instant::now());
            self.bar.set_position(u64::from(line.round));
            self.bar.set_message(self.seen.message(record.header, line));
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Hides a bar that is not to be shown.
pub(crate) fn hide(bar: &ProgressBar, shown: bool) {
    if !shown {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
}

/// The progress bar of a sweep: runs, throughput, time left. It is silent where there is no
/// terminal.
pub(crate) struct SweepProgress(ProgressBar, Instant);

/// Seconds before a sweep's bar says how fast it is.
const WARMING: f64 = 5.0;

/// The number of positions of the bar: finer than anybody can see.
const FINE: f64 = 10_000.0;

impl SweepProgress {
    /// The bar of a sweep that starts now.
    pub(crate) fn new(screen: &Screen) -> Self {
        let bar = ProgressBar::new(FINE as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:16} {percent:>3}%  {wide_msg}") {
            bar.set_style(style);
        }
        hide(&bar, screen.shows_progress());
        Self(bar, Instant::now())
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
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
