//! The last check of a step: it must not be predicted to take anybody to their target loss.
//!
//! A rule that means to keep everybody computes a step for which that should hold, but the
//! arithmetic may disagree: nearly parallel gradients, lengths from 1e-30 to 1e30, constraints that
//! do not meet. Standing still keeps every agent that is above its target loss, so some share of
//! the step always does. This check costs one inner product for each agent that the step's length
//! alone can reach.

use super::Measured;
use crate::{Report, Reports, Standing, Vector, linalg};

/// What rounding may do to an inner product, relative to the lengths of its two vectors.
const ROUNDING: f64 = 1e-13;
/// How often a step is shortened and checked again before it is given up.
const LOOKS: usize = 3;

/// Shortens the step until no agent above its target loss is predicted to reach it, and returns the
/// share that is left: 1 for a step that already keeps everybody, 0 for one of which nothing is
/// left.
///
/// An agent that would reach its target loss is left with half the room it has. `slack` is the δ
/// that an agent in privacy mode has put into its τ.
pub(crate) fn shorten(reports: &Reports<'_>, step: &mut [f64], slack: f64) -> f64 {
    shorten_measured(reports, step, slack, &mut None)
}

/// The same for a step of which something was measured: it need not be measured again, and if the step
/// is shortened, it is not known any more.
pub(super) fn shorten_measured(
    reports: &Reports<'_>,
    step: &mut [f64],
    slack: f64,
    measured: &mut Option<Measured>,
) -> f64 {
    let mut total = 1.0;
    for _ in 0..LOOKS {
        let share = safe_share(reports, step, slack, measured.as_ref());
        if share >= 1.0 {
            return total;
        }
        *measured = None;
        linalg::scale(step, share);
        total *= share;
    }
    step.fill(0.0);
    0.0
}

/// Whether no agent above its target loss is predicted to reach it.
#[cfg(test)]
fn keeps_everybody(reports: &Reports<'_>, step: &[f64], slack: f64) -> bool {
    safe_share(reports, step, slack, None) >= 1.0
}

/// The share of the step that leaves half of its room to every agent that would reach its target
/// loss; 1 if none would.
fn safe_share(reports: &Reports<'_>, step: &[f64], slack: f64, measured: Option<&Measured>) -> f64 {
    let length =
        measured.map_or_else(|| linalg::norm(Vector::F64(step)), |measured| measured.length);
    if length == 0.0 {
        return 1.0;
    }
    let mut share: f64 = 1.0;
    for (index, (report, norm)) in reports.iter().zip(reports.norms()).enumerate() {
        let Some(room) = room(report, *norm, slack) else { continue };
        let reach = norm * length;
        if reach * (1.0 + ROUNDING) < room {
            continue;
        }
        let slope = match measured {
            Some(measured) => measured.slope(reports, index, step),
            None => linalg::dot(report.slope(), Vector::F64(step)),
        };
        let lowest = slope - ROUNDING * reach;
        if room + lowest > 0.0 {
            continue;
        }
        let allowed = if room > 0.0 { 0.5 * room / -lowest } else { 0.0 };
        share = share.min(if allowed.is_finite() { allowed } else { 0.0 });
    }
    share
}

