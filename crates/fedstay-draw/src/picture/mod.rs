//! Pictures of runs: one file per picture.
//!
//! A picture is a function of what is in memory: a [`Recorded`](fedstay_sim::run::Recorded) run,
//! its summary, a [`Subject`] that has both with the configuration. Who has only a folder reads
//! it once, with [`Subject::read`].

mod bars;
pub mod chart;
pub mod compare;
mod delivered;
mod files;
pub mod landscape;
mod map;
pub mod plan;
pub mod report;
pub mod run;
mod subject;

#[cfg(test)]
mod played;

pub use bars::{PERCENT, delivered_bars};
pub use compare::Compared;
pub use delivered::with_end;
pub use files::{PNG_SCALE, PictureError, write_figure};
pub use subject::{LossOf, Subject};

/// The most points a curve is drawn with; more would not be seen.
const POINTS: usize = 600;

/// Every n-th element, so that at most `POINTS` remain; the last is always among them.
fn thinned<T: Copy>(points: &[T]) -> Vec<T> {
    let every = points.len().div_ceil(POINTS).max(1);
    let mut thinned: Vec<T> = points.iter().copied().step_by(every).collect();
    if let (true, Some(last)) = (!(points.len().max(1) - 1).is_multiple_of(every), points.last()) {
        thinned.push(*last);
    }
    thinned
}
