//! Honest agents on convex problems are never flagged; liars whose lie begins, and shirkers, are.
//! Also the margin: what it takes to keep agents that look ahead.

use fedstay::behaviour::{Foresight, Lying, Shirking};
use fedstay::consistency::{Consistency, Flag, FlagReason};
use fedstay::problem::{Federation, Instance, Problem};
use fedstay::rule::OnSettled;
use fedstay::{
    About, AdaGd, AgentId, Behaviour, Book, Error, Mean, Retain, RoundRecord, Rule, Seed, Server,
    Session,
};
use std::ops::ControlFlow;

fn called(agent: AgentId) -> String {
    fedstay::record::called(agent, None)
}

struct Watch {
    consistency: Consistency,
    flags: Vec<Flag>,
    left: usize,
}

impl Book for Watch {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.flags.extend(self.consistency.look(record));
        // No rule can keep an agent that could do without the federation from the start.
        if record.line.round > 1 {
            self.left += record.line.left.len();
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn play(instance: &Instance, rule: Rule, step: f64, behaviours: Vec<Behaviour>) -> Watch {
    let epsilon = vec![instance.epsilon; instance.oracles.len()];
    let engine = Federation::with_behaviours(instance, &epsilon, behaviours).unwrap();
    let server = Server::new(instance.start.clone(), rule, step).unwrap();
    let mut watch = Watch { consistency: Consistency::new(true), flags: vec![], left: 0 };
    let mut session = Session::new(server, engine, 400, About::default()).unwrap();
    session.run(&mut [&mut watch]).unwrap();
    watch
}

fn problems() -> Vec<(String, Instance)> {
    let mut all = Vec::new();
    for kind in ["observation-1", "observation-3", "observation-4", "red-blue"] {
        all.push((kind.to_owned(), problem(kind, 0)));
    }
    for seed in 0..15 {
        for kind in ["huber", "smoothed-hinge"] {
            all.push((format!("{kind} {seed}"), problem(kind, seed)));
        }
    }
    all
}

fn problem(kind: &str, seed: u64) -> Instance {
    let problem: Problem = serde_json::from_value(serde_json::json!({ "kind": kind })).unwrap();
    problem.build(Seed(seed)).unwrap()
}

fn rules() -> Vec<Rule> {
    let halve = AdaGd { delta: 0.02, on_settled: OnSettled::Halve, ..AdaGd::default() };
    vec![Mean::default().into(), halve.into(), Retain::new(0.02).into()]
}

#[test]
fn honest_agents_on_convex_problems_are_never_flagged() {
    for (name, instance) in problems() {
        for rule in rules() {
            for stretch in [0.1, 1.0, 30.0] {
                let agents = vec![Behaviour::default(); instance.oracles.len()];
                let step = stretch * instance.step_size;
                let watch = play(&instance, rule.clone(), step, agents);
                assert_eq!(watch.flags, [], "{name}, {}, η × {stretch}", rule.name());
                assert!(watch.consistency.warnings(called).is_empty());
            }
        }
    }
}

#[test]
fn a_lie_that_begins_is_flagged_and_only_the_liar() {
    let mut caught = 0;
    for (name, instance) in problems().into_iter().skip(4) {
        let mut agents = vec![Behaviour::default(); instance.oracles.len()];
        let mut liar = Lying::new(0.5);
        liar.within = Some(0.2);
        agents[1] = Behaviour::Lying(liar);
        let watch = play(&instance, rules()[1].clone(), instance.step_size, agents);
        assert!(watch.flags.iter().all(|flag| flag.agent == AgentId(1)), "{name}");
        caught +=
            usize::from(watch.flags.iter().any(|flag| flag.doubt == FlagReason::AboveTangent));
        if let Some(warning) = watch.consistency.warnings(called).first() {
            assert!(warning.contains("agent 1") && warning.contains("not expelled"), "{warning}");
        }
    }
    assert!(caught >= 28, "only {caught} of 30 liars were caught");
}

#[test]
fn a_constant_lie_is_the_true_loss_of_somebody_unless_it_is_absurd() {
    let (mut caught, mut absurd) = (0, 0);
    for (name, instance) in problems().into_iter().skip(4) {
        for (offset, count) in [(0.2, &mut caught), (1e4, &mut absurd)] {
            let mut agents = vec![Behaviour::default(); instance.oracles.len()];
            agents[2] = Behaviour::Lying(Lying::new(offset));
            let watch = play(&instance, rules()[1].clone(), instance.step_size, agents);
            assert!(watch.flags.iter().all(|flag| flag.agent == AgentId(2)), "{name}");
            *count += usize::from(!watch.flags.is_empty());
        }
    }
    assert_eq!((caught, absurd), (0, 30));
}

#[test]
fn a_stale_direction_contradicts_the_losses() {
    let mut caught = 0;
    for (name, instance) in problems().into_iter().skip(4) {
        let mut agents = vec![Behaviour::default(); instance.oracles.len()];
        agents[0] = Behaviour::Shirking(Shirking::default());
        let watch = play(&instance, Mean::default().into(), instance.step_size, agents);
        assert!(watch.flags.iter().all(|flag| flag.agent == AgentId(0)), "{name}");
        caught += usize::from(!watch.flags.is_empty());
    }
    assert!(caught >= 20, "only {caught} of 30 shirkers were caught");
}

#[test]
fn a_horizon_holds_agents_that_look_ahead_as_far_and_not_those_that_look_farther() {
    let (mut plain, mut held, mut farther) = (0, 0, 0);
    for (_, instance) in problems().into_iter().skip(4) {
        let rate = 0.5 / instance.smoothness.unwrap();
        let with = |steps: u32, horizon: f64| {
            let agent = Behaviour::Foresight(Foresight { steps, rate });
            let agents = vec![agent; instance.oracles.len()];
            // Twice what they can gain: gradients change over a step, too.
            let mut rule = Retain::new(0.02);
            (rule.horizon, rule.landing) = (horizon, false);
            play(&instance, rule.into(), 0.1 * instance.step_size, agents).left
        };
        plain += with(3, 0.0);
        held += with(3, 2.0 * 3.0 * rate);
        farther += with(12, 2.0 * 3.0 * rate);
    }
    assert!(plain > 0 && held == 0, "{plain} left without the horizon, {held} with it");
    assert!(farther > 0, "a horizon of 3 steps held agents that look 12 ahead");
}
