//! Single steps and whole runs against the answers of an independent reference implementation.

use fedstay::problem::{Federation, Observation2, Observation3, Problem};
use fedstay::{
    About, AdaGd, AgentId, Behaviour, Book, Error, Loss, Mean, Report, Reports, RoundRecord, Rule,
    Seed, Server, Session, Vector,
};
use serde_json::Value;
use std::ops::ControlFlow;

fn load(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn every_step_of_the_reference() {
    let vectors = load(include_str!("data/ada_gd_steps.json"));
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 15);
    for case in cases {
        let (name, input, expected) = (&case["name"], &case["input"], &case["expected"]);
        let rule: Rule = serde_json::from_value(input["rule"].clone()).unwrap();
        let directions: Vec<Vec<f64>> = input["reports"]
            .as_array()
            .unwrap()
            .iter()
            .map(|report| numbers(&report["direction"]))
            .collect();
        let dimension = directions[0].len();
        let reports = input["reports"].as_array().unwrap().iter().zip(&directions);
        let reports = reports.map(|(report, direction)| {
            let number = |key: &str| report[key].as_f64().unwrap();
            let agent = AgentId(report["agent"].as_u64().unwrap());
            Report::new(
                agent,
                Loss::Exact(number("loss")).leaves_at(number("epsilon")),
                Vector::F64(direction),
            )
        });
        let reports = Reports::new(dimension, reports.collect()).unwrap();
        let step_size = input["step_size"].as_f64().unwrap();
        let mut server = Server::new(vec![0.0; dimension], rule, step_size).unwrap();
        let decision = server.step(&reports).unwrap();

        assert_eq!(serde_json::to_value(&decision.split).unwrap(), expected["split"], "{name}");
        assert_eq!(decision.case.map(u64::from), expected["case"].as_u64(), "{name}");
        assert_eq!(serde_json::to_value(decision.stop).unwrap(), expected["stop"], "{name}");
        let step = numbers(&expected["step"]);
        let largest = step.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
        for (got, want) in server.displacement().iter().zip(&step) {
            assert!((got - want).abs() <= 1e-12 * largest.max(1.0), "{name}: {got} against {want}");
        }
    }
}

#[derive(Default)]
struct Path {
    received: Vec<Vec<f64>>,
    cases: Vec<Option<u64>>,
    left: Vec<(u32, u64)>,
}

impl Book for Path {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        let line = &record.line;
        self.received.push(record.received.to_vec());
        self.cases.push(line.case.map(u64::from));
        self.left.extend(line.left.iter().map(|agent| (line.round, agent.0)));
        Ok(ControlFlow::Continue(()))
    }
}

#[test]
fn every_trajectory_of_the_reference() {
    let vectors = load(include_str!("data/trajectories.json"));
    let runs = vectors["runs"].as_object().unwrap();
    assert_eq!(runs.len(), 3);
    for (name, expected) in runs {
        let settings = &expected["settings"];
        let number = |key: &str| settings[key].as_f64().unwrap();
        let problem = match settings["problem"].as_str().unwrap() {
            "obs2" => Problem::Observation2(Observation2::default()),
            _ => Problem::Observation3(Observation3 { alpha: number("alpha"), start: None }),
        };
        let rule: Rule = match settings["rule"].as_str().unwrap() {
            "ada" => AdaGd { delta: number("delta"), ..AdaGd::default() }.into(),
            _ => Mean::default().into(),
        };
        let instance = problem.build(Seed(0)).unwrap();
        let epsilon = [number("eps"); 2];
        let federation = Federation::new(&instance, &epsilon, &Behaviour::default()).unwrap();
        let server = Server::new(instance.start.clone(), rule, number("eta")).unwrap();
        let mut path = Path::default();
        let rounds = settings["R"].as_u64().unwrap() as u32;
        let mut session = Session::new(server, federation, rounds, About::default()).unwrap();
        let stop = session.run(&mut [&mut path]).unwrap().unwrap().stop;
        let server = session.server();

        let status = match stop.name() {
            "everyone-left" => "all left",
            "settled" => "case 3",
            other => other,
        };
        assert_eq!(expected["status"], status, "{name}");
        assert_eq!(expected["rounds"].as_u64(), Some(u64::from(server.round())), "{name}");
        let left: Vec<(u32, u64)> = expected["left"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| (l["round"].as_u64().unwrap() as u32, l["agent"].as_u64().unwrap()))
            .collect();
        assert_eq!(path.left, left, "{name}");
        let cases: Vec<Option<u64>> =
            expected["case"].as_array().unwrap().iter().map(Value::as_u64).collect();
        assert_eq!(path.cases, cases, "{name}");
        let weights = expected["weights"].as_array().unwrap();
        assert_eq!(path.received.len(), weights.len(), "{name}");
        for (got, want) in path.received.iter().zip(weights) {
            for (got, want) in got.iter().zip(numbers(want)) {
                assert!((got - want).abs() < 1e-9, "{name}: {got} against {want}");
            }
        }
        for (oracle, want) in instance.oracles.iter().zip(numbers(&expected["final_losses"])) {
            assert!((oracle.loss(server.weights()) - want).abs() < 1e-9, "{name}");
        }
    }
}
