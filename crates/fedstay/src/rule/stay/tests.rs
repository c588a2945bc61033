//! The theorems of docs/stay.md, each with its converse.

use super::*;
use crate::rule::Level;
use crate::{Loss, Report, Reports, Rule, Server};
use proptest::prelude::*;

const ETA: f64 = 0.3;
const DELTA: f64 = 0.02;
const EPSILON: f64 = 0.05;

/// A member with the loss `½ Σ a_i (w_i − c_i)²`.
#[derive(Debug, Clone)]
struct Bowl {
    bends: Vec<f64>,
    centre: Vec<f64>,
}

impl Bowl {
    fn look(&self, w: &[f64]) -> (f64, Vec<f64>) {
        let apart = w.iter().zip(&self.centre).map(|(w, c)| w - c);
        let gradient: Vec<f64> = apart.zip(&self.bends).map(|(d, a)| a * d).collect();
        let loss = gradient.iter().zip(w.iter().zip(&self.centre)).map(|(g, (w, c))| g * (w - c));
        (0.5 * loss.sum::<f64>(), gradient)
    }

    fn bend(&self) -> f64 {
        self.bends.iter().copied().fold(0.0, f64::max)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// The reports of members that said this.
fn reports(said: &[(f64, f64, Vec<f64>)]) -> Reports<'_> {
    let mut reports = Vec::new();
    for (id, (loss, epsilon, g)) in said.iter().enumerate() {
        reports.push(Report::new(
            AgentId(id as u64),
            Loss::Exact(*loss).leaves_at(*epsilon),
            Vector::F64(g),
        ));
    }
    Reports::new(said[0].2.len(), reports).unwrap()
}

/// What a rule makes of one round of reports `(loss, ε, gradient)`.
fn step(rule: impl Into<Rule>, said: &[(f64, f64, Vec<f64>)]) -> Vec<f64> {
    let mut server = Server::new(vec![0.0; said[0].2.len()], rule, ETA).unwrap();
    server.step(&reports(said)).unwrap();
    server.displacement().to_vec()
}

fn at(price: f64) -> Stay {
    Stay { delta: Some(DELTA), ..Stay::new(price) }
}

fn said(members: &[Bowl], w: &[f64]) -> Vec<(f64, f64, Vec<f64>)> {
    let look = |bowl: &Bowl| bowl.look(w);
    members.iter().map(look).map(|(loss, gradient)| (loss, EPSILON, gradient)).collect()
}

/// Everybody's cap, as the formula has it.
fn caps(price: f64, said: &[(f64, f64, Vec<f64>)]) -> Vec<f64> {
    let lengths: Vec<f64> = said.iter().map(|(.., g)| norm(g)).collect();
    let middle = price::median(lengths.clone());
    let each = price * ETA / said.len() as f64;
    lengths.iter().map(|length| each * (3.0 * middle / length).min(1.0)).collect()
}

/// The penalised excess.
fn penalised(members: &[Bowl], caps: &[f64], w: &[f64]) -> f64 {
    let excess = members.iter().map(|m| (m.look(w).0 - EPSILON + 2.0 * DELTA).max(0.0));
    excess.zip(caps).map(|(excess, cap)| excess * cap).sum()
}

/// Members whose centres are this far apart.
fn members(spread: f64) -> impl Strategy<Value = Vec<Bowl>> {
    (1usize..8, 1usize..8).prop_flat_map(move |(dimension, n)| {
        let bowl = (
            prop::collection::vec(0.1..2.0f64, dimension),
            prop::collection::vec(-1.0..1.0f64, dimension),
        );
        let centre = prop::collection::vec(-3.0..3.0f64, dimension);
        (centre, prop::collection::vec(bowl, n)).prop_map(move |(centre, bowls)| {
            let one = |(bends, apart): (Vec<f64>, Vec<f64>)| {
                let centre = centre.iter().zip(&apart).map(|(c, by)| c + spread * by).collect();
                Bowl { bends, centre }
            };
            bowls.into_iter().map(one).collect()
        })
    })
}

proptest! {
    #[test]
    fn at_any_price_it_is_level_and_at_a_low_one_it_is_not(members in members(0.0)) {
        let said = said(&members, &vec![0.0; members[0].centre.len()]);
        let level = step(Level::new(DELTA), &said);
        let free = step(at(1e9), &said);
        let apart: Vec<f64> = level.iter().zip(&free).map(|(a, b)| a - b).collect();
        prop_assert!(norm(&apart) <= 1e-6 * (1.0 + norm(&level)), "{level:?} {free:?}");
        // Whoever pulls in `level` pulls by more than a price near zero allows.
        let cheap = step(at(1e-6), &said);
        prop_assert!(norm(&level) < 1e-3 || norm(&cheap) < 0.1 * norm(&level));
    }

    /// The levels are farther away than one step of averaging goes. At eight times the price they need not be.
    #[test]
    fn at_a_price_of_one_it_averages_over_those_who_are_far_from_their_target(
        gradients in prop::collection::vec(prop::collection::vec(0.5..1.0f64, 4), 1..8),
        content in 0usize..4,
    ) {
        let mut said: Vec<_> = gradients.iter().map(|g| (20.0, EPSILON, g.clone())).collect();
        said.extend(vec![(-50.0, EPSILON, vec![0.7; 4]); content]);
        let mut mean = vec![0.0; 4];
        for g in &gradients {
            mean.iter_mut().zip(g).for_each(|(m, g)| *m -= ETA / said.len() as f64 * g);
        }
        for (price, same) in [(1.0, true), (8.0, false)] {
            let step = step(at(price), &said);
            let near = step.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-9);
            prop_assert_eq!(near, same, "{:?} {:?}", step, mean);
        }
    }

