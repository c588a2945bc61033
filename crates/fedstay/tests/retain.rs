//! What `docs/retain.md` claims about `retain` beyond the theorem of the paper, as tests with their
//! converse: one projection at every angle, no false landing, silent agents, unrealizable problems,
//! and the rate for a server that sends one model to all.

#[path = "common/one_round.rs"]
mod one_round;

use fedstay::rule::{Landing, OnUnrealizable};
use fedstay::{AgentId, Loss, Report, Reports, Retain, Seed, Server, Standing, StopReason, Vector};
use one_round::{EPSILON, reports, server};
use rand::Rng;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Two ramps `F_m = b_m + ⟨g_m, w⟩` whose gradients are at an angle.
fn rounds_on_two_ramps(angle: f64) -> u32 {
    let gradients = vec![vec![1.0, 0.0], vec![f64::cos(angle), f64::sin(angle)]];
    let mut rule = Retain::new(0.05);
    rule.landing = false;
    let mut server = server(rule, 2);
    for round in 1..=20 {
        let at = |m: usize, b: f64| EPSILON + b + dot(&gradients[m], server.weights());
        let losses = [at(0, 10.0), at(1, 1.0)];
        assert!(losses.iter().all(|loss| *loss > EPSILON), "{losses:?} at {angle}");
        if server.step(&reports(&losses, &gradients)).unwrap().stop.is_some() {
            return round;
        }
    }
    panic!("not done at {angle}");
}

#[test]
fn two_ramps_take_two_rounds_at_every_angle() {
    for angle in [3.1, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.005, 1e-4, -1e-3, -1.0] {
        assert_eq!(rounds_on_two_ramps(angle), 2, "at {angle}");
    }
}

#[test]
fn projecting_twice_takes_ever_more_rounds_at_small_angles() {
    // The converse: levels first, then floors, as alternating projections do.
    let rounds = |angle: f64| {
        let (g, mut f) = ([[1.0, 0.0], [f64::cos(angle), f64::sin(angle)]], [10.0f64, 1.0]);
        let (floor, level) = (0.05, 0.075);
        for round in 1..100_000u32 {
            if f.iter().all(|loss| *loss <= 0.1) {
                return round;
            }
            // The nearest point of both levels: where one alone is not enough, solve for both.
            let cosine = angle.cos();
            let need = [f[0] - level, f[1] - level];
            let alone = [-need[0] * g[0][0], -need[0] * g[0][1]];
            let mut s = alone;
            if f[1] + dot(&g[1], &s) > level {
                let det = 1.0 - cosine * cosine;
                let a = (need[0] - cosine * need[1]) / det;
                let b = (need[1] - cosine * need[0]) / det;
                s = [-(a * g[0][0] + b * g[1][0]), -(a * g[0][1] + b * g[1][1])];
            }
            for m in [0, 1] {
                let short = (floor - (f[m] + dot(&g[m], &s))).max(0.0);
                s = [s[0] + short * g[m][0], s[1] + short * g[m][1]];
            }
            f = [f[0] + dot(&g[0], &s), f[1] + dot(&g[1], &s)];
        }
        panic!("never at {angle}")
    };
    assert!(
        rounds(0.1) > 100 && rounds(0.05) > 3 * rounds(0.1),
        "{} {}",
        rounds(0.1),
        rounds(0.05)
    );
}

