//! Laws that hold for every optimiser, and each against a few lines written another way.

use super::*;
use crate::message::Landing;
use crate::problem::{Federation, Huber, Instance, Problem};
use crate::record::{Guarantee, Summary};
use crate::{
    About, AdaGd, AgentId, Behaviour, Loss, Mean, Policies, Policy, Report, Reports, Retain, Rule,
    Seed, Server, Session, StopReason, Vector,
};
use proptest::prelude::*;

fn every() -> Vec<Optimiser> {
    Optimiser::LIST.iter().map(|entry| Optimiser::named(entry.name).unwrap()).collect()
}

fn server(rule: impl Into<Rule>, optimiser: Optimiser, dimension: usize) -> Server {
    let server = Server::new(vec![0.5; dimension], rule, 0.3).unwrap();
    server.with_optimiser(optimiser).unwrap()
}

fn take(server: &mut Server, losses: &[f64], gradients: &[Vec<f64>]) -> Decision {
    let told = losses.iter().zip(gradients).enumerate();
    let told = told.map(|(id, (loss, g))| Report {
        rates: crate::rule::laws::some_rates(id as u64),
        ..Report::new(AgentId(id as u64), Loss::Exact(*loss).leaves_at(0.2), Vector::F64(g))
    });
    let reports = Reports::new(gradients[0].len(), told.collect()).unwrap();
    server.step(&reports).unwrap()
}

type Told = (Vec<f64>, Vec<Vec<f64>>);

prop_compose! {
    /// Some rounds of one federation.
    fn rounds()(dimension in 1usize..5, agents in 1usize..5)(
        told in prop::collection::vec((
            prop::collection::vec(0.3..3.0f64, agents),
            prop::collection::vec(prop::collection::vec(-2.0..2.0f64, dimension), agents),
        ), 4),
    ) -> Vec<Told> {
        told
    }
}

/// Algorithm 2 of the reference and FedAvgM for one weight, from the mean of what agents send.
fn reference(name: &str, deltas: &[f64]) -> Vec<f64> {
    let (mut m, mut v, tau) = (0.0f64, 1e-3f64 * 1e-3, 1e-3);
    let step = |d: &f64| {
        let d = *d;
        match name {
            "sgd" => return d,
            "momentum" => {
                m = 0.9 * m + d;
                return m;
            }
            "adagrad" => (m, v) = (d, v + d * d),
            "adam" => (m, v) = (0.9 * m + 0.1 * d, 0.99 * v + 0.01 * d * d),
            "yogi" => {
                m = 0.9 * m + 0.1 * d;
                v -= 0.01 * d * d * (v - d * d).signum();
            }
            other => panic!("no reference for {other}"),
        }
        0.01 * m / (v.sqrt() + tau)
    };
    deltas.iter().map(step).collect()
}

