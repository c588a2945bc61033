//! What `docs/preview.md` claims beside the landing on random problems (`preview.rs`): the rate, who
//! can and who cannot be held, silence, memory. Each claim with its converse.

use fedstay::behaviour::{Behaviour, Lying};
use fedstay::policy::{By, Preview, Until};
use fedstay::problem::{
    Federation, Huber, Instance, Observation3, Observation4, Oracle, Problem, SmoothedHinge,
};
use fedstay::record::{Guarantee, Summary};
use fedstay::rule::{Landing, Level};
use fedstay::{
    About, AgentId, Decision, Loss, Mean, Policies, Policy, Report, Reports, Rule, Seed, Server,
    Session, StopReason, Vector,
};
use rand::Rng;
use std::collections::BTreeSet;
use std::sync::Arc;

const EPSILON: f64 = 0.1;
const DELTA: f64 = 0.02;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn random(rng: &mut impl Rng, dim: usize) -> Vec<f64> {
    (0..dim).map(|_| (rng.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0).collect()
}

/// `½⟨a, w − o⟩²` summed over a few rows, so that everybody's loss is zero at `o`.
struct Bowl {
    rows: Vec<Vec<f64>>,
    optimum: Vec<f64>,
}

impl Oracle for Bowl {
    fn loss(&self, weights: &[f64]) -> f64 {
        let off = minus(weights, &self.optimum);
        self.rows.iter().map(|row| 0.5 * dot(row, &off).powi(2)).sum()
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let off = minus(weights, &self.optimum);
        gradient.fill(0.0);
        for row in &self.rows {
            let along = dot(row, &off);
            gradient.iter_mut().zip(row).for_each(|(g, a)| *g += along * a);
        }
        self.loss(weights)
    }
}

/// Agents with bowls around a common optimum, which is returned too, and a start far from it.
fn bowls(seed: u64, agents: usize, dim: usize) -> (Vec<Arc<dyn Oracle>>, Vec<f64>, Vec<f64>) {
    let rng = &mut Seed(seed).stream("preview claims", 0, 0);
    let optimum = random(rng, dim);
    let oracles = (0..agents).map(|_| {
        let rows = (0..3).map(|_| random(rng, dim)).collect();
        Arc::new(Bowl { rows, optimum: optimum.clone() }) as Arc<dyn Oracle>
    });
    let oracles: Vec<_> = oracles.collect();
    let away = random(rng, dim);
    let start = |times: f64| optimum.iter().zip(&away).map(|(o, a)| o + times * a).collect();
    let mut times = 1.0;
    let mut far: Vec<f64> = start(times);
    while oracles.iter().any(|oracle| oracle.loss(&far) <= 5.0 * EPSILON) {
        times *= 1.5;
        far = start(times);
    }
    (oracles, optimum, far)
}

/// A preview without pace or cap, and with what is changed about it.
fn preview(change: impl FnOnce(&mut Preview)) -> Policy {
    let mut preview = Preview::default();
    (preview.delta, preview.pace, preview.cap) = (DELTA, 0.0, 1e9);
    change(&mut preview);
    Policy::Preview(preview)
}

/// A federation whose rounds are taken by hand, so that everything that is sent can be looked at.
struct ByHand {
    oracles: Vec<Arc<dyn Oracle>>,
    server: Server,
    left: BTreeSet<usize>,
    /// What agents multiply their gradients by before they report them.
    honesty: f64,
    /// Whether the server is told that agents may join.
    newcomers: bool,
}

/// What one round was about.
struct Looked {
    decision: Decision,
    /// `L + ⟨g, w − w̃⟩` and `‖g‖` of everybody who reported.
    cuts: Vec<(f64, f64)>,
    left: usize,
}

impl ByHand {
    fn new(oracles: &[Arc<dyn Oracle>], start: &[f64], rule: impl Into<Rule>, step: f64) -> Self {
        let server = Server::new(start.to_vec(), rule, step).unwrap();
        let server = server.with_policy(preview(|_| {})).unwrap();
        let (oracles, left) = (oracles.to_vec(), BTreeSet::new());
        Self { oracles, server, left, honesty: 1.0, newcomers: false }
    }

    fn shown(&self, agent: usize) -> Vec<f64> {
        self.server.broadcast().to(AgentId(agent as u64)).into_owned()
    }

    fn round(&mut self, asked: impl Fn(usize) -> bool) -> Looked {
        let (mut heard, mut goodbyes, mut cuts) = (Vec::new(), Vec::new(), Vec::new());
        for (agent, oracle) in self.oracles.iter().enumerate() {
            if self.left.contains(&agent) || !asked(agent) {
                continue;
            }
            let shown = self.shown(agent);
            let mut gradient = vec![0.0; shown.len()];
            let loss = oracle.loss_and_gradient(&shown, &mut gradient);
            gradient.iter_mut().for_each(|value| *value *= self.honesty);
            if loss <= EPSILON {
                goodbyes.push(AgentId(agent as u64));
                continue;
            }
            let cut = loss + dot(&gradient, &minus(self.server.weights(), &shown));
            cuts.push((cut, dot(&gradient, &gradient).sqrt()));
            heard.push((agent, loss, gradient));
        }
        let absent = self.oracles.len() - self.left.len() - heard.len() - goodbyes.len();
        let left = goodbyes.len();
        self.left.extend(goodbyes.iter().map(|agent| agent.0 as usize));
        let report = |(agent, loss, gradient): &'_ (usize, f64, Vec<f64>)| {
            (AgentId(*agent as u64), *loss, gradient.clone())
        };
        let told: Vec<_> = heard.iter().map(report).collect();
        let reports = told
            .iter()
            .map(|(agent, loss, gradient)| {
                Report::new(*agent, Loss::Exact(*loss).leaves_at(EPSILON), Vector::F64(gradient))
            })
            .collect();
        let dimension = self.server.weights().len();
        let reports = Reports::with_goodbyes(dimension, reports, goodbyes).unwrap();
        let reports = reports.with_absent(absent).with_newcomers(self.newcomers);
        let decision = self.server.step(&reports).unwrap();
        Looked { decision, cuts, left }
    }
}

