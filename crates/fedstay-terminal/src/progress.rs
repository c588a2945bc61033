//! The progress bar of a run, with the last measured loss, who is about to leave and who left. It is
//! silent when standard error is not a terminal.

use crate::screen::Screen;
use fedstay::{Book, Error, RoundRecord};
use fedstay_draw::words::RunProgress;
use fedstay_sim::run::Trial;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The bar appears once a run has taken this long.
const PATIENCE: Duration = Duration::from_millis(500);

/// A run's progress bar. It is a [`Book`].
pub struct Progress {
    bar: ProgressBar,
    since: Instant,
    last: Option<Instant>,
    seen: RunProgress,
}

impl Progress {
    /// The bar of a trial.
    pub fn new(trial: &Trial, screen: &Screen) -> Self {
        Self::named(trial, "", screen)
    }

    /// A bar with a name in front, for one of several runs.
    pub fn named(trial: &Trial, name: &str, screen: &Screen) -> Self {
        Self::shown(trial, name, screen.shows_progress())
    }

    /// The same, where it is known whether it is shown.
    pub fn shown(trial: &Trial, name: &str, shown: bool) -> Self {
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
    pub fn finish(self) {
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
pub fn hide(bar: &ProgressBar, shown: bool) {
    if !shown {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
}
