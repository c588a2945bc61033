//! The rules that ADA-GD is measured against: how they cope with awkward rounds and with being
//! saved, and what becomes of the agents under them. Their formulas are tested in
//! `baseline_formulas.rs`.

mod common;
#[path = "common/one_round.rs"]
mod one_round;

use common::{Setting, play};
use fedstay::problem::{Huber, Instance, Problem, RedBlue};
use fedstay::record::Summary;
use fedstay::rule::{
    Afl, FedFv, FedMgdaPlus, MaxFl, MwFed, OnSettled, PcGrad, QFedAvg, Reading, Variant,
};
use fedstay::verdict::Verdict;
use fedstay::{
    AdaGd, AgentId, Behaviour, Loss, Mean, Policies, Report, Reports, Rule, Seed, Server, Vector,
};
use one_round::{EPSILON, ETA, Gradients, reports, server, step};

fn baselines() -> Vec<Rule> {
    vec![
        MwFed::default().into(),
        MwFed::new(4.0, Variant::Load).into(),
        MaxFl::default().into(),
        MaxFl { reading: Reading::Sigmoid, ..MaxFl::default() }.into(),
        QFedAvg::default().into(),
        Afl::default().into(),
        FedMgdaPlus::default().into(),
        FedMgdaPlus { e: 1.0, ..FedMgdaPlus::default() }.into(),
        FedFv::default().into(),
        PcGrad::default().into(),
    ]
}

#[test]
fn awkward_rounds_give_finite_steps() {
    let cases: Vec<(Vec<f64>, Gradients)> = vec![
        (vec![1.0], vec![vec![1.0, -1.0]]),
        (vec![0.0], vec![vec![0.0, 0.0]]),
        (vec![0.0, 0.0], vec![vec![0.0, 0.0], vec![0.0, 0.0]]),
        (vec![0.0, 1.0], vec![vec![0.0, 0.0], vec![3.0, 4.0]]),
        (vec![1.0, 1.0], vec![vec![1.0, 2.0], vec![-1.0, -2.0]]),
        (vec![1.0, 2.0, 3.0], vec![vec![1.0, 2.0], vec![1.0, 2.0], vec![-0.5, -1.0]]),
        (vec![-5.0, 1e300], vec![vec![1e-150, 0.0], vec![-1e120, 1e120]]),
        (vec![1e-300, 1e-320], vec![vec![1e-160, 0.0], vec![-1e-165, 1e-310]]),
    ];
    let extreme: Vec<Rule> = vec![
        QFedAvg { q: 0.3, ..QFedAvg::default() }.into(),
        QFedAvg { q: 1e6, ..QFedAvg::default() }.into(),
        Afl::new(1e308).into(),
        MwFed::new(f64::MAX, Variant::Load).into(),
        FedMgdaPlus { e: 1e300, ..FedMgdaPlus::default() }.into(),
        FedFv::new(0.0, u32::MAX).into(),
        MaxFl { e: 0.0, rho: Some(-1e308), ..MaxFl::default() }.into(),
    ];
    for rule in [baselines(), extreme].concat() {
        for (losses, gradients) in &cases {
            let mut server = server(rule.clone(), 2);
            for round in 0..4 {
                server.step(&reports(losses, gradients)).unwrap();
                let finite = server.weights().iter().all(|value| value.is_finite());
                assert!(finite, "{} on {losses:?}, round {round}", rule.name());
            }
        }
    }
}