    /// `P(w + s) ≤ P(w) − (1 − ½ Σ κ_m H_m)‖s‖²`, wherever the targets are.
    #[test]
    fn the_penalised_excess_falls_even_where_targets_exclude_each_other(
        members in members(3.0),
        price in 0.1..20.0f64,
    ) {
        let w = vec![0.0; members[0].centre.len()];
        let said = said(&members, &w);
        let caps = caps(price, &said);
        let step = step(at(price), &said);
        let (before, after) = (penalised(&members, &caps, &w), penalised(&members, &caps, &step));
        let bend: f64 = caps.iter().zip(&members).map(|(cap, m)| cap * m.bend()).sum();
        let promised = (1.0 - 0.5 * bend) * dot(&step, &step);
        prop_assert!(after <= before - promised + 1e-9 * (1.0 + before), "{before} {after}");
    }

    /// `‖w + s − z‖² ≤ ‖w − z‖² − ‖s‖²` for every model z that satisfies all by 2δ, at any price.
    #[test]
    fn every_step_leads_nearer_to_all_models_that_satisfy_everybody(
        members in members(0.0),
        price in 0.1..1e4f64,
    ) {
        let z = members[0].centre.clone();
        let mut server = Server::new(vec![0.0; z.len()], at(price), ETA).unwrap();
        for _ in 0..5 {
            let before = server.weights().to_vec();
            let told = said(&members, &before);
            server.step(&reports(&told)).unwrap();
            let far = |w: &[f64]| w.iter().zip(&z).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
            let step = server.displacement();
            let promised = far(&before) - dot(step, step);
            prop_assert!(far(server.weights()) <= promised + 1e-9 * (1.0 + far(&before)));
        }
    }

    /// What it says about its loss and target; and of its gradient nothing but the direction counts beyond three
    /// times the middle length. The same liar moves `level` farther.
    #[test]
    fn one_member_moves_the_weights_by_no_more_than_its_cap(
        members in members(1.0),
        loss in prop_oneof![Just(1e6), Just(1e300), -10.0..10.0f64],
        epsilon in prop_oneof![Just(-1e4), Just(1e4), Just(-1e300), -1.0..1.0f64],
        times in prop_oneof![Just(1.0), Just(-5.0), Just(1e5), Just(-1e-3)],
        price in 0.5..50.0f64,
    ) {
        let mut said = said(&members, &vec![0.0; members[0].centre.len()]);
        said[0].2.iter_mut().for_each(|g| *g *= times);
        let most = 3.0 * price * ETA / said.len() as f64
            * price::median(said.iter().map(|(.., g)| norm(g)).collect());
        // It asks for nothing, and is among the others with the same gradient.
        (said[0].0, said[0].1) = (-1e9, EPSILON);
        let without = step(at(price), &said);
        (said[0].0, said[0].1) = (loss, epsilon);
        let with = step(at(price), &said);
        let moved: Vec<f64> = with.iter().zip(&without).map(|(a, b)| a - b).collect();
        prop_assert!(norm(&moved) <= most * (1.0 + 1e-6) + 1e-9, "{} {most}", norm(&moved));
    }
}

#[test]
fn level_has_no_such_bound() {
    let said = |loss: f64| vec![(loss, EPSILON, vec![1.0, 0.0]), (1.0, EPSILON, vec![0.0, 1.0])];
    let far = |rule: Rule| norm(&step(rule, &said(1e6)));
    assert!(far(Level::new(DELTA).into()) > 9e5);
    assert!(far(at(8.0).into()) < 8.0 * 0.3 * 1.5);
}

