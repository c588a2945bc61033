//! One agent's report costs that agent the round, never the others the run, where the engine says so.

use fedstay::{
    AgentId, Assessment, Call, Engine, Error, Evaluation, Gathered, Loss, Mean, MwFed, Observer,
    Report, Reports, RoundView, Rule, Server, Standing, StopReason, Vector, run,
};
use serde_json::Value;

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
    fn agents(&self) -> Vec<(AgentId, f64)> {
        (0..3).map(|id| (AgentId(id), 0.1)).collect()
    }

    fn gather(&mut self, _: &Call<'_>) -> Result<Gathered<'_>, Error> {
        let honest =
            |id: usize| Report::new(AgentId(id as u64), 5.0, 0.1, Vector::F64(&SIDES[id][..]));
        let mut reports = vec![self.hostile];
        if !self.alone {
            reports.extend([honest(0), honest(1)]);
        }
        let faults = vec![(AgentId(7), "no answer".to_owned())];
        Ok(Gathered { reports: Reports::new(2, reports)?, faults, assessment: None })
    }

    fn assess(&mut self, _: &[f64]) -> Result<Assessment, Error> {
        let agents = self.agents().into_iter();
        let agents = agents.map(|(agent, _)| Evaluation { agent, loss: 1.0, accuracy: None });
        Ok(Assessment { agents: agents.collect(), population: None })
    }

    fn drops_bad_reports(&self) -> bool {
        !self.strict
    }

    fn dropped(&mut self, agent: AgentId, _: &str) {
        self.dropped.push(agent);
    }

    fn memory(&self) -> Value {
        Value::Null
    }

    fn recall(&mut self, _: &Value) -> Result<(), Error> {
        Ok(())
    }
}

/// Who reported and who is at fault, round by round.
#[derive(Default)]
struct Seen(Vec<(Vec<u64>, Vec<u64>)>);

impl Observer for Seen {
    fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
        let reported = view.reports.iter().map(|report| report.agent.0).collect();
        let faults = view.faults.iter().map(|(agent, _)| agent.0).collect();
        self.0.push((reported, faults));
        Ok(())
    }
}

fn played(rule: impl Into<Rule>, hostile: Report<'static>) {
    let rule = rule.into();
    let server = || Server::new(vec![0.0, 0.0], rule.clone(), 0.5).unwrap();
    let mut strict = Strangers { strict: true, alone: false, hostile, dropped: Vec::new() };
    assert!(run(&mut server(), &mut strict, 3, &mut []).is_err(), "nothing was wrong with it");

    let (mut seen, mut moved) = (Seen::default(), server());
    let mut strangers = Strangers { strict: false, alone: false, hostile, dropped: Vec::new() };
    let stop = run(&mut moved, &mut strangers, 3, &mut [&mut seen]).unwrap();
    assert_eq!(stop, StopReason::RoundLimit);
    assert_eq!(strangers.dropped, [AgentId(2); 3]);
    for (reported, faults) in &seen.0 {
        assert_eq!(reported, &[0, 1]);
        assert_eq!(faults, &[2, 7]);
    }
    // As if the third had never answered: the mean of the two, three times.
    assert_eq!(moved.weights(), [-0.75, -0.75]);
}

#[test]
fn a_report_that_overflows_the_step_costs_its_agent_the_round_and_nobody_the_run() {
    let far = Report::new(AgentId(2), 5.0, 0.1, Vector::F64(&FAR));
    played(Mean::default(), Report { reach: Some(1e300), ..far });
}

#[test]
fn a_report_that_the_rule_cannot_read_costs_its_agent_the_round_and_nobody_the_run() {
    let plain = Report::new(AgentId(2), 5.0, 0.1, Vector::F64(&SIDES[0]));
    played(MwFed::default(), Report { standing: Standing::Private { tau: 1.0 }, ..plain });
    let standing = Standing::Open { loss: Loss::AtLeast(0.05), epsilon: 0.1 };
    played(MwFed::default(), Report { standing, ..plain });
}

#[test]
fn a_round_in_which_only_a_bad_report_came_is_a_round_without_a_step() {
    let far = Report::new(AgentId(2), 5.0, 0.1, Vector::F64(&FAR));
    let hostile = Report { reach: Some(1e300), ..far };
    let mut server = Server::new(vec![0.0, 0.0], Mean::default(), 0.5).unwrap();
    let mut strangers = Strangers { strict: false, alone: true, hostile, dropped: Vec::new() };
    assert_eq!(run(&mut server, &mut strangers, 3, &mut []).unwrap(), StopReason::RoundLimit);
    assert_eq!((server.weights(), server.round()), (&[0.0, 0.0][..], 3));
}
