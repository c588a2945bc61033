//! Named problems with exact oracles: the paper's examples, and random families for its theorem.
//!
//! One file per problem; [`Problem`] is the list. A problem is built into an [`Instance`]: a loss
//! and gradient for each agent, a start, and what is known about the losses. [`Federation`] is the
//! engine that lets such agents take part.
//!
//! Agents are counted from 0, where the paper counts from 1; the weights `w_1`, `w_2` are the
//! paper's.

mod federation;
mod huber;
mod observation1;
mod observation2;
mod observation3;
mod observation4;
mod random;
mod red_blue;
mod smoothed_hinge;

pub use federation::{Federation, MeanLoss};
pub use huber::Huber;
pub use observation1::Observation1;
pub use observation2::Observation2;
pub use observation3::Observation3;
pub use observation4::Observation4;
pub use red_blue::{Device, RedBlue};
pub use smoothed_hinge::SmoothedHinge;

use crate::list::{Origin, listed};
use crate::{Error, Seed};
use std::sync::Arc;

/// An agent's loss and gradient, exactly.
pub trait Oracle: Send + Sync {
    /// The loss, never negative.
    fn loss(&self, weights: &[f64]) -> f64;

    /// The loss, with a (sub)gradient written into `gradient`.
    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64;

    /// The share of correct predictions, where that means something.
    fn accuracy(&self, weights: &[f64]) -> Option<f64> {
        let _ = weights;
        None
    }

    /// How many terms a loss adds up: what it costs to ask.
    fn terms(&self) -> usize {
        1
    }
}

/// A problem, ready to run.
#[derive(Clone)]
pub struct Instance {
    /// One oracle per agent.
    pub oracles: Vec<Arc<dyn Oracle>>,
    /// Where a run begins.
    pub start: Vec<f64>,
    /// A constant L such that every loss is L-Lipschitz, where there is one.
    pub lipschitz: Option<f64>,
    /// A constant H such that every loss is H-smooth, where there is one.
    pub smoothness: Option<f64>,
    /// The target loss that is usual for the problem.
    pub epsilon: f64,
    /// A step size that suits averaging and ADA-GD alike.
    pub step_size: f64,
    /// A slack δ that suits it.
    pub delta: f64,
}

impl Instance {
    /// The number of weights.
    pub fn dimension(&self) -> usize {
        self.start.len()
    }

    /// The theorem's step size `min(δ/L, √(δ/2H), 1/(MH))`; an unknown constant does not bind.
    pub fn theorem_step(&self, delta: f64) -> Option<f64> {
        let agents = self.oracles.len() as f64;
        crate::diagnose::theorem_step(delta, self.lipschitz, self.smoothness, agents)
    }

    fn started_at(mut self, start: &Option<Vec<f64>>) -> Result<Self, Error> {
        if let Some(start) = start {
            if start.len() != self.dimension() {
                let must = format!("{} numbers", self.dimension());
                return Err(Error::bad_parameter("problem.start", format!("{start:?}"), must));
            }
            if start.iter().any(|value| !value.is_finite()) {
                let must = "finite numbers";
                return Err(Error::bad_parameter("problem.start", format!("{start:?}"), must));
            }
            self.start.clone_from(start);
        }
        Ok(self)
    }
}

/// What a problem's file says about it.
trait Pose {
    /// Checks the parameters and makes the oracles. Only the random families use the seed.
    fn pose(&self, seed: Seed) -> Result<Instance, Error>;

    /// What is true of it.
    fn facts(&self) -> Posed<'_>;
}

/// What is true of a problem. There are no defaults: a new one must say all of it.
struct Posed<'a> {
    /// Where to start instead of where the problem starts.
    start: &'a Option<Vec<f64>>,
    /// Whether every agent's loss is convex.
    convex: bool,
    /// Whether a loss is exactly zero where an agent is served perfectly. Sums of logarithms are not.
    reaches_zero: bool,
}

listed! {
    /// Every problem, under the name it has in a configuration.
    pub enum Problem: Pose, "kind", Observation3 {
        /// A unit ball against two points: departures are benign.
        Observation1(Observation1) = "observation-1", observation1::ORIGIN;
        /// A start in the bad region: no rule can help.
        Observation2(Observation2) = "observation-2", observation2::ORIGIN;
        /// No uniform averaging can help; ADA-GD can.
        Observation3(Observation3) = "observation-3", observation3::ORIGIN;
        /// Parallel gradients: no rule with small steps can help.
        Observation4(Observation4) = "observation-4", observation4::ORIGIN;
        /// Two linear classifiers that need each other's data.
        RedBlue(RedBlue) = "red-blue", red_blue::ORIGIN;
        /// Random realizable regression with Huber's loss.
        Huber(Huber) = "huber", huber::ORIGIN;
        /// Random separable classification with a smoothed hinge.
        SmoothedHinge(SmoothedHinge) = "smoothed-hinge", smoothed_hinge::ORIGIN;
    }
}

