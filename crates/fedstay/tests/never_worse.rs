//! `retain` never ends worse than where it began, also where nobody lies and its levels cannot be reached: agents whose
//! targets exclude each other, and targets that no model reaches. Averaging under preview stands beside it.
//!
//! `cargo test -p fedstay --test never_worse -- --nocapture` prints the figures of docs/retain.md.

mod common;
#[path = "common/squares.rs"]
mod squares;

use common::{Setting, play};
use fedstay::problem::{Instance, Oracle};
use fedstay::record::Summary;
use fedstay::{Behaviour, Mean, Policy, Retain, Rule};
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

fn setting(rule: impl Into<Rule>, policy: Policy, epsilon: f64) -> Setting {
    let behaviour = Behaviour::default();
    Setting { rule: rule.into(), policy, behaviour, step_size: 0.5, epsilon, rounds: 300 }
}

fn worst_at_first(instance: &Instance) -> f64 {
    instance.oracles.iter().map(|oracle| oracle.loss(&instance.start)).fold(0.0, f64::max)
}

fn retain(instance: &Instance, bench: bool, epsilon: f64) -> Summary {
    let mut rule = Retain::new(DELTA);
    rule.bench = bench;
    play(instance, setting(rule, Policy::None, epsilon)).0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn honest_agents_whose_targets_exclude_each_other_end_no_worse_than_they_began() {
    for far in [1.0, 3.0, 10.0] {
        let (mut benched, mut held, mut averaged) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 0..8 {
            let instance = conflict(seed, far);
            let first = worst_at_first(&instance);
            let preview = Policy::Preview(Default::default());
            averaged.push(
                play(&instance, setting(Mean::default(), preview, EPSILON)).0.loss.max / first,
            );
            benched.push(retain(&instance, true, EPSILON).loss.max / first);
            held.push(retain(&instance, false, EPSILON).loss.max / first);
        }
        println!(
            "far {far}: worst loss over the worst at first: retain {benched:.3?}, without a bench {held:.3?}, averaging under preview {averaged:.3?}"
        );
    }
}

#[test]
fn targets_that_no_model_reaches_are_not_run_after() {
    for epsilon in [-0.1, -1.0, -100.0] {
        let mut all = Vec::new();
        for seed in 0..8 {
            let agents = Squares::some(seed, 8).0.into_iter();
            let instance =
                instance(agents.map(|agent| Arc::new(agent) as Arc<dyn Oracle>).collect());
            all.push(retain(&instance, true, epsilon).loss.max / worst_at_first(&instance));
        }
        println!("epsilon {epsilon}: {all:.4?}");
    }
}
