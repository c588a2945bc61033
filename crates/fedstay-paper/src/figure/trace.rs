//! A run on a problem with two weights, kept whole: everything a picture of it needs.

use anyhow::Context;
use fedstay::problem::{Federation, Instance};
use fedstay::record::Summary;
use fedstay::{
    About, AdaGd, AgentId, Behaviour, Book, Error, Mean, RoundRecord, Rule, Server, Session,
    StopReason,
};
use fedstay_draw::plot::Point;
use serde_json::{Value, json};
use std::ops::ControlFlow;

/// How a run is made.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) rule: Rule,
    pub(super) behaviour: Behaviour,
    pub(super) step_size: f64,
    pub(super) rounds: u32,
}

impl Setting {
    /// Uniform averaging, with the problem's own step size.
    pub(super) fn averaging(instance: &Instance) -> Self {
        Self {
            rule: Mean::default().into(),
            behaviour: Behaviour::default(),
            step_size: instance.step_size,
            rounds: 20_000,
        }
    }

    /// ADA-GD, with the problem's own step size and slack.
    pub(super) fn ada_gd(instance: &Instance) -> Self {
        let rule = AdaGd { delta: instance.delta, ..AdaGd::default() };
        Self { rule: rule.into(), ..Self::averaging(instance) }
    }
}

/// One departure: who, in which round, at which weights.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Left {
    pub(super) agent: AgentId,
    pub(super) round: u32,
    pub(super) at: Point,
}

/// The outcome of a run, with its trajectory.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    /// The weights of every round, the delivered ones last.
    pub(super) path: Vec<Point>,
    /// Who left and where, in order.
    pub(super) left: Vec<Left>,
    /// Why it ended.
    pub(super) stop: StopReason,
    /// The core's own summary.
    pub(super) summary: Summary,
    setting: Setting,
}

#[derive(Default)]
struct Walk {
    path: Vec<Point>,
    left: Vec<Left>,
}

impl Book for Walk {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        let (at, round) = ((record.received[0], record.received[1]), record.line.round);
        self.path.push(at);
        self.left.extend(record.line.left.iter().map(|agent| Left { agent: *agent, round, at }));
        Ok(ControlFlow::Continue(()))
    }
}

/// Runs the setting on a problem with two weights, at the problem's own target loss.
pub(super) fn trace(on: &str, instance: &Instance, setting: Setting) -> anyhow::Result<Trace> {
    anyhow::ensure!(instance.dimension() == 2, "{on} has {} weights, not 2", instance.dimension());
    let epsilon = vec![instance.epsilon; instance.oracles.len()];
    let federation = Federation::new(instance, &epsilon, &setting.behaviour)?;
    let server = Server::new(instance.start.clone(), setting.rule.clone(), setting.step_size)?;
    let about =
        About { behaviour: setting.behaviour.name().into(), on: on.into(), ..About::default() };
    let mut session = Session::new(server, federation, setting.rounds, about)?;
    let mut walk = Walk::default();
    let summary = session.run(&mut [&mut walk])?.context("interrupted")?;
    let server = session.server();
    let end = (server.delivered()[0], server.delivered()[1]);
    if walk.path.last() != Some(&end) {
        walk.path.push(end);
    }
    Ok(Trace { path: walk.path, left: walk.left, stop: summary.stop, summary, setting })
}

impl Trace {
    /// Where it began.
    pub(super) fn start(&self) -> Point {
        self.path.first().copied().unwrap_or((f64::NAN, f64::NAN))
    }

    /// Where it ended.
    pub(super) fn end(&self) -> Point {
        self.path.last().copied().unwrap_or((f64::NAN, f64::NAN))
    }

    /// An agent's loss at the end; agents are counted from 0.
    pub(super) fn loss(&self, agent: usize) -> f64 {
        self.summary.agents[agent].score.loss
    }

    /// The departure of an agent, counted from 0.
    pub(super) fn departure(&self, agent: u64) -> anyhow::Result<&Left> {
        let left = self.left.iter().find(|left| left.agent == AgentId(agent));
        let rule = self.setting.rule.name();
        left.ok_or_else(|| anyhow::anyhow!("{} never left under {rule}", named(AgentId(agent))))
    }

    /// The path without points that a reader could not tell from the previous one.
    pub(super) fn thinned(&self, distance: f64) -> Vec<Point> {
        let mut kept: Vec<Point> = Vec::new();
        for (index, point) in self.path.iter().enumerate() {
            let near = kept.last().is_some_and(|k| (k.0 - point.0).hypot(k.1 - point.1) < distance);
            let told = index + 1 == self.path.len() || self.left.iter().any(|l| l.at == *point);
            if !near || (told && kept.last() != Some(point)) {
                kept.push(*point);
            }
        }
        kept
    }

    /// The numbers of the run; agents are counted from 1, as in the paper.
    pub(super) fn numbers(&self) -> Value {
        let place = |point: Point| json!([point.0, point.1]);
        let left = self.left.iter().map(
            |left| json!({ "agent": left.agent.0 + 1, "round": left.round, "at": place(left.at) }),
        );
        let losses: Vec<f64> = self.summary.agents.iter().map(|agent| agent.score.loss).collect();
        let accuracies: Option<Vec<f64>> =
            self.summary.agents.iter().map(|agent| agent.score.of("accuracy")).collect();
        json!({
            "on": self.summary.on,
            "rule": self.setting.rule,
            "behaviour": self.setting.behaviour.name(),
            "step_size": self.setting.step_size,
            "epsilon": self.summary.agents.first().map(|agent| agent.epsilon),
            "start": place(self.start()),
            "end": place(self.end()),
            "rounds": self.summary.rounds,
            "stop": self.stop.name(),
            "verdict": self.summary.verdict.name(),
            "everybody_content": self.summary.everybody_content,
            "left": left.collect::<Vec<_>>(),
            "loss": losses,
            "mean_loss": self.summary.score.loss.mean,
            "accuracy": accuracies,
        })
    }
}

/// What an agent is called in the pictures: the paper counts from 1.
pub(super) fn named(agent: AgentId) -> String {
    format!("agent {}", agent.0 + 1)
}
