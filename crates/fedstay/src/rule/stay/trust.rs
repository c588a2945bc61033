//! Whether what a member says now agrees with what it said before.
//!
//! A member that says losses L₁ and L₂ and gradients g₁ and g₂ before and after the weights moved by `v` has, if its
//! loss is convex,
//!
//! ```text
//! L₁ + ⟨g₁, v⟩ ≤ L₂   and   L₂ − ⟨g₂, v⟩ ≤ L₁
//! ```
//!
//! whatever its target is and whoever else pulls. So an honest member whose target excludes the others' is never
//! doubted. Whoever turns its gradient round breaks one of the two on every move along which its loss changes: the
//! first where the loss falls although the gradient said it would rise, the second where it has risen and the gradient
//! still says that way is down. Losses that bend the other way break them a little; only what is broken by a good part
//! of the change that was at stake counts.
//!
//! Of the two, the first can be told where the second report is about the server's own weights, and the second where the
//! first one is: of a preview only its own gradient's change along the way to the server's weights is known.
//!
//! That a promise was not kept says nothing by itself: a convex loss always ends above its cut, and the more so the more
//! others pull the other way.

use super::member::Said;

/// What is broken by more than this share of the changes at stake is a contradiction.
const MOST: f64 = 0.3;
/// Changes below this share of the losses are rounding, where those are computed in single precision.
const ROUNDING: f64 = 1e-5;
/// What a contradiction leaves of a member's trust, and how it comes back round by round.
const LOST: f64 = 0.25;
const REGAINED: f64 = 1.1;
/// The least trust, from which it can still come back.
const LEAST: f64 = 1e-9;

/// How two reports agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    Unknown,
    Consistent,
    Contradiction,
}

impl Agreement {
    /// Compares what was said before a move with what is said after it, of which `change` is by the gradient there,
    /// along the move that was made. `as_asked`: whether that is the one that was asked for. `usual` is a loss that is
    /// usual: whoever says that its own is far larger cannot hide a contradiction in its rounding.
    pub(super) fn of(before: Said, now: Said, as_asked: bool, usual: f64) -> Self {
        let by = now.loss - before.loss;
        // What the first gradient says of a place that it was not given, and the second of one that it was not, is
        // not known.
        let foretold = before.change - before.fall.unwrap_or_default();
        let foretold = (as_asked && now.fall.is_none()).then_some(foretold);
        let looking_back = now.change + now.fall.unwrap_or_default();
        let looking_back = before.fall.is_none().then_some(looking_back);
        if foretold.is_none() && looking_back.is_none() {
            return Self::Unknown;
        }
        let (foretold, looking_back) = (foretold.unwrap_or(by), looking_back.unwrap_or(by));
        let stake = foretold.abs() + looking_back.abs() + by.abs();
        let broken = (foretold - by).max(by - looking_back);
        match stake > ROUNDING * (now.loss.abs() + before.loss.abs()).min(usual) {
            true if !stake.is_finite() => Self::Unknown,
            true if broken > MOST * stake => Self::Contradiction,
            true => Self::Consistent,
            false => Self::Unknown,
        }
    }

    /// What becomes of a member's trust.
    pub(super) fn revise(self, trust: f64) -> f64 {
        match self {
            Self::Unknown => trust,
            Self::Consistent => (trust * REGAINED).min(1.0),
            Self::Contradiction => (trust * LOST).max(LEAST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A convex loss on the line: a parabola with a kink.
    fn loss(w: f64, bend: f64, kink: f64) -> (f64, f64) {
        let sign = if w > 0.3 { 1.0 } else { -1.0 };
        (0.5 * bend * w * w + kink * (w - 0.3).abs(), bend * w + kink * sign)
    }

    proptest! {
        #[test]
        fn a_convex_loss_never_contradicts_itself_and_a_turned_gradient_always_does(
            from in -3.0..3.0f64,
            way in -3.0..3.0f64,
            bend in 0.0..2.0f64,
            kink in 0.0..1.0f64,
            by in 0.1..5.0f64,
            as_asked: bool,
        ) {
            prop_assume!(way.abs() > 1e-3);
            let ((one, g), (two, h)) = (loss(from, bend, kink), loss(from + way, bend, kink));
            let of = |times: f64| {
                let said = |loss: f64, g: f64| Said { loss, change: times * g * way, fall: None };
                Agreement::of(said(one, g), said(two, h), as_asked, 10.0)
            };
            prop_assert!(of(1.0) != Agreement::Contradiction);
            // Both gradients point the same way along the move: no minimum in between.
            if as_asked && g * h > 0.0 && (two - one).abs() > 1e-3 {
                prop_assert_eq!(of(-by), Agreement::Contradiction);
            }
        }
    }

    /// Before, it was shown the model; now a preview farther up its gradient as it told it.
    #[test]
    fn a_report_about_a_preview_is_held_against_the_one_about_the_model_before() {
        // The loss w² at 3, then at 4, one farther than the model.
        let said = |loss: f64, change: f64, fall: Option<f64>| Said { loss, change, fall };
        let of = |times: f64, fall: Option<f64>| {
            let before = said(9.0, times * 6.0, fall);
            Agreement::of(before, said(16.0, 0.0, Some(times * 8.0)), true, 10.0)
        };
        assert_eq!(of(1.0, None), Agreement::Consistent);
        assert_eq!(of(-1.0, None), Agreement::Contradiction);
        assert_eq!(of(-1.0, Some(1.0)), Agreement::Unknown, "two previews are two other places");
    }

    #[test]
    fn trust_is_lost_quickly_and_comes_back_slowly() {
        let lost = Agreement::Contradiction.revise(1.0);
        assert_eq!((lost, Agreement::Unknown.revise(lost)), (0.25, 0.25));
        let rounds = std::iter::successors(Some(lost), |t| Some(Agreement::Consistent.revise(*t)));
        assert_eq!(rounds.take_while(|trust| *trust < 1.0).count(), 15);
    }
}
