//! `retain` rests on predictions where nothing is proved: every one that misses is on record.

#[path = "common/one_round.rs"]
mod one_round;

use fedstay::rule::{Miss, Trust};
use fedstay::{AgentId, Decision, Retain, Server};
use one_round::{EPSILON, ETA, Gradients, reports, server, step};

const DELTA: f64 = 0.1;

fn gradients() -> Gradients {
    vec![vec![1.0, 0.2], vec![0.1, 1.0]]
}

fn rule() -> Retain {
    let mut rule = Retain::new(DELTA);
    rule.trust = Trust::Region;
    rule
}

/// Two rounds: the first predicts, the second reports losses that differ from that by `errors`.
fn off_by(errors: [f64; 2]) -> (Vec<f64>, Decision) {
    let (losses, gradients) = ([2.0, 3.0], gradients());
    let moved = step(rule(), &losses, &gradients);
    assert!(moved.iter().any(|part| *part != 0.0), "η = {ETA} moves nothing");
    let product = |g: &Vec<f64>| g.iter().zip(&moved).map(|(g, s)| g * s).sum::<f64>();
    let predicted: Vec<f64> = losses.iter().zip(&gradients).map(|(l, g)| l + product(g)).collect();
    let mut server: Server = server(rule(), 2);
    let first = server.step(&reports(&losses, &gradients)).unwrap();
    assert_eq!(first.missed, Some(Vec::new()), "there was nothing to predict yet");
    let told: Vec<f64> = predicted.iter().zip(errors).map(|(p, error)| p + error).collect();
    (predicted, server.step(&reports(&told, &gradients)).unwrap())
}

#[test]
fn a_loss_far_below_its_prediction_is_a_miss_and_nothing_else_is() {
    let (predicted, exact) = off_by([0.0, 0.0]);
    assert_eq!(exact.missed, Some(Vec::new()));
    // A loss above its prediction endangers nobody.
    assert_eq!(off_by([1.0, 1.0]).1.missed, Some(Vec::new()));
    // An agent's room: half the slack, or a quarter of its distance to ε.
    let room = ((predicted[1] - EPSILON) / 4.0).max(DELTA / 2.0);
    assert_eq!(off_by([0.0, -0.99 * room]).1.missed, Some(Vec::new()));
    let missed = off_by([0.0, -1.01 * room]).1.missed.unwrap();
    let [Miss { agent, predicted: was, loss }] = missed[..] else { panic!("{missed:?}") };
    assert_eq!(agent, AgentId(1));
    assert!((was - predicted[1]).abs() < 1e-12);
    assert!((loss - (predicted[1] - 1.01 * room)).abs() < 1e-12);
}

#[test]
fn rules_that_predict_nothing_miss_nothing() {
    let mut server = server(fedstay::Mean::default(), 2);
    let decision = server.step(&reports(&[2.0, 3.0], &gradients())).unwrap();
    assert_eq!(decision.missed, None);
}
