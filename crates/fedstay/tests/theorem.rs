//! The theorem, and what holds beyond it, on random realizable convex problems with more weights
//! than agents; each claim with the converse on the same problems.

mod common;

use common::{Setting, play};
use fedstay::policy::{EarlyStop, Guard};
use fedstay::problem::{Huber, Instance, Problem, SmoothedHinge};
use fedstay::record::Guarantee;
use fedstay::rule::{Base, Landing, OnSettled};
use fedstay::verdict::Verdict;
use fedstay::{AdaGd, Behaviour, Mean, Policies, Retain, Rule, Seed, StopReason};

const EPSILON: f64 = 0.1;
const DELTA: f64 = 0.1;

/// Problems of both families in many shapes, always with d > M.
fn problems() -> impl Iterator<Item = (u64, Instance)> {
    (0..210).map(|seed| {
        let agents = 2 + seed as usize % 4;
        let dim = agents + 1 + (seed as usize / 4) % 8;
        let samples = 2 + (seed as usize / 2) % 5;
        let problem = if seed % 2 == 0 {
            Problem::Huber(Huber { agents, dim, samples, start: None })
        } else {
            Problem::SmoothedHinge(SmoothedHinge { agents, dim, samples, start: None })
        };
        (seed, problem.build(Seed(seed)).unwrap())
    })
}

fn setting(rule: impl Into<Rule>, step_size: f64, rounds: u32) -> Setting {
    Setting {
        rule: rule.into(),
        policy: Policies::default(),
        behaviour: Behaviour::default(),
        step_size,
        epsilon: EPSILON,
        rounds,
    }
}

#[test]
fn nobody_leaves_and_everybody_ends_within_two_delta() {
    let rule = AdaGd { delta: DELTA, ..AdaGd::default() };
    let (mut settled, mut lost_by_averaging) = (0, 0);
    for (seed, instance) in problems() {
        let step_size = instance.theorem_step(DELTA).unwrap();
        let (summary, moves) = play(&instance, setting(rule.clone(), step_size, 1_000_000));
        assert!(summary.verdict.kept_everybody(), "seed {seed}");
        if summary.stop == StopReason::Stalled {
            // The theorem assumes gradients that stay independent. A run that stalls must have
            // come to a point where they are not.
            let angle = moves.last.findings(Default::default()).smallest_angle.unwrap();
            assert!(angle < 1e-3, "seed {seed} stalled at an angle of {angle}°");
            continue;
        }
        settled += 1;
        assert_eq!(
            summary.stop,
            StopReason::Settled,
            "seed {seed} after {} rounds",
            summary.rounds
        );
        for agent in &summary.agents {
            assert!(
                agent.score.loss > EPSILON && agent.score.loss <= EPSILON + 2.0 * DELTA + 1e-12,
                "seed {seed}"
            );
        }
        let (averaged, _) = play(&instance, setting(Mean::default(), step_size, 20_000));
        lost_by_averaging += u32::from(!averaged.verdict.kept_everybody());
    }
    assert!(settled >= 200, "only {settled} problems met the theorem's assumptions");
    assert!(lost_by_averaging >= 190, "averaging lost somebody on {lost_by_averaging}");
}

#[test]
fn nobody_leaves_far_above_the_theorems_step_while_the_run_still_moves() {
    let (mut moved_beside_somebody, mut lost_by_averaging, mut lost_by_control) = (0, 0, 0);
    for (seed, instance) in problems().take(200) {
        let bound = instance.theorem_step(DELTA).unwrap();
        for factor in [10.0, 100.0] {
            let step_size = factor * bound;
            // Halving, because a large step alone puts everybody in D at once.
            let rule = AdaGd { delta: 0.02, on_settled: OnSettled::Halve, ..AdaGd::default() };
            let (kept, moves) = play(&instance, setting(rule.clone(), step_size, 2_000));
            assert!(kept.verdict.kept_everybody(), "seed {seed} at {factor} times the bound");
            moved_beside_somebody += u32::from(moves.case_1 > 0);
            let (averaged, _) = play(&instance, setting(Mean::default(), step_size, 2_000));
            lost_by_averaging += u32::from(!averaged.verdict.kept_everybody());
            let control = AdaGd { projection: false, ..rule };
            let (control, _) = play(&instance, setting(control, step_size, 2_000));
            lost_by_control += u32::from(!control.verdict.kept_everybody());
        }
    }
    assert!(moved_beside_somebody >= 380, "case 1 moved in {moved_beside_somebody} of 400");
    assert!(lost_by_averaging >= 320, "averaging lost somebody in {lost_by_averaging} of 400");
    assert!(lost_by_control >= 40, "the control lost somebody in {lost_by_control} of 400");
}

