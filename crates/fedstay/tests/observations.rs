//! The paper's observations, each with its converse, so that the test can fail.

mod common;

use common::{Setting, play};
use fedstay::behaviour::{Behaviour, Never};
use fedstay::policy::{EarlyStop, KeepBest};
use fedstay::problem::{
    Instance, Observation1, Observation2, Observation3, Observation4, Problem, RedBlue,
};
use fedstay::rule::{MinibatchSgd, OnSettled};
use fedstay::verdict::Verdict;
use fedstay::{AdaGd, Mean, Policies, Rule, Seed, StopReason};

fn build(problem: Problem) -> Instance {
    problem.build(Seed(0)).unwrap()
}

fn setting(instance: &Instance, rule: impl Into<Rule>) -> Setting {
    Setting {
        rule: rule.into(),
        policy: Policies::default(),
        behaviour: Behaviour::default(),
        step_size: instance.step_size,
        epsilon: instance.epsilon,
        rounds: 20_000,
    }
}

fn ada(instance: &Instance) -> AdaGd {
    AdaGd { delta: instance.delta, ..AdaGd::default() }
}

fn every_rule(instance: &Instance) -> Vec<Rule> {
    vec![
        Mean::default().into(),
        MinibatchSgd::default().into(),
        ada(instance).into(),
        AdaGd { on_settled: OnSettled::Halve, ..ada(instance) }.into(),
        AdaGd { projection: false, ..ada(instance) }.into(),
    ]
}

#[test]
fn observation_1_every_departure_is_benign() {
    let instance = build(Problem::Observation1(Observation1::default()));
    let (summary, _) = play(&instance, setting(&instance, Mean::default()));
    // Agent 1 leaves first, agent 0 follows when it is content: both are served.
    assert_eq!(summary.left[0].agent.0, 1);
    assert_eq!(summary.verdict, Verdict::Benign);
}

#[test]
fn observation_1_makes_ada_gd_stall_and_not_spin() {
    let instance = build(Problem::Observation1(Observation1::default()));
    let (summary, moves) = play(&instance, setting(&instance, ada(&instance)));
    assert_eq!((summary.stop, summary.verdict), (StopReason::Stalled, Verdict::Unsatisfied));
    assert!(moves.moved > 0.5 && summary.rounds < 1_000);
    // Off the axis the gradients are independent, and it does not stall at once.
    let off = build(Problem::Observation1(Observation1 { start: Some(vec![1.0, 1.0]) }));
    let (off, moves) = play(&off, setting(&off, ada(&off)));
    assert!(off.verdict.kept_everybody());
    assert!(moves.case_1 > 0, "it moves beside agent 1");
}

#[test]
fn observation_2_no_rule_survives_a_start_in_the_bad_region() {
    let instance = build(Problem::Observation2(Observation2::default()));
    for rule in every_rule(&instance) {
        for step_size in [0.001, 0.1, 0.7] {
            for epsilon in [0.01, 0.12, 0.4] {
                let setting = Setting { step_size, epsilon, ..setting(&instance, rule.clone()) };
                let (summary, _) = play(&instance, setting);
                assert!(
                    summary.score.loss.mean >= 0.5 - 1e-12,
                    "{rule:?}: {}",
                    summary.score.loss.mean
                );
                assert_eq!(summary.verdict, Verdict::Harmful);
                assert!(
                    summary
                        .warnings
                        .iter()
                        .any(|warning| warning.contains("content with the start"))
                );
            }
        }
    }
}

#[test]
fn observation_2_is_about_leaving_and_about_the_start() {
    let instance = build(Problem::Observation2(Observation2::default()));
    let never = Behaviour::Never(Never {});
    let (stays, _) = play(
        &instance,
        Setting { behaviour: never, step_size: 0.01, ..setting(&instance, Mean::default()) },
    );
    assert!(stays.score.loss.mean < 0.05 && stays.verdict == Verdict::Retained);
    let good = build(Problem::Observation2(Observation2 { start: Some(vec![2.0, 1.0]) }));
    let rule = AdaGd { on_settled: OnSettled::Halve, ..ada(&good) };
    let (kept, _) = play(&good, Setting { step_size: 0.02, ..setting(&good, rule) });
    assert!(kept.verdict.kept_everybody());
    assert!(kept.score.loss.max < good.epsilon + 3.0 * good.delta, "{:?}", kept.score.loss);
}