proptest! {
    #[test]
    fn each_takes_the_steps_of_its_reference(rounds in rounds()) {
        let dimension = rounds[0].1[0].len();
        for optimiser in every() {
            let name = optimiser.name();
            let mut server = server(Mean::default(), optimiser, dimension);
            let mut taken = Vec::new();
            for (losses, gradients) in &rounds {
                take(&mut server, losses, gradients);
                taken.push(server.displacement().to_vec());
            }
            for index in 0..dimension {
                let mean = |(_, gradients): &Told| {
                    let sum: f64 = gradients.iter().map(|g| g[index]).sum();
                    -0.3 * sum / gradients.len() as f64
                };
                let deltas: Vec<f64> = rounds.iter().map(mean).collect();
                for (taken, expected) in taken.iter().zip(reference(name, &deltas)) {
                    prop_assert!((taken[index] - expected).abs() < 1e-12, "{name}");
                }
            }
        }
    }

    #[test]
    fn a_rate_of_one_is_no_optimiser_and_momentum_without_memory_neither(rounds in rounds()) {
        let dimension = rounds[0].1[0].len();
        let bits = |server: &Server| -> Vec<u64> {
            server.weights().iter().map(|value| value.to_bits()).collect()
        };
        for entry in Rule::LIST {
            let rule = Rule::named(entry.name).unwrap();
            let mut bare = Server::new(vec![0.5; dimension], rule.clone(), 0.3).unwrap();
            let mut plain = server(rule.clone(), Optimiser::default(), dimension);
            let mut forgetful = server(rule, Momentum::new(1.0, 0.0).into(), dimension);
            for (losses, gradients) in &rounds {
                let decision = take(&mut bare, losses, gradients);
                prop_assert_eq!(&take(&mut plain, losses, gradients), &decision);
                take(&mut forgetful, losses, gradients);
                prop_assert_eq!(bits(&bare), bits(&plain));
                prop_assert_eq!(bits(&bare), bits(&forgetful), "{}", entry.name);
                if decision.stop.is_some() {
                    break;
                }
            }
            prop_assert_eq!(
                serde_json::to_string(&bare.state()).unwrap(),
                serde_json::to_string(&plain.state()).unwrap()
            );
        }
    }

    #[test]
    fn a_saved_state_goes_on_as_if_nothing_had_happened(rounds in rounds()) {
        let dimension = rounds[0].1[0].len();
        for optimiser in every() {
            let mut server = server(Mean::default(), optimiser.clone(), dimension);
            take(&mut server, &rounds[0].0, &rounds[0].1);
            let text = serde_json::to_string(&server.state()).unwrap();
            let mut resumed = Server::from_state(serde_json::from_str(&text).unwrap()).unwrap();
            let progress = serde_json::to_string(&server.progress().unwrap()).unwrap();
            let weights = server.weights().to_vec();
            let stateless = Server::new(weights, Mean::default(), 0.3).unwrap();
            let mut stateless = stateless.with_optimiser(optimiser.clone()).unwrap();
            stateless.resume(serde_json::from_str(&progress).unwrap()).unwrap();
            prop_assert_eq!(stateless.state(), server.state());
            if *server.optimiser() != optimiser {
                let smuggled = stateless.clone().with_optimiser(server.optimiser().clone());
                prop_assert!(smuggled.unwrap_err().to_string().contains("server.memory"));
            }
            for (losses, gradients) in &rounds[1..] {
                take(&mut server, losses, gradients);
                take(&mut resumed, losses, gradients);
                prop_assert_eq!(server.state(), resumed.state());
            }
        }
    }

    /// What is promised is promised about the step that is taken: found again from the reports.
    #[test]
    fn kept_is_about_the_step_that_is_taken(rounds in rounds(), rate in 0.1..30.0f64) {
        let dimension = rounds[0].1[0].len();
        for optimiser in [Sgd { lr: rate }.into(), Optimiser::from(Adam::new(rate / 10.0))] {
            let rule = AdaGd { delta: 0.02, ..AdaGd::default() };
            let mut server = server(rule, optimiser, dimension);
            for (losses, gradients) in &rounds {
                let decision = take(&mut server, losses, gradients);
                if decision.stop.is_some() {
                    break;
                }
                let lowest = losses.iter().zip(gradients).map(|(loss, g)| {
                    let along: f64 = g.iter().zip(server.displacement()).map(|(g, s)| g * s).sum();
                    loss + along - 0.2
                });
                let lowest = lowest.fold(f64::INFINITY, f64::min);
                if lowest.abs() > 1e-9 {
                    prop_assert_eq!(decision.kept, Some(lowest > 0.0));
                }
            }
        }
    }
}