#[test]
fn no_landing_is_certified_that_the_step_does_not_prove() {
    let land = |told: &[(Loss, Vec<f64>)]| {
        let mut rule = Retain::new(0.05);
        rule.smoothness = Some(0.0);
        let report = |(id, (loss, g)): (usize, &'_ (Loss, Vec<f64>))| -> (AgentId, Loss, Vec<f64>) {
            (AgentId(id as u64), *loss, g.clone())
        };
        let told: Vec<_> = told.iter().enumerate().map(report).collect();
        let each = told.iter().map(|(agent, loss, g)| Report {
            standing: Standing::Open { loss: *loss, epsilon: 0.1 },
            ..Report::new(*agent, Loss::Exact(0.0).leaves_at(0.1), Vector::F64(g))
        });
        let reports = Reports::new(2, each.collect()).unwrap();
        let mut server = Server::new(vec![0.0; 2], rule, 0.1).unwrap();
        let decision = server.step(&reports).unwrap();
        let after: Vec<f64> =
            told.iter().map(|(_, loss, g)| loss.value() + dot(g, server.displacement())).collect();
        (decision.stop, decision.landed.unwrap(), after)
    };
    let exact = |loss: f64| Loss::Exact(loss);
    // A loss without a slope cannot be lowered.
    let (stop, landed, _) = land(&[(exact(0.15), vec![0.0, 0.0]), (exact(0.15), vec![1.0, 0.0])]);
    assert_ne!((stop, landed), (Some(StopReason::Landed), Landing::Certified));
    // Gradients of very different lengths: whatever is said must hold for both.
    let (_, landed, after) = land(&[(exact(0.15), vec![1e-6, 0.0]), (exact(0.15), vec![0.0, 1e8])]);
    assert!(landed == Landing::No || after.iter().all(|loss| *loss <= 0.1), "{after:?}");
    // A sampled loss is landed by two standard errors more, and never certified.
    let sampled = |mean, standard_error| Loss::Sampled { mean, standard_error };
    let (_, landed, after) = land(&[(sampled(0.18, 0.05), vec![1.0, 0.0])]);
    assert_ne!(landed, Landing::Certified);
    assert!(landed == Landing::No || after[0] <= 0.1 - 2.0 * 0.05 + 1e-9, "{after:?}");
    // The converse: with exact losses and slopes there is a certified landing.
    let (stop, landed, after) =
        land(&[(exact(0.15), vec![1.0, 0.2]), (exact(0.18), vec![0.1, 1.0])]);
    assert_eq!((stop, landed), (Some(StopReason::Landed), Landing::Certified));
    assert!(after.iter().all(|loss| *loss <= 0.1), "{after:?}");
}

/// A convex quadratic `½‖A(w − c)‖²` with its minimum value added.
struct Bowl {
    centre: Vec<f64>,
    stretch: Vec<f64>,
    least: f64,
}

impl Bowl {
    fn look(&self, w: &[f64]) -> (f64, Vec<f64>) {
        let (mut loss, mut gradient) = (self.least, Vec::new());
        for ((w, c), a) in w.iter().zip(&self.centre).zip(&self.stretch) {
            loss += 0.5 * a * (w - c) * (w - c);
            gradient.push(a * (w - c));
        }
        (loss, gradient)
    }
}

/// Plays rounds in which only some agents are heard; everybody leaves at 0.1.
fn play(
    rule: Retain,
    bowls: &[Bowl],
    start: Vec<f64>,
    heard: impl Fn(u32, usize) -> bool,
    rounds: u32,
) -> (Option<StopReason>, Vec<f64>, Server, Option<f64>) {
    let dimension = start.len();
    let mut server = Server::new(start, rule, 0.5).unwrap();
    let mut least = None;
    for round in 1..=rounds {
        let told: Vec<(usize, (f64, Vec<f64>))> = (0..bowls.len())
            .filter(|agent| heard(round, *agent))
            .map(|agent| (agent, bowls[agent].look(server.weights())))
            .collect();
        for bowl in bowls {
            let loss = bowl.look(server.weights()).0;
            assert!(loss > 0.1, "somebody left in round {round}: {loss}");
        }
        let each = told.iter().map(|(agent, (loss, g))| {
            Report::new(AgentId(*agent as u64), Loss::Exact(*loss).leaves_at(0.1), Vector::F64(g))
        });
        let reports = Reports::new(dimension, each.collect()).unwrap();
        let reports = reports.with_absent(bowls.len() - told.len());
        // What was saved continues as if nothing had happened.
        let text = serde_json::to_string(&server.state()).unwrap();
        let mut resumed = Server::from_state(serde_json::from_str(&text).unwrap()).unwrap();
        let decision = server.step(&reports).unwrap();
        assert_eq!(resumed.step(&reports).unwrap(), decision);
        assert_eq!(resumed.state(), server.state());
        least = decision.least.or(least);
        if decision.stop.is_some() {
            let losses = bowls.iter().map(|bowl| bowl.look(server.weights()).0).collect();
            return (decision.stop, losses, server, least);
        }
    }
    let losses = bowls.iter().map(|bowl| bowl.look(server.weights()).0).collect();
    (None, losses, server, least)
}

fn bowls(seed: u64, agents: usize, dimension: usize) -> Vec<Bowl> {
    let mut rng = Seed(seed).stream("bowls", 0, 0);
    let mut draw = || rng.next_u32() as f64 / u32::MAX as f64;
    let bowl = |_| Bowl {
        centre: (0..dimension).map(|_| 0.15 * (draw() - 0.5)).collect(),
        stretch: (0..dimension).map(|_| 0.5 + draw()).collect(),
        least: 0.0,
    };
    (0..agents).map(bowl).collect()
}

