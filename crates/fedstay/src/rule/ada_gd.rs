//! ADA-GD: adaptive defection-aware aggregation for gradient descent.
//!
//! ```text
//! D  = {m : F_m − η‖g_m‖ ≤ ε_m + δ}          who may leave after this step; ND = the others
//! v  = Π_P(Σ_{ND} g_m),  P = span{g_n : n ∈ D}^⊥   case 1, both non-empty (a sum)
//! v  = (1/M) Σ g_m                                 case 2, D empty        (a mean)
//! stop                                             case 3, ND empty: settled
//! w ← w − η · min(‖v‖, 1) · v/‖v‖
//! ```
//!
//! The server must know: every agent's loss, target loss and gradient (or its
//! [`τ`](crate::Standing::Private) instead of the first two). It stops when everybody is within
//! reach of their target loss (`settled`), or when nothing is left of the direction after the
//! projection (`stalled`: parallel gradients, or as many agents as dimensions).
//!
//! For convex losses nobody leaves at *any* step size, because `F_m(w + s) ≥ F_m(w) + ⟨g_m, s⟩`.
//! The theorem's bound `η ≤ min(δ/L, √(δ/2H), 1/(MH))` is needed for progress and for the quality
//! of the result: with it every agent ends at `F_m ≤ ε_m + 2δ`.
//!
//! It is the paper's choice that case 1 sums and case 2 averages, so the step jumps when the first
//! agent enters D. Case 3 fires at `F ≈ ε + δ + η‖g‖`, so a large η stops early;
//! `on_settled = "halve"` halves η there instead and splits the same reports again, at no cost in
//! communication.
//!
//! Reference: Minbiao Han, Kumar Kshitij Patel, Han Shao, Lingxiao Wang, *On the Effect of
//! Defections in Federated Learning and How to Prevent Them*, arXiv 2311.16459, Algorithm 2.

use super::{
    Aggregator, Decision, Facts, LabelChange, Losses, Measured, NOTHING_LEFT, Origin, Round, SLACK,
    Split, StopReason, safety,
};
use crate::tau;
use crate::{Error, Loss, Report, Standing};
use fedstay_kernels::numerics::projection::{Projected, Task};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "predicts who is about to leave and moves only where their losses stay as they are",
    reference: "Han, Patel, Shao, Wang, On the Effect of Defections in Federated Learning and How to Prevent Them, arXiv 2311.16459",
};

/// With `on_settled = "halve"`, the step size may fall to this share of the first one.
const SMALLEST_STEP_SHARE: f64 = 1e-3;

/// What a label may change about the rule; `horizon` is five private steps of 0.02, which is how
/// far `foresight` looks unless told otherwise.
const CHANGES: &[LabelChange] = &[
    LabelChange { name: "halve", set: "on_settled = \"halve\"" },
    LabelChange { name: "stop", set: "on_settled = \"stop\"" },
    LabelChange { name: "no-projection", set: "projection = false" },
    LabelChange { name: "horizon", set: "horizon = 0.1" },
];

/// The paper's rule, ADA-GD.
///
/// ```
/// use fedstay::{AdaGd, AgentId, Loss, Report, Reports, Server, Vector};
///
/// let near = Report::new(AgentId(0), Loss::Exact(0.2).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(3.0).leaves_at(0.1), Vector::F64(&[1.0, 1.0]));
/// let mut server = Server::new(vec![0.0, 0.0], AdaGd { delta: 0.05, ..AdaGd::default() }, 0.1)?;
/// let decision = server.step(&Reports::new(2, vec![near, far])?)?;
/// // The step leaves the agent that is about to leave where it is, and helps the other.
/// assert_eq!(decision.split.d, [AgentId(0)]);
/// assert!(server.weights()[0].abs() < 1e-15 && server.weights()[1] < 0.0);
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdaGd {
    /// The slack δ in the prediction. Larger: agents count as about to leave earlier and end
    /// farther from their target loss. The theorem wants `0 < δ ≤ ε`.
    pub delta: f64,
    /// What to do when everybody is about to leave.
    pub on_settled: OnSettled,
    /// `false` keeps the split and the clipped step and leaves the projection out: the control
    /// that shows what the projection itself does.
    pub projection: bool,
    /// Added to every agent's target loss in the prediction: a defence against agents that leave a
    /// little early (see `behaviour/foresight.rs`). Larger: about to leave earlier, end farther
    /// away.
    pub margin: f64,
    /// Also adds `horizon · ‖g_m‖²`: the most that `J` private steps of size `a` gain an agent,
    /// where the loss is convex and `J·a = horizon`.
    pub horizon: f64,
}

