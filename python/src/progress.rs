//! One line on standard error that says how far a run or a sweep is. Quiet where standard error is
//! not a terminal, as in a notebook or a log.

use fedstay::{Book, Error, RoundRecord};
use fedstay_draw::words::{RunProgress, duration};
use fedstay_sim::lock;
use fedstay_sim::run::Trial;
use fedstay_sim::sweep::{Finished, Outcome, SweepWatch, Tally};
use std::io::{IsTerminal, Write, stderr};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The line appears once the work has taken this long.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often it is rewritten.
const BETWEEN_LINES: Duration = Duration::from_millis(100);
/// Returns to the beginning of the line and clears it.
const ANEW: &str = "\r\x1b[2K";

/// A line on the terminal that is overwritten in place.
struct Line {
    since: Instant,
    last: Option<Instant>,
    terminal: bool,
}

impl Line {
    fn new() -> Self {
        Self { since: Instant::now(), last: None, terminal: stderr().is_terminal() }
    }

    fn is_due(&self) -> bool {
        let rested = self.last.is_none_or(|last| last.elapsed() >= BETWEEN_LINES);
        self.terminal && self.since.elapsed() >= PATIENCE && rested
    }

    fn say(&mut self, text: &str) {
        self.last = Some(Instant::now());
        write(&format!("{ANEW}{text}"));
    }

    fn clear(&self) {
        if self.last.is_some() {
            write(ANEW);
        }
    }
}

/// Writes to the terminal; one that has gone away is not a reason to stop the work.
fn write(text: &str) {
    let mut out = stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A run's progress.
pub(crate) struct Progress {
    line: Line,
    rounds: u32,
    seen: RunProgress,
}

impl Progress {
    /// The progress of a trial.
    pub(crate) fn new(trial: &Trial) -> Self {
        let rounds = trial.experiment().rounds;
        Self { line: Line::new(), rounds, seen: RunProgress::default() }
    }

    /// Clears the line.
    pub(crate) fn finish(self) {
        self.line.clear();
    }
}

impl Book for Progress {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.seen.add(&record.line);
        if self.line.is_due() {
            let message = self.seen.message(record.header, &record.line);
            self.line.say(&format!("round {}/{}  {message}", record.line.round, self.rounds));
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// A sweep's progress: runs, and the time left.
pub(crate) struct SweepProgress(Mutex<Line>);

impl SweepProgress {
    /// The progress of a sweep that starts now.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Line::new()))
    }

    /// Clears the line.
    pub(crate) fn finish(self) {
        self.line().clear();
    }

    fn line(&self) -> std::sync::MutexGuard<'_, Line> {
        lock(&self.0)
    }
}

impl SweepWatch for SweepProgress {
    fn advanced(&self, tally: &Tally) {
        let mut line = self.line();
        if !line.is_due() {
            return;
        }
        let runs = tally.there + tally.elsewhere + tally.computed;
        let elapsed = line.since.elapsed().as_secs_f64();
        let left = elapsed * (1.0 - tally.share) / tally.share.max(1e-9);
        // Before that the estimate would only mislead.
        let left = if elapsed > 2.0 {
            format!(" · about {} left", duration(left))
        } else {
            String::new()
        };
        line.say(&format!("{runs}/{} runs{left}", tally.planned));
    }

    fn finished(&self, run: &Finished) {
        let line = self.line();
        if let (Outcome::Diverged(why), true) = (&run.outcome, line.terminal) {
            write(&format!("{ANEW}run {} diverged: {why}\n", run.key));
        }
    }
}
