//! Streams: rows that arrive over the rounds, and a mix of classes that moves.
//!
//! Every agent's rows are in a line, and in a round it sees a stretch of it: it decides, works, is
//! measured and reports on the rows that it sees. With n rows and a `window` of which w are seen,
//!
//! ```text
//! grow   rows 0 … w + a (n − w)          what has arrived so far
//! slide  rows a (n − w) … a (n − w) + w  only what is recent
//! ```
//!
//! and a, between 0 and 1, moves with the round r: `linear`ly, (r − 1)/over and then 1; by a `step`, 0
//! through round `over` and then 1; or `periodic`ally, (1 − cos(2π (r − 1)/over))/2, there and back.
//!
//! With `order = "dealt"` the line is random, and all windows have the agent's own mix of classes. With
//! `"class"` it is sorted, beginning with the class the agent has most of: a window then drifts from
//! the mix of its first rows, π⁰, to that of its last, π¹. All of this is a function of the round and
//! of who holds what, so a resumed run sees the same rows.

use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::ops::Range;

/// The `[stream]` table of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stream {
    /// What becomes of rows.
    pub kind: Kind,
    /// The share of its rows that an agent sees in the first round.
    pub window: f64,
    /// In which order rows arrive.
    pub order: Arrive,
    /// How it moves on with the rounds.
    pub moves: Moves,
    /// Over how many rounds.
    pub over: u32,
}

/// What becomes of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Everybody has all of its rows from the start.
    #[default]
    All,
    /// Rows arrive and stay.
    Grow,
    /// Rows arrive and go.
    Slide,
}

/// In which order rows arrive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrive {
    /// At random, as they were dealt out.
    #[default]
    Dealt,
    /// Class after class, beginning with the one it has most of.
    Class,
}

/// How a window moves on with the rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moves {
    /// A little every round.
    #[default]
    Linear,
    /// All at once.
    Step,
    /// There and back.
    Periodic,
}

impl Default for Stream {
    fn default() -> Self {
        Self { kind: Kind::All, window: 0.3, order: Arrive::Dealt, moves: Moves::Linear, over: 100 }
    }
}

impl Stream {
    /// How far the window has come, from 0 to 1.
    fn way(&self, round: u32) -> f64 {
        let (gone, over) = (f64::from(round.saturating_sub(1)), f64::from(self.over.max(1)));
        match self.moves {
            Moves::Linear => (gone / over).min(1.0),
            Moves::Step => f64::from(u8::from(round > self.over)),
            Moves::Periodic => 0.5 * (1.0 - (2.0 * PI * gone / over).cos()),
        }
    }

    /// How many of `rows` are in the window, and how many lie before it.
    fn window(&self, rows: usize, round: u32) -> (usize, usize) {
        let seen = ((self.window * rows as f64).round() as usize).clamp(1, rows.max(1));
        let before = self.way(round) * rows.saturating_sub(seen) as f64;
        (seen, before.round() as usize)
    }

    /// Whether nothing is said about it.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Which of an agent's `rows`, counted from its first, it sees in a round.
    pub fn seen(&self, rows: usize, round: u32) -> Range<usize> {
        let (seen, before) = self.window(rows, round);
        let end = (before + seen).min(rows);
        match self.kind {
            Kind::All => 0..rows,
            Kind::Grow => 0..end,
            Kind::Slide => before..end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(stream: Stream, rounds: &[u32]) -> Vec<(usize, usize)> {
        let range = |round: &u32| stream.seen(20, *round);
        rounds.iter().map(range).map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn rows_arrive_and_stay_or_go() {
        let with = |kind, moves| Stream { kind, window: 0.5, moves, over: 10, ..Stream::default() };
        let rounds = [1, 6, 10, 11, 16, 21, 400];
        let grown = seen(with(Kind::Grow, Moves::Linear), &rounds);
        assert_eq!(grown, [(0, 10), (0, 15), (0, 19), (0, 20), (0, 20), (0, 20), (0, 20)]);
        let slid = seen(with(Kind::Slide, Moves::Step), &rounds);
        assert_eq!(slid, [(0, 10), (0, 10), (0, 10), (10, 20), (10, 20), (10, 20), (10, 20)]);
        let there_and_back = seen(with(Kind::Slide, Moves::Periodic), &rounds);
        assert_eq!(there_and_back[..3], [(0, 10), (10, 20), (1, 11)]);
        assert_eq!(there_and_back[3..6], [(0, 10), (10, 20), (0, 10)]);
        assert_eq!(seen(Stream::default(), &[1, 500]), [(0, 20); 2]);
    }

    #[test]
    fn there_is_always_a_row_and_never_one_too_many() {
        for rows in 1..30 {
            for window in [0.001, 0.3, 1.0] {
                for moves in [Moves::Linear, Moves::Step, Moves::Periodic] {
                    for kind in [Kind::Grow, Kind::Slide] {
                        let stream = Stream { kind, window, moves, over: 7, ..Stream::default() };
                        for round in 1..40 {
                            let range = stream.seen(rows, round);
                            assert!(!range.is_empty() && range.end <= rows, "{stream:?} {range:?}");
                        }
                    }
                }
            }
        }
    }
}