impl Problem {
    /// Whether every agent's loss is convex, so that an inequality between two honest reports is a
    /// proof.
    pub fn is_convex(&self) -> bool {
        self.inner().facts().convex
    }

    /// Whether a loss can be as low as `epsilon` at all. No loss is negative.
    pub fn can_reach(&self, epsilon: f64) -> bool {
        if self.inner().facts().reaches_zero { epsilon >= 0.0 } else { epsilon > 0.0 }
    }

    /// Checks the parameters and makes the oracles. Only the random families use the seed.
    pub fn build(&self, seed: Seed) -> Result<Instance, Error> {
        self.inner().pose(seed)?.started_at(self.inner().facts().start)
    }
}

#[cfg(test)]
mod tests {
    //! Laws that hold for every problem of the list.

    use super::*;
    use rand::Rng;

    fn every_instance(seed: u64) -> Vec<(&'static str, Instance)> {
        Problem::LIST
            .iter()
            .map(|entry| {
                let problem: Problem =
                    serde_json::from_value(serde_json::json!({ "kind": entry.name })).unwrap();
                assert_eq!(problem.name(), entry.name);
                (entry.name, problem.build(Seed(seed)).unwrap())
            })
            .collect()
    }

    fn near(start: &[f64], seed: u64) -> Vec<f64> {
        let mut rng = Seed(seed).stream("near", 0, 0);
        start
            .iter()
            .map(|value| value + 2.0 * (rng.next_u32() as f64 / u32::MAX as f64) - 1.0)
            .collect()
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for (name, instance) in every_instance(3) {
            for (point, oracle) in (0..5).flat_map(|p| instance.oracles.iter().map(move |o| (p, o)))
            {
                let w = near(&instance.start, point);
                let mut gradient = vec![0.0; w.len()];
                let loss = oracle.loss_and_gradient(&w, &mut gradient);
                assert!((loss - oracle.loss(&w)).abs() <= 1e-12 * (1.0 + loss), "{name}");
                for index in 0..w.len() {
                    let shifted = |by: f64| {
                        let mut w = w.clone();
                        w[index] += by;
                        oracle.loss(&w)
                    };
                    let difference = (shifted(1e-6) - shifted(-1e-6)) / 2e-6;
                    assert!(
                        (difference - gradient[index]).abs() < 1e-5 * (1.0 + difference.abs()),
                        "{name}: {difference} against {}",
                        gradient[index]
                    );
                }
            }
        }
    }

    #[test]
    fn losses_are_convex_and_within_their_constants() {
        for (name, instance) in every_instance(5) {
            for (pair, oracle) in (0..20).flat_map(|p| instance.oracles.iter().map(move |o| (p, o)))
            {
                let (u, v) = (near(&instance.start, 2 * pair), near(&instance.start, 2 * pair + 1));
                let (mut gu, mut gv) = (vec![0.0; u.len()], vec![0.0; u.len()]);
                let (fu, fv) =
                    (oracle.loss_and_gradient(&u, &mut gu), oracle.loss_and_gradient(&v, &mut gv));
                assert!(fu >= 0.0, "{name}: a negative loss");
                let linear: f64 = fu
                    + gu.iter().zip(u.iter().zip(&v)).map(|(g, (u, v))| g * (v - u)).sum::<f64>();
                assert!(fv >= linear - 1e-12, "{name}: below its own tangent");
                let distance = u.iter().zip(&v).map(|(u, v)| (u - v).powi(2)).sum::<f64>().sqrt();
                if let Some(l) = instance.lipschitz {
                    assert!((fu - fv).abs() <= l * distance * (1.0 + 1e-12), "{name}: L = {l}");
                }
                if let Some(h) = instance.smoothness {
                    let change =
                        gu.iter().zip(&gv).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    assert!(change <= h * distance * (1.0 + 1e-12), "{name}: H = {h}");
                }
            }
        }
    }

    #[test]
    fn a_start_of_the_wrong_length_is_refused_by_name() {
        let problem = Problem::Observation2(Observation2 { start: Some(vec![1.0]) });
        let message = problem.build(Seed(0)).err().unwrap().to_string();
        assert!(message.contains("problem.start") && message.contains("2 numbers"), "{message}");
    }
}
