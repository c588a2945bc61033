//! One agent's bad report costs that agent the round, never the others the run, if the engine says
//! so.

use fedstay::record::HeaderAgent;
use fedstay::rule::MwFed;
use fedstay::{
    Abilities, About, AgentAssessment, AgentId, Assessment, Book, Call, Engine, Error, Gathered,
    Loss, Mean, Memory, Report, Reports, RoundRecord, Rule, Score, Server, Session, Standing,
    StopReason, Vector,
};
use std::ops::ControlFlow;

/// Two honest agents, and one whose report is whatever the test says.
struct Strangers {
    strict: bool,
    alone: bool,
    hostile: Report<'static>,
    dropped: Vec<AgentId>,
}

const SIDES: [[f64; 2]; 2] = [[1.0, 0.0], [0.0, 1.0]];
const FAR: [f64; 2] = [-1e150, 0.0];

impl Engine for Strangers {
    fn agents(&self) -> Vec<HeaderAgent> {
        (0..3).map(|id| HeaderAgent { id: AgentId(id), epsilon: 0.1, name: None }).collect()
    }

    fn gather(&mut self, _: &Call<'_>) -> Result<Gathered<'_>, Error> {
        let honest = |id: usize| {
            Report::new(
                AgentId(id as u64),
                Loss::Exact(5.0).leaves_at(0.1),
                Vector::F64(&SIDES[id][..]),
            )
        };
        let mut reports = vec![self.hostile];
        if !self.alone {
            reports.extend([honest(0), honest(1)]);
        }
        let faults = vec![(AgentId(7), "no answer".to_owned())];
        Ok(Gathered { faults, ..Gathered::new(Reports::new(2, reports)?) })
    }

    fn assess(&mut self, _: &[f64]) -> Result<Assessment, Error> {
        let agents = self.agents().into_iter().map(|agent| AgentAssessment {
            id: agent.id,
            epsilon: agent.epsilon,
            behaviour: None,
            score: Score::new(1.0),
            as_of: None,
            held_back: None,
        });
        Ok(Assessment { agents: agents.collect(), population: None, constant: None })
    }

    fn abilities(&self) -> Abilities {
        Abilities { strangers: !self.strict, ..Abilities::default() }
    }

    fn dropped(&mut self, agent: AgentId, _: &str) {
        self.dropped.push(agent);
    }

    fn save(&self) -> Result<Memory, Error> {
        Ok(Memory::default())
    }

    fn restore(&mut self, _: &Memory) -> Result<(), Error> {
        Ok(())
    }
}

/// Who reported and who is at fault, round by round.
#[derive(Default)]
struct Seen(Vec<(Vec<u64>, Vec<u64>)>);

impl Book for Seen {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        let reported = record.line.agents.iter().map(|agent| agent.0).collect();
        let faults = record.line.faults.iter().map(|(agent, _)| agent.0).collect();
        self.0.push((reported, faults));
        Ok(ControlFlow::Continue(()))
    }
}

fn session(server: Server, engine: &mut Strangers) -> Session<&mut Strangers> {
    Session::new(server, engine, 3, About::default()).unwrap()
}

fn played(rule: impl Into<Rule>, hostile: Report<'static>) {
    let rule = rule.into();
    let server = || Server::new(vec![0.0, 0.0], rule.clone(), 0.5).unwrap();
    let mut strict = Strangers { strict: true, alone: false, hostile, dropped: Vec::new() };
    assert!(session(server(), &mut strict).run(&mut []).is_err(), "nothing was wrong with it");

    let mut seen = Seen::default();
    let mut strangers = Strangers { strict: false, alone: false, hostile, dropped: Vec::new() };
    let mut moved = session(server(), &mut strangers);
    let summary = moved.run(&mut [&mut seen]).unwrap().unwrap();
    assert_eq!(summary.stop, StopReason::RoundLimit);
    // As if the third had never answered: the mean of the two, three times.
    assert_eq!(moved.server().weights(), [-0.75, -0.75]);
    assert_eq!(strangers.dropped, [AgentId(2); 3]);
    for (reported, faults) in &seen.0 {
        assert_eq!(reported, &[0, 1]);
        assert_eq!(faults, &[2, 7]);
    }
}

#[test]
fn a_report_that_overflows_the_step_costs_its_agent_the_round_and_nobody_the_run() {
    let far = Report::new(AgentId(2), Loss::Exact(5.0).leaves_at(0.1), Vector::F64(&FAR));
    played(Mean::default(), Report { reach: Some(1e300), ..far });
}

#[test]
fn a_report_that_the_rule_cannot_read_costs_its_agent_the_round_and_nobody_the_run() {
    let plain = Report::new(AgentId(2), Loss::Exact(5.0).leaves_at(0.1), Vector::F64(&SIDES[0]));
    played(MwFed::default(), Report { standing: Standing::Private { tau: 1.0 }, ..plain });
    let standing = Standing::Open { loss: Loss::AtLeast(0.05), epsilon: 0.1 };
    played(MwFed::default(), Report { standing, ..plain });
}

#[test]
fn a_round_in_which_only_a_bad_report_came_is_a_round_without_a_step() {
    let far = Report::new(AgentId(2), Loss::Exact(5.0).leaves_at(0.1), Vector::F64(&FAR));
    let hostile = Report { reach: Some(1e300), ..far };
    let server = Server::new(vec![0.0, 0.0], Mean::default(), 0.5).unwrap();
    let mut strangers = Strangers { strict: false, alone: true, hostile, dropped: Vec::new() };
    let mut session = session(server, &mut strangers);
    let summary = session.run(&mut []).unwrap().unwrap();
    assert_eq!(summary.stop, StopReason::RoundLimit);
    let server = session.server();
    assert_eq!((server.weights(), server.round()), (&[0.0, 0.0][..], 3));
}
