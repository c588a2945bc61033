//! `fedstay step`, as another program would use it, and as a hostile one would.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn step(input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fedstay"))
        .arg("step")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may refuse before it has read all of its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn answer(input: &Value) -> Value {
    let output = step(input.to_string().as_bytes());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn example() -> Value {
    json!({
        "rule": { "kind": "ada-gd", "delta": 0.05 },
        "step_size": 0.1,
        "reports": [
            { "agent": 0, "loss": 0.2, "epsilon": 0.1, "direction": [1.0, 0.0] },
            { "agent": 1, "loss": 3.0, "epsilon": 0.1, "direction": [1.0, 1.0] },
        ]
    })
}

#[test]
fn the_reference_vectors_through_the_command() {
    let text = include_str!("../../fedstay/tests/data/ada_gd_steps.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    for case in vectors["cases"].as_array().unwrap() {
        let (got, want) = (answer(&case["input"]), &case["expected"]);
        for key in ["split", "case", "stop"] {
            assert_eq!(got[key], want[key], "{}: {key}", case["name"]);
        }
        let (got, want) = (got["step"].as_array().unwrap(), want["step"].as_array().unwrap());
        let largest = want.iter().fold(0.0f64, |m, v| m.max(v.as_f64().unwrap().abs()));
        for (got, want) in got.iter().zip(want) {
            let difference = (got.as_f64().unwrap() - want.as_f64().unwrap()).abs();
            assert!(difference <= 1e-5 * largest, "{}", case["name"]);
        }
    }
}

#[test]
fn state_carries_what_a_rule_remembers() {
    let mut input = example();
    input["rule"]["on_settled"] = "halve".into();
    input["step_size"] = 8.0.into();
    let first = answer(&input);
    input["state"] = first["state"].clone();
    let second = answer(&input);
    // The halved step size is in the state: the second step is no longer than the first.
    assert_eq!(first["step"], second["step"]);
    input["rule"] = json!({ "kind": "afl", "gamma": 0.1 });
    input["state"] = Value::Null;
    let first = answer(&input);
    let unaware = answer(&input);
    assert_eq!(first["step"], unaware["step"]);
    input["state"] = first["state"].clone();
    assert_ne!(answer(&input)["step"], first["step"], "the mixture is in the state");
    input["rule"]["memory"] = json!([[0, 1.0]]);
    let refused = step(input.to_string().as_bytes());
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("rule.memory"), "{said}");
    input["rule"].as_object_mut().unwrap().remove("memory");
    input["state"] = "nonsense".into();
    assert_eq!(step(input.to_string().as_bytes()).status.code(), Some(2));
}

#[test]
fn everyone_left_is_an_answer_and_privacy_mode_has_the_same_split() {
    let mut input = example();
    input["reports"] = json!([]);
    assert_eq!(answer(&input)["stop"], "everyone-left");
    let open = answer(&example());
    let mut private = example();
    for report in private["reports"].as_array_mut().unwrap() {
        let direction: Vec<f64> =
            report["direction"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        let norm = direction.iter().map(|v| v * v).sum::<f64>().sqrt();
        let (loss, epsilon) =
            (report["loss"].as_f64().unwrap(), report["epsilon"].as_f64().unwrap());
        let report = report.as_object_mut().unwrap();
        report.remove("loss");
        report.remove("epsilon");
        report.insert("tau".into(), fedstay::tau(loss, epsilon, 0.05, norm).into());
    }
    let private = answer(&private);
    assert_eq!((&open["split"], &open["step"]), (&private["split"], &private["step"]));
}

/// Damages a valid input in one of several ways.
fn spoil(text: &str, way: u8, place: usize, junk: &str) -> Vec<u8> {
    let mut value: Value = serde_json::from_str(text).unwrap();
    let reports = value["reports"].as_array().unwrap().len();
    let report = place % reports;
    match way {
        0 => return text.as_bytes()[..place % text.len()].to_vec(),
        1 => {
            let mut bytes = text.as_bytes().to_vec();
            let at = place % bytes.len();
            bytes[at] = junk.bytes().next().unwrap_or(0);
            return bytes;
        }
        2 => value["reports"][report]["direction"] = json!([]),
        3 => value["reports"][report]["direction"] = json!([1.0]),
        4 => value["reports"][report]["loss"] = json!(junk),
        5 => value["reports"][report]["agent"] = json!(-1),
        6 => {
            value["reports"][report]["agent"] =
                value["reports"][(report + 1) % reports]["agent"].clone()
        }
        7 => value["step_size"] = json!(0),
        8 => value["rule"]["kind"] = json!(junk),
        9 => value["rule"][junk] = json!(1),
        10 => return text.replace("3.0", "NaN").into_bytes(),
        11 => return text.replace("3.0", "1e999").into_bytes(),
        12 => value["reports"][report]["direction"] = json!([1e300, 1e300]),
        13 => value["reports"] = json!({}),
        14 => value["state"] = json!("{\"round\": 1}"),
        15 => return "[".repeat(place).into_bytes(),
        16 => value["reports"][report]["reach"] = json!(-1.0),
        17 => value["rule"] = Value::Null,
        18 => return junk.as_bytes().to_vec(),
        _ => value["reports"][report]["samples"] = json!(1.5),
    }
    value.to_string().into_bytes()
}

#[test]
fn ten_thousand_malformed_inputs_are_refused_in_one_line() {
    let text = example().to_string();
    let config = Config { cases: 10_000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(
        config.clone(),
        proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm),
    );
    let refused = std::sync::atomic::AtomicUsize::new(0);
    runner
        .run(&(0u8..20, 0usize..4_000, "\\PC{0,12}"), |(way, place, junk)| {
            let input = spoil(&text, way, place, &junk);
            let output = step(&input);
            let shown = String::from_utf8_lossy(&input).into_owned();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // A flipped byte may leave the input valid; everything else is refused.
            match output.status.code() {
                Some(0) if way == 1 => {}
                Some(2) => {
                    prop_assert_eq!(said.lines().count(), 1, "{}", said);
                    prop_assert!(output.stdout.is_empty());
                    refused.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
                code => prop_assert!(false, "exit {code:?} for {shown}: {said}"),
            }
            Ok(())
        })
        .unwrap();
    assert!(refused.into_inner() > 9_500);
}