#[test]
fn every_round_with_a_cut_above_its_level_comes_nearer_by_the_slack_over_the_slope() {
    let (mut rounds_above, mut slow) = (0, 0);
    for seed in 0..30 {
        let (agents, dim) = (2 + seed as usize % 7, [3, 8, 20][seed as usize % 3]);
        let (oracles, optimum, start) = bowls(seed, agents, dim);
        let count = |rule: Rule, step_size: f64| {
            let mut hand = ByHand::new(&oracles, &start, rule, step_size);
            let first = minus(hand.server.weights(), &optimum);
            let (mut above, mut short, mut steepest) = (0, 0, 0.0_f64);
            for _ in 0..200 {
                let before = minus(hand.server.weights(), &optimum);
                let looked = hand.round(|_| true);
                assert_eq!(looked.left, 0, "problem {seed}");
                let over = |(cut, _): &&(f64, f64)| *cut > EPSILON - DELTA;
                let Some((_, slope)) = looked.cuts.iter().find(over) else { break };
                let after = minus(hand.server.weights(), &optimum);
                let gained = dot(&before, &before) - dot(&after, &after);
                let promised = (DELTA / slope).powi(2);
                above += 1;
                short += u32::from(gained < promised * (1.0 - 1e-9) - 1e-12);
                let steep = looked.cuts.iter().map(|(_, slope)| *slope);
                steepest = steep.fold(steepest, f64::max);
            }
            let bound = dot(&first, &first) * (steepest / DELTA).powi(2);
            (above, short, bound)
        };
        let (above, short, bound) = count(Level::new(DELTA).into(), 1.0);
        assert_eq!(short, 0, "problem {seed}: the level step always comes that much nearer");
        assert!(f64::from(above) <= bound, "problem {seed}: {above} rounds, {bound} promised");
        rounds_above += above;
        slow += count(Mean::default().into(), 1e-9).1;
    }
    assert!(rounds_above >= 60, "{rounds_above}");
    assert!(slow > 1000, "small averaging steps do not come that much nearer: {slow}");
}

