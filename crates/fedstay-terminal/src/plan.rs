//! The progress bar of a plan: runs, and time left. It is silent where there is no terminal.

use crate::progress::hide;
use crate::screen::Screen;
use fedstay_draw::words::duration;
use fedstay_sim::plan::PlanWatch;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Instant;

/// Seconds before the bar says how long it will take.
const WARMING: f64 = 1.0;

/// A plan's progress bar.
pub struct PlanProgress(ProgressBar, Instant);

impl PlanProgress {
    /// The bar of a plan that starts now.
    pub fn new(screen: &Screen) -> Self {
        let bar = ProgressBar::new(1);
        if let Ok(style) = ProgressStyle::with_template("{bar:16} {percent:>3}%  {wide_msg}") {
            bar.set_style(style);
        }
        hide(&bar, screen.shows_progress());
        Self(bar, Instant::now())
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.0.finish_and_clear();
    }
}

impl PlanWatch for PlanProgress {
    fn advanced(&self, done: usize, of: usize) {
        if self.0.is_hidden() {
            return;
        }
        let elapsed = self.1.elapsed().as_secs_f64();
        let mut message = format!("{done} of {of} runs");
        if elapsed > WARMING && done > 0 {
            let left = elapsed * (of - done) as f64 / done as f64;
            message = format!("{message} · about {} left", duration(left));
        }
        self.0.set_length(of as u64);
        self.0.set_position(done as u64);
        self.0.set_message(message);
    }
}