#[test]
fn nobody_leaves_while_silent_and_a_landing_is_true_for_those_not_heard() {
    let mut landed = 0;
    for seed in 0..20 {
        let bowls = bowls(seed, 5, 8);
        let mut rule = Retain::new(0.02);
        rule.smoothness = Some(1.5);
        // In the first round all are heard; then two or three of five.
        let heard = |round: u32, agent: usize| {
            round == 1 || (round as usize * 7 + agent * 3 + seed as usize) % 5 < 3
        };
        let (stop, losses, ..) = play(rule, &bowls, vec![3.0; 8], heard, 400);
        if stop == Some(StopReason::Landed) {
            landed += 1;
            assert!(losses.iter().all(|loss| *loss <= 0.1), "seed {seed}: {losses:?}");
        }
        if stop == Some(StopReason::Settled) {
            assert!(losses.iter().all(|loss| *loss <= 0.1 + 0.05), "seed {seed}: {losses:?}");
        }
    }
    println!("landed {landed} of 20 with three of five heard");
    assert!(landed >= 10, "landed {landed} of 20");
}

#[test]
fn what_no_model_can_do_is_proved_and_the_least_is_found() {
    for (dimension, offset) in [(1, 0.0), (2, 0.3), (5, 0.5)] {
        let at = |first: f64| {
            let mut centre = vec![0.0; dimension];
            centre[0] = first;
            Bowl { centre, stretch: vec![1.0; dimension], least: 0.0 }
        };
        // Both can have 0.5 at best, at the origin.
        let opposite = [at(1.0), at(-1.0)];
        let mut start = vec![offset; dimension];
        start[0] = 0.5;
        let mut rule = Retain::new(0.02);
        (rule.convex, rule.smoothness) = (Some(true), Some(1.0));
        let all = |_: u32, _: usize| true;
        let (stop, _, _, least) = play(rule.clone(), &opposite, start.clone(), all, 400);
        assert_eq!(stop, Some(StopReason::Unrealizable), "in {dimension} dimensions");
        let least = least.unwrap();
        assert!(least > 0.0 && least <= 0.4 + 1e-9, "{least}");
        rule.on_unrealizable = OnUnrealizable::Least;
        let (stop, losses, _, least) = play(rule.clone(), &opposite, start.clone(), all, 400);
        assert_eq!(stop, Some(StopReason::Unrealizable), "{losses:?}");
        assert!(least.unwrap() <= 0.4 + 1e-9);
        assert!(losses.iter().all(|loss| *loss <= 0.5 + 2.0 * 0.02 + 1e-6), "{losses:?}");
        // The converse: agents that agree are not called that, nor is anything without convexity.
        let near = [at(0.2), at(-0.2)];
        let mut away = start.clone();
        away[0] = 3.0;
        let (stop, ..) = play(rule.clone(), &near, away, all, 400);
        assert_ne!(stop, Some(StopReason::Unrealizable));
        rule.convex = None;
        let (stop, ..) = play(rule, &opposite, start, all, 60);
        assert_ne!(stop, Some(StopReason::Unrealizable));
    }
}

/// `½t²`, flat below zero and straight above one, of `t = ⟨slope, w⟩ + offset`.
struct Ramp {
    slope: [f64; 2],
    offset: f64,
}

impl Ramp {
    fn look(&self, w: &[f64]) -> (f64, Vec<f64>) {
        let t = self.slope[0] * w[0] + self.slope[1] * w[1] + self.offset;
        let steep = t.clamp(0.0, 1.0);
        let loss = if t > 1.0 { t - 0.5 } else { 0.5 * steep * steep };
        (loss, self.slope.iter().map(|slope| steep * slope).collect())
    }
}

/// The first decision of a rule that takes losses for convex.
fn first_decision(ramps: &[Ramp], start: [f64; 2]) -> fedstay::Decision {
    let mut rule = Retain::new(0.02);
    rule.convex = Some(true);
    let mut server = Server::new(start.to_vec(), rule, 0.5).unwrap();
    let told: Vec<_> = ramps.iter().map(|ramp| ramp.look(server.weights())).collect();
    let each = told.iter().enumerate().map(|(agent, (loss, g))| {
        Report::new(AgentId(agent as u64), Loss::Exact(*loss).leaves_at(0.1), Vector::F64(g))
    });
    server.step(&Reports::new(2, each.collect()).unwrap()).unwrap()
}