#[test]
fn an_agent_that_is_heard_late_is_shown_the_first_weights_and_stays_unless_content_with_those() {
    let mut lost_late = 0;
    for seed in 0..20 {
        let (oracles, optimum, start) = bowls(seed, 6, 10);
        let rule = Level::new(DELTA);
        // Agent 5 is not asked before round 10, when the model has long been good enough for it.
        let mut hand = ByHand::new(&oracles, &start, rule.clone(), 1.0);
        for round in 1..=40 {
            if (2..=10).contains(&round) {
                assert_eq!(hand.shown(5), start, "problem {seed}, round {round}");
            }
            let looked = hand.round(|agent| agent != 5 || round >= 10);
            assert_eq!((looked.left, looked.decision.kept), (0, Some(true)), "problem {seed}");
        }
        let near = minus(hand.server.weights(), &optimum);
        assert!(dot(&near, &near) < dot(&minus(&start, &optimum), &minus(&start, &optimum)));
        // The converse: content with the first weights of all, it leaves as soon as it is asked.
        let content: Arc<dyn Oracle> =
            Arc::new(Bowl { rows: vec![vec![0.0; 10]], optimum: optimum.clone() });
        let oracles: Vec<_> = oracles[..5].iter().cloned().chain([content]).collect();
        let mut hand = ByHand::new(&oracles, &start, rule, 1.0);
        for round in 1..=12 {
            lost_late += hand.round(|agent| agent != 5 || round >= 10).left;
        }
    }
    assert_eq!(lost_late, 20);
}

#[test]
fn an_agent_that_joins_unannounced_is_shown_the_first_weights_and_stays() {
    let mut lost_untold = 0;
    for seed in 0..20 {
        let (oracles, _, start) = bowls(seed, 6, 10);
        let run = |newcomers: bool| {
            let mut hand = ByHand::new(&oracles[..5], &start, Level::new(DELTA), 1.0);
            hand.newcomers = newcomers;
            let (mut left, mut before) = (0, Vec::new());
            for round in 1..=40 {
                if round == 10 {
                    before = hand.server.weights().to_vec();
                    hand.oracles.push(oracles[5].clone());
                    assert_eq!(hand.shown(5) == start, newcomers, "problem {seed}");
                    assert_eq!(hand.server.broadcast().newcomers().is_some(), newcomers);
                    assert!(!newcomers || hand.server.broadcast().is_new(AgentId(5)));
                }
                left += hand.round(|_| true).left;
            }
            assert!(!hand.server.broadcast().is_new(AgentId(5)));
            (left, before)
        };
        let (told, untold) = (run(true), run(false));
        assert_eq!(told.0, 0, "problem {seed}");
        // Nobody else notices that the first weights are kept.
        assert_eq!(told.1, untold.1);
        lost_untold += untold.0;
    }
    // Untold, some are shown a model with which they are content before they were heard.
    assert!(lost_untold > 0);
}

#[test]
fn with_some_of_them_silent_in_every_round_nobody_leaves_and_each_keeps_its_last_cut() {
    let mut held_in_silence = 0;
    for seed in 0..20 {
        let (oracles, _, start) = bowls(seed, 8, 12);
        let mut hand = ByHand::new(&oracles, &start, Level::new(DELTA), 1.0);
        for round in 0..60_u64 {
            let rng = &mut Seed(seed).stream("asked", round, 0);
            let asked: Vec<bool> = (0..8).map(|_| rng.next_u64().is_multiple_of(2)).collect();
            let looked = hand.round(|agent| asked[agent]);
            assert_eq!(looked.left, 0, "problem {seed}");
            // A round in which nobody at all is asked says nothing.
            assert_eq!(looked.decision.kept, (!looked.cuts.is_empty()).then_some(true));
            // Nobody who was silent would be content with what it would be shown now.
            for agent in (0..8).filter(|agent| !asked[*agent]) {
                let shown = hand.shown(agent);
                assert!(hand.oracles[agent].loss(&shown) > EPSILON, "problem {seed}");
                held_in_silence += u32::from(shown != hand.server.weights());
            }
        }
    }
    assert!(held_in_silence > 1000, "{held_in_silence}");
}

