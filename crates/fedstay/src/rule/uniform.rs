//! Uniform aggregation: along the mean of all directions, by a length of one's choice.
//!
//! ```text
//! ḡ = (1/M) Σ reach_m · direction_m / η
//! s = −η·ν·ḡ
//! ```
//!
//! | `nu` | ν | |
//! |---|---|---|
//! | `one` | 1 | FedAvg |
//! | `unit` | 1/‖ḡ‖ | every step has the length η |
//! | `clipped` | min(1, 1/‖ḡ‖) | no step is longer than η |
//! | `polyak` | (F̄ − level)₊/(η‖ḡ‖²) | Polyak's step for the mean loss F̄ |
//!
//! It is the class of rules of which Observation 3 of the reference says that short steps cannot
//! prevent harmful departures: wherever ν depends on, the direction stays the mean. Where ḡ is zero
//! nothing moves, and it never stops on its own. The server must know the directions, and for
//! `polyak` everybody's loss. With `weigh = "samples"` both means count an agent by its samples.
//!
//! References: arXiv 2311.16459, Observation 3. Polyak, *Introduction to Optimization*, 1987, for his
//! step.

use super::weigh::Weigh;
use super::{Aggregator, Decision, Facts, LabelChange, Origin, Round, watched};
use crate::{Error, Vector, linalg};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "along the mean, by a length that the whole federation decides: ν of the paper's class",
    reference: "arXiv 2311.16459, Observation 3",
};

/// What a label may change: `uniform+samples`, `uniform+polyak`.
const CHANGES: &[LabelChange] = &[
    LabelChange { name: "samples", set: "weigh = \"samples\"" },
    LabelChange { name: "one", set: "nu = \"one\"" },
    LabelChange { name: "unit", set: "nu = \"unit\"" },
    LabelChange { name: "polyak", set: "nu = \"polyak\"" },
];

/// Uniform aggregation.
///
/// ```
/// use fedstay::rule::{Nu, Uniform};
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// let near = Report::new(AgentId(0), Loss::Exact(0.5).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(2.0).leaves_at(0.1), Vector::F64(&[0.0, 2.0]));
/// let mut server = Server::new(vec![0.0, 0.0], Uniform { nu: Nu::Unit, ..Uniform::default() }, 1.0)?;
/// server.step(&Reports::new(2, vec![near, far])?)?;
/// // Along the mean, by the step size.
/// assert!((server.weights()[0].hypot(server.weights()[1]) - 1.0).abs() < 1e-12);
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Uniform {
    /// What the mean is multiplied by.
    pub nu: Nu,
    /// The mean loss that `polyak` aims at: the smallest there can be.
    pub level: f64,
    /// How much each agent counts.
    pub weigh: Weigh,
    /// Widens the forecast of departures and changes no step.
    pub delta: f64,
}

/// What the mean is multiplied by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nu {
    /// 1.
    One,
    /// 1/‖ḡ‖.
    Unit,
    /// min(1, 1/‖ḡ‖).
    #[default]
    Clipped,
    /// (F̄ − level)₊/(η‖ḡ‖²).
    Polyak,
}

impl Uniform {
    /// The rule with this ν.
    pub fn new(nu: Nu) -> Self {
        Self { nu, ..Self::default() }
    }

    fn mean_loss(&self, round: &Round<'_>) -> Result<f64, Error> {
        let losses = round.reports.iter().map(|report| report.exact_loss("uniform"));
        match self.weigh.shares(round.reports.iter().map(|report| report.samples)) {
            None => Ok(losses.sum::<Result<f64, _>>()? / round.reports.len() as f64),
            Some(shares) => losses.zip(shares).map(|(loss, share)| Ok(loss? * share)).sum(),
        }
    }
}

