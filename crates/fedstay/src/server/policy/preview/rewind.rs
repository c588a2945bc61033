//! Previews without a gradient at what the agent received.
//!
//! Ordinary clients send a loss and where their training ended. The mean direction `d` of a path
//! points nearly where the gradient at its start does, but is shorter, by a factor κ that the server
//! learns from what moves have done to the loss. With κ·d for the gradient, the preview aimed at is
//! that of a cut,
//!
//! ```text
//! aim = w⁺ + max(0, (floor − L)/κ − ⟨d, w⁺ − w̃⟩)/‖d‖² · d
//! ```
//!
//! As long as `L` is near the floor, κ hardly matters there: the move from `w̃` to the aim is across
//! `d`. What matters is how far it leads, because `d` may point elsewhere than the gradient. The loss
//! at `w̃` itself is known, and above ε. So the agent is shown only that part of the way to the aim
//! which leaves it safe if its loss falls unforeseen by `σ·ρ·κ‖d‖` per unit of length,
//!
//! ```text
//! w̃⁺ = w̃ + τ·(aim − w̃),   τ = (L − bottom)/(σ·ρ·κ‖d‖·‖aim − w̃‖ + the fall foreseen), at most 1
//! bottom = ε + ½(floor − ε)
//! ```
//!
//! where ρ is what predictions about this agent have missed by lately, in the same unit, and never
//! less than ½: with σ = 2, a move across `d` is always reckoned with like one down it. An agent
//! below the bottom is led up `d`, back to its floor.

use crate::message::is_default;
use serde::{Deserialize, Serialize};

/// κ before anything is known, and its bounds.
const FIRST_RATIO: f64 = 3.0;
const RATIOS: std::ops::RangeInclusive<f64> = 1.0..=50.0;
/// Only moves that lead down at least this steeply, as a cosine, tell anything about κ.
const SLANT: f64 = 0.3;
/// No single move changes κ by more than this factor before it is averaged in.
const SURPRISE: f64 = 4.0;
/// σ: the reserve.
const RESERVE: f64 = 2.0;
/// ρ before anything is known, its lower bound, and how much of it is left one move later.
const FIRST_DOUBT: f64 = 3.0;
const LEAST_DOUBT: f64 = 0.5;
const REMEMBERED: f64 = 0.95;
/// The share of the room between ε and the floor that a misprediction may not use up.
const RESERVED: f64 = 0.5;

/// What is known about how an agent's loss follows its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Rewind {
    /// κ.
    ratio: f64,
    /// ρ.
    doubt: f64,
    #[serde(skip_serializing_if = "is_default")]
    last: Option<Moved>,
}

/// A move, and what was expected of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Moved {
    /// The loss before it.
    loss: f64,
    /// `⟨d, move⟩`.
    along: f64,
    length: f64,
    /// `‖d‖`.
    norm: f64,
    promised: f64,
}

impl Default for Rewind {
    fn default() -> Self {
        Self { ratio: FIRST_RATIO, doubt: FIRST_DOUBT, last: None }
    }
}

/// What an agent reported, and the way from there to the server's new weights.
pub(super) struct ReportedLoss {
    pub(super) loss: f64,
    pub(super) epsilon: f64,
    pub(super) floor: f64,
    /// `‖d‖`.
    pub(super) norm: f64,
    /// `⟨d, w⁺ − w̃⟩`.
    pub(super) along: f64,
    /// `‖w⁺ − w̃‖`.
    pub(super) way: f64,
}

/// What the agent is shown next: `w̃ + share·(w⁺ − w̃) + lift·d`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Move {
    pub(super) share: f64,
    pub(super) lift: f64,
    /// The loss predicted there.
    pub(super) promised: f64,
}

impl Move {
    /// Whether it leads to the server's weights themselves.
    pub(super) fn arrives(&self) -> bool {
        self.share >= 1.0 && self.lift == 0.0
    }
}

impl Rewind {
    /// κ: the slope is taken to be this many times the direction.
    pub(super) fn ratio(&self) -> f64 {
        self.ratio
    }