#[test]
fn only_agents_that_are_held_cost_a_vector() {
    let (oracles, _, start) = bowls(3, 8, 12);
    let mut hand = ByHand::new(&oracles, &start, Mean::default(), 0.05);
    let mut counts = BTreeSet::new();
    for _ in 0..200 {
        let looked = hand.round(|_| true);
        let state = serde_json::to_string(&hand.server.state()).unwrap();
        let vectors = state.matches("\"along\"").count() + state.matches("\"fixed\"").count();
        assert_eq!(vectors, looked.decision.split.d.len());
        counts.insert(vectors);
    }
    assert!(counts.contains(&0) && counts.len() > 3, "{counts:?}");
}

#[test]
fn with_gradients_that_are_too_short_somebody_is_lost() {
    let lost = |honesty: f64| -> usize {
        let mut lost = 0;
        for seed in 0..10 {
            let (oracles, _, start) = bowls(seed, 6, 10);
            let mut hand = ByHand::new(&oracles, &start, Mean::default(), 0.05);
            hand.honesty = honesty;
            (0..200).for_each(|_| lost += hand.round(|_| true).left);
        }
        lost
    };
    assert_eq!(lost(1.0), 0);
    assert!(lost(0.3) > 0);
}

/// `ln(1 + w²)`, which is not convex: it falls faster and faster.
struct Valley;

impl Oracle for Valley {
    fn loss(&self, weights: &[f64]) -> f64 {
        (weights[0] * weights[0]).ln_1p()
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        gradient[0] = 2.0 * weights[0] / (1.0 + weights[0] * weights[0]);
        self.loss(weights)
    }
}

#[test]
fn where_losses_are_not_convex_a_long_step_can_lose_somebody_and_short_ones_are_learnt_from() {
    let lost = |step_size: f64| -> usize {
        let mut hand =
            ByHand::new(&[Arc::new(Valley)], &[10.0], Rule::from(Mean::default()), step_size);
        (0..3000).map(|_| hand.round(|_| true).left).sum()
    };
    assert_eq!(lost(50.0), 1, "predicted 2.7, in truth below ε");
    assert_eq!(lost(0.05), 0);
}

/// A hinge with its corner rounded: zero below zero, `t²` to one half, then straight, of `t = w + shift`.
/// Convex, and 2-smooth.
struct Hinge {
    shift: f64,
}

impl Oracle for Hinge {
    fn loss(&self, weights: &[f64]) -> f64 {
        let t = (weights[0] + self.shift).max(0.0);
        if t > 0.5 { t - 0.25 } else { t * t }
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        gradient[0] = (2.0 * (weights[0] + self.shift)).clamp(0.0, 1.0);
        self.loss(weights)
    }
}

/// Two hinges: what satisfies the second satisfies the first.
fn nested(shift: f64) -> Instance {
    let hinge = |shift| Arc::new(Hinge { shift }) as Arc<dyn Oracle>;
    Instance {
        oracles: vec![hinge(0.0), hinge(shift)],
        start: vec![0.6],
        lipschitz: Some(1.0),
        smoothness: Some(2.0),
        epsilon: EPSILON,
        step_size: 1.0,
        delta: 0.05,
    }
}

