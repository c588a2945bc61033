//! `retain` never ends worse than where it began, also where nobody lies and its levels cannot be reached: agents whose
//! targets exclude each other, and targets that no model reaches. Averaging under preview stands beside it.
//!
//! `cargo test -p fedstay --test never_worse -- --nocapture` prints the figures of docs/retain.md.

mod common;
#[path = "common/squares.rs"]
mod squares;

use common::{Setting, play};
use fedstay::policy::Preview;
use fedstay::problem::{Instance, Oracle};
use fedstay::record::Summary;
use fedstay::{
    AgentId, Behaviour, Loss, Mean, Policies, Report, Reports, Retain, Rule, Server, Vector,
};
use squares::{DELTA, DIMENSION, EPSILON, Squares, dot};
use std::sync::Arc;

impl Oracle for Squares {
    fn loss(&self, weights: &[f64]) -> f64 {
        self.look(weights).0
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let (loss, slope) = self.look(weights);
        gradient.copy_from_slice(&slope);
        loss
    }
}

/// An honest agent whose optimum is elsewhere: `‖w − c‖² / 60`.
struct Elsewhere(Vec<f64>);

impl Oracle for Elsewhere {
    fn loss(&self, weights: &[f64]) -> f64 {
        let apart: Vec<f64> = weights.iter().zip(&self.0).map(|(w, c)| w - c).collect();
        dot(&apart, &apart) / 60.0
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let parts = gradient.iter_mut().zip(weights).zip(&self.0);
        parts.for_each(|((g, w), c)| *g = (w - c) / 30.0);
        self.loss(weights)
    }
}

/// Eight agents that agree, and one whose optimum is `−far` times theirs.
fn conflict(seed: u64, far: f64) -> Instance {
    let (agents, best) = Squares::some(seed, 8);
    let mut oracles: Vec<Arc<dyn Oracle>> = Vec::new();
    oracles.extend(agents.into_iter().map(|agent| Arc::new(agent) as Arc<dyn Oracle>));
    oracles.push(Arc::new(Elsewhere(best.iter().map(|value| -far * value).collect())));
    instance(oracles)
}

fn instance(oracles: Vec<Arc<dyn Oracle>>) -> Instance {
    let start = vec![0.0; DIMENSION];
    let (lipschitz, smoothness) = (None, None);
    Instance {
        oracles,
        start,
        lipschitz,
        smoothness,
        epsilon: EPSILON,
        step_size: 0.5,
        delta: DELTA,
    }
}

fn setting(rule: impl Into<Rule>, policy: impl Into<Policies>, epsilon: f64) -> Setting {
    let behaviour = Behaviour::default();
    Setting {
        rule: rule.into(),
        policy: policy.into(),
        behaviour,
        step_size: 0.5,
        epsilon,
        rounds: 300,
    }
}

fn worst_at_first(instance: &Instance) -> f64 {
    instance.oracles.iter().map(|oracle| oracle.loss(&instance.start)).fold(0.0, f64::max)
}

fn retain(instance: &Instance, bench: bool, epsilon: f64) -> Summary {
    let mut rule = Retain::new(DELTA);
    rule.bench = bench;
    play(instance, setting(rule, Policies::default(), epsilon)).0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn honest_agents_whose_targets_exclude_each_other_end_no_worse_than_they_began() {
    for far in [1.0, 3.0, 6.0] {
        let (mut all, mut averaged) = (Vec::new(), Vec::new());
        for seed in 0..8 {
            let instance = conflict(seed, far);
            let first = worst_at_first(&instance);
            for bench in [true, false] {
                let ended = retain(&instance, bench, EPSILON).score.loss.max / first;
                assert!(ended <= 1.0 + 1e-6, "far {far}, seed {seed}, bench {bench}: {ended}");
                all.push(ended);
            }
            let policy = Preview::default();
            let preview = play(&instance, setting(Mean::default(), policy, EPSILON)).0;
            averaged.push(preview.score.loss.max / first);
        }
        println!("far {far}: worst loss over the worst at first: {all:.3?}");
        println!("        averaging under preview: {averaged:.3?}");
        let (ended, averaged) = (median(all), median(averaged));
        assert!(ended <= 1.1 * averaged, "far {far}: {ended}, averaging {averaged}");
    }
}

#[test]
fn targets_that_no_model_reaches_are_not_run_after() {
    for epsilon in [-0.1, -1.0, -100.0] {
        for seed in 0..8 {
            let agents = Squares::some(seed, 8).0.into_iter();
            let oracles = agents.map(|agent| Arc::new(agent) as Arc<dyn Oracle>).collect();
            let instance = instance(oracles);
            let ended = retain(&instance, true, epsilon).score.loss.max / worst_at_first(&instance);
            assert!(ended <= 0.05, "epsilon {epsilon}, seed {seed}: {ended}");
        }
    }
}

/// Goes through the rounds of a run by hand, saved and taken up again before every one.
#[test]
fn a_run_that_goes_back_says_so_delivers_its_best_and_is_resumed_as_it_was() {
    let instance = conflict(0, 3.0);
    let mut server = Server::new(instance.start.clone(), Retain::new(DELTA), 0.5).unwrap();
    let worst = |w: &[f64]| instance.oracles.iter().map(|o| o.loss(w)).fold(0.0, f64::max);
    let (first, mut reverted, mut highest) = (worst(server.weights()), 0, 0.0f64);
    for _ in 0..40 {
        let text = serde_json::to_string(&server.state()).unwrap();
        let mut resumed = Server::from_state(serde_json::from_str(&text).unwrap()).unwrap();
        let look = |oracle: &Arc<dyn Oracle>| {
            let mut gradient = vec![0.0; DIMENSION];
            (oracle.loss_and_gradient(server.weights(), &mut gradient), gradient)
        };
        let told: Vec<(f64, Vec<f64>)> = instance.oracles.iter().map(look).collect();
        let reports = told.iter().enumerate().map(|(agent, (loss, gradient))| {
            Report::new(
                AgentId(agent as u64),
                Loss::Exact(*loss).leaves_at(EPSILON),
                Vector::F64(gradient),
            )
        });
        let reports = Reports::new(DIMENSION, reports.collect()).unwrap();
        let decision = server.step(&reports).unwrap();
        assert_eq!(resumed.step(&reports).unwrap(), decision);
        assert_eq!(resumed.state(), server.state());
        highest = highest.max(worst(server.weights()));
        if decision.reverted {
            reverted += 1;
            assert_eq!(decision.kept, Some(true));
            assert!(worst(server.weights()) <= first);
        }
        if reverted > 0 {
            assert!(worst(server.delivered()) <= first);
        }
        if decision.stop.is_some() {
            break;
        }
    }
    assert!(reverted > 0 && highest > first, "{reverted} {highest} {first}");
}