    /// Learns from the loss that followed the last move.
    pub(super) fn learn(&mut self, loss: f64) {
        let Some(last) = self.last.filter(|last| last.length > 0.0 && last.norm > 0.0) else {
            return;
        };
        let missed = (last.promised - loss) / (last.length * last.norm * self.ratio);
        self.doubt = missed.max(REMEMBERED * self.doubt).max(LEAST_DOUBT);
        if last.along < -SLANT * last.norm * last.length {
            let seen = (loss - last.loss) / last.along;
            let seen = seen.clamp(self.ratio / SURPRISE, self.ratio * SURPRISE);
            self.ratio = (0.5 * (self.ratio + seen)).clamp(*RATIOS.start(), *RATIOS.end());
        }
    }

    /// Decides how far to go. Returns `None` if there is no direction to go by.
    pub(super) fn aim(&mut self, seen: &ReportedLoss) -> Option<Move> {
        let ReportedLoss { loss, epsilon, floor, norm, along, way } = *seen;
        let square = norm * norm;
        if square.is_nan() || square <= 0.0 {
            self.last = None;
            return None;
        }
        let lift = (((floor - loss) / self.ratio - along) / square).max(0.0);
        let (down, length) = (
            along + lift * square,
            (way * way + 2.0 * lift * along + lift * lift * square).max(0.0).sqrt(),
        );
        let bottom = epsilon + RESERVED * (floor - epsilon);
        let steep = self.ratio * norm;
        let risk = RESERVE * self.doubt * steep * length + self.ratio * (-down).max(0.0);
        let share = if risk > 0.0 { ((loss - bottom) / risk).clamp(0.0, 1.0) } else { 1.0 };
        if share > 0.0 {
            return Some(self.go(seen, share, share * lift, share * down, share * length));
        }
        let lift = (floor - loss) / (self.ratio * square);
        Some(self.go(seen, 0.0, lift, lift * square, lift * norm))
    }

    /// Notes that the agent is shown once more what it was shown.
    pub(super) fn stand(&mut self) {
        self.last = None;
    }

    fn go(&mut self, seen: &ReportedLoss, share: f64, lift: f64, along: f64, length: f64) -> Move {
        let promised = seen.loss + self.ratio * along;
        self.last = Some(Moved { loss: seen.loss, along, length, norm: seen.norm, promised });
        Move { share, lift, promised }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(loss: f64, along: f64, way: f64) -> ReportedLoss {
        ReportedLoss { loss, epsilon: 0.2, floor: 0.3, norm: 1.0, along, way }
    }

    #[test]
    fn far_from_its_floor_an_agent_is_shown_the_servers_weights() {
        let next = Rewind::default().aim(&seen(3.0, -0.1, 0.1)).unwrap();
        assert!(next.arrives(), "{next:?}");
        let next = Rewind::default().aim(&seen(0.31, -0.1, 0.1)).unwrap();
        assert!(!next.arrives() && next.share < 1.0 && next.lift > 0.0, "{next:?}");
        assert!((0.25..=0.31).contains(&next.promised), "{next:?}");
    }

    #[test]
    fn below_the_bottom_it_is_led_up_and_nowhere_else() {
        let next = Rewind::default().aim(&seen(0.21, -0.1, 0.1)).unwrap();
        assert_eq!((next.share, next.promised), (0.0, 0.3));
        assert!(next.lift > 0.0);
        let lost = ReportedLoss { norm: 0.0, ..seen(0.21, 0.0, 0.1) };
        assert_eq!(Rewind::default().aim(&lost), None, "there is no up");
    }

    #[test]
    fn whoever_fell_farther_than_foreseen_is_led_in_smaller_steps() {
        let mut honest = Rewind::default();
        let first = honest.aim(&seen(0.31, -0.1, 0.1)).unwrap();
        let mut sly = honest.clone();
        honest.learn(first.promised);
        sly.learn(first.promised - 1.0);
        let share = |rewind: &mut Rewind| rewind.aim(&seen(0.31, -0.1, 0.1)).unwrap().share;
        assert!(share(&mut sly) < 0.5 * share(&mut honest));
    }

    #[test]
    fn the_ratio_of_slope_to_direction_is_learnt_from_moves_that_lead_down() {
        let (mut rewind, mut loss) = (Rewind::default(), 8.0);
        for _ in 0..40 {
            let next = rewind.aim(&seen(loss, -0.02, 0.02)).unwrap();
            assert!(next.arrives());
            loss -= 7.0 * 0.02;
            rewind.learn(loss);
        }
        assert!((rewind.ratio() - 7.0).abs() < 0.1, "{}", rewind.ratio());
    }
}
