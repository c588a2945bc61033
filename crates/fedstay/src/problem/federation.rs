//! The engine for named problems: agents with exact oracles, in this process, one after the other.

use super::{Instance, Oracle};
use crate::record::Score;
use crate::{
    AgentId, Assessment, Behaviour, Call, Choice, Decide, Engine, Error, Evaluation, Evidence,
    Gathered, Manner, Privacy, Report, Reports, Seed, Standing, Vector, View, packed,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

struct Member {
    id: AgentId,
    epsilon: f64,
    oracle: Arc<dyn Oracle>,
    behaviour: Behaviour,
    /// What it reports: the last gradient it worked for.
    gradient: Vec<f64>,
    /// The same with noise, where there is noise.
    blurred: Vec<f64>,
    left: Option<u32>,
    /// Its loss at the weights it last looked at.
    loss: f64,
}

/// Agents with exact oracles.
pub struct Federation {
    members: Vec<Member>,
    dimension: usize,
    nobody_leaves: bool,
    privacy: Option<(Privacy, Seed)>,
}

/// What an agent with an oracle finds out.
struct Sight<'a> {
    oracle: &'a dyn Oracle,
    weights: &'a [f64],
    step_size: f64,
    loss: f64,
}

/// Where so many gradient steps on one agent's loss lead.
fn descended(oracle: &dyn Oracle, start: &[f64], steps: u32, rate: f64) -> Vec<f64> {
    let mut weights = start.to_vec();
    let mut gradient = vec![0.0; weights.len()];
    for _ in 0..steps {
        oracle.loss_and_gradient(&weights, &mut gradient);
        weights.iter_mut().zip(&gradient).for_each(|(weight, g)| *weight -= rate * g);
    }
    weights
}

impl Evidence for Sight<'_> {
    fn loss(&mut self) -> f64 {
        self.loss
    }

    fn ahead_at_most(&mut self, steps: u32, rate: f64, bound: f64) -> bool {
        self.oracle.loss(&descended(self.oracle, self.weights, steps, rate)) <= bound
    }

    fn alone(&mut self, rounds: u32) -> f64 {
        self.oracle.loss(&descended(self.oracle, self.weights, rounds, self.step_size))
    }
}

/// What a member remembers besides whether it left.
#[derive(Serialize, Deserialize)]
struct Memory {
    left: Option<u32>,
    behaviour: Value,
    /// Empty unless it may be repeated.
    #[serde(with = "packed")]
    gradient: Vec<f64>,
}

impl Federation {
    /// The instance's agents, numbered from 0, with their precisions and a common behaviour; a
    /// mixed population is dealt out with seed 0.
    pub fn new(instance: &Instance, epsilon: &[f64], behaviour: &Behaviour) -> Result<Self, Error> {
        let behaviours = behaviour.assign(instance.oracles.len(), Seed(0))?;
        Self::with_behaviours(instance, epsilon, behaviours)
    }

    /// The same, with a behaviour for each agent.
    pub fn with_behaviours(
        instance: &Instance,
        epsilon: &[f64],
        behaviours: Vec<Behaviour>,
    ) -> Result<Self, Error> {
        let agents = instance.oracles.len();
        if epsilon.len() != agents {
            let must = format!("one number, or a list of {agents}");
            return Err(Error::bad_parameter("epsilon", format!("{epsilon:?}"), must));
        }
        if behaviours.len() != agents {
            let must = format!("one for each of the {agents} agents");
            return Err(Error::bad_parameter("behaviours", behaviours.len(), must));
        }
        let dimension = instance.dimension();
        let agents = instance.oracles.iter().zip(epsilon).zip(behaviours).enumerate();
        let members = agents.map(|(id, ((oracle, epsilon), behaviour))| Member {
            id: AgentId(id as u64),
            epsilon: *epsilon,
            oracle: Arc::clone(oracle),
            behaviour,
            gradient: vec![0.0; dimension],
            blurred: Vec::new(),
            left: None,
            loss: f64::NAN,
        });
        Ok(Self { members: members.collect(), dimension, nobody_leaves: false, privacy: None })
    }

    /// How good a model every agent makes alone, by as many gradient steps from `start`.
    pub fn alone(&self, start: &[f64], step_size: f64, rounds: u32) -> Vec<Evaluation> {
        let alone = |member: &Member| {
            let oracle = member.oracle.as_ref();
            let model = descended(oracle, start, rounds, step_size);
            let (loss, accuracy) = (oracle.loss(&model), oracle.accuracy(&model));
            Evaluation { agent: member.id, loss, accuracy }
        };
        self.members.iter().map(alone).collect()
    }

