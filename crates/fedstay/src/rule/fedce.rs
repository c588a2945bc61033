//! FedCE: agents count by what they contribute that the others do not.
//!
//! ```text
//! u_m = reach_m · direction_m,    o_m = Σ_{j≠m} c_j u_j         the others, with the last weights
//! C_m = 1 − mean over rounds of cos(u_m, o_m)                   in the space of gradients
//! E_m = max(F_m − ⟨g_m, o_m⟩, 0)                                in the space of data
//! c_m ∝ C_m·E_m  or  C_m + E_m  or  C_m,    s = −Σ c_m u_m
//! ```
//!
//! Each of C, E and c is divided by its sum over the agents and kept at 0.001 or more; the first
//! weights are uniform. An agent whose updates point elsewhere than everybody else's, and whom the
//! model would serve badly without it, counts more.
//!
//! The authors measure E_m, the error of the model without agent m's update on m's own validation
//! rows; reports do not carry it. Here it is that loss to first order, from the report itself. With
//! `mode = "gradient"` only C counts, which needs no losses. The authors do not divide by the sum
//! once more after the last bound; here the step stays a mean.
//!
//! The server must know: the directions, and in two of the modes everybody's exact loss. It never
//! stops on its own. Where no agent differs from the others it is FedAvg.
//!
//! Reference: Meirui Jiang, Holger R. Roth, Wenqi Li, Dong Yang, Can Zhao, Vishwesh Nath, Daguang Xu,
//! Qi Dou, Ziyue Xu, *Fair Federated Medical Image Segmentation via Client Contribution Estimation*,
//! CVPR 2023.

use super::{Aggregator, Decision, Facts, Origin, Round, watched};
use crate::memory::inside::pairs;
use crate::{AgentId, Error, Vector, linalg};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const ORIGIN: Origin = Origin {
    about: "agents count by what they contribute that the others do not",
    reference: "Jiang, Roth, Li, Yang, Zhao, Nath, Xu, Dou, Xu, Fair Federated Medical Image \
                Segmentation via Client Contribution Estimation, CVPR 2023",
};

/// No share is smaller.
const SMALLEST: f64 = 1e-3;

/// Agents count by what they contribute.
///
/// ```
/// use fedstay::rule::FedCe;
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// let near = Report::new(AgentId(0), Loss::Exact(0.5).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(2.0).leaves_at(0.1), Vector::F64(&[0.0, 1.0]));
/// let mut server = Server::new(vec![0.0, 0.0], FedCe::default(), 1.0)?;
/// server.step(&Reports::new(2, vec![near, far])?)?;
/// // Both are as unlike the other; the one whom the others serve worse counts more.
/// assert!(server.weights()[1] < server.weights()[0]);
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FedCe {
    /// What a contribution is made of.
    pub mode: Contribution,
    /// Widens the forecast of departures and changes no step.
    pub delta: f64,
    #[serde(rename = "memory", with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    known: BTreeMap<AgentId, AgentContribution>,
}

/// What a contribution is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contribution {
    /// C·E.
    #[default]
    Times,
    /// C + E.
    Plus,
    /// C.
    Gradient,
}

/// What is remembered about an agent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct AgentContribution {
    /// The sum of its cosines, and in how many rounds.
    cosines: f64,
    rounds: u32,
    /// Its last weight.
    weight: f64,
}

impl FedCe {
    /// The rule before its first round.
    pub fn new(mode: Contribution) -> Self {
        Self { mode, ..Self::default() }
    }

    /// The last weights of those who report, or uniform ones where there are none.
    fn weights(&self, round: &Round<'_>) -> Vec<f64> {
        let share = 1.0 / round.reports.len() as f64;
        let known = |agent: &AgentId| self.known.get(agent).map_or(share, |known| known.weight);
        shares(round.reports.iter().map(|report| known(&report.agent)).collect())
    }
}

/// Numbers of zero or more as shares of their sum, each at least [`SMALLEST`]; uniform if all are zero.
fn shares(mut numbers: Vec<f64>) -> Vec<f64> {
    let total: f64 = numbers.iter().sum();
    let even = 1.0 / numbers.len() as f64;
    let share = |number: f64| if total > 0.0 { number / total } else { even };
    numbers.iter_mut().for_each(|number| *number = share(*number).max(SMALLEST.min(even)));
    let total: f64 = numbers.iter().sum();
    numbers.iter_mut().for_each(|number| *number /= total);
    numbers
}