#[test]
fn unrealizable_is_said_of_a_radius_and_what_satisfies_everybody_may_lie_beyond_it() {
    let ramps = |tilt: f64| {
        let ramp = |slope| Ramp { slope, offset: 1.5 };
        [ramp([1.0, 0.0]), ramp([-1.0, -tilt])]
    };
    let tilted = ramps(1e-7);
    let decision = first_decision(&tilted, [0.0; 2]);
    assert_eq!(decision.stop, Some(StopReason::Unrealizable));
    let within = decision.within.expect("these gradients do not cancel");
    // A model that satisfies both is out there.
    let found = [-1.1, 2.2e7];
    assert!(tilted.iter().all(|ramp| ramp.look(&found).0 <= 0.1));
    let distance = f64::hypot(found[0], found[1]);
    assert!((1e6..distance).contains(&within), "{within:e}, {distance:e}");
    // The radius is hardly shorter than it must be, and nothing nearer satisfies both.
    assert!(within > 0.8 * distance, "{within:e}, {distance:e}");
    let nearer = [-1.1, (within * within - 1.21).sqrt()];
    assert!(tilted.iter().any(|ramp| ramp.look(&nearer).0 > 0.1));
    // A little more tilt, and the proof does not reach far enough to count.
    let decision = first_decision(&ramps(1e-5), [0.0; 2]);
    assert_ne!(decision.stop, Some(StopReason::Unrealizable));
    assert_eq!((decision.least, decision.within), (None, None));
    // Gradients that cancel in every digit: as far as such digits can tell, and no farther.
    let decision = first_decision(&ramps(0.0), [0.0; 2]);
    assert_eq!(decision.stop, Some(StopReason::Unrealizable));
    let within = decision.within.expect("digits are finitely many");
    assert!((1e13..1e17).contains(&within), "{within:e}");
}

/// The theorem of docs/retain.md on random H-smooth convex losses with independent gradients: the
/// damped step keeps everybody, contracts as stated, and is done within the bound.
#[test]
fn the_damped_step_keeps_everybody_within_its_bound() {
    let (epsilon, delta) = (0.1, 0.02);
    let mut ratios: Vec<f64> = Vec::new();
    for seed in 0..60 {
        let (agents, dimension) = (2 + seed as usize % 4, 8 + seed as usize % 5);
        let losses = smooth_losses(seed, agents, dimension);
        let smooth = 1.0;
        let look = |w: &[f64]| -> (Vec<f64>, Vec<Vec<f64>>) {
            losses.iter().map(|(a, b)| pseudo_huber(a, *b, w)).unzip()
        };
        // A first pass finds the smallest singular value on the way; the second is held to it.
        let mut sigma = f64::INFINITY;
        for pass in 0..2 {
            let mut w = vec![0.0; dimension];
            let (mut rounds, mut first) = (0u32, None);
            loop {
                let (f, g) = look(&w);
                let r: Vec<f64> = f.iter().map(|loss| loss - epsilon - delta).collect();
                assert!(r.iter().all(|r| *r >= -1e-9), "seed {seed}: somebody fell below");
                let norm = dot(&r, &r).sqrt();
                let start = *first.get_or_insert(norm);
                if r.iter().all(|r| *r <= delta) || rounds > 4_000 {
                    if pass == 1 {
                        let m = (agents as f64).sqrt();
                        let loglog = (2.0 * sigma * sigma / (m * smooth * delta)).max(4.0).log2();
                        let bound =
                            2.0 * m * smooth * start / (sigma * sigma) + loglog.log2() + 2.0;
                        assert!(f64::from(rounds) <= bound, "seed {seed}: {rounds} of {bound}");
                        ratios.push(f64::from(rounds) / bound);
                    }
                    break;
                }
                sigma = sigma.min(smallest_singular_value(&g));
                let c = (agents as f64).sqrt() * smooth / (2.0 * sigma * sigma);
                let t = (1.0 / (2.0 * c * norm)).min(1.0);
                let step = pseudo_inverse(&g, &r);
                w.iter_mut().zip(&step).for_each(|(w, s)| *w -= t * s);
                let after: Vec<f64> =
                    look(&w).0.iter().map(|loss| loss - epsilon - delta).collect();
                let now = dot(&after, &after).sqrt();
                assert!(
                    now <= (1.0 - t) * norm + c * t * t * norm * norm + 1e-9,
                    "seed {seed}: {norm} to {now}"
                );
                rounds += 1;
            }
        }
    }
    let (least, most) = ratios.iter().fold((1.0f64, 0.0f64), |(a, b), r| (a.min(*r), b.max(*r)));
    println!("rounds over the bound: {least:.2} to {most:.2} on {} problems", ratios.len());
    assert!(ratios.len() == 60);
}

