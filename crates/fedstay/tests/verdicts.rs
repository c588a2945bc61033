//! What a run is called: a verdict never sounds better than the model is.

mod common;

use common::{Setting, play};
use fedstay::ledger::{Ended, Ledger};
use fedstay::problem::{Federation, Huber, Instance, Problem};
use fedstay::record::{AgentSummary, Constant, HeaderAgent, Summary};
use fedstay::verdict::{Empty, Verdict};
use fedstay::{
    About, AdaGd, AgentAssessment, AgentId, Assessment, Behaviour, Mean, Measure, Policies, Retain,
    Rule, Score, Seed, Server, Session, StopReason,
};

fn instance() -> Instance {
    Problem::Huber(Huber::default()).build(Seed(0)).unwrap()
}

fn summary(rule: impl Into<Rule>, step_size: f64, rounds: u32) -> Summary {
    let instance = instance();
    let setting = Setting {
        rule: rule.into(),
        policy: Policies::default(),
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
    let content = averaged.agents.iter().filter(|agent| agent.score.loss <= agent.epsilon).count();
    assert_eq!((averaged.content as usize, averaged.satisfied()), (content, content));
}

/// How a run ended of which only what was assessed is known.
fn ended<'a>(server: &'a Server, assessment: &'a Assessment, roll: &'a [HeaderAgent]) -> Ended<'a> {
    let (agents, stop) = (assessment.agents.len(), StopReason::TooFew);
    let measures = Measure::usual();
    Ended { server, assessment, measures, roll, agents, stop, proves: false }
}

#[test]
fn where_nobody_took_part_nobody_is_called_content() {
    let server = Server::new(vec![0.0], Mean::default(), 0.1).unwrap();
    let assessment = Assessment { agents: vec![], population: None, constant: None };
    let ended = ended(&server, &assessment, &[]);
    let summary = Ledger::default().summary(&ended, &About::default());
    assert_eq!((summary.verdict, summary.everybody_content), (Verdict::Empty, false));
    assert!(summary.warnings[0].contains("nobody took part"), "{:?}", summary.warnings);
}

/// Plays the rule with a target loss of its own for every agent.
fn with_targets(epsilon: &[f64], rule: impl Into<Rule>, step_size: f64, rounds: u32) -> Summary {
    let instance = instance();
    let federation = Federation::new(&instance, epsilon, &Behaviour::default()).unwrap();
    let server = Server::new(instance.start.clone(), rule, step_size).unwrap();
    let about = About { behaviour: Behaviour::default().name().into(), ..About::default() };
    Session::new(server, federation, rounds, about).unwrap().run(&mut []).unwrap().unwrap()
}

#[test]
fn agents_content_with_the_start_are_counted_and_the_run_is_not_benign() {
    // Two agents want next to nothing, the others what one model gives them all.
    let instance = instance();
    let mut epsilon = vec![instance.epsilon; instance.oracles.len()];
    (epsilon[1], epsilon[3]) = (1e3, 1e3);
    let mut rule = Retain::new(instance.delta);
    rule.smoothness = instance.smoothness;
    let kept = with_targets(&epsilon, rule, instance.step_size, 10_000);
    assert!(kept.everybody_content && kept.leavers() == 2, "the test needs both: {:?}", kept.left);
    assert_eq!(kept.verdict, Verdict::AtStart);
    assert_eq!(kept.content_at_start, [AgentId(1), AgentId(3)]);
    let again: Summary = serde_json::from_value(serde_json::to_value(&kept).unwrap()).unwrap();
    assert_eq!(again.content_at_start, kept.content_at_start);
}

#[test]
fn a_run_in_which_nobody_trained_a_round_is_empty() {
    let everybody = with_targets(&vec![1e3; instance().oracles.len()], Mean::default(), 0.1, 9);
    assert_eq!(everybody.content_at_start.len(), everybody.agents.len());
    assert!(everybody.everybody_content, "it was called benign");
    assert_eq!((everybody.verdict, everybody.empty), (Verdict::Empty, Some(Empty::NobodyTrained)));
    // Those who never take a step deliver what they began with, whatever was reported.
    let still = summary(Mean::default(), f64::MIN_POSITIVE * 1e-15, 3);
    assert_eq!((still.verdict, still.empty), (Verdict::Empty, Some(Empty::NoStep)));
    assert!(still.left.is_empty() && still.agents.iter().all(|agent| agent.entry.reports == 3));
}

