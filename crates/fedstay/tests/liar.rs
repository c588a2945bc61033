//! One liar among nine: eight honest convex agents and one that says what it likes, about its loss, its target or its
//! gradient. What `retain` does about it (caps, a bench for one, the way back to the best weights), with the
//! same rule without the bench beside it.
//!
//! `cargo test -p fedstay --test liar -- --nocapture` prints the table of docs/retain.md.

#[path = "common/squares.rs"]
mod squares;

use fedstay::rule::{Doubted, Why};
use fedstay::{AgentId, Loss, Report, Reports, Retain, Seed, Server, StopReason, Vector};
use squares::{DELTA, DIMENSION, EPSILON, Squares, dot};

/// All agents, liars included.
const AGENTS: usize = 9;
/// The first liar; others have the next numbers.
const LIAR: u64 = 99;

/// Lies, by what they are about, and the most that the median of the honest mean loss may come to.
const ATTACKS: [(&str, f64); 26] = [
    // The loss, and a gradient to go with it.
    ("hold", 0.1),
    ("stall-far", 0.1),
    ("huge", 0.1),
    ("loss-1e308", 0.1),
    ("zero-gradient", 0.1),
    ("below", 0.1),
    ("opposite", 0.1),
    ("rising", 0.1),
    // The target.
    ("epsilon-1", 0.1),
    ("epsilon-100", 0.1),
    ("epsilon-10000", 0.1),
    ("epsilon-minus-1", 0.1),
    ("epsilon-minus-10000", 0.1),
    ("epsilon-falls", 0.1),
    // Always just above its floor: by a target that comes along, or by the loss.
    ("epsilon-follows", 0.5),
    ("just-above", 0.8),
    // The gradient.
    ("flip", 1.0),
    ("flip-5", 0.1),
    ("flip-100000", 0.1),
    ("twenty", 0.1),
    ("against-nearest", 0.1),
    ("against-farthest", 0.1),
    ("sleeper", 0.1),
    // What it truly said in the second round, in every round since.
    ("replay", 0.1),
    // Nothing that can be seen: the reports of an honest agent that wants something else.
    ("elsewhere", 0.3),
    ("far-elsewhere", 1.0),
];

/// What the liar says in a round, given what the honest agents say, and what an honest agent of its own would.
fn lie(
    attack: &str,
    round: u32,
    honest: &[(f64, Vec<f64>)],
    own: &(f64, Vec<f64>),
    (w, best): (&[f64], &[f64]),
    draw: &mut dyn FnMut() -> f64,
) -> (f64, f64, Vec<f64>) {
    let mut sum = vec![0.0; DIMENSION];
    for (_, gradient) in honest {
        sum.iter_mut().zip(gradient).for_each(|(s, g)| *s += g);
    }
    let times = |by: f64, v: &[f64]| -> Vec<f64> { v.iter().map(|value| by * value).collect() };
    let mean = times(1.0 / honest.len() as f64, &sum);
    let mut random = |size: f64| -> Vec<f64> { (0..DIMENSION).map(|_| size * draw()).collect() };
    let usual = median(honest.iter().map(|(loss, _)| *loss).collect());
    let nearest = honest.iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    let farthest = honest.iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    let wants = |times: f64| {
        let apart: Vec<f64> = w.iter().zip(best).map(|(w, best)| w + times * best).collect();
        (dot(&apart, &apart) / 60.0, apart.iter().map(|a| a / 30.0).collect())
    };
    let at = |loss: f64, gradient: Vec<f64>| (loss, EPSILON, gradient);
    match attack {
        // At its floor, so that descent for all others would cross it.
        "hold" => at(EPSILON + DELTA, sum),
        // Far away, and wants the opposite of all others.
        "stall-far" => at(1e6, times(-1.0, &sum)),
        "huge" => at(1e3, random(1e6)),
        "loss-1e308" => at(1e308, random(1.0)),
        "zero-gradient" => at(1.0, vec![0.0; DIMENSION]),
        // Content for a long time, and against the agent that is nearest to leaving.
        "below" => at(EPSILON - 10.0, times(-1.0, &nearest.1)),
        "opposite" => at(EPSILON + 0.5 * DELTA, times(-1.0, &sum)),
        "rising" => at(usual * (1.0 + 0.2 * f64::from(round)), random(dot(&mean, &mean).sqrt())),
        // Its own gradient, and a target that nobody else has.
        "epsilon-1" => (2.0, 1.0, own.1.clone()),
        "epsilon-100" => (200.0, 100.0, own.1.clone()),
        "epsilon-10000" => (20_000.0, 10_000.0, own.1.clone()),
        "epsilon-minus-1" => (own.0, -1.0, own.1.clone()),
        "epsilon-minus-10000" => (own.0, -10_000.0, own.1.clone()),
        "epsilon-follows" => (own.0, own.0 - DELTA, own.1.clone()),
        "epsilon-falls" => (own.0, EPSILON - 0.1 * f64::from(round), own.1.clone()),
        "just-above" => at(EPSILON + 1e-7, own.1.clone()),
        "flip" => at(own.0, times(-1.0, &own.1)),
        "flip-5" => at(usual, times(-5.0, &mean)),
        "flip-100000" => at(usual, times(-1e5, &mean)),
        "twenty" => at(usual, times(20.0, &mean)),
        "against-nearest" => at(nearest.0, times(-1.0, &nearest.1)),
        "against-farthest" => at(farthest.0, times(-1.0, &farthest.1)),
        // Kept by the one who plays this.
        "replay" => at(own.0, own.1.clone()),
        "sleeper" if round < 12 => at(usual, mean),
        "sleeper" => at(EPSILON + 0.9 * DELTA, times(-1.0, &sum)),
        "elsewhere" => {
            let (loss, gradient) = wants(1.0);
            at(loss, gradient)
        }
        "far-elsewhere" => {
            let (loss, gradient) = wants(3.0);
            at(loss, gradient)
        }
        other => unreachable!("{other}"),
    }
}