    /// How good weights are for every agent: one vector of weights an agent.
    pub fn scores(&self, weights: &[&[f64]]) -> Vec<Score> {
        let score = |(member, weights): (&Member, &&[f64])| Score {
            loss: member.oracle.loss(weights),
            accuracy: member.oracle.accuracy(weights),
            unseen: None,
        };
        self.members.iter().zip(weights).map(score).collect()
    }

    /// Makes everybody clip their reports and add noise to them.
    pub fn set_privacy(&mut self, privacy: Privacy, seed: Seed) {
        self.privacy = Some((privacy, seed));
    }

    /// Makes everybody stay, whatever they decide: the counterfactual of a run with departures.
    pub fn set_nobody_leaves(&mut self, nobody: bool) {
        self.nobody_leaves = nobody;
    }
}

/// What a member does with a broadcast.
enum Answer {
    Reports { loss: f64, returned: bool },
    Leaves,
    StaysAway,
}

impl Member {
    fn answer(&mut self, call: &Call<'_>, fresh: &mut Vec<f64>, must_stay: bool) -> Answer {
        if self.left.is_some() && !self.behaviour.comes_back() {
            return Answer::StaysAway;
        }
        let loss = self.oracle.loss_and_gradient(call.weights, fresh);
        self.loss = loss;
        let mut sight = Sight {
            oracle: self.oracle.as_ref(),
            weights: call.weights,
            step_size: call.step_size,
            loss,
        };
        let choice = self.behaviour.decide(&mut View {
            agent: self.id,
            round: call.round,
            epsilon: self.epsilon,
            present: self.left.is_none(),
            evidence: &mut sight,
        });
        match (choice, self.left) {
            (Choice::Leave, None) if !must_stay => {
                self.left = Some(call.round);
                Answer::Leaves
            }
            (Choice::Leave, Some(_)) => Answer::StaysAway,
            (_, before) => {
                self.left = None;
                let manner: Manner = self.behaviour.manner();
                if manner.works {
                    std::mem::swap(&mut self.gradient, fresh);
                }
                Answer::Reports { loss: manner.told(loss), returned: before.is_some() }
            }
        }
    }

    /// How good the weights of a call are for it, whatever it answered. One that stayed away did not
    /// look at them.
    fn evaluation(&self, weights: &[f64], stayed_away: bool) -> Evaluation {
        let loss = if stayed_away { self.oracle.loss(weights) } else { self.loss };
        Evaluation { agent: self.id, loss, accuracy: self.oracle.accuracy(weights) }
    }

    fn report(&mut self, loss: f64, round: u32, privacy: Option<(Privacy, Seed)>) -> Report<'_> {
        let Some((privacy, seed)) = privacy else {
            return Report::new(self.id, loss, self.epsilon, Vector::F64(&self.gradient));
        };
        let mut rng = seed.stream("privacy", u64::from(round), self.id.0);
        self.blurred.clone_from(&self.gradient);
        privacy.blur(&mut self.blurred, &mut rng);
        let loss = privacy.blur_loss(loss, &mut rng);
        let standing = Standing::Open { loss, epsilon: self.epsilon };
        let direction = Vector::F64(&self.blurred);
        Report { standing, ..Report::new(self.id, 0.0, self.epsilon, direction) }
    }

    fn memory(&self) -> Value {
        let (behaviour, repeats) = (self.behaviour.memory(), self.behaviour.repeats());
        if behaviour.is_null() && !repeats {
            return json!(self.left);
        }
        let gradient = if repeats { self.gradient.clone() } else { Vec::new() };
        let memory = Memory { left: self.left, behaviour, gradient };
        serde_json::to_value(memory).unwrap_or(Value::Null)
    }

    fn recall(&mut self, memory: &Value) -> Result<(), Error> {
        let bad = |why: String| Error::BadState { why };
        if !memory.is_object() {
            self.left = Deserialize::deserialize(memory).map_err(|e| bad(e.to_string()))?;
            return self.behaviour.recall(&Value::Null);
        }
        let memory = Memory::deserialize(memory).map_err(|error| bad(error.to_string()))?;
        if self.behaviour.repeats() {
            let (got, expected) = (memory.gradient.len(), self.gradient.len());
            if got != expected {
                return Err(bad(format!("its gradients have {got} components, not {expected}")));
            }
            self.gradient = memory.gradient;
        }
        self.behaviour.recall(&memory.behaviour)?;
        self.left = memory.left;
        Ok(())
    }
}

