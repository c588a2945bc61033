//! One liar among nine: eight honest convex agents and one that says what it likes. What `retain`
//! does about it (a cap, and a bench for one), with the same rule without the bench as the converse.
//!
//! `cargo test -p fedstay --test liar -- --nocapture` prints the table of docs/retain.md.

use fedstay::rule::Why;
use fedstay::{AgentId, Report, Reports, Retain, Seed, Server, StopReason, Vector};

const EPSILON: f64 = 0.05;
const DELTA: f64 = 0.02;
const HONEST: usize = 8;
const DIMENSION: usize = 30;
const ROWS: usize = 10;
const LIAR: AgentId = AgentId(99);

/// An honest agent: a least-squares loss that one model common to all brings to zero.
struct Squares {
    rows: Vec<Vec<f64>>,
    targets: Vec<f64>,
}

impl Squares {
    fn all(seed: u64) -> Vec<Self> {
        let mut rng = Seed(seed).stream("liar", 0, 0);
        let mut draw = || fedstay::numerics::normal(&mut rng);
        let best: Vec<f64> = (0..DIMENSION).map(|_| draw()).collect();
        let scale = (DIMENSION as f64).sqrt();
        let agent = |_| {
            let rows: Vec<Vec<f64>> =
                (0..ROWS).map(|_| (0..DIMENSION).map(|_| draw() / scale).collect()).collect();
            let targets = rows.iter().map(|row: &Vec<f64>| dot(row, &best)).collect();
            Self { rows, targets }
        };
        (0..HONEST).map(agent).collect()
    }

    fn look(&self, w: &[f64]) -> (f64, Vec<f64>) {
        let scale = DIMENSION as f64 / 3.0 / ROWS as f64;
        let (mut loss, mut gradient) = (0.0, vec![0.0; DIMENSION]);
        for (row, target) in self.rows.iter().zip(&self.targets) {
            let miss = dot(row, w) - target;
            loss += 0.5 * scale * miss * miss;
            gradient.iter_mut().zip(row).for_each(|(g, x)| *g += scale * miss * x);
        }
        (loss, gradient)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

const ATTACKS: [&str; 7] =
    ["hold", "stall-far", "huge", "loss-1e308", "zero-gradient", "below", "opposite"];

/// What the liar says, given what the honest agents say.
fn lie(attack: &str, honest: &[(f64, Vec<f64>)], draw: &mut dyn FnMut() -> f64) -> (f64, Vec<f64>) {
    let mut sum = vec![0.0; DIMENSION];
    for (_, gradient) in honest {
        sum.iter_mut().zip(gradient).for_each(|(s, g)| *s += g);
    }
    let minus = |v: &[f64]| -> Vec<f64> { v.iter().map(|value| -value).collect() };
    let mut random = |size: f64| -> Vec<f64> { (0..DIMENSION).map(|_| size * draw()).collect() };
    match attack {
        // At its floor, so that descent for all others would cross it.
        "hold" => (EPSILON + DELTA, sum),
        // Far away, and wants the opposite of all others.
        "stall-far" => (1e6, minus(&sum)),
        "huge" => (1e3, random(1e6)),
        "loss-1e308" => (1e308, random(1.0)),
        "zero-gradient" => (1.0, vec![0.0; DIMENSION]),
        // Content for a long time, and against whoever is nearest to leaving.
        "below" => {
            let victim = honest.iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
            (EPSILON - 10.0, minus(&victim.1))
        }
        "opposite" => (EPSILON + 0.5 * DELTA, minus(&sum)),
        other => unreachable!("{other}"),
    }
}

#[derive(Debug)]
struct Outcome {
    mean: f64,
    worst: f64,
    left: usize,
    rounds: u32,
    stop: Option<StopReason>,
    benched: Option<AgentId>,
}

fn play(rule: &Retain, attack: Option<&str>, seed: u64) -> Outcome {
    let agents = Squares::all(seed);
    let mut rng = Seed(seed).stream("lies", 0, 0);
    let mut draw = || fedstay::numerics::normal(&mut rng);
    let mut server = Server::new(vec![0.0; DIMENSION], rule.clone(), 0.5).unwrap();
    let mut present: Vec<usize> = (0..HONEST).collect();
    let mut outcome =
        Outcome { mean: 0.0, worst: 0.0, left: 0, rounds: 0, stop: None, benched: None };
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
        let said = attack.map(|attack| lie(attack, &honest, &mut draw));
        let mut reports: Vec<Report<'_>> = present
            .iter()
            .zip(&honest)
            .map(|(id, (loss, g))| Report::new(AgentId(*id as u64), *loss, EPSILON, Vector::F64(g)))
            .collect();
        if let Some((loss, g)) = &said {
            reports.push(Report::new(LIAR, *loss, EPSILON, Vector::F64(g)));
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
    let losses: Vec<f64> = agents.iter().map(|agent| agent.look(server.weights()).0).collect();
    outcome.mean = losses.iter().sum::<f64>() / HONEST as f64;
    outcome.worst = losses.iter().copied().fold(0.0, f64::max);
    outcome
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    0.5 * (values[values.len() / 2] + values[(values.len() - 1) / 2])
}

/// Ten runs under an attack, and their medians on one line.
fn ten(rule: &Retain, attack: Option<&str>, seeds: std::ops::Range<u64>) -> (f64, Vec<Outcome>) {
    let runs: Vec<Outcome> = seeds.map(|seed| play(rule, attack, seed)).collect();
    let mean = median(runs.iter().map(|run| run.mean).collect());
    let benched = |who: &dyn Fn(AgentId) -> bool| {
        runs.iter().filter(|run| run.benched.is_some_and(who)).count()
    };
    let names = runs.iter().map(|run| run.stop.map_or("rounds", StopReason::name));
    println!(
        "{:14} bench {:5} mean {mean:9.4} worst {:9.4} rounds {:5.0} honest left {:2} benched: liar {} honest {} {:?}",
        attack.unwrap_or("none"),
        rule.bench,
        median(runs.iter().map(|run| run.worst).collect()),
        median(runs.iter().map(|run| f64::from(run.rounds)).collect()),
        runs.iter().map(|run| run.left).sum::<usize>(),
        benched(&|agent| agent == LIAR),
        benched(&|agent| agent != LIAR),
        names.collect::<Vec<_>>(),
    );
    (mean, runs)
}

#[test]
fn one_liar_among_nine_stops_nobody_for_long() {
    for seeds in [0..10, 1000..1010] {
        let (honest, runs) = ten(&Retain::new(DELTA), None, seeds.clone());
        assert!(runs.iter().all(|run| run.benched.is_none() && run.left == 0), "{runs:?}");
        assert!(honest <= EPSILON, "{honest}");
        let mut ruined = 0;
        for attack in ATTACKS {
            let (mean, _) = ten(&Retain::new(DELTA), Some(attack), seeds.clone());
            assert!(mean <= 2.0 * EPSILON, "{attack}: {mean}");
            let mut trusting = Retain::new(DELTA);
            trusting.bench = false;
            let (mean, _) = ten(&trusting, Some(attack), seeds.clone());
            ruined += u32::from(mean > 10.0 * EPSILON);
        }
        assert!(ruined >= 1, "some attack needs the bench");
    }
}