#[derive(Debug)]
struct Outcome {
    mean: f64,
    worst: f64,
    /// The same before the first round.
    began: (f64, f64),
    left: usize,
    rounds: u32,
    stop: Option<StopReason>,
    benched: Option<AgentId>,
}

fn play(rule: &Retain, attack: Option<&str>, liars: u64, seed: u64) -> Outcome {
    let (mut agents, best) = Squares::some(seed, AGENTS);
    // What the liar would say if it were honest.
    let own = agents.pop().unwrap();
    agents.truncate(AGENTS - (liars as usize).max(1));
    let began = loss_of(&agents, &[0.0; DIMENSION]);
    let mut rng = Seed(seed).stream("lies", 0, 0);
    let mut draw = || fedstay::numerics::normal(&mut rng);
    let mut server = Server::new(vec![0.0; DIMENSION], rule.clone(), 0.5).unwrap();
    let mut present: Vec<usize> = (0..agents.len()).collect();
    let mut second = None;
    let mut outcome =
        Outcome { mean: 0.0, worst: 0.0, began, left: 0, rounds: 0, stop: None, benched: None };
    for round in 1..=400 {
        outcome.rounds = round;
        let told: Vec<(f64, Vec<f64>)> =
            present.iter().map(|agent| agents[*agent].look(server.weights())).collect();
        let (gone, stay): (Vec<usize>, Vec<usize>) =
            (0..present.len()).partition(|place| told[*place].0 <= EPSILON);
        let goodbyes = gone.iter().map(|place| AgentId(present[*place] as u64)).collect();
        let honest: Vec<(f64, Vec<f64>)> = stay.iter().map(|place| told[*place].clone()).collect();
        let ids: Vec<usize> = stay.iter().map(|place| present[*place]).collect();
        outcome.left += gone.len();
        present = ids;
        if present.is_empty() {
            break;
        }
        let w = server.weights();
        let mut said =
            attack.map(|attack| lie(attack, round, &honest, &own.look(w), (w, &best), &mut draw));
        if attack == Some("replay") {
            said = second.clone().or(said);
            second = said.clone().filter(|_| round >= 2);
        }
        let mut reports: Vec<Report<'_>> = present
            .iter()
            .zip(&honest)
            .map(|(id, (loss, g))| {
                Report::new(
                    AgentId(*id as u64),
                    Loss::Exact(*loss).leaves_at(EPSILON),
                    Vector::F64(g),
                )
            })
            .collect();
        if let Some((loss, epsilon, g)) = &said {
            let liars = (LIAR..LIAR + liars).map(AgentId);
            reports.extend(
                liars.map(|id| {
                    Report::new(id, Loss::Exact(*loss).leaves_at(*epsilon), Vector::F64(g))
                }),
            );
        }
        let reports = Reports::with_goodbyes(DIMENSION, reports, goodbyes).unwrap();
        let decision = server.step(&reports).unwrap();
        let benched = decision.doubted.iter().find(|doubted| doubted.why == Why::Benched);
        outcome.benched = outcome.benched.or(benched.map(|doubted| doubted.agent));
        outcome.stop = decision.stop;
        if decision.stop.is_some() {
            break;
        }
    }
    (outcome.mean, outcome.worst) = loss_of(&agents, server.delivered());
    outcome
}

/// The mean and the worst loss.
fn loss_of(agents: &[Squares], w: &[f64]) -> (f64, f64) {
    let losses: Vec<f64> = agents.iter().map(|agent| agent.look(w).0).collect();
    (losses.iter().sum::<f64>() / losses.len() as f64, losses.iter().copied().fold(0.0, f64::max))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    0.5 * (values[values.len() / 2] + values[(values.len() - 1) / 2])
}