impl Engine for Federation {
    fn proves(&self) -> bool {
        // Every named problem is convex, with exact oracles.
        let plain = |member: &Member| {
            matches!(member.behaviour, Behaviour::Threshold(_) | Behaviour::Never(_))
        };
        self.privacy.is_none() && self.members.iter().all(plain)
    }

    fn agents(&self) -> Vec<(AgentId, f64)> {
        self.members.iter().map(|member| (member.id, member.epsilon)).collect()
    }

    fn gather(&mut self, call: &Call<'_>) -> Result<Gathered<'_>, Error> {
        let (mut goodbyes, mut returned, mut reports) = (Vec::new(), Vec::new(), Vec::new());
        // The oracles know every loss, so everybody is measured in every round, leavers included.
        let mut agents = Vec::with_capacity(self.members.len());
        let mut fresh = vec![0.0; self.dimension];
        for member in &mut self.members {
            let answer = member.answer(call, &mut fresh, self.nobody_leaves);
            agents.push(member.evaluation(call.weights, matches!(answer, Answer::StaysAway)));
            match answer {
                Answer::StaysAway => {}
                Answer::Leaves => goodbyes.push(member.id),
                Answer::Reports { loss, returned: back } => {
                    if back {
                        returned.push(member.id);
                    }
                    reports.push(member.report(loss, call.round, self.privacy));
                }
            }
        }
        let reports =
            Reports::with_goodbyes(self.dimension, reports, goodbyes)?.with_returned(returned)?;
        let assessment = Some(Assessment { agents, population: None });
        Ok(Gathered { reports, faults: Vec::new(), assessment })
    }

    fn assess(&mut self, weights: &[f64]) -> Result<Assessment, Error> {
        let evaluate = |member: &Member| Evaluation {
            agent: member.id,
            loss: member.oracle.loss(weights),
            accuracy: member.oracle.accuracy(weights),
        };
        let agents = self.members.iter().map(evaluate).collect();
        Ok(Assessment { agents, population: None })
    }

    fn behaviours(&self) -> Vec<String> {
        self.members.iter().map(|member| member.behaviour.name().to_owned()).collect()
    }

    fn memory(&self) -> Value {
        json!(self.members.iter().map(Member::memory).collect::<Vec<_>>())
    }

    fn recall(&mut self, memory: &Value) -> Result<(), Error> {
        let bad = |why: String| Error::BadState { why };
        let memories = memory.as_array().ok_or_else(|| bad("it lists no agents".into()))?;
        if memories.len() != self.members.len() {
            let why =
                format!("it has {} agents, the problem {}", memories.len(), self.members.len());
            return Err(bad(why));
        }
        let mut members = self.members.iter_mut().zip(memories);
        members.try_for_each(|(member, memory)| member.recall(memory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Observation3, Problem};
    use crate::record::RoundLine;
    use crate::{Mean, Observer, RoundView, Server, run};

    #[derive(Default)]
    struct Lines(Vec<(Vec<f64>, RoundLine)>);

    impl Observer for Lines {
        fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
            self.0.push((view.received.to_vec(), RoundLine::new(view)));
            Ok(())
        }
    }

    #[test]
    fn everybody_is_measured_in_every_round_those_who_left_included() {
        let instance = Problem::Observation3(Observation3::default()).build(Seed(0)).unwrap();
        let epsilon = vec![instance.epsilon; instance.oracles.len()];
        let mut engine = Federation::new(&instance, &epsilon, &Behaviour::default()).unwrap();
        let start = instance.start.clone();
        let mut server = Server::new(start, Mean::default(), instance.step_size).unwrap();
        let mut lines = Lines::default();
        run(&mut server, &mut engine, 500, &mut [&mut lines]).unwrap();
        let mut alone = 0;
        for (weights, line) in &lines.0 {
            let measured = &line.assessment.as_ref().unwrap().loss;
            let true_losses: Vec<f64> =
                instance.oracles.iter().map(|oracle| oracle.loss(weights)).collect();
            assert_eq!(measured.len(), instance.oracles.len());
            for (measured, truly) in measured.iter().zip(&true_losses) {
                assert!((measured - truly).abs() <= 1e-12, "round {}", line.round);
            }
            alone += usize::from(line.agents.len() == 1);
        }
        assert!(alone > 0, "the test needs rounds in which somebody has left");
    }
}