#[test]
fn early_stopping_loses_nobody_on_convex_problems_and_ends_farther_away() {
    let mut worse = 0;
    for (seed, instance) in problems().take(60) {
        let step_size = instance.theorem_step(DELTA).unwrap();
        let policy = EarlyStop::default().into();
        let (stopped, _) =
            play(&instance, Setting { policy, ..setting(Mean::default(), step_size, 20_000) });
        assert!(stopped.verdict.kept_everybody(), "seed {seed}");
        let rule = AdaGd { delta: 0.02, on_settled: OnSettled::Halve, ..AdaGd::default() };
        let (kept, _) = play(&instance, setting(rule, 10.0 * step_size, 20_000));
        worse += u32::from(stopped.score.loss.max > kept.score.loss.max);
    }
    assert!(worse >= 50, "early stopping was worse for the worst agent on {worse} of 60");
}

#[test]
fn retain_keeps_everybody_in_far_fewer_rounds() {
    let (mut settled, mut problems_seen, mut faster) = (0, 0, 0);
    for (seed, instance) in problems().take(120) {
        let delta = 0.02;
        let smooth = instance.smoothness.unwrap();
        let mut rule = Retain::new(delta);
        rule.landing = false;
        let (kept, _) = play(&instance, setting(rule, 1.0 / smooth, 5_000));
        assert!(kept.verdict.kept_everybody(), "seed {seed}");
        problems_seen += 1;
        if kept.stop == StopReason::Settled {
            settled += 1;
            assert!(
                kept.score.loss.max <= EPSILON + 3.0 * delta,
                "seed {seed}: {:?}",
                kept.score.loss
            );
        }
        let ada = AdaGd { delta, ..AdaGd::default() };
        let step = instance.theorem_step(delta).unwrap();
        let (slow, _) = play(&instance, setting(ada, step, 200_000));
        faster += u32::from(kept.rounds * 20 < slow.rounds);
    }
    assert_eq!(settled, problems_seen);
    assert!(
        faster >= 110,
        "20 times fewer rounds than the theorem's on {faster} of {problems_seen}"
    );
}

/// Rounds until everybody is within 3δ of their target loss. Nobody may leave before that.
fn rounds_until_near(instance: &Instance, mut setting: Setting, delta: f64) -> u32 {
    setting.rounds = 1;
    loop {
        let (summary, _) = play(instance, setting.clone());
        assert!(summary.left.is_empty());
        if summary.score.loss.max <= EPSILON + 3.0 * delta {
            return summary.rounds;
        }
        assert!(setting.rounds < 4_000, "never near: {:?}", summary.score.loss);
        setting.rounds += 1 + setting.rounds / 40;
    }
}

/// What keeping everybody costs: the same optimiser with floors and agents that may leave, against
/// itself without floors and agents that never do; and against averaging at 1/H.
#[test]
fn keeping_everybody_costs_few_rounds() {
    let delta = 0.02;
    let (mut against_itself, mut against_averaging, mut seen) = (0.0, 0.0, 0);
    let mut longer_than_averaging = 0;
    for (_, instance) in problems() {
        let step_size = 1.0 / instance.smoothness.unwrap();
        let mut rule = Retain::new(delta);
        rule.landing = false;
        let never = |rule: Rule| Setting {
            behaviour: Behaviour::Never(Default::default()),
            ..setting(rule, step_size, 0)
        };
        let kept = rounds_until_near(&instance, setting(rule.clone(), step_size, 0), delta);
        let mut control = rule;
        control.floors = false;
        let free = rounds_until_near(&instance, never(control.into()), delta);
        let averaging = rounds_until_near(&instance, never(Mean::default().into()), delta);
        let cost = |of: u32| f64::from(kept) / f64::from(of);
        against_itself += cost(free).ln();
        against_averaging += cost(averaging).ln();
        longer_than_averaging += u32::from(cost(averaging) > 1.2);
        seen += 1;
    }
    let mean = |sum: f64| (sum / f64::from(seen)).exp();
    let (itself, averaging) = (mean(against_itself), mean(against_averaging));
    println!(
        "rounds of retain over those of itself without floors {itself:.2}, of averaging {averaging:.2} \
         (geometric means of {seen}); over 1.2 times averaging's on {longer_than_averaging}"
    );
    assert!(itself <= 1.2, "keeping everybody costs {itself} times the rounds");
    assert!(averaging <= 0.6, "{averaging} times the rounds of averaging");
    assert!(longer_than_averaging <= 15, "{longer_than_averaging} of {seen}");
}

