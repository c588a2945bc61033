//! Laws that hold for every rule of the list.

use super::*;
use crate::{Loss, Report, Server, Standing, Vector};
use proptest::prelude::*;

fn every_rule() -> Vec<Rule> {
    Rule::LIST
        .iter()
        .map(|entry| serde_json::from_value(serde_json::json!({ "kind": entry.name })).unwrap())
        .collect()
}

#[test]
fn the_list_and_the_enum_are_the_same() {
    for (rule, entry) in every_rule().iter().zip(Rule::LIST) {
        assert_eq!(rule.name(), entry.name);
        assert_eq!(Rule::named(entry.name).as_ref(), Some(rule));
        rule.check().unwrap();
    }
    for alias in Rule::ALIASES {
        let read: Rule = serde_json::from_value(serde_json::json!({ "kind": alias })).unwrap();
        assert_eq!(Rule::named(alias), Some(read));
    }
    assert_eq!(Rule::named("custom"), None);
    assert!(serde_json::from_value::<Rule>(serde_json::json!({ "kind": "custom" })).is_err());
}

#[test]
fn what_keeps_agents_by_a_slack_begins_with_the_same_one() {
    let slacks: Vec<f64> = every_rule().iter().filter_map(Rule::slack).collect();
    assert_eq!(slacks, [SLACK; 2], "ada-gd and retain");
    assert_eq!(Level::default().delta, SLACK, "level aims by it");
    let policies = [crate::policy::Guard::default().delta, crate::policy::Preview::default().delta];
    assert_eq!(policies, [SLACK; 2], "the guard and previews");
}

/// How well an agent's groups are served, for rules that ask.
pub(crate) fn some_rates(agent: u64) -> Option<crate::Rates> {
    let right = [agent % 4, (agent * agent) % 5];
    Some(crate::Rates { right, of: [4, 5], correct: right[0] + right[1] + 1, rows: 10 })
}

#[test]
fn a_rule_that_says_it_fills_its_step_leaves_nothing_of_what_was_there() {
    let (a, b) = ([1.0, 0.2], [-0.4, 1.0]);
    let report = |id, g| Report {
        rates: some_rates(id),
        ..Report::new(AgentId(id), Loss::Exact(2.0).leaves_at(0.1), Vector::F64(g))
    };
    let reports = Reports::new(2, vec![report(0, &a[..]), report(1, &b)]).unwrap();
    let weights = [0.0; 2];
    let (step_size, last_step, reports) = (0.1, 0.0, &reports);
    let initial_step_size = step_size;
    let round =
        Round { number: 1, step_size, initial_step_size, last_step, weights: &weights, reports };
    let over = |mut rule: Rule, mut step: [f64; 2]| {
        rule.aggregate(&round, &mut step).unwrap();
        step
    };
    let fills = |rule: &Rule| over(rule.clone(), [7.0; 2]) == over(rule.clone(), [0.0; 2]);
    let (says, others): (Vec<Rule>, Vec<Rule>) =
        every_rule().into_iter().partition(|rule| rule.facts().fills_step);
    for rule in &says {
        assert!(fills(rule), "{}", rule.name());
    }
    assert!(says.len() == 3 && !others.iter().all(fills), "most add to what is there");
}

/// The rules whose step reads ε, which the law below tests.
const READ_EPSILON: [&str; 6] = ["ada-gd", "retain", "level", "stay", "mw-fed", "maxfl"];

#[test]
fn the_rules_that_say_they_read_epsilon_do() {
    let (a, b) = ([1.0, 0.2], [-0.4, 1.0]);
    let path = |rule: Rule, epsilon: f64| {
        let report = |id, loss, g| Report {
            rates: some_rates(id),
            ..Report::new(AgentId(id), Loss::Exact(loss).leaves_at(epsilon), Vector::F64(g))
        };
        let mut server = Server::new(vec![0.0; 2], rule, 0.1).unwrap();
        for _ in 0..2 {
            let reports = vec![report(0, 0.5, &a[..]), report(1, 2.0, &b)];
            server.step(&Reports::new(2, reports).unwrap()).unwrap();
        }
        server.weights().to_vec()
    };
    for rule in every_rule() {
        let differs = path(rule.clone(), 0.1) != path(rule.clone(), 0.6);
        assert_eq!(differs, rule.facts().reads_epsilon, "{}", rule.name());
        assert_eq!(differs, READ_EPSILON.contains(&rule.name()), "{}", rule.name());
    }
}