/// What ADA-GD does in case 3.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnSettled {
    /// Stop and return the weights, as printed.
    #[default]
    Stop,
    /// Halve the step size and split the same reports again, down to a thousandth of the first.
    Halve,
}

impl Default for AdaGd {
    fn default() -> Self {
        Self {
            delta: SLACK,
            on_settled: OnSettled::Stop,
            projection: true,
            margin: 0.0,
            horizon: 0.0,
        }
    }
}

impl AdaGd {
    /// The smallest step size at which the agent is in D.
    fn tau(&self, report: &Report<'_>, norm: f64) -> f64 {
        match report.standing {
            Standing::Private { tau } => tau,
            Standing::Open { loss, epsilon } => {
                let floor = epsilon + super::ahead(self.margin, self.horizon, norm);
                tau(loss.cautious(), floor, self.delta, norm)
            }
        }
    }

    /// Which reports are in D at the given step size.
    fn in_d(&self, round: &Round<'_>, step_size: f64) -> Result<Vec<bool>, Error> {
        let reports = round.reports.iter().zip(round.reports.norms());
        reports
            .map(|(report, norm)| {
                let in_d = self.tau(report, *norm) <= step_size;
                // Above a lower bound on the loss nothing is known, so it can prove ND, never D.
                let bound = matches!(report.loss(), Some(Loss::AtLeast(_)));
                if in_d && bound { report.exact_loss("ada-gd").map(|_| true) } else { Ok(in_d) }
            })
            .collect()
    }
}

impl Aggregator for AdaGd {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let mut step_size = round.step_size;
        let smallest = round.initial_step_size * SMALLEST_STEP_SHARE;
        let mut in_d = self.in_d(round, step_size)?;
        while self.on_settled == OnSettled::Halve
            && in_d.iter().all(|in_d| *in_d)
            && step_size / 2.0 >= smallest
        {
            step_size /= 2.0;
            in_d = self.in_d(round, step_size)?;
        }

        let split = Split::by(round.reports, |index| in_d[index]);
        let case = split.case();
        let mut decision = Decision { case: Some(case), ..Decision::new(split, step_size) };
        if case == 3 {
            // While somebody who is still in was not heard, nobody knows whether that agent is
            // within reach: the weights stay, and others are asked.
            let all_heard = round.reports.absent() == 0;
            decision.stop = all_heard.then_some(StopReason::Settled);
            step.fill(0.0);
            return Ok(decision);
        }