#[test]
fn retain_is_a_proof_at_any_step_size() {
    let mut lost_without = 0;
    for (seed, instance) in problems().take(100) {
        for factor in [1.0, 1e3, 1e6] {
            let step_size = factor / instance.smoothness.unwrap();
            // The base whose length follows the step size.
            let mut rule = Retain::new(0.02);
            rule.base = Base::Descent;
            let (kept, _) = play(&instance, setting(rule, step_size, 300));
            assert!(kept.verdict.kept_everybody(), "seed {seed} at {factor}");
            assert_eq!(kept.guarantee, Some(Guarantee::Certified), "seed {seed} at {factor}");
            let (averaged, _) = play(&instance, setting(Mean::default(), step_size, 300));
            lost_without += u32::from(!averaged.verdict.kept_everybody());
        }
    }
    assert!(lost_without > 100, "averaging lost somebody in {lost_without} of 300");
}

#[test]
fn retain_lands_certified_on_random_convex_problems() {
    let (mut landed, mut left_by_averaging, mut reverted) = (0, 0, 0);
    for (seed, instance) in problems().take(200) {
        let mut rule = Retain::new(0.02);
        rule.smoothness = instance.smoothness;
        let (summary, moves) =
            play(&instance, setting(rule, 1.0 / instance.smoothness.unwrap(), 20_000));
        assert!(summary.verdict.kept_everybody(), "seed {seed}");
        reverted += u32::from(moves.reverted > 0);
        if summary.stop == StopReason::Landed {
            assert!(summary.everybody_content, "seed {seed} landed, but {:?}", summary.score.loss);
            landed += 1;
        }
        let (averaged, _) = play(&instance, setting(Mean::default(), 0.1, 2_000));
        left_by_averaging += u32::from(averaged.verdict == Verdict::Harmful);
    }
    println!(
        "landed {landed} of 200, went back on {reverted}; averaging harmful on {left_by_averaging}"
    );
    assert!(landed >= 190, "landed certified on {landed} of 200");
    // Where one model satisfies everybody, hardly anything is ever taken back.
    assert!(reverted <= 4, "went back on {reverted} of 200");
}

/// How many of 48 problems of both families `retain` lands, certified, in these shapes (agents, weights), and
/// how many of the others stall.
fn lands_in(shapes: [(usize, usize); 4]) -> (usize, usize) {
    let (mut landed, mut stalled) = (0, 0);
    for (shape, seed) in (0..4).flat_map(|shape| (200..206).map(move |seed| (shape, seed))) {
        let (agents, dim) = shapes[shape];
        for problem in [
            Problem::Huber(Huber { agents, dim, samples: 4, start: None }),
            Problem::SmoothedHinge(SmoothedHinge { agents, dim, samples: 4, start: None }),
        ] {
            let instance = problem.build(Seed(seed)).unwrap();
            let mut rule = Retain::new(0.02);
            // Nobody may be left out for the others' sake.
            (rule.smoothness, rule.bench) = (instance.smoothness, false);
            let step_size = 1.0 / instance.smoothness.unwrap();
            let (summary, _) = play(&instance, setting(rule, step_size, 500));
            assert!(summary.verdict.kept_everybody(), "{problem:?}, seed {seed}");
            let certified = summary.landed == Some(Landing::Certified);
            landed += usize::from(certified);
            stalled += usize::from(summary.stop == StopReason::Stalled);
            // A run with more agents than weights that did not land says why, and no other run does.
            let says =
                summary.warnings.iter().any(|warning| warning.contains("than it has weights"));
            assert_eq!(says, agents > dim && !certified, "{problem:?}: {:?}", summary.warnings);
        }
    }
    (landed, stalled)
}

#[test]
fn retain_lands_with_more_weights_than_agents_and_not_with_more_agents_than_weights() {
    let room = lands_in([(4, 6), (5, 8), (8, 12), (3, 10)]);
    let crowd = lands_in([(6, 4), (10, 3), (20, 5), (50, 5)]);
    println!(
        "certified (stalled) of 48: {} ({}) with more weights than agents, {} ({}) with more agents than \
         weights",
        room.0, room.1, crowd.0, crowd.1
    );
    assert!(room.0 >= 45 && crowd.0 <= 3, "{room:?}, {crowd:?}");
}

#[test]
fn the_guard_keeps_everybody_under_any_rule() {
    let mut acted = 0;
    for (seed, instance) in problems().take(60) {
        for rule in
            [Rule::from(Mean::default()), AdaGd { projection: false, ..AdaGd::default() }.into()]
        {
            let policy: Policies = Guard::default().into();
            let setting = setting(rule, 20.0 * instance.theorem_step(DELTA).unwrap(), 1_000);
            let (kept, moves) = play(&instance, Setting { policy, ..setting });
            assert!(kept.left.is_empty(), "seed {seed}: {:?}", kept.left);
            assert_eq!(kept.guarantee, Some(Guarantee::Certified), "seed {seed}");
            acted += u32::from(kept.guarded.unwrap() > 0.0 && moves.moved > 0.0);
        }
    }
    assert!(acted > 60, "the guard had to act in {acted} of 120 runs");
}