#[test]
fn with_parallel_gradients_no_step_of_that_kind_exists() {
    // The converse: σ = 0. Two agents with the same gradient and different distances from their
    // targets can never both come down, because the nearer one would fall below its floor.
    let gradients = vec![vec![1.0, 0.0], vec![1.0, 0.0]];
    assert_eq!(smallest_singular_value(&gradients), 0.0);
    let mut rule = Retain::new(0.02);
    rule.landing = false;
    let mut server = server(rule, 2);
    let mut stop = None;
    for _ in 0..200 {
        let at = |b: f64| EPSILON + b + server.weights()[0];
        let losses = [at(5.0), at(1.0)];
        assert!(losses.iter().all(|loss| *loss > EPSILON));
        stop = server.step(&reports(&losses, &gradients)).unwrap().stop;
        if stop.is_some() {
            break;
        }
    }
    assert_eq!(stop, Some(StopReason::Stalled));
    assert!(server.weights()[0] > -1.0);
}

/// `F = √(1 + x²) − 1` along a direction of length one, from `b`: convex and 1-smooth.
fn pseudo_huber(direction: &[f64], b: f64, w: &[f64]) -> (f64, Vec<f64>) {
    let x = dot(direction, w) + b;
    let root = (1.0 + x * x).sqrt();
    (root - 1.0, direction.iter().map(|a| a * x / root).collect())
}

fn smooth_losses(seed: u64, agents: usize, dimension: usize) -> Vec<(Vec<f64>, f64)> {
    let mut rng = Seed(seed).stream("rate", 0, 0);
    let mut draw = || fedstay::numerics::normal(&mut rng);
    let loss = |_| {
        let raw: Vec<f64> = (0..dimension).map(|_| draw()).collect();
        let length = dot(&raw, &raw).sqrt();
        (raw.iter().map(|x| x / length).collect(), 1.0 + draw().abs())
    };
    (0..agents).map(loss).collect()
}

fn gram(g: &[Vec<f64>]) -> Vec<Vec<f64>> {
    g.iter().map(|a| g.iter().map(|b| dot(a, b)).collect()).collect()
}

/// `G⁺r = Gᵀ(GGᵀ)⁻¹r`, by elimination.
fn pseudo_inverse(g: &[Vec<f64>], r: &[f64]) -> Vec<f64> {
    let x = solve(gram(g), r.to_vec());
    let mut step = vec![0.0; g[0].len()];
    for (x, g) in x.iter().zip(g) {
        step.iter_mut().zip(g).for_each(|(s, g)| *s += x * g);
    }
    step
}

fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for column in 0..n {
        let pivot = (column..n).max_by(|i, j| a[*i][column].abs().total_cmp(&a[*j][column].abs()));
        let pivot = pivot.unwrap();
        a.swap(column, pivot);
        b.swap(column, pivot);
        for row in column + 1..n {
            let factor = a[row][column] / a[column][column];
            let above = a[column].clone();
            a[row].iter_mut().zip(&above).for_each(|(x, y)| *x -= factor * y);
            b[row] -= factor * b[column];
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|j| a[row][j] * b[j]).sum();
        b[row] = (b[row] - known) / a[row][row];
    }
    b
}

/// By inverse iteration on the Gram matrix.
fn smallest_singular_value(g: &[Vec<f64>]) -> f64 {
    let gram = gram(g);
    let n = gram.len();
    let mut v = vec![1.0; n];
    v[0] = 1.3;
    for _ in 0..200 {
        let w = solve(gram.clone(), v.clone());
        let length = dot(&w, &w).sqrt();
        if !length.is_finite() {
            return 0.0;
        }
        v = w.iter().map(|x| x / length).collect();
    }
    let image: Vec<f64> = gram.iter().map(|row| dot(row, &v)).collect();
    dot(&v, &image).max(0.0).sqrt()
}