#[test]
fn the_list_and_the_enum_are_the_same_and_parameters_are_checked() {
    for (optimiser, entry) in every().into_iter().zip(Optimiser::LIST) {
        assert_eq!(optimiser.name(), entry.name);
        optimiser.check().unwrap();
        let text = serde_json::to_string(&optimiser).unwrap();
        assert!(!text.contains("memory"), "{text}");
        assert_eq!(serde_json::from_str::<Optimiser>(&text).unwrap(), optimiser);
    }
    assert_eq!(Optimiser::named("rmsprop"), None);
    let said = |optimiser: Optimiser| optimiser.check().unwrap_err().to_string();
    assert!(said(Sgd { lr: 0.0 }.into()).contains("server.lr"));
    assert!(said(Momentum::new(1.0, 1.0).into()).contains("server.beta1"));
    let read = |text: &str| serde_json::from_str::<Optimiser>(text).unwrap();
    assert!(said(read(r#"{"optimiser":"adam","beta2":-0.1}"#)).contains("server.beta2"));
    assert!(said(read(r#"{"optimiser":"yogi","tau":0.0}"#)).contains("server.tau"));
}

#[test]
fn a_state_of_another_length_and_a_step_beyond_all_numbers_are_refused() {
    let mut one = server(Mean::default(), Adam::default().into(), 1);
    take(&mut one, &[1.0], &[vec![1.0]]);
    let progress = one.progress().unwrap();
    let mut two = server(Mean::default(), Adam::default().into(), 2);
    let error = two.resume(progress).unwrap_err().to_string();
    assert!(error.contains("adam remembers 1 numbers, the weights have 2"), "{error}");
    let mut huge = server(Mean::default(), Momentum::default().into(), 1);
    let before = huge.state();
    let g = [1e150];
    let report = Report {
        reach: Some(1e300),
        ..Report::new(AgentId(0), Loss::Exact(1.0).leaves_at(0.1), Vector::F64(&g))
    };
    let error = huge.step(&Reports::new(1, vec![report]).unwrap()).unwrap_err();
    assert!(matches!(error, Error::StepOverflow { .. }), "{error}");
    assert_eq!(huge.state(), before);
}

/// A run on a convex problem on which averaging loses somebody.
fn play(rule: impl Into<Rule>, optimiser: Optimiser, policy: impl Into<Policies>) -> Summary {
    let instance: Instance = Problem::Huber(Huber::default()).build(Seed(1)).unwrap();
    let epsilon = vec![instance.epsilon; instance.oracles.len()];
    let federation = Federation::new(&instance, &epsilon, &Behaviour::default()).unwrap();
    let server = Server::new(instance.start.clone(), rule, instance.step_size).unwrap();
    let server = server.with_optimiser(optimiser).unwrap().with_policy(policy).unwrap();
    let mut session = Session::new(server, federation, 400, About::default()).unwrap();
    session.run(&mut []).unwrap().unwrap()
}

/// The policies act on the optimiser's step, so they keep everybody whatever it is; without a policy
/// somebody leaves.
#[test]
fn under_preview_and_guard_nobody_leaves_whatever_the_optimiser() {
    let quick: [Optimiser; 5] = [
        Sgd { lr: 2.0 }.into(),
        Momentum::default().into(),
        Adagrad::new(0.3).into(),
        Adam::new(0.1).into(),
        Yogi::new(0.1).into(),
    ];
    assert!(quick.iter().map(Optimiser::name).eq(Optimiser::LIST.iter().map(|entry| entry.name)));
    for optimiser in quick {
        let name = optimiser.name();
        let alone = play(Mean::default(), optimiser.clone(), Policies::default());
        assert!(!alone.left.is_empty(), "{name} keeps everybody by itself: the test says nothing");
        for policy in ["preview", "guard"] {
            let kept = play(Mean::default(), optimiser.clone(), Policy::named(policy).unwrap());
            assert!(kept.left.is_empty(), "{name}+{}: {:?}", kept.policy, kept.left);
            assert_eq!(kept.guarantee, Some(Guarantee::Certified), "{name}+{}", kept.policy);
        }
    }
}

/// Retain keeps everybody by its own step. An optimiser that goes farther does not, and the run does
/// not say that it is certified.
#[test]
fn a_rule_that_is_overruled_no_longer_certifies() {
    let own = play(Retain::default(), Optimiser::default(), Policies::default());
    assert_eq!((own.left.len(), own.guarantee), (0, Some(Guarantee::Certified)));
    let lost = [1.5, 2.0, 3.0].map(|lr| {
        let overruled = play(Retain::default(), Sgd { lr }.into(), Policies::default());
        assert_eq!(overruled.guarantee, Some(Guarantee::Estimated), "{lr}");
        overruled.left.len()
    });
    assert!(lost.iter().any(|lost| *lost > 0), "{lost:?}");
}

/// A landing is computed for the point at which it ends: it is taken as it is.
#[test]
fn a_landing_is_taken_as_it_is() {
    let mut rule = Retain::default();
    rule.smoothness = Some(1.0);
    let landed = play(rule, Sgd { lr: 0.5 }.into(), Policies::default());
    assert_eq!((landed.stop, landed.landed), (StopReason::Landed, Some(Landing::Certified)));
    assert!(landed.everybody_content, "{landed:?}");
}
