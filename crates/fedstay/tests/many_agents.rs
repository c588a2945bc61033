//! `retain` with hundreds of agents that bind together: the same bits for every instruction set, any number
//! of threads, any order of arrival, and after a server was saved and read again.

#[path = "common/machines.rs"]
mod machines;

use fedstay::numerics::{Isa, Machine, uniform};
use fedstay::{AgentId, Loss, Report, Retain, Seed, Server, Vector};
use machines::{machines, with_threads};

const AGENTS: usize = 320;
const WEIGHTS: usize = 900;
const ROUNDS: usize = 4;

/// Half squares of distances along one direction each: `½(⟨a, w⟩ − b)²`, with a direction that all share.
struct Agents(Vec<(Vec<f32>, f64)>);

impl Agents {
    fn new() -> Self {
        let mut rng = Seed(11).stream("many agents", 0, 0);
        let mut draw = || uniform(&mut rng) - 0.5;
        let shared: Vec<f64> = (0..WEIGHTS).map(|_| 0.3 * draw()).collect();
        let mut direction = || shared.iter().map(|shared| (shared + draw()) as f32 * 0.1).collect();
        let directions: Vec<Vec<f32>> = (0..AGENTS).map(|_| direction()).collect();
        Self(directions.into_iter().map(|a| (a, 1.5 + uniform(&mut rng))).collect())
    }

    /// Every agent's loss and gradient.
    fn look(&self, weights: &[f64]) -> Vec<(f64, Vec<f32>)> {
        let look = |(a, b): &(Vec<f32>, f64)| {
            let off = a.iter().zip(weights).map(|(a, w)| f64::from(*a) * w).sum::<f64>() - b;
            (0.5 * off * off, a.iter().map(|a| (off * f64::from(*a)) as f32).collect())
        };
        self.0.iter().map(look).collect()
    }
}

fn reports(told: &[(f64, Vec<f32>)]) -> Vec<Report<'_>> {
    let each = told.iter().enumerate();
    let of = each.map(|(agent, (loss, gradient))| {
        Report::new(AgentId(agent as u64), Loss::Exact(*loss).leaves_at(0.1), Vector::F32(gradient))
    });
    of.collect()
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// The weights after each round, and how many agents pulled in it.
fn run(machine: &Machine, backwards: bool, saved: bool) -> Vec<(Vec<u64>, usize)> {
    let agents = Agents::new();
    let server = Server::new(vec![0.0; WEIGHTS], Retain::new(0.05), 0.1).unwrap();
    let mut server = server.with_machine(machine.clone());
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let told = agents.look(server.weights());
        assert!(told.iter().all(|(loss, _)| *loss > 0.1), "nobody is content before all are");
        let mut reports = reports(&told);
        if backwards {
            reports.reverse();
        }
        let admitted = server.admit(reports, Vec::new()).unwrap();
        let decision = server.step(&admitted).unwrap();
        assert_eq!(decision.stop, None);
        let text = serde_json::to_string(&server.state()).unwrap();
        let bound: serde_json::Value = serde_json::from_str(&text).unwrap();
        let bound = find(&bound, "bound").and_then(|bound| bound.as_array().map(Vec::len));
        rounds.push((bits(server.weights()), bound.unwrap_or(0)));
        if saved {
            let read = Server::from_state(serde_json::from_str(&text).unwrap()).unwrap();
            server = read.with_machine(machine.clone());
        }
    }
    rounds
}

/// The value under this key, wherever it is.
fn find<'a>(value: &'a serde_json::Value, key: &str) -> Option<&'a serde_json::Value> {
    match value {
        serde_json::Value::Object(map) => {
            map.get(key).or_else(|| map.values().find_map(|value| find(value, key)))
        }
        serde_json::Value::Array(all) => all.iter().find_map(|value| find(value, key)),
        _ => None,
    }
}

#[test]
fn steps_of_hundreds_that_bind_are_the_same_bits_however_they_are_computed() {
    let expected = run(&Machine::new(Isa::PORTABLE), false, false);
    for (weights, bound) in &expected {
        assert!(*bound >= 100, "{bound} of {AGENTS} bind");
        assert!(weights.iter().any(|bits| f64::from_bits(*bits) != 0.0), "it moves");
    }
    for machine in machines() {
        assert!(run(&machine, false, false) == expected, "{machine:?}");
    }
    let machine = with_threads(2);
    assert!(run(&machine, true, false) == expected, "in another order of arrival");
    assert!(run(&machine, false, true) == expected, "saved and read again after every round");
    assert!(run(&machine, true, true) == expected, "both");
}