/// The medians of ten runs, on one line.
fn ten(rule: &Retain, attack: Option<&str>, liars: u64, seeds: std::ops::Range<u64>) -> Ten {
    let runs: Vec<Outcome> = seeds.map(|seed| play(rule, attack, liars, seed)).collect();
    let of = |what: &dyn Fn(&Outcome) -> f64| -> Vec<f64> { runs.iter().map(what).collect() };
    let highest = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
    let ten = Ten {
        mean: median(of(&|run| run.mean)),
        worst: highest(of(&|run| run.worst / run.began.1)),
        left: runs.iter().map(|run| run.left).sum(),
        named: runs.iter().filter(|run| run.benched.is_some()).count(),
    };
    let benched = |who: &dyn Fn(u64) -> bool| {
        runs.iter().filter(|run| run.benched.is_some_and(|agent| who(agent.0))).count()
    };
    println!(
        "{:18} liars {liars} bench {:5} mean {:8.4} worst over worst at first {:6.3} rounds {:3.0} left {} \
         benched: liar {} honest {} landed or settled {}",
        attack.unwrap_or("none"),
        rule.bench,
        ten.mean,
        ten.worst,
        median(of(&|run| f64::from(run.rounds))),
        ten.left,
        benched(&|agent| agent >= LIAR),
        benched(&|agent| agent < LIAR),
        runs.iter()
            .filter(|run| matches!(run.stop, Some(StopReason::Landed | StopReason::Settled)))
            .count(),
    );
    ten
}

struct Ten {
    mean: f64,
    /// The worst loss over the worst at first, the largest of ten.
    worst: f64,
    left: usize,
    /// Runs in which somebody was benched.
    named: usize,
}

fn rule(bench: bool) -> Retain {
    let mut rule = Retain::new(DELTA);
    rule.bench = bench;
    rule
}

#[test]
fn one_liar_among_nine_makes_nobody_worse_off_whatever_it_lies_about() {
    for seeds in [0..10, 1000..1010] {
        let honest = ten(&rule(true), None, 1, seeds.clone());
        assert_eq!((honest.named, honest.left), (0, 0));
        assert!(honest.mean <= EPSILON, "{}", honest.mean);
        let mut ruined = 0;
        for (attack, most) in ATTACKS {
            let with = ten(&rule(true), Some(attack), 1, seeds.clone());
            assert!(with.mean <= most, "{attack}: {}", with.mean);
            let without = ten(&rule(false), Some(attack), 1, seeds.clone());
            ruined += u32::from(without.mean > 10.0 * EPSILON);
            for ten in [with, without] {
                assert!(ten.worst <= 1.0 + 1e-6, "{attack}: {} times the worst", ten.worst);
                assert_eq!(ten.left, 0, "{attack}");
            }
        }
        assert!(ruined >= 1, "some attack needs the bench");
    }
}

/// Not promised to be any better, but no worse either.
#[test]
fn two_or_three_liars_who_agree_drive_nobody_beyond_the_worst_at_first() {
    for liars in [2, 3] {
        for (attack, _) in ATTACKS {
            for bench in [true, false] {
                let ten = ten(&rule(bench), Some(attack), liars, 0..10);
                assert!(ten.worst <= 1.05, "{liars} {attack}: {} times the worst", ten.worst);
            }
        }
    }
}

/// A target that moves is not followed, and the record says so.
#[test]
fn a_target_that_moves_is_doubted_and_one_that_moves_for_all_is_not() {
    let gradients: Vec<Vec<f64>> = (0..4)
        .map(|agent| (0..4).map(|axis| f64::from(u8::from(axis == agent))).collect())
        .collect();
    let doubted = |epsilon: [f64; 4]| {
        let mut server = Server::new(vec![0.0; 4], Retain::new(DELTA), 0.1).unwrap();
        let mut step = |epsilon: [f64; 4]| {
            let each = gradients.iter().enumerate().map(|(agent, g)| {
                Report::new(
                    AgentId(agent as u64),
                    Loss::Exact(1.0).leaves_at(epsilon[agent]),
                    Vector::F64(g),
                )
            });
            server.step(&Reports::new(4, each.collect()).unwrap()).unwrap().doubted
        };
        assert_eq!(step([EPSILON; 4]), []);
        step(epsilon)
    };
    let moved = |agent| Doubted { agent: AgentId(agent), why: Why::Moved };
    assert_eq!(doubted([EPSILON, EPSILON, 0.9, EPSILON]), [moved(2)]);
    assert_eq!(doubted([EPSILON; 4]), []);
    assert_eq!(doubted([0.1; 4]), [], "what most do together is not one agent's doing");
}
