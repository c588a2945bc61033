//! Previews without a gradient at what the agent received.
//!
//! Ordinary clients send a loss and where their training ended. The mean direction `d` of a path is
//! not the gradient at its start, so a cut made from it misses. What is safe is the way between two
//! models about which something is known: from what the agent was shown, `w̃`, where its loss L is
//! known and above ε, to the server's weights `w⁺`,
//!
//! ```text
//! change = σ·κ·⟨d, w⁺ − w̃⟩
//! w̃⁺     = w̃ + τ·(w⁺ − w̃),   τ = (floor − L)/change within [0, 1];  1 if the loss does not fall
//! ```
//!
//! where κ is the agent's own ratio of real to predicted change, learnt as it goes, and σ > 1 a
//! reserve. With τ = 0 the agent is shown what it was shown before. Its loss there is what it was, so
//! that is certain to keep it, for nets too; but nothing new is learnt from it. After some rounds of
//! that, a step is tried that is predicted to cost the agent a part of its room above ε.

use crate::memory::inside::is_default;
use serde::{Deserialize, Serialize};

/// σ: how much more than predicted a loss is expected to fall.
const RESERVE: f64 = 1.5;
/// κ before anything is known, and its bounds.
const FIRST_RATIO: f64 = 3.0;
const RATIOS: std::ops::RangeInclusive<f64> = 0.5..=50.0;
/// A ratio is forgotten at this pace.
const REMEMBERED: f64 = 0.9;
/// After this many rounds without a move, one is tried …
const PATIENCE: u32 = 3;
/// … that is predicted to cost this share of the room above ε.
const TRIED: f64 = 0.25;

/// What is known about how an agent's loss follows its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Rewind {
    /// κ.
    ratio: f64,
    /// Its loss in the last round and `⟨d, w̃⁺ − w̃⟩` for the move that followed.
    #[serde(skip_serializing_if = "is_default")]
    last: Option<(f64, f64)>,
    /// For how many rounds it has stood.
    #[serde(skip_serializing_if = "is_default")]
    stood: u32,
}

impl Default for Rewind {
    fn default() -> Self {
        Self { ratio: FIRST_RATIO, last: None, stood: 0 }
    }
}

/// What the agent is shown next.
pub(super) enum Move {
    /// The server's weights.
    ToServer,
    /// A point on the way to them.
    Part {
        /// How much of the way.
        share: f64,
        /// The loss predicted there.
        promised: f64,
    },
    /// What it was shown before.
    Stand,
}

impl Rewind {
    /// Learns from a loss, and decides how far to go towards the server's weights.
    ///
    /// `along` is `⟨d, w⁺ − w̃⟩`.
    pub(super) fn next(&mut self, loss: f64, epsilon: f64, along: f64, floor: f64) -> Move {
        if let Some((before, expected)) = self.last
            && expected < 0.0
        {
            let seen = (loss - before) / expected;
            let ratio = seen.max(REMEMBERED * self.ratio);
            self.ratio = ratio.clamp(*RATIOS.start(), *RATIOS.end());
        }
        let change = RESERVE * self.ratio * along;
        if change >= 0.0 || loss + change >= floor {
            (self.last, self.stood) = (Some((loss, along)), 0);
            return Move::ToServer;
        }
        let mut share = ((floor - loss) / change).clamp(0.0, 1.0);
        if share <= 0.0 && self.stood >= PATIENCE {
            share = (TRIED * (loss - epsilon) / -change).clamp(0.0, 1.0);
        }
        self.last = Some((loss, share * along));
        if share <= 0.0 {
            self.stood += 1;
            return Move::Stand;
        }
        self.stood = 0;
        Move::Part { share, promised: loss + share * change }
    }
}