#[test]
fn a_parameter_out_of_range_is_refused_by_name() {
    let bad: Vec<(Rule, &str)> = vec![
        (MwFed::new(0.5, Variant::Weight).into(), "rule.c"),
        (MwFed::new(f64::NAN, Variant::Weight).into(), "rule.c"),
        (MaxFl { rho: Some(f64::INFINITY), ..MaxFl::default() }.into(), "rule.rho"),
        (MaxFl { e: -1.0, ..MaxFl::default() }.into(), "rule.e"),
        (QFedAvg { q: -0.1, ..QFedAvg::default() }.into(), "rule.q"),
        (Afl::new(-1.0).into(), "rule.gamma"),
        (FedMgdaPlus { e: f64::NAN, ..FedMgdaPlus::default() }.into(), "rule.e"),
        (FedFv::new(1.5, 1).into(), "rule.alpha"),
        (PcGrad { delta: -1.0, ..PcGrad::default() }.into(), "rule.delta"),
    ];
    for (rule, name) in bad {
        let error = Server::new(vec![0.0], rule, ETA).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn single_precision_reports_are_read_as_they_are() {
    let singles = [[1.5f32, -0.25, 2.0], [-1.0, 0.5, 0.125], [0.75, -2.0, -1.0]];
    let doubles: Gradients = singles.iter().map(|g| g.map(f64::from).to_vec()).collect();
    let losses = [2.0, 0.4, 1.0];
    for rule in baselines() {
        let report = |id: usize| {
            Report::new(
                AgentId(id as u64),
                Loss::Exact(losses[id]).leaves_at(EPSILON),
                Vector::F32(&singles[id]),
            )
        };
        let mut server = server(rule.clone(), 3);
        server.step(&Reports::new(3, (0..3).map(report).collect()).unwrap()).unwrap();
        assert_eq!(server.displacement(), step(rule, &losses, &doubles));
    }
}

#[test]
fn a_server_restored_in_every_round_goes_the_same_way() {
    let gradients: Gradients =
        vec![vec![1.0, -0.5, 0.2], vec![-0.8, 0.3, 1.0], vec![0.1, 0.1, -1.5]];
    for rule in baselines() {
        let mut steady = server(rule, 3);
        let mut restored = steady.clone();
        for round in 0..6u32 {
            let losses = [2.0 / f64::from(round + 1), 0.4, 1.0 + f64::from(round % 2)];
            let all = reports(&losses, &gradients);
            // In the fourth round agent 0 leaves.
            let staying = all.iter().filter(|r| round < 3 || r.agent != AgentId(0));
            let goodbyes = if round == 3 { vec![AgentId(0)] } else { vec![] };
            let sent = Reports::with_goodbyes(3, staying.copied().collect(), goodbyes).unwrap();
            let text = serde_json::to_string(&restored.state()).unwrap();
            restored = Server::from_state(serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!(steady.loads(), restored.loads());
            assert_eq!(steady.step(&sent).unwrap(), restored.step(&sent).unwrap());
            assert_eq!(steady.state(), restored.state(), "{}", steady.rule().name());
        }
    }
}

fn run(instance: &Instance, rule: Rule, behaviour: Behaviour, rounds: u32) -> Summary {
    let (policy, step_size, epsilon) = (Policies::default(), 0.5, 0.1);
    play(instance, Setting { rule, policy, behaviour, step_size, epsilon, rounds }).0
}

fn red_blue() -> Instance {
    Problem::RedBlue(RedBlue::default()).build(Seed(0)).unwrap()
}

#[test]
fn on_random_problems_every_one_of_them_loses_every_agent() {
    for seed in 0..10 {
        let family = Huber { agents: 4, dim: 10, samples: 5, start: None };
        let instance = Problem::Huber(family).build(Seed(seed)).unwrap();
        for rule in baselines() {
            let name = rule.name().to_owned();
            let summary = run(&instance, rule, Behaviour::default(), 3000);
            assert_eq!(summary.left.len(), 4, "{name}, seed {seed}");
        }
        let rule = AdaGd { on_settled: OnSettled::Halve, ..AdaGd::default() };
        let kept = run(&instance, rule.into(), Behaviour::default(), 3000);
        assert!(kept.verdict.kept_everybody(), "seed {seed}");
    }
}

#[test]
fn on_red_and_blue_fairness_delays_the_harm_and_maxfl_hastens_it() {
    let instance = red_blue();
    let red_left = |rule: Rule| {
        let summary = run(&instance, rule, Behaviour::default(), 3000);
        assert_eq!(summary.verdict, Verdict::Harmful);
        assert_eq!(summary.left[0].agent, AgentId(0));
        summary.left[0].round
    };
    let averaging = red_left(Mean::default().into());
    for rule in baselines() {
        red_left(rule);
    }
    // MaxFL pulls at the agent that is nearest to its target loss: across it.
    assert!(red_left(MaxFl::default().into()) < averaging);
    // Those that look at the largest loss turn to blue, and red stays longer.
    assert!(red_left(QFedAvg::default().into()) > 2 * averaging);
    assert!(red_left(Afl::default().into()) > 3 * averaging);
}

#[test]
fn mw_fed_is_averaging_where_the_content_leave_and_helps_the_others_where_they_stay() {
    let instance = red_blue();
    let mean = || Rule::from(Mean::default());
    let weights = || Rule::from(MwFed::default());
    let (left, left_mean) = (
        run(&instance, weights(), Behaviour::default(), 3000),
        run(&instance, mean(), Behaviour::default(), 3000),
    );
    assert_eq!(left.left, left_mean.left);
    assert!((left.score.loss.max - left_mean.score.loss.max).abs() < 1e-12);
    let never = || Behaviour::Never(Default::default());
    let (stay, stay_mean) =
        (run(&instance, weights(), never(), 150), run(&instance, mean(), never(), 150));
    let (even, uneven) = (stay.score.loss, stay_mean.score.loss);
    assert!(even.max < uneven.max && even.min > 2.0 * uneven.min, "{even:?} {uneven:?}");
}