/// Twice as far in a step as the curvature allows, which only more price than `2/(ηH)` can do.
#[test]
fn too_high_a_price_lets_the_penalised_excess_rise_until_it_is_halved() {
    let bowl = |centre: f64| Bowl { bends: vec![2.0], centre: vec![centre] };
    // One cut in the middle of a valley that the other does not let it leave.
    let members = [bowl(1.0), bowl(-1.2)];
    let mut server = Server::new(vec![0.6], at(64.0), ETA).unwrap();
    let (mut excesses, mut losses) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let w = server.weights().to_vec();
        let told = said(&members, &w);
        excesses.push(penalised(&members, &[1.0, 1.0], &w));
        losses.push(told.iter().map(|(loss, ..)| *loss).fold(0.0, f64::max));
        server.step(&reports(&told)).unwrap();
    }
    assert!(excesses.windows(2).any(|pair| pair[1] > pair[0]), "{excesses:?}");
    let best = (0..400).map(|i| f64::from(i) / 100.0 - 2.0);
    let best = best.map(|w| penalised(&members, &[1.0, 1.0], &[w])).fold(f64::MAX, f64::min);
    assert!(excesses[59] < best + 0.2, "{} {best}", excesses[59]);
}

fn server(rule: Stay, dimension: usize) -> Server {
    Server::new(vec![0.0; dimension], rule, ETA).unwrap()
}

#[test]
fn a_member_that_is_silent_pulls_by_its_last_report_and_survives_a_checkpoint() {
    let (a, b) = ([1.0, 0.0], [0.0, 1.0]);
    let report =
        |id, g| Report::new(AgentId(id), Loss::Exact(5.0).leaves_at(EPSILON), Vector::F64(g));
    let mut server = server(Stay::default(), 2);
    let both = vec![report(0, &a), report(1, &b)];
    server.step(&Reports::new(2, both).unwrap().with_absent(1)).unwrap();
    let text = serde_json::to_string(&server.state()).unwrap();
    let mut resumed = Server::from_state(serde_json::from_str(&text).unwrap()).unwrap();
    for server in [&mut server, &mut resumed] {
        let before = server.weights().to_vec();
        server.step(&Reports::new(2, vec![report(0, &a)]).unwrap().with_absent(2)).unwrap();
        assert!(server.weights()[1] < before[1], "the silent one still pulls");
    }
    assert_eq!(server.state(), resumed.state());
    let mut gone = server.clone();
    let goodbye = Reports::with_goodbyes(2, vec![report(0, &a)], vec![AgentId(1)]).unwrap();
    gone.step(&goodbye.with_absent(1)).unwrap();
    assert_eq!(gone.displacement()[1], 0.0, "who has left does not");
}

#[test]
fn a_member_that_moves_its_target_is_held_to_the_first_and_named() {
    let gradients = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]];
    let mut server = server(Stay::default(), 2);
    let mut round = |epsilon: f64| {
        let report = |id: usize| {
            let epsilon = if id == 0 { epsilon } else { EPSILON };
            Report::new(
                AgentId(id as u64),
                Loss::Exact(1.0).leaves_at(epsilon),
                Vector::F64(&gradients[id]),
            )
        };
        let decision =
            server.step(&Reports::new(2, (0..3).map(report).collect()).unwrap()).unwrap();
        let moved = decision.doubted.iter().filter(|doubted| doubted.why == Why::Moved);
        moved.map(|doubted| doubted.agent).collect::<Vec<_>>()
    };
    assert_eq!(round(EPSILON), []);
    assert_eq!(round(-1e4), [AgentId(0)]);
    assert_eq!(round(EPSILON), []);
}

#[test]
fn the_slack_is_a_share_of_the_first_gap_and_is_halved_when_all_are_below_it() {
    let mut server = server(Stay { share: 0.1, ..Stay::default() }, 1);
    let mut round = |loss: f64| {
        let report = Report::new(AgentId(0), Loss::Exact(loss).leaves_at(1.0), Vector::F64(&[1.0]));
        server.step(&Reports::new(1, vec![report]).unwrap()).unwrap();
        let Rule::Stay(stay) = server.rule() else { unreachable!() };
        stay.slack(AgentId(0))
    };
    assert_eq!(round(3.0), 0.2);
    assert_eq!(round(0.9), 0.2, "below its target, but not by the slack");
    assert_eq!(round(0.7), 0.1);
}

#[test]
fn numbers_that_cannot_be_are_refused_by_name() {
    for (rule, name) in [
        (Stay { share: -1.0, ..Stay::default() }, "rule.share"),
        (Stay::new(f64::NAN), "rule.price"),
        (Stay { delta: Some(-1.0), ..Stay::default() }, "rule.delta"),
    ] {
        let error = Server::new(vec![0.0], rule, ETA).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}
