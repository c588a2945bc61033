//! The loop: gather, step, observe. It exists once.

use crate::aggregate::Losses;
use crate::consistency::Flag;
use crate::record::Population;
use crate::{AgentId, Decision, Error, Reports, Server, StopReason};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the server sends out.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The round, from 1.
    pub round: u32,
    /// The weights.
    pub weights: &'a [f64],
    /// The server's step size.
    pub step_size: f64,
    /// Which losses must be exact, because rule or policy compute with them.
    pub losses: Losses,
    /// The share of the usual work for each agent listed, where the rule sets loads.
    pub loads: Option<&'a [(AgentId, f64)]>,
}

/// What came back.
#[derive(Debug)]
pub struct Gathered<'a> {
    /// The reports, with who said goodbye.
    pub reports: Reports<'a>,
    /// Who should have answered and did not, and why. A fault is not a departure.
    pub faults: Vec<(AgentId, String)>,
    /// How good the weights are, in rounds in which the engine looks.
    pub assessment: Option<Assessment>,
}

impl Gathered<'_> {
    /// Steps; where that fails because of one report, drops it as its agent's fault and steps again
    /// with the others. Tells whose reports were dropped, and why.
    fn step_with_the_usable(
        &mut self,
        server: &mut Server,
    ) -> Result<(Decision, Vec<(AgentId, String)>), Error> {
        let mut dropped = Vec::new();
        loop {
            let error = match server.step(&self.reports) {
                Ok(decision) => {
                    self.faults.extend(dropped.iter().cloned());
                    self.faults.sort_by_key(|(agent, _)| *agent);
                    return Ok((decision, dropped));
                }
                Err(error) => error,
            };
            let blamed = match &error {
                Error::StepOverflow { .. } => self.longest(server.step_size()),
                error => error.agent(),
            };
            match blamed {
                Some(agent) => {
                    self.reports.remove(agent);
                    dropped.push((agent, error.to_string()));
                }
                None => return Err(error),
            }
        }
    }

    /// Whose report would move the weights farthest.
    fn longest(&self, step_size: f64) -> Option<AgentId> {
        let moves = self.reports.iter().map(|report| {
            let reach = report.reach.unwrap_or(step_size);
            (report.agent, reach * crate::linalg::norm(report.direction))
        });
        moves.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(agent, _)| agent)
    }
}

/// How good weights are for every agent, those who left included, and beyond.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// Every agent, by id.
    pub agents: Vec<Evaluation>,
    /// Loss and accuracy on the population, where there is one.
    pub population: Option<Population>,
}

/// How good weights are for one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// For whom.
    pub agent: AgentId,
    /// Its loss on its full local data.
    pub loss: f64,
    /// Its share of correct predictions, where that means something.
    pub accuracy: Option<f64>,
}

/// Whatever reaches the agents: a simulator, a network.
pub trait Engine {
    /// Every agent that ever takes part, with its precision ε_m, by id.
    fn agents(&self) -> Vec<(AgentId, f64)>;

    /// Sends the weights to the agents that are still in and collects their answers.
    fn gather(&mut self, call: &Call<'_>) -> Result<Gathered<'_>, Error>;

    /// How good weights are for every agent, those who left included.
    fn assess(&mut self, weights: &[f64]) -> Result<Assessment, Error>;

    /// Whether first-order statements about the agents are proofs: convex losses, exact losses and
    /// gradients, and agents that leave at their precision and not before.
    fn proves(&self) -> bool {
        false
    }

    /// How every agent behaves, by id, as a configuration names it; none where that is not known.
    fn behaviours(&self) -> Vec<String> {
        Vec::new()
    }

    /// Agents that [`assess`](Self::assess) could not ask about the weights, each with the round in
    /// which it last told a loss: nobody can make an agent that left answer.
    fn unasked(&self) -> Vec<(AgentId, u32)> {
        Vec::new()
    }

    /// Whether a report that no step can be taken with costs its agent the round and not everybody
    /// the run. So it should be where agents are strangers; in a simulation such a report means that
    /// training diverged, which is the result.
    fn drops_bad_reports(&self) -> bool {
        false
    }

    /// An agent's report of the round just stepped was dropped, and why.
    fn dropped(&mut self, agent: AgentId, why: &str) {
        let _ = (agent, why);
    }

    /// What the agents remember between rounds, who has left for instance.
    fn memory(&self) -> Value;

    /// Takes up what [`memory`](Self::memory) gave.
    fn recall(&mut self, memory: &Value) -> Result<(), Error>;
}

/// One finished round, as observers see it.
#[derive(Debug, Clone, Copy)]
pub struct RoundView<'a> {
    /// The round, from 1.
    pub number: u32,
    /// The weights the agents received.
    pub received: &'a [f64],
    /// What was added to them.
    pub step: &'a [f64],
    /// What the agents said.
    pub reports: &'a Reports<'a>,
    /// Who should have answered and did not.
    pub faults: &'a [(AgentId, String)],
    /// What the server decided.
    pub decision: &'a Decision,
    /// How good the received weights are, in rounds in which the engine looks.
    pub assessment: Option<&'a Assessment>,
    /// Whose reports contradict themselves, where somebody looks: see
    /// [`Consistency`](crate::consistency::Consistency).
    pub flags: &'a [Flag],
}

/// Watches a run. It reads and never steers; its only power is to fail, when the disk is full.
pub trait Observer {
    /// A round is over.
    fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error>;

    /// The moment after, in which server and engine can be saved together.
    fn between_rounds(&mut self, server: &Server, engine: &dyn Engine) -> Result<(), Error> {
        let _ = (server, engine);
        Ok(())
    }
}

/// Runs rounds until the rule stops, nobody is left, or `rounds` are over.
///
/// Every round that was gathered is observed, the last one too. A server that was resumed goes on
/// with its next round.
pub fn run(
    server: &mut Server,
    engine: &mut dyn Engine,
    rounds: u32,
    observers: &mut [&mut dyn Observer],
) -> Result<StopReason, Error> {
    let mut received = Vec::new();
    let lenient = engine.drops_bad_reports();
    while server.round() < rounds {
        let loads = server.loads();
        let mut gathered = engine.gather(&Call {
            round: server.round() + 1,
            weights: server.weights(),
            step_size: server.step_size(),
            losses: server.losses(),
            loads: loads.as_deref(),
        })?;
        received.clear();
        received.extend_from_slice(server.weights());
        let (decision, dropped) = match lenient {
            true => gathered.step_with_the_usable(server)?,
            false => (server.step(&gathered.reports)?, Vec::new()),
        };
        let view = RoundView {
            number: server.round(),
            received: &received,
            step: server.displacement(),
            reports: &gathered.reports,
            faults: &gathered.faults,
            decision: &decision,
            assessment: gathered.assessment.as_ref(),
            flags: &[],
        };
        for observer in observers.iter_mut() {
            observer.round(&view)?;
        }
        drop(gathered);
        for (agent, why) in &dropped {
            engine.dropped(*agent, why);
        }
        for observer in observers.iter_mut() {
            observer.between_rounds(server, engine)?;
        }
        if let Some(reason) = decision.stop {
            return Ok(reason);
        }
    }
    Ok(StopReason::RoundLimit)
}
