//! What `preview` proves about convex losses, on random problems of four families: also with more
//! agents than weights, and with agents that are all alike. Each claim with its converse.

use fedstay::policy::{Preview, Until};
use fedstay::problem::{Federation, Huber, Instance, Oracle, Problem, SmoothedHinge};
use fedstay::record::{Guarantee, RoundLine, Summary};
use fedstay::rule::Landing;
use fedstay::{About, Behaviour, Level, Policy, Rule, Seed, Server, Session, StopReason};
use rand::Rng;
use std::sync::Arc;

const EPSILON: f64 = 0.1;
const DELTA: f64 = 0.02;

/// The mean of `φ(⟨a_i, w⟩ − b_i)` with a constant H on its second derivative.
struct Rows {
    rows: Vec<Vec<f64>>,
    targets: Vec<f64>,
    phi: fn(f64) -> (f64, f64),
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Oracle for Rows {
    fn loss(&self, weights: &[f64]) -> f64 {
        let losses = self.rows.iter().zip(&self.targets);
        losses.map(|(row, b)| (self.phi)(dot(row, weights) - b).0).sum::<f64>()
            / self.rows.len() as f64
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        let n = self.rows.len() as f64;
        for (row, b) in self.rows.iter().zip(&self.targets) {
            let slope = (self.phi)(dot(row, weights) - b).1 / n;
            gradient.iter_mut().zip(row).for_each(|(g, a)| *g += slope * a);
        }
        self.loss(weights)
    }
}

fn square(t: f64) -> (f64, f64) {
    (0.5 * t * t, t)
}

/// Written so that neither end overflows.
fn logistic(t: f64) -> (f64, f64) {
    let e = (-t.abs()).exp();
    let (loss, slope) = (e.ln_1p(), e / (1.0 + e));
    if t >= 0.0 { (loss, -slope) } else { (loss - t, slope - 1.0) }
}

fn random(rng: &mut impl Rng, dim: usize) -> Vec<f64> {
    (0..dim).map(|_| (rng.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0).collect()
}

/// Regression with squared errors, or classification with the logistic loss, with a common optimum.
fn rows(seed: u64, agents: usize, dim: usize, samples: usize, logit: bool) -> Instance {
    let rng = &mut Seed(seed).stream("preview test", 0, 0);
    let optimum = random(rng, dim);
    let length = dot(&optimum, &optimum).sqrt();
    let (mut oracles, mut smoothness): (Vec<Arc<dyn Oracle>>, f64) = (Vec::new(), 0.0);
    for _ in 0..agents {
        let mut table = Vec::new();
        let mut targets = Vec::new();
        while table.len() < samples {
            let mut row = random(rng, dim);
            let norm = dot(&row, &row).sqrt();
            row.iter_mut().for_each(|value| *value /= norm);
            let along = dot(&row, &optimum) / length;
            if logit {
                // Separable with room: the sample is on the right side by a part of its length.
                if along.abs() < 0.3 / (dim as f64).sqrt() {
                    continue;
                }
                row.iter_mut().for_each(|value| *value *= along.signum());
                targets.push(0.0);
            } else {
                targets.push(dot(&row, &optimum));
            }
            table.push(row);
        }
        let circle = |row: &Vec<f64>| table.iter().map(|other| dot(row, other).abs()).sum::<f64>();
        let most = table.iter().map(circle).fold(0.0, f64::max) / samples as f64;
        smoothness = smoothness.max(if logit { most / 4.0 } else { most });
        let phi = if logit { logistic } else { square };
        oracles.push(Arc::new(Rows { rows: table, targets, phi }));
    }
    // Far from the optimum; for classification at zero, where nothing has been learnt.
    let away = random(rng, dim);
    let at = |times: f64| away.iter().zip(&optimum).map(|(a, o)| o + times * a).collect();
    let mut far: Vec<f64> = at(1.0);
    let mut times = 1.0;
    while oracles.iter().any(|oracle| oracle.loss(&far) <= 3.0 * EPSILON) {
        times *= 1.5;
        far = at(times);
    }
    Instance {
        oracles,
        start: if logit { vec![0.0; dim] } else { far },
        lipschitz: None,
        smoothness: Some(smoothness),
        epsilon: EPSILON,
        step_size: 1.0 / smoothness,
        delta: DELTA,
    }
}

/// The problem with this number; every fifth has more agents than weights, every seventh agents that
/// are all alike.
fn problem(number: u64) -> Instance {
    let n = number as usize;
    let dim = [2, 3, 5, 10, 20, 50, 100, 200][n / 4 % 8];
    let most = if n.is_multiple_of(5) { 50 } else { dim.min(50) };
    let agents = 2 + (n * 7) % (most - 1);
    let samples = 2 + n % 5;
    let build = |problem: Problem| problem.build(Seed(number)).unwrap();
    let mut instance = match n % 4 {
        0 => build(Problem::Huber(Huber { agents, dim, samples, start: None })),
        1 => build(Problem::SmoothedHinge(SmoothedHinge { agents, dim, samples, start: None })),
        2 => rows(number, agents, dim, samples, false),
        _ => rows(number, agents, dim, samples, true),
    };
    if n.is_multiple_of(7) {
        let first = Arc::clone(&instance.oracles[0]);
        instance.oracles.iter_mut().for_each(|oracle| *oracle = Arc::clone(&first));
    }
    instance
}

fn preview(instance: &Instance) -> Preview {
    let mut preview = Preview::default();
    (preview.delta, preview.pace) = (DELTA, 0.0);
    preview.until = Until::Content;
    preview.smoothness = instance.smoothness;
    preview
}

fn run(
    instance: &Instance,
    rule: impl Into<Rule>,
    policy: Policy,
    behaviour: &Behaviour,
    rounds: u32,
) -> (Summary, Vec<RoundLine>) {
    let epsilon = vec![EPSILON; instance.oracles.len()];
    let federation = Federation::new(instance, &epsilon, behaviour).unwrap();
    let server = Server::new(instance.start.clone(), rule, instance.step_size).unwrap();
    let server = server.with_policy(policy).unwrap();
    let mut session = Session::new(server, federation, rounds, About::default()).unwrap();
    let mut lines = Vec::new();
    let summary = session.run(&mut [&mut lines]).unwrap().unwrap();
    (summary, lines)
}

/// The first round whose server weights satisfy everybody.
fn first_content(lines: &[RoundLine]) -> Option<u32> {
    let content = |line: &&RoundLine| {
        line.assessment.as_ref().is_some_and(|a| a.loss.iter().all(|loss| *loss <= EPSILON))
    };
    lines.iter().find(content).map(|line| line.round)
}

#[test]
fn nobody_leaves_and_it_lands_certified_in_as_many_rounds_as_nobody_leaving_takes() {
    let never = Behaviour::Never(Default::default());
    let (mut landed, mut alike, mut crowds, mut crowded, mut lost_without) = (0, 0, 0, 0, 0);
    let (mut certified_over_free, mut real_over_free) = (Vec::new(), Vec::new());
    let count: u64 = std::env::var("COUNT").map_or(500, |v| v.parse().unwrap());
    let start: u64 = std::env::var("START").map_or(0, |v| v.parse().unwrap());
    for number in start..count {
        eprintln!("{number}");
        let instance = problem(number);
        let policy = Policy::Preview(preview(&instance));
        let threshold = Behaviour::default();
        let (summary, lines) = run(&instance, Level::new(DELTA), policy, &threshold, 200);
        let later = summary.left.iter().filter(|left| left.round > 1).count();
        assert_eq!(later, 0, "problem {number} lost {:?}", summary.left);
        assert_eq!(summary.guarantee, Some(Guarantee::Certified), "problem {number}");
        let (free, free_lines) =
            run(&instance, Level::new(DELTA), Policy::None, &never, summary.rounds.max(100));
        assert!(free.left.is_empty());
        let certified =
            summary.stop == StopReason::Landed && summary.landed == Some(Landing::Certified);
        if certified {
            landed += 1;
            assert!(summary.everybody_content, "problem {number} landed: {:?}", summary.loss);
            let free = first_content(&free_lines).map_or(f64::INFINITY, f64::from);
            // In both, the rounds it takes until the server knows.
            certified_over_free.push(f64::from(summary.rounds) / free);
            let real = first_content(&lines).unwrap_or(summary.rounds + 1);
            real_over_free.push(f64::from(real) / free);
        } else {
            println!(
                "problem {number}: {} agents, {} weights, {:?} after {} rounds, worst {}",
                instance.oracles.len(),
                instance.dimension(),
                summary.stop,
                summary.rounds,
                summary.loss.max
            );
        }
        alike += u32::from(number % 7 == 0 && certified);
        let is_crowded = instance.oracles.len() > instance.dimension();
        crowds += u32::from(is_crowded);
        crowded += u32::from(is_crowded && certified);
        let (lost, _) = run(&instance, Level::new(DELTA), Policy::None, &threshold, 200);
        lost_without += u32::from(!lost.left.is_empty());
    }
    let median = |ratios: &mut Vec<f64>| {
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    };
    let (certified, real) = (median(&mut certified_over_free), median(&mut real_over_free));
    println!(
        "certified on {landed} of {count} ({crowded} of {crowds} with more agents than weights, {alike} with \
         agents all alike); rounds until certified over those without departures {certified:.2}, \
         until it is true {real:.2} (medians); the same rule alone loses somebody on {lost_without}"
    );
    assert!(f64::from(landed) >= 0.95 * count as f64, "{landed}");
    assert!(crowded > 50 && alike > 60, "{crowded}, {alike}");
    assert!(certified <= 1.1 && real <= 1.1, "{certified}, {real}");
    assert!(lost_without > 400, "{lost_without}");
}