impl Aggregator for FedCe {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let reports = round.reports.as_slice();
        let reach = |index: usize| reports[index].reach.unwrap_or(round.step_size);
        let before = self.weights(round);
        let directions: Vec<Vector<'_>> = reports.iter().map(|report| report.direction).collect();
        let gram = linalg::gram(&directions);
        let product = |i: usize, j: usize| gram[i * reports.len() + j] * reach(i) * reach(j);
        let everybody = 0..reports.len();
        let mut all = vec![0.0; step.len()];
        for index in everybody.clone() {
            linalg::add_scaled(&mut all, before[index] * reach(index), directions[index]);
        }
        let (mut unlike, mut errors) = (Vec::new(), Vec::new());
        for (own, report) in reports.iter().enumerate() {
            let others = || everybody.clone().filter(move |other| *other != own);
            let along: f64 = others().map(|j| before[j] * product(own, j)).sum();
            let square: f64 = others()
                .flat_map(|i| others().map(move |j| (i, j)))
                .map(|(i, j)| before[i] * before[j] * product(i, j))
                .sum();
            let length = (product(own, own) * square.max(0.0)).sqrt();
            let cosine = if length > 0.0 { (along / length).clamp(-1.0, 1.0) } else { 0.0 };
            let known = self.known.entry(report.agent).or_insert(AgentContribution {
                cosines: 0.0,
                rounds: 0,
                weight: before[own],
            });
            known.cosines += cosine;
            known.rounds += 1;
            // Rounding may leave a little where all point the same way.
            let apart = 1.0 - known.cosines / f64::from(known.rounds);
            unlike.push(if apart > 1e-12 { apart } else { 0.0 });
            if self.mode != Contribution::Gradient {
                let slope = report.slope();
                let with = linalg::dot(slope, Vector::F64(&all));
                let own_part = before[own] * reach(own) * linalg::dot(slope, directions[own]);
                let loss = report.exact_loss("fedce")?;
                errors.push((loss - (with - own_part)).max(0.0));
            }
        }
        let unlike = shares(unlike);
        let weights = match self.mode {
            Contribution::Gradient => unlike,
            mode => {
                let both = unlike.iter().zip(shares(errors));
                let join = |(c, e): (&f64, f64)| match mode {
                    Contribution::Plus => c + e,
                    _ => c * e,
                };
                shares(both.map(join).collect())
            }
        };
        for (index, report) in reports.iter().enumerate() {
            linalg::add_scaled(step, -weights[index] * reach(index), report.direction);
            if let Some(known) = self.known.get_mut(&report.agent) {
                known.weight = weights[index];
            }
        }
        Ok(watched(round, step, self.delta))
    }

    fn facts(&self) -> Facts {
        let facts = Facts::blind(self.delta);
        if self.mode == Contribution::Gradient { facts.near(0.5) } else { facts }
    }

    fn check(&self) -> Result<(), Error> {
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loss, Mean, Report, Reports, Rule, Server};
    use proptest::prelude::*;

    type Told = (Vec<f64>, Vec<Vec<f64>>);

    fn take(server: &mut Server, (losses, gradients): &Told) -> Vec<f64> {
        let told = losses.iter().zip(gradients).enumerate().map(|(id, (loss, g))| {
            Report::new(AgentId(id as u64), Loss::Exact(*loss).leaves_at(0.1), Vector::F64(g))
        });
        server.step(&Reports::new(gradients[0].len(), told.collect()).unwrap()).unwrap();
        server.displacement().to_vec()
    }

    fn server(rule: impl Into<Rule>) -> Server {
        Server::new(vec![0.0; 2], rule, 0.3).unwrap()
    }

    /// The method in whole vectors, with the sums of all cosines so far.
    fn naive(
        round: &Told,
        weights: &mut Vec<f64>,
        cosines: &mut [f64],
        count: f64,
        mode: Contribution,
    ) -> [f64; 2] {
        let (losses, gradients) = round;
        let dot = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1];
        let moves: Vec<[f64; 2]> = gradients.iter().map(|g| [0.3 * g[0], 0.3 * g[1]]).collect();
        let normalised = |v: Vec<f64>| {
            let sum: f64 = v.iter().sum();
            let bounded: Vec<f64> = v.iter().map(|x| (x / sum).max(1e-3)).collect();
            let sum: f64 = bounded.iter().sum();
            bounded.iter().map(|x| x / sum).collect::<Vec<f64>>()
        };
        let (mut c, mut e) = (Vec::new(), Vec::new());
        for own in 0..moves.len() {
            let mut others = [0.0, 0.0];
            for other in (0..moves.len()).filter(|other| *other != own) {
                others[0] += weights[other] * moves[other][0];
                others[1] += weights[other] * moves[other][1];
            }
            let lengths = (dot(moves[own], moves[own]) * dot(others, others)).sqrt();
            cosines[own] += dot(moves[own], others) / lengths;
            c.push(1.0 - cosines[own] / count);
            let slope = [gradients[own][0], gradients[own][1]];
            e.push((losses[own] - dot(slope, others)).max(0.0));
        }
        let (c, e) = (normalised(c), normalised(e));
        *weights = match mode {
            Contribution::Gradient => c,
            Contribution::Times => normalised(c.iter().zip(&e).map(|(c, e)| c * e).collect()),
            Contribution::Plus => normalised(c.iter().zip(&e).map(|(c, e)| c + e).collect()),
        };
        let along =
            |axis: usize| -weights.iter().zip(&moves).map(|(w, u)| w * u[axis]).sum::<f64>();
        [along(0), along(1)]
    }

    proptest! {
        #[test]
        fn it_is_the_method_in_whole_vectors(
            rounds in prop::collection::vec((
                prop::collection::vec(1.5..3.0f64, 3),
                prop::collection::vec(prop::collection::vec(0.2..1.5f64, 2), 3),
            ), 3),
            mode in prop::sample::select(vec![
                Contribution::Times, Contribution::Plus, Contribution::Gradient,
            ]),
        ) {
            let mut server = server(FedCe::new(mode));
            let (mut weights, mut cosines) = (vec![1.0 / 3.0; 3], vec![0.0; 3]);
            for (index, round) in rounds.iter().enumerate() {
                let step = take(&mut server, round);
                let count = (index + 1) as f64;
                let expected = naive(round, &mut weights, &mut cosines, count, mode);
                // Where all but coincide, 1 − cos is rounding.
                prop_assume!(cosines.iter().all(|sum| 1.0 - sum / count > 1e-4));
                for (step, expected) in step.iter().zip(expected) {
                    prop_assert!((step - expected).abs() < 1e-6, "{step} for {expected}");
                }
            }
        }
    }

    #[test]
    fn where_nobody_differs_it_is_fedavg_and_one_that_differs_counts_more() {
        let same = (vec![1.0; 3], vec![vec![0.5, 0.2]; 3]);
        for mode in [Contribution::Times, Contribution::Plus, Contribution::Gradient] {
            let (own, mean) = (
                take(&mut server(FedCe::new(mode)), &same),
                take(&mut server(Mean::default()), &same),
            );
            assert!(own.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-15), "{mode:?}");
            let odd = (vec![1.0; 3], vec![vec![1.0, 0.0], vec![1.0, 0.0], vec![0.0, 1.0]]);
            let (own, mean) = (
                take(&mut server(FedCe::new(mode)), &odd),
                take(&mut server(Mean::default()), &odd),
            );
            assert!(own[1] < mean[1] && own[0] > mean[0], "{mode:?}: {own:?}, the mean {mean:?}");
        }
    }

    #[test]
    fn a_single_agent_and_one_that_sends_nothing_are_no_division_by_zero() {
        let mut alone = server(FedCe::default());
        assert!(take(&mut alone, &(vec![0.0], vec![vec![1.0, 0.0]]))[0] < 0.0);
        let mut idle = server(FedCe::default());
        let step = take(&mut idle, &(vec![0.0, 0.0], vec![vec![1.0, 0.0], vec![0.0, 0.0]]));
        assert!(step.iter().all(|value| value.is_finite()));
    }
}
