//! Laws that hold for every rule of the list.

use super::*;
use crate::{Report, Server};
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
        rule.check().unwrap();
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
        .map(|(id, (loss, g))| Report::new(AgentId(id as u64), *loss, 0.2, Vector::F64(g)))
        .collect()
}

proptest! {
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
        // Intermittently communicating first-order: the server knows nothing else.
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

    #[test]
    fn a_saved_state_goes_on_as_if_nothing_had_happened((losses, directions) in round()) {
        let dimension = directions[0].len();
        for rule in every_rule() {
            let mut server = Server::new(vec![0.0; dimension], rule, 0.1).unwrap();
            let step = |server: &mut Server| {
                server.step(&Reports::new(dimension, reports(&losses, &directions)).unwrap()).unwrap();
            };
            step(&mut server);
            let text = serde_json::to_string(&server.state()).unwrap();
            let mut resumed = Server::from_state(serde_json::from_str(&text).unwrap()).unwrap();
            step(&mut server);
            step(&mut resumed);
            prop_assert_eq!(server.weights(), resumed.weights());
            prop_assert_eq!(server.round(), resumed.round());
        }
    }
}