/// How far an agent is above its target loss, less what rounding may have done to that; `None` for
/// an agent that is not above it, which no step can keep there.
fn room(report: &Report<'_>, norm: f64, slack: f64) -> Option<f64> {
    match report.standing {
        Standing::Open { loss, epsilon } => {
            let above = |loss: f64| (loss > epsilon).then_some(loss);
            // If the cautious reading of a sampled loss is at the target, its mean may still be
            // above.
            let loss = above(loss.cautious()).or(above(loss.value()))?;
            Some(loss - epsilon - 4.0 * f64::EPSILON * loss.abs().max(epsilon.abs()))
        }
        Standing::Private { tau } => {
            let room = tau * norm + slack;
            (tau.is_finite() && room > 0.0).then_some(room)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Guard;
    use crate::{AdaGd, AgentId, Loss, Mean, Policies, Retain, Rule, Server};
    use proptest::prelude::*;

    type Told = (f64, f64, Vec<f64>);

    fn reports(told: &[Told]) -> Reports<'_> {
        let told = told.iter().enumerate();
        let each: Vec<Report<'_>> = told
            .map(|(agent, (loss, epsilon, g))| {
                Report::new(
                    AgentId(agent as u64),
                    Loss::Exact(*loss).leaves_at(*epsilon),
                    Vector::F64(g),
                )
            })
            .collect();
        let dimension = each[0].direction.len();
        Reports::new(dimension, each).unwrap()
    }

    /// Whether the step's own linear prediction takes an agent from above its target loss to it, in
    /// plain arithmetic and without the allowances above.
    fn crosses(told: &[Told], step: &[f64]) -> bool {
        told.iter().any(|(loss, epsilon, g)| {
            let along: f64 = g.iter().zip(step).map(|(g, s)| g * s).sum();
            loss > epsilon && loss + along <= *epsilon
        })
    }

    fn step(
        rule: impl Into<Rule>,
        policy: impl Into<Policies>,
        step_size: f64,
        told: &[Told],
    ) -> Vec<f64> {
        let weights = vec![0.0; told[0].2.len()];
        let server = Server::new(weights, rule, step_size).unwrap();
        let mut server = server.with_policy(policy).unwrap();
        match server.step(&reports(told)) {
            Ok(_) => server.displacement().to_vec(),
            Err(_) => vec![0.0; told[0].2.len()],
        }
    }

    #[test]
    fn ada_gd_beside_nearly_parallel_held_gradients_moves_nobody_to_its_precision() {
        let told = [
            (0.3, 0.1, vec![10.0, 0.0, 0.0]),
            (0.3, 0.1, vec![10.0, 1e-6, 0.0]),
            (1e7, 0.1, vec![0.0, 1.0, 0.0]),
        ];
        let step = step(AdaGd::default(), Policies::default(), 1e6, &told);
        assert!(!crosses(&told, &step), "{step:?}");
        assert!(step.iter().any(|s| *s != 0.0), "a shorter step is possible");
    }

    #[test]
    fn a_step_that_keeps_everybody_is_not_touched() {
        let told = [(1.0, 0.1, vec![1.0, 0.0]), (0.1, 0.2, vec![5.0, 5.0])];
        let mut moved = [-0.5, 0.25];
        assert_eq!(shorten(&reports(&told), &mut moved, 0.0), 1.0);
        assert_eq!(moved, [-0.5, 0.25]);
        let mut too_far = [-2.0, 0.0];
        let share = shorten(&reports(&told), &mut too_far, 0.0);
        assert!((share - 0.225).abs() < 1e-12, "half of the room of 0.9, by a step of 2: {share}");
        assert!(keeps_everybody(&reports(&told), &too_far, 0.0));
    }

    #[test]
    fn privacy_mode_is_kept_by_its_tau() {
        let g = [2.0];
        let standing = Standing::Private { tau: 0.1 };
        let report = Report::new(AgentId(0), standing, Vector::F64(&g));
        let reports = Reports::new(1, vec![report]).unwrap();
        // Its room is 0.1 · 2 + 0.05.
        let mut step = [-0.124];
        assert_eq!(shorten(&reports, &mut step, 0.05), 1.0);
        let mut step = [-0.126];
        assert!(shorten(&reports, &mut step, 0.05) < 1.0);
    }

    /// A number of any size between 1e-30 and 1e30.
    fn wild() -> impl Strategy<Value = f64> {
        (-1.0..1.0f64, -30..30i32).prop_map(|(mantissa, power)| mantissa * 10f64.powi(power))
    }

    fn agents() -> impl Strategy<Value = Vec<Told>> {
        (1usize..5, 1usize..7).prop_flat_map(|(dimension, agents)| {
            let gradient = prop::collection::vec(prop_oneof![-1.0..1.0f64, wild()], dimension);
            let told = (prop_oneof![0.1..2.0f64, wild()], 0.0..1.0f64, gradient);
            (prop::collection::vec(told, agents), prop::collection::vec(any::<bool>(), agents))
                .prop_map(|(mut told, twins)| {
                    // Some gradients are nearly, or exactly, those of the agent before.
                    for index in (1..told.len()).filter(|index| twins[*index]) {
                        let mut twin = told[index - 1].2.clone();
                        twin[0] *= 1.0 + 1e-9 * (index % 3) as f64;
                        told[index].2 = twin;
                    }
                    told
                })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn no_step_is_predicted_to_lose_somebody_whom_standing_still_would_keep(
            told in agents(),
            power in -3..7i32,
            delta in prop_oneof![Just(0.0), 0.0..0.3f64],
        ) {
            let step_size = 10f64.powi(power);
            let guard = |delta| Guard { delta };
            let ada_gd = AdaGd { delta, ..AdaGd::default() };
            let moved = step(ada_gd, Policies::default(), step_size, &told);
            prop_assert!(!crosses(&told, &moved), "ada-gd: {moved:?}");
            let moved = step(Mean::default(), guard(delta), step_size, &told);
            prop_assert!(!crosses(&told, &moved), "fedavg+guard: {moved:?}");
            let mut rule = Retain::new(delta);
            rule.landing = false;
            let moved = step(rule, guard(delta), step_size, &told);
            prop_assert!(!crosses(&told, &moved), "retain+guard: {moved:?}");
        }
    }
}