impl Aggregator for Uniform {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        self.weigh.mean(round, step);
        let length = linalg::norm(Vector::F64(step)) / round.step_size;
        let nu = match self.nu {
            Nu::One => 1.0,
            Nu::Unit => 1.0 / length,
            Nu::Clipped => (1.0 / length).min(1.0),
            Nu::Polyak => {
                let above = (self.mean_loss(round)? - self.level).max(0.0);
                above / (round.step_size * length * length)
            }
        };
        if length * length == 0.0 {
            step.fill(0.0);
        } else if nu != 1.0 {
            linalg::scale(step, nu);
        }
        Ok(watched(round, step, self.delta))
    }

    fn facts(&self) -> Facts {
        let mut label = self.weigh.label();
        label.extend(match self.nu {
            Nu::One => Some("one"),
            Nu::Unit => Some("unit"),
            Nu::Clipped => None,
            Nu::Polyak => Some("polyak"),
        });
        let near = (self.nu != Nu::Polyak).then_some(0.5);
        Facts { label, near, changes: CHANGES, ..Facts::blind(self.delta) }
    }

    fn check(&self) -> Result<(), Error> {
        if !self.level.is_finite() {
            return Err(Error::bad_parameter("rule.level", self.level, "a finite number"));
        }
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Federation, Observation3, Problem};
    use crate::verdict::Verdict;
    use crate::{
        About, AgentId, Behaviour, Loss, Mean, Report, Reports, Rule, Seed, Server, Session,
    };
    use proptest::prelude::*;

    fn step(rule: impl Into<Rule>, losses: &[f64], gradients: &[Vec<f64>]) -> Vec<f64> {
        let dimension = gradients[0].len();
        let mut server = Server::new(vec![0.0; dimension], rule, 0.3).unwrap();
        let told = losses.iter().zip(gradients).enumerate().map(|(id, (loss, g))| {
            Report::new(AgentId(id as u64), Loss::Exact(*loss).leaves_at(0.1), Vector::F64(g))
        });
        server.step(&Reports::new(dimension, told.collect()).unwrap()).unwrap();
        server.displacement().to_vec()
    }

    proptest! {
        /// Each ν against its formula over the plain mean of the gradients.
        #[test]
        fn each_length_is_that_of_its_formula(
            losses in prop::collection::vec(0.0..3.0f64, 3),
            gradients in prop::collection::vec(prop::collection::vec(-2.0..2.0f64, 2), 3),
        ) {
            let mean: Vec<f64> =
                (0..2).map(|i| gradients.iter().map(|g| g[i]).sum::<f64>() / 3.0).collect();
            let length = mean[0].hypot(mean[1]);
            let average = losses.iter().sum::<f64>() / 3.0;
            prop_assume!(length > 1e-3);
            let expected = [
                (Nu::One, 0.3),
                (Nu::Unit, 0.3 / length),
                (Nu::Clipped, if length > 1.0 { 0.3 / length } else { 0.3 }),
                (Nu::Polyak, average / (length * length)),
            ];
            for (nu, times) in expected {
                let step = step(Uniform::new(nu), &losses, &gradients);
                for (step, mean) in step.iter().zip(&mean) {
                    prop_assert!((step + times * mean).abs() < 1e-12 * (1.0 + times), "{nu:?}");
                }
            }
            let plain = step(Mean::default(), &losses, &gradients);
            prop_assert_eq!(step(Uniform::new(Nu::One), &losses, &gradients), plain);
        }
    }

    #[test]
    fn where_the_mean_is_zero_nothing_moves() {
        let opposed = [vec![1.0, -2.0], vec![-1.0, 2.0]];
        for nu in [Nu::One, Nu::Unit, Nu::Clipped, Nu::Polyak] {
            assert_eq!(step(Uniform::new(nu), &[1.0, 2.0], &opposed), [0.0, 0.0], "{nu:?}");
        }
    }

    /// Where a run on Observation 3 ends, and its verdict.
    fn end(nu: Nu, alpha: f64, step_size: f64) -> ([f64; 2], Verdict) {
        let problem = Problem::Observation3(Observation3 { alpha, start: None });
        let instance = problem.build(Seed(0)).unwrap();
        let epsilon = [instance.epsilon; 2];
        let federation = Federation::new(&instance, &epsilon, &Behaviour::default()).unwrap();
        let server = Server::new(instance.start.clone(), Uniform::new(nu), step_size).unwrap();
        let mut session = Session::new(server, federation, 20_000, About::default()).unwrap();
        let summary = session.run(&mut []).unwrap().unwrap();
        let weights = session.server().weights();
        ([weights[0], weights[1]], summary.verdict)
    }

    /// Observation 3 as a property over ν: while both agents are in, the way is the same line whatever
    /// ν and α, so agent 1 leaves with `s = w_1 − w_2 + α ≤ ε` at `w_2 = 1` and agent 0, alone, then
    /// spoils what it had. It is about short steps: one that carries s below −1 + ε jumps so far over
    /// agent 1's border that agent 0 no longer reaches it, as Polyak's does here.
    #[test]
    fn observation_3_holds_whatever_nu_as_long_as_steps_are_short() {
        for alpha in [0.0, 0.5, 1.0, 2.0] {
            for step_size in [0.1, 0.03, 0.01] {
                for nu in [Nu::One, Nu::Unit, Nu::Clipped] {
                    let (weights, verdict) = end(nu, alpha, step_size);
                    let s = weights[0] - 1.0 + alpha;
                    assert!(s > -0.1, "{nu:?}, α = {alpha}: {weights:?}");
                    assert_eq!(verdict, Verdict::Harmful, "{nu:?}, α = {alpha}");
                }
            }
            let (weights, verdict) = end(Nu::Polyak, alpha, 0.1);
            assert!((weights[0] - 1.0 + alpha + 1.0).abs() < 1e-12, "{weights:?}");
            assert_eq!(verdict, Verdict::Benign);
        }
    }
}