#[test]
fn observation_3_averaging_is_harmful_for_every_alpha_and_ada_gd_is_not() {
    for alpha in [0.0, 0.5, 1.0, 2.0] {
        let instance = build(Problem::Observation3(Observation3 { alpha, start: None }));
        for step_size in [0.1, 0.01] {
            let (averaged, _) =
                play(&instance, Setting { step_size, ..setting(&instance, Mean::default()) });
            assert_eq!(averaged.verdict, Verdict::Harmful, "α = {alpha}");
            // Agent 1 leaves at some s = w_1 − w_2 + α ≤ ε with w_2 = 1; agent 0 then goes down to
            // ε, and F_1 ends at s + 1 − w_2: the mean is (1 + s)/2.
            let s = summary_s(&averaged.weights.clone().unwrap(), alpha);
            assert!(
                (averaged.score.loss.mean - (1.0 + s) / 2.0).abs() < 1e-9,
                "{}",
                averaged.score.loss.mean
            );
            assert!(averaged.score.loss.mean > 0.4);
        }
        let step_size = instance.theorem_step(instance.delta).unwrap();
        let (kept, moves) =
            play(&instance, Setting { step_size, ..setting(&instance, ada(&instance)) });
        assert_eq!(
            (kept.verdict, kept.stop),
            (Verdict::Unsatisfied, StopReason::Settled),
            "α = {alpha}"
        );
        assert!(
            kept.score.loss.max <= instance.epsilon + 2.0 * instance.delta + 1e-12
                && moves.case_1 > 0
        );
    }
}

/// `s` of the text above, from where averaging ended: `w_2` fell from 1 after agent 1 had left.
fn summary_s(weights: &[f64], alpha: f64) -> f64 {
    weights[0] - 1.0 + alpha
}

#[test]
fn observation_3_early_stop_and_keep_best_fall_short() {
    let instance = build(Problem::Observation3(Observation3::default()));
    // Here leaving out agent 1's gradient is enough: agent 0's alone raises agent 1's loss. The
    // problems on which the projection is what keeps agents are those of the theorem's test.
    let (control, _) =
        play(&instance, setting(&instance, AdaGd { projection: false, ..ada(&instance) }));
    assert!(control.verdict.kept_everybody());
    let early = EarlyStop::default().into();
    let (stopped, _) =
        play(&instance, Setting { policy: early, ..setting(&instance, Mean::default()) });
    assert_eq!((stopped.verdict, stopped.stop), (Verdict::Unsatisfied, StopReason::EarlyStop));
    let best = KeepBest::default().into();
    let (best, _) =
        play(&instance, Setting { policy: best, ..setting(&instance, Mean::default()) });
    let (kept, _) = play(&instance, setting(&instance, ada(&instance)));
    assert!(
        kept.score.loss.max < 0.5 * stopped.score.loss.max
            && kept.score.loss.max < 0.5 * best.score.loss.max
    );
}

#[test]
fn observation_4_small_steps_lose_the_strip_or_stall() {
    let instance = build(Problem::Observation4(Observation4::default()));
    for step_size in [0.01, 0.001] {
        let (averaged, _) =
            play(&instance, Setting { step_size, ..setting(&instance, Mean::default()) });
        assert_eq!(averaged.verdict, Verdict::Harmful);
        assert_eq!(averaged.left[0].agent.0, 0);
        // The numbers were chosen for infinitely small steps.
        assert!(
            (averaged.agents[0].score.loss - 1.0).abs() < 10.0 * step_size,
            "{}",
            averaged.agents[0].score.loss
        );
    }
    // Convexity: ADA-GD loses nobody here either. It has to stop where the gradients are parallel.
    let rounds = 200_000;
    let (stalled, _) = play(&instance, Setting { rounds, ..setting(&instance, ada(&instance)) });
    assert_eq!((stalled.stop, stalled.verdict), (StopReason::Stalled, Verdict::Unsatisfied));
    assert!(!stalled.everybody_content && stalled.agents[1].score.loss > 1.0);
    // It is realizable even so: some weights satisfy both.
    let content = [0.25, 0.0];
    assert!(instance.oracles.iter().all(|oracle| oracle.loss(&content) == 0.0));
}

#[test]
fn figure_1_without_red_the_classifier_fails_red() {
    let instance = build(Problem::RedBlue(RedBlue::default()));
    let (averaged, _) = play(&instance, setting(&instance, Mean::default()));
    assert_eq!(averaged.left[0].agent.0, 0, "red goes first");
    assert_eq!(averaged.verdict, Verdict::Harmful);
    let accuracy = averaged.score.get("accuracy").unwrap();
    assert!((accuracy.min - 0.8).abs() < 1e-12 && (accuracy.mean - 0.9).abs() < 1e-12);
    assert_eq!(averaged.agents[0].score.of("accuracy"), Some(0.8));

    let never = Behaviour::Never(Never {});
    let (ceiling, _) = play(
        &instance,
        Setting { behaviour: never, rounds: 2_000, ..setting(&instance, Mean::default()) },
    );
    assert_eq!(ceiling.score.get("accuracy").unwrap().min, 1.0);
    let (kept, _) = play(&instance, setting(&instance, ada(&instance)));
    assert_eq!(
        (kept.verdict, kept.score.get("accuracy").unwrap().min),
        (Verdict::Unsatisfied, 1.0)
    );
}
