//! Progress bars: of a run, with the last measured loss, who is near leaving and who left, and of a
//! sweep. Quiet when standard error is no terminal.

use fedstay::record::Spread;
use fedstay::{AgentId, Error, RoundView};
use fedstay_sim::sweep;
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
    seen: Seen,
}

/// What the bar says beside the round.
#[derive(Debug, Default)]
struct Seen {
    left: usize,
    /// The mean loss over all agents when it was last measured, and in which round. Reports would be
    /// there every round, but many of them are lower bounds, and a mean of those is no loss.
    measured: Option<(u32, f64)>,
}

impl Seen {
    fn add(&mut self, view: &RoundView<'_>) {
        self.left += view.reports.goodbyes().len();
        self.left = self.left.saturating_sub(view.reports.returned().len());
        let losses = view.assessment.map(|all| all.agents.iter().map(|agent| agent.loss));
        if let Some(spread) = losses.and_then(Spread::of) {
            self.measured = Some((view.number, spread.mean));
        }
    }

    fn message(&self, near: &[AgentId]) -> String {
        let measured = self.measured.map_or(String::new(), |(round, loss)| {
            format!("measured loss {loss:.3} at round {round} · ")
        });
        let named: Vec<String> = near.iter().take(6).map(ToString::to_string).collect();
        let more = if near.len() > 6 { ", …" } else { "" };
        let near = match named.is_empty() {
            true => "nobody near leaving".to_owned(),
            false => format!("near leaving: {}{more}", named.join(", ")),
        };
        format!("{measured}{near} · left: {}", self.left)
    }
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
        Self { bar, since: Instant::now(), last: None, seen: Seen::default() }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Progress {
    fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
        self.seen.add(view);
        let due = self.last.is_none_or(|last| last.elapsed() >= Duration::from_millis(100));
        if self.bar.is_hidden() || self.since.elapsed() < PATIENCE || !due {
            return Ok(());
        }
        self.last = Some(Instant::now());
        self.bar.set_position(u64::from(view.number));
        self.bar.set_message(self.seen.message(&view.decision.split.d));
        Ok(())
    }
}

/// The progress bar of a sweep: runs, throughput, time left. Quiet when there is no terminal.
pub struct SweepProgress(ProgressBar, Instant);

/// Positions of the bar: finer than anybody sees.
const FINE: f64 = 10_000.0;

impl Default for SweepProgress {
    fn default() -> Self {
        Self::new()
    }
}

impl SweepProgress {
    /// The bar of a sweep that starts now.
    pub fn new() -> Self {
        let bar = ProgressBar::new(FINE as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3}%  {msg}") {
            bar.set_style(style);
        }
        Self(bar, Instant::now())
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.0.finish_and_clear();
    }
}

impl sweep::Watch for SweepProgress {
    fn advanced(&self, tally: &sweep::Tally) {
        if self.0.is_hidden() {
            return;
        }
        let elapsed = self.1.elapsed().as_secs_f64();
        let left = elapsed * (1.0 - tally.share) / tally.share.max(1e-9);
        let left =
            if elapsed > 2.0 { format!("about {} left", duration(left)) } else { String::new() };
        let runs = tally.there + tally.elsewhere + tally.computed;
        let pace = 60.0 * tally.computed as f64 / elapsed.max(1e-3);
        self.0.set_position((FINE * tally.share) as u64);
        self.0.set_message(format!("{runs}/{} runs · {pace:.1} a minute · {left}", tally.planned));
    }

    fn finished(&self, run: &sweep::Finished) {
        if let (sweep::Outcome::Diverged(why), false) = (&run.outcome, self.0.is_hidden()) {
            self.0.println(format!("run {} diverged: {why}", run.key));
        }
    }
}

/// `1 h 12 min`, `3 min 20 s`, `4.2 s`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..=9 => format!("{seconds:.1} s"),
        10..=99 => format!("{whole} s"),
        100..=5999 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::record::RoundLine;
    use fedstay_sim::experiment::Experiment;

    #[derive(Default)]
    struct Watching(Seen, Vec<(RoundLine, String)>);

    impl Watch for Watching {
        fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
            self.0.add(view);
            self.1.push((RoundLine::new(view), self.0.message(&view.decision.split.d)));
            Ok(())
        }
    }

    #[test]
    fn the_bar_shows_the_last_measured_loss_and_no_mean_of_lower_bounds() {
        let text = "rounds = 12\nstep_size = 0.01\nepsilon = 0.2\neval_every = 5\n\
                    [rule]\nkind = \"fedavg\"\n[data]\nper_agent = 40\n";
        let mut trial = Trial::new(Experiment::parse(text, &[]).unwrap()).unwrap();
        let mut watching = Watching::default();
        trial.run(&mut watching).unwrap();
        let (line, _) = &watching.1[7];
        assert_eq!(line.at_least.len(), line.agents.len(), "the test needs bounds");
        let measured = watching.1[4].0.assessment.as_ref().unwrap();
        let mean = Spread::of(measured.loss.iter().copied()).unwrap().mean;
        let wanted = format!("measured loss {mean:.3} at round 5 · nobody near leaving · left: 0");
        for (_, message) in &watching.1[4..9] {
            assert_eq!(*message, wanted);
        }
    }
}