#[test]
fn an_agent_that_is_deeply_content_is_never_certified_however_long_it_is_tried() {
    let until_content = |shift: f64, rounds: u32| {
        let instance = nested(shift);
        let policy = preview(|preview| {
            (preview.delta, preview.until) = (instance.delta, Until::Content);
            preview.smoothness = instance.smoothness;
        });
        run(&instance, Level::new(instance.delta), policy, &Behaviour::default(), rounds)
    };
    // Claim 3 bounds the rounds until every cut is at its level by (D·G/δ)², with D = 2.6 and G = 1.
    let deep = until_content(2.0, 3000);
    assert_eq!(
        (deep.left.len(), deep.stop, deep.everybody_content),
        (0, StopReason::RoundLimit, true)
    );
    assert_ne!(deep.landed, Some(Landing::Certified));
    // The converse: not as deep, the first agent is certified, and soon.
    let shallow = until_content(0.3, 100);
    assert_eq!((shallow.left.len(), shallow.landed), (0, Some(Landing::Certified)));
    // What divides the two is claim 2's limit on how content an agent may be.
    let depth = |shift: f64| {
        let instance = nested(shift);
        let mut hand = ByHand::new(&instance.oracles, &instance.start, Level::new(DELTA), 1.0);
        let last = (0..200).map(|_| hand.round(|_| true)).last().unwrap();
        assert!(
            instance.oracles.iter().all(|oracle| oracle.loss(hand.server.weights()) <= EPSILON)
        );
        let (cut, slope) = last.cuts[0];
        (EPSILON - cut, 2.0 * slope * slope / 2.0)
    };
    let ((deep, most), (shallow, allowed)) = (depth(2.0), depth(0.3));
    assert!(deep > most && shallow < allowed, "{deep}, {most}; {shallow}, {allowed}");
}

/// Claim 2's condition, from both sides, for what one report proves about its agent.
#[test]
fn a_report_certifies_its_agent_only_at_the_depths_that_are_said() {
    let (mut certified, mut refused) = (0, 0);
    for seed in 0..20_000 {
        let rng = &mut Seed(seed).stream("depths", 0, 0);
        let share = |of: f64| 0.5 * (of + 1.0);
        let dim = 1 + seed as usize % 4;
        let (gradient, offset, scale) = (random(rng, dim), random(rng, dim), random(rng, 4));
        let (smooth, delta) = (0.1 + 3.0 * share(scale[0]), 0.1 * share(scale[1]));
        let square = dot(&gradient, &gradient);
        let upper = |loss: f64, way: &[f64]| {
            loss + dot(&gradient, way) + 0.5 * smooth * dot(way, way) - EPSILON
        };
        // Shown a loss at or above the floor, any way from there to the model.
        let loss = EPSILON + delta * (1.0 + f64::from(u8::from(seed % 3 == 0)) * share(scale[2]));
        let depth = EPSILON - loss - dot(&gradient, &offset);
        if upper(loss, &offset) <= 0.0 {
            certified += 1;
            assert!(smooth * (delta + depth).powi(2) <= 2.0 * square * depth * (1.0 + 1e-9));
            assert!(delta <= square / (2.0 * smooth) * (1.0 + 1e-9), "{delta}");
            assert!(depth < 2.0 * square / smooth, "{depth}");
        } else {
            refused += 1;
        }
        // Shown its floor, straight down its gradient: every depth from δ on is certified up to the limit.
        let most = 2.0 * square / smooth;
        if delta <= square / (2.0 * smooth) {
            let down = |depth: f64| -> Vec<f64> {
                gradient.iter().map(|g| -(delta + depth) / square * g).collect()
            };
            let depth = delta + share(scale[3]) * (most - 4.0 * delta);
            assert!(upper(EPSILON + delta, &down(depth)) <= 1e-12, "{depth}");
            assert!(upper(EPSILON + delta, &down(most)) > 0.0, "the limit itself is beyond");
        }
    }
    assert!(certified > 500 && refused > 500, "{certified}, {refused}");
}

fn run(
    instance: &Instance,
    rule: impl Into<Rule>,
    policy: impl Into<Policies>,
    behaviour: &Behaviour,
    rounds: u32,
) -> Summary {
    let epsilon = vec![instance.epsilon; instance.oracles.len()];
    let federation = Federation::new(instance, &epsilon, behaviour).unwrap();
    let server = Server::new(instance.start.clone(), rule, instance.step_size).unwrap();
    let server = server.with_policy(policy).unwrap();
    let mut session = Session::new(server, federation, rounds, About::default()).unwrap();
    session.run(&mut []).unwrap().unwrap()
}