#[test]
fn a_model_no_better_than_a_constant_one_is_empty_whoever_left() {
    let server = Server::new(vec![0.0], Mean::default(), 0.1).unwrap();
    let line = |text: &str| {
        let more = r#""step_size":0.1,"step_norm":1"#;
        serde_json::from_str(&format!("{{{more},{text}}}")).unwrap()
    };
    let mut ledger = Ledger::default();
    ledger.add(&line(r#""round":1,"agents":[0,1],"loss":[0.8,0.8]"#));
    ledger.add(&line(r#""round":2,"agents":[1],"loss":[0.7],"left":[0]"#));
    let verdict = |constant: Option<f64>, loss: f64| {
        let agent = |id| AgentAssessment {
            id: AgentId(id),
            epsilon: 0.75,
            behaviour: None,
            score: Score::new(loss),
            as_of: None,
            held_back: None,
        };
        let constant = constant.map(|loss| Constant(Score::new(loss)));
        let assessment = Assessment {
            agents: vec![agent(0), agent(1)],
            population: None,
            constant: constant.clone(),
        };
        let summary = ledger.summary(&ended(&server, &assessment, &[]), &About::default());
        assert_eq!(summary.constant, constant);
        let warned = summary.warnings.iter().any(|said| said.contains("everybody the same answer"));
        assert_eq!(warned, summary.verdict == Verdict::Empty, "{:?}", summary.warnings);
        // Two warnings do not advise different things.
        let advice = summary.warnings.join(" ").matches("; try ").count();
        assert!(advice <= 1, "{:?}", summary.warnings);
        (summary.verdict, summary.empty)
    };
    let empty = (Verdict::Empty, Some(Empty::Constant));
    assert_eq!(verdict(None, 0.7), (Verdict::Benign, None), "nobody can say");
    assert_eq!(verdict(Some(0.9), 0.7), (Verdict::Benign, None));
    assert_eq!(verdict(Some(0.7), 0.7), empty);
    assert_eq!(verdict(Some(0.6), 0.7), empty);
    assert_eq!(verdict(Some(0.6), 0.8), empty, "it fails everybody as well");
}

/// Three agents that are content; the second told its loss in this round, if in an earlier one.
fn three_content(second: Option<u32>) -> Assessment {
    let agent = |id| AgentAssessment {
        id: AgentId(id),
        epsilon: 0.5,
        behaviour: None,
        score: Score::new(0.4),
        as_of: second.filter(|_| id == 1),
        held_back: None,
    };
    Assessment { agents: (0..3).map(agent).collect(), population: None, constant: None }
}

#[test]
fn names_stand_in_the_summary_and_in_its_warnings() {
    let server = Server::new(vec![0.0], AdaGd::default(), 0.1).unwrap();
    let mut ledger = Ledger::default();
    for text in [
        r#""round":1,"agents":[1,2],"loss":[0.8,0.9],"left":[0]"#,
        r#""round":2,"agents":[2],"loss":[0.8],"left":[1]"#,
    ] {
        let line = format!(r#"{{"step_size":0.1,"step_norm":1,{text}}}"#);
        ledger.add(&serde_json::from_str(&line).unwrap());
    }
    let assessment = three_content(Some(1));
    let listed = |name: Option<&str>| {
        let of = |(id, name): (u64, Option<&str>)| HeaderAgent {
            id: AgentId(id),
            epsilon: 0.5,
            name: name.map(Into::into),
        };
        [(0, Some("NSW")), (1, Some("St Mary")), (2, name)].map(of)
    };
    let roll = listed(None);
    let summary = ledger.summary(&ended(&server, &assessment, &roll), &About::default());
    let names: Vec<String> = summary.agents.iter().map(AgentSummary::called).collect();
    assert_eq!(names, ["NSW", "St Mary", "agent 2"]);
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["agents"][1]["name"], "St Mary");
    assert!(json["agents"][2].get("name").is_none(), "no name is no field");
    let said = summary.warnings.join("\n");
    assert!(said.contains("the first step: NSW;") && said.contains("last told: St Mary"), "{said}");
    // Without names all reads as before.
    let summary = ledger.summary(&ended(&server, &assessment, &[]), &About::default());
    let said = summary.warnings.join("\n");
    assert!(
        said.contains("the first step: agent 0;") && said.contains("last told: agent 1"),
        "{said}"
    );
}

#[test]
fn a_run_that_foresaw_none_of_its_departures_says_what_to_set() {
    let told = |rule: Rule, foreseen: bool, behaviour: &str, exact_gradients: bool| {
        let server = Server::new(vec![0.0], rule, 0.1).unwrap();
        let mut ledger = Ledger::default();
        let d = if foreseen { "[0]" } else { "[]" };
        for text in [
            format!(r#""round":1,"agents":[0,1,2],"loss":[0.8,0.8,0.9],"d":{d}"#),
            r#""round":2,"agents":[2],"loss":[0.8],"left":[0,1]"#.to_owned(),
        ] {
            let line = format!(r#"{{"step_size":0.1,"step_norm":1,{text}}}"#);
            ledger.add(&serde_json::from_str(&line).unwrap());
        }
        let assessment = three_content(None);
        let about = About { behaviour: behaviour.into(), exact_gradients, ..About::default() };
        ledger.summary(&ended(&server, &assessment, &[]), &about).warnings.join(" ")
    };
    let said = |rule, in_d, behaviour| told(rule, in_d, behaviour, false);
    let none = said(AdaGd::default().into(), false, "threshold");
    assert!(none.contains("2 of 3 left and none of them was predicted"), "{none}");
    assert!(none.contains("local.exact_gradient") && none.contains("local.batch"), "{none}");
    let some = said(Retain::new(0.02).into(), true, "threshold");
    assert!(some.contains("2 of 3 left and 1 of them was not predicted"), "{some}");
    // What is so already is no advice.
    let exact = told(AdaGd::default().into(), false, "threshold", true);
    assert!(exact.contains("none of them was predicted"), "{exact}");
    assert!(exact.contains("lower step_size") && !exact.contains("local."), "{exact}");
    // Averaging promises nothing, and who leaves for another reason cannot be predicted.
    for quiet in [
        said(Mean::default().into(), false, "threshold"),
        said(AdaGd::default().into(), false, "withdrawing"),
    ] {
        assert!(!quiet.contains("predicted"), "{quiet}");
    }
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
fn losses_that_rose_after_departures_are_not_simply_called_a_divergence() {
    let server = Server::new(vec![0.0], Mean::default(), 0.1).unwrap();
    let said = |left: &str| {
        let mut ledger = Ledger::default();
        for text in [
            r#""round":1,"agents":[0,1],"loss":[0.8,0.8]"#.to_owned(),
            format!(r#""round":2,"agents":[1],"loss":[0.7],"left":{left}"#),
        ] {
            let line = format!(r#"{{"step_size":0.1,"step_norm":1,{text}}}"#);
            ledger.add(&serde_json::from_str(&line).unwrap());
        }
        let agent = |id, loss| AgentAssessment {
            id: AgentId(id),
            epsilon: 0.75,
            behaviour: None,
            score: Score::new(loss),
            as_of: None,
            held_back: None,
        };
        let agents = vec![agent(0, 3.0), agent(1, 0.5)];
        let assessment = Assessment { agents, population: None, constant: None };
        ledger.summary(&ended(&server, &assessment, &[]), &About::default()).warnings.join(" ")
    };
    let (kept, lost) = (said("[]"), said("[0]"));
    assert!(kept.contains("the losses ROSE, training diverged:"), "{kept}");
    assert!(
        lost.contains("the losses ROSE") && !lost.contains("ROSE, training diverged"),
        "{lost}"
    );
    assert!(lost.contains("a rule that keeps agents"), "{lost}");
}

#[test]
fn losses_that_rose_are_not_said_to_have_hardly_moved() {
    let diverged = summary(Mean::default(), 1e3, 20);
    let start = diverged.agents.iter().filter_map(|agent| agent.entry.first_loss).sum::<f64>();
    let start = start / diverged.agents.len() as f64;
    assert!(diverged.score.loss.mean > 10.0 * start, "the test needs a divergence");
    assert!(!hardly_moved(&diverged), "{:?}", diverged.warnings);
    assert!(diverged.warnings[0].contains("the losses ROSE"), "{:?}", diverged.warnings);
    assert!(!landed().warnings.iter().any(|warning| warning.contains("ROSE")));
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
