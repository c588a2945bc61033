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

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

/// `retain` remembers the best weights: the way back begins where the weights are now, not where they began.
#[test]
fn a_step_that_went_wrong_is_taken_back_whoever_keeps_the_weights() {
    let told = |loss: f64| {
        let axis = |agent: usize| (0..4).map(|at| f64::from(u8::from(at == agent))).collect();
        let report = |agent: usize| -> Value {
            let direction: Vec<f64> = axis(agent);
            json!({ "agent": agent, "loss": loss, "epsilon": 0.05, "direction": direction })
        };
        json!({ "rule": { "kind": "retain" }, "step_size": 0.1,
            "reports": (0..4).map(report).collect::<Vec<_>>() })
    };
    let first = answer(&told(1.0));
    assert!(numbers(&first["step"]).iter().all(|step| *step < -0.5), "{first}");
    assert_eq!(first["deliver"], Value::Null);
    let mut second = told(1000.0);
    second["state"] = first["state"].clone();
    let second = answer(&second);
    assert_eq!(second["reverted"], true);
    let back: Vec<f64> = numbers(&first["step"]).iter().map(|step| -step).collect();
    assert_eq!(numbers(&second["step"]), back);
    // From here on the best is what is handed out, whatever is tried.
    let mut third = told(1.0);
    third["state"] = second["state"].clone();
    let third = answer(&third);
    let tried = numbers(&third["step"]);
    assert!(tried.iter().all(|step| *step < 0.0), "{third}");
    assert_eq!(numbers(&third["deliver"]), tried.iter().map(|step| -step).collect::<Vec<_>>());

    let mut narrow = example();
    narrow["state"] = first["state"].clone();
    let refused = step(narrow.to_string().as_bytes());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(said.contains("`state` is of 4 weights, the directions have 2"), "{said}");
}

/// Two bowls around points that averaging comes to one after the other, with the model of its own that each is shown.
#[test]
fn under_previews_the_answer_says_what_each_agent_is_shown() {
    const CENTRES: [[f64; 2]; 2] = [[1.0, 0.0], [0.8, 0.3]];
    const EPSILON: f64 = 0.1;
    // Who leaves, and everybody's loss at the end.
    let run = |shows: bool| {
        let (mut weights, mut state) = ([0.0; 2], Value::Null);
        let mut offsets = [[0.0; 2]; 2];
        let mut left = 0;
        for _ in 0..60 {
            let mut reports = Vec::new();
            for (agent, centre) in CENTRES.iter().enumerate() {
                let gap: Vec<f64> =
                    (0..2).map(|at| weights[at] + offsets[agent][at] - centre[at]).collect();
                let loss = 0.5 * gap.iter().map(|gap| gap * gap).sum::<f64>();
                left += u32::from(loss <= EPSILON);
                reports.push(json!({ "agent": agent, "loss": loss, "epsilon": EPSILON,
                    "direction": gap, "gradient": gap }));
            }
            let mut input = json!({ "rule": { "kind": "fedavg" }, "step_size": 0.2,
                "policy": { "kind": "preview", "pace": 0.0 }, "reports": reports });
            if !state.is_null() {
                input["state"] = state.clone();
            }
            let output = answer(&input);
            state = output["state"].clone();
            let step = numbers(&output["step"]);
            (0..2).for_each(|at| weights[at] += step[at]);
            offsets = [[0.0; 2]; 2];
            for shown in output["shown"].as_array().into_iter().flatten().filter(|_| shows) {
                let offset = numbers(&shown["offset"]);
                offsets[shown["agent"].as_u64().unwrap() as usize] = [offset[0], offset[1]];
            }
        }
        let at_end = CENTRES
            .map(|centre| 0.5 * (0..2).map(|at| (weights[at] - centre[at]).powi(2)).sum::<f64>());
        (left, at_end)
    };
    let (left, at_end) = run(true);
    assert_eq!(left, 0);
    assert!(at_end.iter().all(|loss| *loss < EPSILON), "{at_end:?}");
    assert!(run(false).0 > 0, "the test needs agents that would leave");
}

#[test]
fn several_policies_are_a_list_and_their_memory_comes_back_with_the_state() {
    let input = |policy: Value, loss: f64| {
        json!({ "rule": { "kind": "fedavg" }, "step_size": 0.1, "policy": policy, "reports": [
            { "agent": 0, "loss": loss, "epsilon": 0.1, "direction": [1.0] },
            { "agent": 1, "loss": 3.0, "epsilon": 0.1, "direction": [20.0] },
        ] })
    };
    let list = json!([{ "kind": "guard", "delta": 0.05 }, "keep-best"]);
    let first = answer(&input(list.clone(), 0.2));
    let guarded = numbers(&first["step"])[0];
    assert!((-0.0501..0.0).contains(&guarded), "the guard holds agent 0: {guarded}");
    let mut second = input(list, 2.0);
    second["state"] = first["state"].clone();
    let second = answer(&second);
    let back = numbers(&second["deliver"])[0];
    let way = guarded + numbers(&second["step"])[0];
    assert!((back + way).abs() < 1e-12, "keep-best leads back to the first weights: {back} {way}");
    for (policy, why) in [
        (json!(["keep-best", "guard"]), "write `guard` first"),
        (json!(["gaurd"]), "did you mean `guard`?"),
        (json!(3), "`policy` must be an object"),
    ] {
        let output = step(input(policy, 0.2).to_string().as_bytes());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(why), "{said}");
    }
}