prop_compose! {
    fn round()(dimension in 1usize..6, agents in 1usize..6)(
        losses in prop::collection::vec(0.0..3.0f64, agents),
        directions in prop::collection::vec(prop::collection::vec(-2.0..2.0f64, dimension), agents),
    ) -> (Vec<f64>, Vec<Vec<f64>>) {
        (losses, directions)
    }
}

fn reports<'a>(losses: &[f64], directions: &'a [Vec<f64>]) -> Vec<Report<'a>> {
    losses
        .iter()
        .zip(directions)
        .enumerate()
        .map(|(id, (loss, g))| Report {
            rates: some_rates(id as u64),
            ..Report::new(AgentId(id as u64), Loss::Exact(*loss).leaves_at(0.2), Vector::F64(g))
        })
        .collect()
}

proptest! {
    #[test]
    fn a_rule_that_says_it_does_not_read_epsilon_steps_the_same_for_any(
        (losses, directions) in round(),
        epsilons in prop::collection::vec(-1.0..4.0f64, 6),
    ) {
        let dimension = directions[0].len();
        for rule in every_rule().into_iter().filter(|rule| !rule.facts().reads_epsilon) {
            let mut first = Server::new(vec![0.5; dimension], rule, 0.1).unwrap();
            let mut second = first.clone();
            let usual = reports(&losses, &directions);
            let mut other = usual.clone();
            for (report, (loss, epsilon)) in other.iter_mut().zip(losses.iter().zip(&epsilons)) {
                report.standing = Standing::Open { loss: Loss::Exact(*loss), epsilon: *epsilon };
            }
            for _ in 0..3 {
                first.step(&Reports::new(dimension, usual.clone()).unwrap()).unwrap();
                second.step(&Reports::new(dimension, other.clone()).unwrap()).unwrap();
                prop_assert_eq!(first.weights(), second.weights());
            }
        }
    }

    #[test]
    fn steps_are_finite_repeatable_and_blind_to_the_order_of_arrival(
        (losses, directions) in round(),
        turn in 0usize..6,
    ) {
        let dimension = directions[0].len();
        for rule in every_rule() {
            let mut first = Server::new(vec![0.5; dimension], rule, 0.1).unwrap();
            let mut second = first.clone();
            let ordered = reports(&losses, &directions);
            let mut turned = ordered.clone();
            turned.rotate_left(turn % losses.len());
            for _ in 0..3 {
                let a = first.step(&Reports::new(dimension, ordered.clone()).unwrap()).unwrap();
                let b = second.step(&Reports::new(dimension, turned.clone()).unwrap()).unwrap();
                prop_assert_eq!(a, b);
            }
            let bits = |server: &Server| -> Vec<u64> {
                server.weights().iter().map(|value| value.to_bits()).collect()
            };
            prop_assert_eq!(bits(&first), bits(&second));
            prop_assert!(first.weights().iter().all(|value| value.is_finite()));
        }
    }

    #[test]
    fn a_step_stays_in_the_span_of_the_reports((losses, directions) in round()) {
        // Such rules are first-order: the server knows nothing but the reports.
        let dimension = directions[0].len();
        let views: Vec<Vector<'_>> = directions.iter().map(|g| Vector::F64(g)).collect();
        for rule in every_rule() {
            let mut server = Server::new(vec![0.0; dimension], rule, 0.1).unwrap();
            server.step(&Reports::new(dimension, reports(&losses, &directions)).unwrap()).unwrap();
            let mut outside = vec![0.0; dimension];
            let step = server.displacement().to_vec();
            let left = crate::projection::project_sum(&[Vector::F64(&step)], &views, &mut outside);
            prop_assert!(left.after <= 1e-6 * left.before.max(1e-9), "{left:?}");
        }
    }

    /// What agents say is how far they went, `reach · direction`: several local steps and one that is
    /// as long are the same to every rule that does not predict by the direction. With K local steps
    /// of size η everybody reaches K times as far, and so does the step.
    #[test]
    fn a_rule_that_does_not_predict_sees_displacements(
        (losses, directions) in round(),
        reaches in prop::collection::vec(0.01..0.5f64, 6),
        steps in 1u32..30,
    ) {
        let dimension = directions[0].len();
        let predicts = |rule: &Rule| ["ada-gd", "retain", "level", "stay"].contains(&rule.name());
        for rule in every_rule().into_iter().filter(|rule| !predicts(rule)) {
            let mut first = Server::new(vec![0.0; dimension], rule.clone(), 0.1).unwrap();
            let mut second = first.clone();
            let usual = reports(&losses, &directions);
            let longer: Vec<Vec<f64>> = directions
                .iter()
                .zip(&reaches)
                .map(|(g, reach)| g.iter().map(|value| value * reach / 0.1).collect())
                .collect();
            for _ in 0..3 {
                let mut several = usual.clone();
                several.iter_mut().zip(&reaches).for_each(|(r, reach)| r.reach = Some(*reach));
                let mut one = reports(&losses, &longer);
                // The gradient, which forecasts use, is what it was.
                one.iter_mut().zip(&usual).for_each(|(r, usual)| r.gradient = usual.gradient);
                first.step(&Reports::new(dimension, several).unwrap()).unwrap();
                second.step(&Reports::new(dimension, one).unwrap()).unwrap();
                for (a, b) in first.weights().iter().zip(second.weights()) {
                    prop_assert!((a - b).abs() < 1e-6, "{}: {a} {b}", rule.name());
                }
            }
            // As far as averaging, whatever K.
            if rule.name() != "fedmgda-plus" && rule.name() != "uniform" {
                let step = |steps: f64| {
                    let mut server = Server::new(vec![0.0; dimension], rule.clone(), 0.1).unwrap();
                    let mut reports = usual.clone();
                    reports.iter_mut().for_each(|r| r.reach = Some(0.1 * steps));
                    server.step(&Reports::new(dimension, reports).unwrap()).unwrap();
                    server.displacement().to_vec()
                };
                let (one, many) = (step(1.0), step(f64::from(steps)));
                let scales = rule.name() != "q-fedavg" && rule.name() != "fedce";
                for (one, many) in one.iter().zip(&many) {
                    let expected = f64::from(steps) * one;
                    prop_assert!(!scales || (expected - many).abs() < 1e-9 * (1.0 + expected.abs()),
                        "{}: {} {}", rule.name(), expected, many);
                }
            }
        }
    }

    #[test]
    fn a_saved_state_goes_on_as_if_nothing_had_happened((losses, directions) in round()) {
        let dimension = directions[0].len();
        for rule in every_rule() {
            let mut server = Server::new(vec![0.0; dimension], rule, 0.1).unwrap();
            let step = |server: &mut Server| {
                server.step(&Reports::new(dimension, reports(&losses, &directions)).unwrap()).unwrap();
            };
            let fresh = server.rule().clone();
            prop_assert!(!serde_json::to_string(&fresh).unwrap().contains("memory"));
            step(&mut server);
            if *server.rule() != fresh {
                // A configuration cannot smuggle in a memory.
                let used = Server::new(vec![0.0; dimension], server.rule().clone(), 0.1);
                prop_assert!(used.unwrap_err().to_string().contains("rule.memory"));
            }
            let progress = serde_json::to_string(&server.progress().unwrap()).unwrap();
            let mut stateless = Server::new(server.weights().to_vec(), fresh, 0.1).unwrap();
            stateless.resume(serde_json::from_str(&progress).unwrap()).unwrap();
            prop_assert_eq!(stateless.state(), server.state());
            let text = serde_json::to_string(&server.state()).unwrap();
            let mut resumed = Server::from_state(serde_json::from_str(&text).unwrap()).unwrap();
            step(&mut server);
            step(&mut resumed);
            prop_assert_eq!(server.weights(), resumed.weights());
            prop_assert_eq!(server.round(), resumed.round());
        }
    }
}
