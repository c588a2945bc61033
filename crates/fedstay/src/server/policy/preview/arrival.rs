//! Whether the server's new weights satisfy everybody.

use super::landing::Balls;
use super::{Slope, estimate};
use crate::rule::Landing;
use crate::{Loss, Report, Vector, linalg};

/// Looks at one report after the other, and then knows.
pub(super) struct ArrivalCheck<'a> {
    balls: Option<Balls<'a>>,
    /// Everybody provably is satisfied.
    proven: bool,
    /// Everybody is, as far as can be predicted.
    likely: bool,
    /// Every cut lies below the target loss by the slack: what is missing is a smaller slack.
    pub(super) below: bool,
}

impl<'a> ArrivalCheck<'a> {
    pub(super) fn new(smoothness: Option<f64>) -> Self {
        let balls = smoothness.map(Balls::new);
        Self { proven: false, balls, likely: true, below: true }
    }

    /// An agent's report, and the way from where it was made to the server's new weights.
    pub(super) fn look(
        &mut self,
        report: &Report<'a>,
        slope: Slope<'_>,
        (loss, epsilon): (f64, f64),
        slack: f64,
        way: &[f64],
    ) {
        let along = slope.along(way);
        self.likely &= estimate(loss, -along) <= epsilon;
        self.below &= loss + along <= epsilon - slack;
        match (report.loss(), report.gradient) {
            (Some(Loss::Exact(_)), Some(gradient @ Vector::F64(_))) => {
                if let Some(balls) = &mut self.balls {
                    balls.add(loss, epsilon, gradient, way);
                }
            }
            _ => self.balls = None,
        }
    }

    /// Somebody who is still in was not heard.
    pub(super) fn unheard(&mut self) {
        (self.balls, self.likely, self.below) = (None, false, false);
    }

    /// Changes the step to one after which everybody provably is content; or, when everybody is
    /// predicted to be and nothing is proven, to where more can be.
    pub(super) fn come_down(&mut self, step: &mut [f64]) {
        let Some(balls) = self.balls.as_ref().filter(|_| self.likely) else { return };
        let (more, met) = balls.step();
        if met || self.below {
            linalg::add_scaled(step, 1.0, Vector::F64(&more));
            // What they prove is about the step before.
            (self.proven, self.balls) = (met, None);
        }
    }

    /// How sure it is, after the step as it now is.
    pub(super) fn verdict(&self) -> Landing {
        let here = || self.balls.as_ref().is_some_and(|balls| balls.prove_here());
        match (self.proven || here(), self.likely) {
            (true, _) => Landing::Certified,
            (_, true) => Landing::Estimated,
            _ => Landing::No,
        }
    }
}
