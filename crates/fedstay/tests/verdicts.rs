//! What a run is called: a verdict never sounds better than the model is.

mod common;

use common::{Setting, play};
use fedstay::ledger::{Ended, Ledger};
use fedstay::problem::{Huber, Instance, Problem};
use fedstay::record::Summary;
use fedstay::verdict::Verdict;
use fedstay::{
    About, AdaGd, Assessment, Behaviour, Mean, Policy, Retain, Rule, Seed, Server, StopReason,
};

fn instance() -> Instance {
    Problem::Huber(Huber::default()).build(Seed(0)).unwrap()
}

fn summary(rule: impl Into<Rule>, step_size: f64, rounds: u32) -> Summary {
    let instance = instance();
    let setting = Setting {
        rule: rule.into(),
        policy: Policy::None,
        behaviour: Behaviour::default(),
        step_size,
        epsilon: instance.epsilon,
        rounds,
    };
    play(&instance, setting).0
}

fn landed() -> Summary {
    let instance = instance();
    let mut rule = Retain::new(instance.delta);
    rule.smoothness = instance.smoothness;
    summary(rule, instance.step_size, 10_000)
}

fn hardly_moved(summary: &Summary) -> bool {
    summary.warnings.iter().any(|warning| warning.contains("hardly moved"))
}

#[test]
fn nobody_left_and_nobody_content_has_a_verdict_of_its_own() {
    let settled = summary(AdaGd::default(), instance().step_size, 10_000);
    assert!(settled.left.is_empty());
    assert_eq!((settled.verdict, settled.content), (Verdict::Unsatisfied, 0));
    let landed = landed();
    assert_eq!((landed.verdict, landed.stop), (Verdict::Retained, StopReason::Landed));
    assert_eq!(landed.content as usize, landed.agents.len());
    let averaged = summary(Mean::default(), instance().step_size, 10_000);
    let content = averaged.agents.iter().filter(|agent| agent.loss <= agent.epsilon).count();
    assert_eq!((averaged.content as usize, averaged.satisfied()), (content, content));
}

#[test]
fn where_nobody_took_part_nobody_is_called_content() {
    let server = Server::new(vec![0.0], Mean::default(), 0.1).unwrap();
    let assessment = Assessment { agents: vec![], population: None };
    let ended = Ended {
        server: &server,
        assessment: &assessment,
        agents: 0,
        stop: StopReason::TooFew,
        proves: false,
    };
    let summary = Ledger::default().summary(&ended, &About::default());
    assert_eq!((summary.verdict, summary.everybody_content), (Verdict::Unknown, false));
    assert!(summary.warnings[0].contains("nobody took part"), "{:?}", summary.warnings);
}

#[test]
fn a_summary_from_before_the_count_is_counted_again() {
    let landed = landed();
    let mut old = serde_json::to_value(&landed).unwrap();
    old.as_object_mut().unwrap().remove("content");
    let old: Summary = serde_json::from_value(old).unwrap();
    assert_eq!(old.satisfied(), landed.agents.len());
}

#[test]
fn a_run_whose_losses_hardly_moved_warns() {
    let still = summary(Mean::default(), 1e-9, 3);
    assert!(hardly_moved(&still), "{:?}", still.warnings);
    assert_eq!(still.verdict, Verdict::Unsatisfied);
    assert!(!hardly_moved(&landed()));
    let settled = summary(AdaGd::default(), instance().step_size, 10_000);
    assert!(!hardly_moved(&settled), "it came near: {:?}", settled.warnings);
}

#[test]
fn every_verdict_and_stop_reason_is_listed_once_under_its_own_name() {
    let verdicts: std::collections::BTreeSet<&str> = Verdict::ALL.map(Verdict::name).into();
    assert_eq!(verdicts.len(), Verdict::ALL.len());
    for verdict in Verdict::ALL {
        let json = serde_json::to_value(verdict).unwrap();
        assert_eq!(json, verdict.name(), "the name is the one in JSON");
    }
    for reason in StopReason::ALL {
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
    }
}
