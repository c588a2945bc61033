//! Every agent's floor: how low a step may take its predicted loss.

use crate::numerics::half_space::{Nearest, nearest};
use crate::{Error, Reports, Standing, Vector, linalg};

/// Softening of constraints that cannot be met together.
const RIDGE: f64 = 1e-6;

/// The constraints `F_m + ⟨g_m, s⟩ ≥ ε_m + δ` of a round.
pub(crate) struct Floors<'a> {
    pub(crate) slopes: Vec<Vector<'a>>,
    pub(crate) gram: Vec<f64>,
    pub(crate) loss: Vec<f64>,
    /// What each agent is kept above: its target loss, raised by a margin if the rule has one.
    pub(crate) epsilon: Vec<f64>,
    /// Each agent's target loss.
    pub(crate) precision: Vec<f64>,
}

/// What it took to keep everybody above their floor.
pub(crate) struct Held {
    /// How hard each agent's floor pushed; zero where it did not.
    pub(crate) multipliers: Vec<f64>,
    /// Whether all constraints hold. If not, they cannot be met together, and every agent below its
    /// floor is held where it is.
    pub(crate) met: bool,
}

impl<'a> Floors<'a> {
    /// The floors of the agents that reported; all must tell their exact loss.
    pub(crate) fn new(reports: &Reports<'a>, rule: &'static str) -> Result<Self, Error> {
        let mut floors = Self {
            slopes: Vec::new(),
            gram: Vec::new(),
            loss: Vec::new(),
            epsilon: Vec::new(),
            precision: Vec::new(),
        };
        for report in reports.iter() {
            report.exact_loss(rule)?;
            if let Standing::Open { loss, epsilon } = report.standing {
                floors.loss.push(loss.cautious());
                floors.epsilon.push(epsilon);
                floors.slopes.push(report.slope());
            }
        }
        floors.gram = linalg::gram(&floors.slopes);
        floors.precision.clone_from(&floors.epsilon);
        Ok(floors)
    }

    /// Raises every floor by `margin + horizon · ‖g‖²`, for agents that leave early.
    pub(crate) fn raise(&mut self, margin: f64, horizon: f64) {
        let n = self.epsilon.len();
        for (index, epsilon) in self.epsilon.iter_mut().enumerate() {
            let norm = self.gram[index * n + index].max(0.0).sqrt();
            *epsilon += super::ahead(margin, horizon, norm);
        }
    }

    /// Every agent's predicted loss after the step.
    pub(crate) fn predicted(&self, step: &[f64]) -> Vec<f64> {
        let along = self.slopes.iter().map(|slope| linalg::dot(*slope, Vector::F64(step)));
        self.loss.iter().zip(along).map(|(loss, along)| loss + along).collect()
    }

    /// Whether nobody's prediction after the step is at or below its target loss.
    pub(crate) fn nobody_crosses(&self, step: &[f64]) -> bool {
        let mut predicted = self.predicted(step).into_iter().zip(&self.precision);
        predicted.all(|(loss, precision)| loss > *precision)
    }

    /// How far each agent's prediction is below its floor; negative above it.
    fn lacking(&self, step: &[f64], delta: f64) -> Vec<f64> {
        let predicted = self.predicted(step);
        predicted.iter().zip(&self.epsilon).map(|(loss, epsilon)| epsilon + delta - loss).collect()
    }

    /// Adds the shortest step after which everybody is predicted to be at most `above` over their
    /// target loss, if there is one.
    pub(crate) fn reach(&self, step: &mut [f64], above: f64) -> bool {
        let levels = self.precision.iter().map(|epsilon| epsilon + above);
        let b: Vec<f64> = self.loss.iter().zip(levels).map(|(loss, level)| loss - level).collect();
        let Nearest::Multipliers(multipliers) = nearest(&self.gram, &b, 0.0) else { return false };
        for (multiplier, slope) in multipliers.iter().zip(&self.slopes) {
            linalg::add_scaled(step, -multiplier, *slope);
        }
        true
    }

    /// Adds the shortest step after which everybody is predicted to be at most `above` over what
    /// they are kept above; if no step does that, nearly the one that comes closest.
    pub(crate) fn descend(&self, step: &mut [f64], above: f64) {
        let levels = self.epsilon.iter().map(|epsilon| epsilon + above);
        let b: Vec<f64> = self.loss.iter().zip(levels).map(|(loss, level)| loss - level).collect();
        for ridge in [0.0, RIDGE] {
            if let Nearest::Multipliers(multipliers) = nearest(&self.gram, &b, ridge) {
                for (multiplier, slope) in multipliers.iter().zip(&self.slopes) {
                    linalg::add_scaled(step, -multiplier, *slope);
                }
                return;
            }
        }
    }

    /// Moves the step to the nearest one that keeps everybody above their floor.
    pub(crate) fn keep(&self, step: &mut [f64], delta: f64) -> Held {
        let n = self.loss.len();
        let mut b = self.lacking(step, delta);
        for (index, lacking) in b.iter_mut().enumerate() {
            // A constraint whose gradient vanishes cannot be served by any step.
            if self.gram[index * n + index] == 0.0 {
                *lacking = 0.0;
            }
        }
        match nearest(&self.gram, &b, 0.0) {
            Nearest::Multipliers(multipliers) => {
                self.push(step, &multipliers);
                // Once more, for what rounding in a long step left over.
                let rest = self.lacking(step, delta).into_iter().zip(&multipliers);
                let rest = rest.map(|(rest, m)| if *m > 0.0 { rest } else { rest.min(0.0) });
                if let Nearest::Multipliers(more) =
                    nearest(&self.gram, &rest.collect::<Vec<_>>(), 0.0)
                {
                    self.push(step, &more);
                }
                Held { multipliers, met: true }
            }
            Nearest::Empty => {
                // An agent below its floor is held where it is: standing still always does that.
                let loss = self.loss.iter().zip(&self.epsilon);
                let below = loss.map(|(loss, epsilon)| (epsilon + delta - loss).max(0.0));
                let b: Vec<f64> = b.iter().zip(below).map(|(b, below)| b - below).collect();
                match nearest(&self.gram, &b, 0.0) {
                    Nearest::Multipliers(multipliers) => {
                        self.push(step, &multipliers);
                        Held { multipliers, met: false }
                    }
                    Nearest::Empty => {
                        step.fill(0.0);
                        Held { multipliers: vec![0.0; n], met: false }
                    }
                }
            }
        }
    }

    fn push(&self, step: &mut [f64], multipliers: &[f64]) {
        for (multiplier, slope) in multipliers.iter().zip(&self.slopes) {
            if *multiplier > 0.0 {
                linalg::add_scaled(step, *multiplier, *slope);
            }
        }
    }
}