        let reports = round.reports.as_slice();
        let (held, moving): (Vec<usize>, Vec<usize>) =
            (0..reports.len()).partition(|index| in_d[*index]);
        let moving_length: f64 = moving.iter().map(|index| round.reports.norms()[*index]).sum();
        let summands: Vec<_> = moving.iter().map(|index| reports[*index].direction).collect();
        // Without the projection nothing is subtracted, and nothing is measured.
        let held = if self.projection { held } else { Vec::new() };
        let basis: Vec<_> = held.iter().map(|index| reports[*index].slope()).collect();
        let order = || held.iter().chain(&moving).copied().collect();
        let task = Task {
            machine: round.reports.machine(),
            pairs: round.reports.pairs().map(|pairs| (pairs, order())),
            summands: &summands,
            basis: &basis,
        };
        // Case 2 averages: the direction is the same, its length is not.
        let mean = if case == 2 { moving.len() as f64 } else { 1.0 };
        let scale = |length: f64| -step_size * (length / mean).min(1.0) / length;
        let Projected { done, length, along } = task.project(step, scale);
        let mut slopes = vec![None; reports.len()];
        for (index, along) in held.iter().zip(along) {
            slopes[*index] = Some(along);
        }
        let mut measured = Some(Measured { length, slopes });
        let tolerance = NOTHING_LEFT.of(round.reports.iter().map(Report::slope));
        if done.after <= tolerance * moving_length {
            step.fill(0.0);
            measured = None;
            decision.stop = Some(StopReason::Stalled);
        }
        let safe = |step: &mut [f64], measured: &mut Option<Measured>| {
            safety::shorten_measured(round.reports, step, self.delta, measured)
        };
        if self.projection && safe(step, &mut measured) == 0.0 {
            measured = None;
            decision.stop = Some(StopReason::Stalled);
        }
        decision.projection = (case == 1 && self.projection).then_some(done);
        decision.measured = measured;
        Ok(decision)
    }

    fn losses(&self, step_size: f64, _: f64) -> Losses {
        if self.horizon > 0.0 {
            return Losses::Exact;
        }
        Losses::Near { delta: self.delta + self.margin, step: step_size }
    }

    fn facts(&self) -> Facts {
        let mut label = Vec::new();
        if self.on_settled == OnSettled::Halve {
            label.push("halve");
        }
        if !self.projection {
            label.push("no-projection");
        }
        let (keeps, asks_pairs) = (self.projection, self.projection);
        let known = Facts::keeping(self.delta);
        Facts { label, keeps, asks_pairs, fills_step: true, changes: CHANGES, ..known }
    }

    fn check(&self) -> Result<(), Error> {
        super::check_not_negative("rule.margin", self.margin)?;
        super::check_not_negative("rule.horizon", self.horizon)?;
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentId, Reports, Server, Vector, linalg};

    fn server(rule: AdaGd, step_size: f64) -> Server {
        Server::new(vec![0.0, 0.0], rule, step_size).unwrap()
    }

    fn two<'a>(losses: [f64; 2], a: &'a [f64], b: &'a [f64]) -> Reports<'a> {
        let report = |id, loss, g| {
            Report::new(AgentId(id), Loss::Exact(loss).leaves_at(0.1), Vector::F64(g))
        };
        Reports::new(2, vec![report(0, losses[0], a), report(1, losses[1], b)]).unwrap()
    }

    #[test]
    fn a_margin_puts_agents_in_d_earlier() {
        let reports = two([0.5, 3.0], &[0.5, 0.0], &[0.0, 1.0]);
        let in_d = |margin, horizon| {
            let rule = AdaGd { delta: 0.05, margin, horizon, ..AdaGd::default() };
            server(rule, 0.1).step(&reports).unwrap().split.d.len()
        };
        // 0.5 − 0.1·0.5 = 0.45 against 0.15 and 0.3 more, or 1.2 · 0.25 more.
        assert_eq!((in_d(0.0, 0.0), in_d(0.29, 0.0), in_d(0.3, 0.0)), (0, 0, 1));
        assert_eq!((in_d(0.0, 1.19), in_d(0.0, 1.2)), (0, 1));
    }

    #[test]
    fn halving_goes_on_where_stopping_ends() {
        let reports = two([1.0, 2.0], &[1.0, 0.0], &[0.0, 1.0]);
        let mut stops = server(AdaGd::default(), 4.0);
        assert_eq!(stops.step(&reports).unwrap().stop, Some(StopReason::Settled));
        let mut halves = server(AdaGd { on_settled: OnSettled::Halve, ..AdaGd::default() }, 4.0);
        let decision = halves.step(&reports).unwrap();
        // At η = 1 the second agent comes out of D: 2 − 1 > 0.15.
        assert_eq!((decision.stop, decision.step_size), (None, 1.0));
        assert_eq!(decision.split.nd, [AgentId(1)]);
        assert_eq!(halves.step_size(), 1.0);
    }

    #[test]
    fn halving_ends_at_a_thousandth() {
        let reports = two([0.1, 0.1], &[1.0, 0.0], &[0.0, 1.0]);
        let mut server = server(AdaGd { on_settled: OnSettled::Halve, ..AdaGd::default() }, 1.0);
        let decision = server.step(&reports).unwrap();
        assert_eq!(decision.stop, Some(StopReason::Settled));
        assert!(decision.step_size >= 1e-3 && decision.step_size < 2e-3);
    }

    #[test]
    fn without_the_projection_it_walks_over_those_it_predicted() {
        let (a, b) = ([1.0, 0.0], [1.0, 1.0]);
        let reports = two([0.2, 3.0], &a, &b);
        let slope = |projection| {
            let mut server = server(AdaGd { projection, ..AdaGd::default() }, 0.1);
            assert_eq!(server.step(&reports).unwrap().case, Some(1));
            linalg::dot(Vector::F64(&a), Vector::F64(server.displacement()))
        };
        assert!(slope(true).abs() < 1e-15);
        assert!(slope(false) < -0.05);
    }

    #[test]
    fn privacy_mode_takes_the_same_path() {
        let (a, b) = ([1.0, 0.5], [0.3, 1.0]);
        let rule = AdaGd { on_settled: OnSettled::Halve, ..AdaGd::default() };
        for losses in [[0.2, 3.0], [0.4, 0.5], [3.0, 2.0]] {
            let open = two(losses, &a, &b);
            let private = open
                .iter()
                .zip(open.norms())
                .map(|(report, norm)| {
                    let (loss, epsilon) = (report.loss().unwrap(), report.epsilon().unwrap());
                    let tau = tau(loss.value(), epsilon, rule.delta, *norm);
                    Report { standing: Standing::Private { tau }, ..*report }
                })
                .collect();
            let private = Reports::new(2, private).unwrap();
            let (mut one, mut other) = (server(rule.clone(), 1.0), server(rule.clone(), 1.0));
            assert_eq!(one.step(&open).unwrap(), other.step(&private).unwrap());
            assert_eq!(one.weights(), other.weights());
        }
    }

    #[test]
    fn a_lower_bound_proves_that_an_agent_stays_and_nothing_else() {
        let g = [1.0, 0.0];
        let bound = |value| {
            let standing = Standing::Open { loss: Loss::AtLeast(value), epsilon: 0.1 };
            let report = Report::new(AgentId(4), standing, Vector::F64(&g));
            Reports::new(2, vec![report]).unwrap()
        };
        let mut server = server(AdaGd::default(), 0.1);
        assert_eq!(server.step(&bound(1.0)).unwrap().case, Some(2));
        let before = server.clone();
        assert!(matches!(
            server.step(&bound(0.2)),
            Err(Error::NeedsExactLoss { agent: AgentId(4), .. })
        ));
        assert_eq!(server.state(), before.state());
    }

    #[test]
    fn a_sampled_loss_widens_the_margin() {
        let g = [1.0, 0.0];
        let sampled = |standard_error| {
            let loss = Loss::Sampled { mean: 0.4, standard_error };
            let standing = Standing::Open { loss, epsilon: 0.1 };
            let report = Report::new(AgentId(4), standing, Vector::F64(&g));
            Reports::new(2, vec![report]).unwrap()
        };
        assert_eq!(server(AdaGd::default(), 0.1).step(&sampled(0.01)).unwrap().case, Some(2));
        assert_eq!(server(AdaGd::default(), 0.1).step(&sampled(0.1)).unwrap().case, Some(3));
    }
}
