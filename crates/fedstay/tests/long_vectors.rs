//! Steps over long vectors: the same bits for every instruction set, any number of threads, and
//! however the reports were let in.

#[path = "common/machines.rs"]
mod machines;

use fedstay::numerics::{Bf16, uniform};
use fedstay::{
    AdaGd, AgentId, Loss, Mean, Report, Reports, Retain, Rule, Seed, Server, StopReason, Vector,
};
use machines::machines;

/// Several spans, and a rest.
const LONG: usize = 3 * 32_768 + 1_001;

fn rows(count: usize, dimension: usize) -> Vec<Vec<f32>> {
    let mut rng = Seed(5).stream("long", 0, 0);
    let mut draw = || (uniform(&mut rng) - 0.5) as f32;
    (0..count).map(|_| (0..dimension).map(|_| draw()).collect()).collect()
}

/// All but the last two agents are about to leave.
fn reports<'a>(vectors: &[Vector<'a>]) -> Vec<Report<'a>> {
    let near = |agent: usize| if agent + 2 < vectors.len() { 0.101 } else { 1e6 };
    let of = |(agent, vector): (usize, &Vector<'a>)| {
        Report::new(AgentId(agent as u64), Loss::Exact(near(agent)).leaves_at(0.1), *vector)
    };
    vectors.iter().enumerate().map(of).collect()
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

#[test]
fn a_step_is_the_same_bits_on_every_machine() {
    let rules: [Rule; 3] =
        [Mean::default().into(), AdaGd::default().into(), Retain::new(0.05).into()];
    // More agents than are multiplied before it is known who is about to leave, and fewer.
    for agents in [5, 20] {
        let rows = rows(agents, LONG);
        let vectors: Vec<Vector<'_>> = rows.iter().map(|row| Vector::F32(row)).collect();
        for rule in &rules {
            let server = || Server::new(vec![0.5; LONG], rule.clone(), 0.1).unwrap();
            let mut plain = server();
            for _ in 0..2 {
                plain.step(&Reports::new(LONG, reports(&vectors)).unwrap()).unwrap();
            }
            let expected = bits(plain.weights());
            assert_ne!(expected, bits(&vec![0.5; LONG]), "{} moved", rule.name());
            for machine in machines() {
                let name = format!("{} with {agents} agents on {machine:?}", rule.name());
                let mut server = server().with_machine(machine);
                for _ in 0..2 {
                    let admitted = server.admit(reports(&vectors), Vec::new()).unwrap();
                    let decision = server.step(&admitted).unwrap();
                    assert_eq!(decision.measured, None, "kept within the server");
                }
                assert!(bits(server.weights()) == expected, "{name}");
                assert_eq!(server.state(), plain.state(), "{name}");
            }
        }
    }
}

#[test]
fn half_of_a_number_is_read_like_the_whole() {
    let rows = rows(4, 5_000);
    let halves: Vec<Vec<u16>> = rows
        .iter()
        .map(|row| row.iter().map(|value| (value.to_bits() >> 16) as u16).collect())
        .collect();
    let cut: Vec<Vec<f32>> = halves
        .iter()
        .map(|row| Bf16::from_bits(row).iter().map(|h| h.single()).collect())
        .collect();
    let step = |vectors: Vec<Vector<'_>>, rule: Rule| {
        let mut server = Server::new(vec![0.0; 5_000], rule, 0.1).unwrap();
        let admitted = server.admit(reports(&vectors), Vec::new()).unwrap();
        server.step(&admitted).unwrap();
        bits(server.weights())
    };
    for rule in [Rule::from(Mean::default()), AdaGd::default().into(), Retain::new(0.05).into()] {
        let half =
            step(halves.iter().map(|h| Vector::BF16(Bf16::from_bits(h))).collect(), rule.clone());
        let whole = step(cut.iter().map(|row| Vector::F32(row)).collect(), rule.clone());
        let uncut = step(rows.iter().map(|row| Vector::F32(row)).collect(), rule.clone());
        assert!(half == whole, "{}", rule.name());
        assert!(whole != uncut, "{}: the cut is seen", rule.name());
    }
}

#[test]
fn a_step_that_is_not_taken_leaves_nothing_of_the_one_before() {
    let rows = rows(3, 40_000);
    let vectors: Vec<Vector<'_>> = rows.iter().map(|row| Vector::F32(row)).collect();
    let mut server = Server::new(vec![0.0; 40_000], AdaGd::default(), 0.1).unwrap();
    let admitted = server.admit(reports(&vectors), Vec::new()).unwrap();
    assert_eq!(server.step(&admitted).unwrap().stop, None);
    assert!(server.displacement().iter().any(|step| *step != 0.0));
    let mut all_near = reports(&vectors);
    for report in &mut all_near {
        *report = Report::new(report.agent, Loss::Exact(0.101).leaves_at(0.1), report.direction);
    }
    let before = server.weights().to_vec();
    let admitted = server.admit(all_near, Vec::new()).unwrap();
    assert_eq!(server.step(&admitted).unwrap().stop, Some(StopReason::Settled));
    assert!(server.displacement().iter().all(|step| *step == 0.0));
    assert_eq!(server.weights(), before);
}

#[test]
fn admission_names_the_agent_and_the_number() {
    let mut rows = rows(3, 1_000);
    rows[1][777] = f32::NAN;
    let vectors: Vec<Vector<'_>> = rows.iter().map(|row| Vector::F32(row)).collect();
    for rule in [Rule::from(Mean::default()), AdaGd::default().into()] {
        let server = Server::new(vec![0.0; 1_000], rule, 0.1).unwrap();
        let error = server.admit(reports(&vectors), Vec::new()).unwrap_err().to_string();
        assert!(error.contains("agent 1") && error.contains("direction[777]"), "{error}");
    }
}

#[test]
fn weights_at_the_end_of_the_range_are_still_refused() {
    let mut server = Server::new(vec![f64::MAX, 0.0], Mean::default(), 1.0).unwrap();
    let before = server.state();
    let down = [-1e100, 0.0];
    let report = Report {
        reach: Some(1e208),
        ..Report::new(AgentId(0), Loss::Exact(9.0).leaves_at(0.1), Vector::F64(&down))
    };
    let error = server.step(&Reports::new(2, vec![report]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("step"), "{error}");
    assert_eq!(server.state(), before);
}
