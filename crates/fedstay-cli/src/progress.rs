//! The progress bar of a run: round, mean loss, who is near leaving, who left. Quiet when standard
//! error is no terminal.

use fedstay::record::RoundLine;
use fedstay::{Error, RoundView};
use fedstay_sim::trial::{Trial, Watch};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// A bar that shows itself once a run has taken this long.
const PATIENCE: Duration = Duration::from_millis(500);

/// A run's progress bar. A [`Watch`].
pub struct Progress {
    bar: ProgressBar,
    since: Instant,
    last: Option<Instant>,
    left: usize,
}

impl Progress {
    /// The bar of a trial.
    pub fn new(trial: &Trial) -> Self {
        Self::named(trial, "")
    }

    /// A bar with a name in front, for one of several runs.
    pub fn named(trial: &Trial, name: &str) -> Self {
        let bar = ProgressBar::new(u64::from(trial.experiment().rounds));
        let template = "{prefix} round {pos}/{len} {bar:24} {eta:>4}  {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.set_position(u64::from(trial.server().round()));
        Self { bar, since: Instant::now(), last: None, left: 0 }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Progress {
    fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
        self.left += view.reports.goodbyes().len();
        self.left = self.left.saturating_sub(view.reports.returned().len());
        let due = self.last.is_none_or(|last| last.elapsed() >= Duration::from_millis(100));
        if self.bar.is_hidden() || self.since.elapsed() < PATIENCE || !due {
            return Ok(());
        }
        self.last = Some(Instant::now());
        let line = RoundLine::new(view);
        let loss = line.mean_loss().map_or(String::new(), |loss| format!("loss {loss:.3}"));
        let near: Vec<String> = line.d.iter().take(6).map(ToString::to_string).collect();
        let more = if line.d.len() > 6 { ", …" } else { "" };
        let near = match near.is_empty() {
            true => "nobody near leaving".to_owned(),
            false => format!("near leaving: {}{more}", near.join(", ")),
        };
        self.bar.set_position(u64::from(view.number));
        self.bar.set_message(format!("{loss} · {near} · left: {}", self.left));
        Ok(())
    }
}