#[test]
fn the_problems_that_no_single_broadcast_solves_keep_everybody() {
    for problem in [
        Problem::Observation3(Observation3::default()),
        Problem::Observation4(Observation4::default()),
    ] {
        let instance = problem.build(Seed(0)).unwrap();
        let threshold = Behaviour::default();
        let alone = run(&instance, Mean::default(), Policies::default(), &threshold, 5000);
        assert!(!alone.left.is_empty(), "{problem:?}: averaging loses somebody");
        for rule in [Rule::from(Mean::default()), Rule::from(Level::new(instance.delta))] {
            let name = rule.name().to_owned();
            let policy = preview(|preview| preview.delta = instance.delta);
            let kept = run(&instance, rule, policy, &threshold, 5000);
            assert_eq!(kept.left, [], "{problem:?} under {name}");
            assert_eq!(kept.guarantee, Some(Guarantee::Certified), "{problem:?} under {name}");
            // Observation 4 has kinks: from its side of the strip an agent cannot see the other, so
            // its cuts bring nobody back, and nothing is certified about what is delivered.
            match &problem {
                Problem::Observation3(_) => {
                    assert!(kept.everybody_content, "{name}: {:?}", kept.score.loss)
                }
                _ => assert_ne!(kept.landed, Some(Landing::Certified), "{name}"),
            }
        }
    }
}

#[test]
fn a_lie_within_the_margin_is_harmless_and_one_beyond_it_is_not() {
    let mut lying = Lying::default();
    lying.offset = 0.5;
    let liars = Behaviour::Lying(lying);
    let (mut within, mut beyond) = (0, 0);
    for seed in 0..10 {
        let huber = Huber { agents: 5, dim: 10, samples: 4, start: None };
        let instance = Problem::Huber(huber).build(Seed(seed)).unwrap();
        let lost = |margin: f64| {
            let policy = preview(|preview| preview.margin = margin);
            let summary = run(&instance, Mean::default(), policy, &liars, 500);
            assert_eq!(summary.guarantee, Some(Guarantee::Estimated), "no proof about liars");
            summary.left.len()
        };
        within += lost(0.55);
        beyond += lost(0.3);
    }
    assert_eq!(within, 0);
    assert!(beyond >= 10, "{beyond}");
}

#[test]
fn what_cannot_be_proven_is_not_called_certified() {
    let hinge = SmoothedHinge { agents: 4, dim: 8, samples: 4, start: None };
    let instance = Problem::SmoothedHinge(hinge).build(Seed(0)).unwrap();
    let guarantee = |by: By, delta: f64| {
        let policy = preview(|preview| (preview.by, preview.delta) = (by, delta));
        run(&instance, Level::new(DELTA), policy, &Behaviour::default(), 60).guarantee
    };
    assert_eq!(guarantee(By::Auto, DELTA), Some(Guarantee::Certified));
    assert_eq!(guarantee(By::Stale, DELTA), Some(Guarantee::Certified), "seen to stay there");
    assert_eq!(guarantee(By::Rewind, DELTA), Some(Guarantee::Estimated));
    assert_eq!(guarantee(By::Noise, DELTA), Some(Guarantee::Estimated));
    assert_eq!(guarantee(By::Auto, 0.0), Some(Guarantee::Estimated), "a floor of ε holds nobody");
}

#[test]
fn the_last_round_says_whether_it_landed_whatever_the_pace_is_spread_over() {
    let huber = Huber { agents: 4, dim: 10, samples: 4, start: None };
    let instance = Problem::Huber(huber).build(Seed(1)).unwrap();
    let landed = |rounds: u32, over: Option<u32>, until: Until| {
        let policy = preview(|preview| {
            (preview.over, preview.until, preview.pace) = (over, until, 0.05);
            preview.smoothness = instance.smoothness;
        });
        run(&instance, Level::new(DELTA), policy, &Behaviour::default(), rounds).landed
    };
    assert_eq!(landed(200, Some(5), Until::Content), Some(Landing::Certified));
    assert_eq!(landed(1, Some(5), Until::Rounds), Some(Landing::No), "after one step");
    assert_ne!(landed(200, Some(5), Until::Rounds), Some(Landing::No));
    assert_ne!(landed(200, None, Until::Rounds), Some(Landing::No));
}
