//! The engine for named problems: agents with exact oracles, in this process, one after the other.

use super::{Instance, Oracle};
use crate::{
    AgentId, Assessment, Behaviour, Call, Choice, Decide, Engine, Error, Evaluation, Evidence,
    Gathered, Report, Reports, Vector, View,
};
use serde_json::{Value, json};
use std::sync::Arc;

struct Member {
    id: AgentId,
    epsilon: f64,
    oracle: Arc<dyn Oracle>,
    behaviour: Behaviour,
    gradient: Vec<f64>,
    left: Option<u32>,
}

/// Agents with exact oracles.
pub struct Federation {
    members: Vec<Member>,
    dimension: usize,
}

struct Known(f64);

impl Evidence for Known {
    fn loss(&mut self) -> f64 {
        self.0
    }
}

impl Federation {
    /// The instance's agents, numbered from 0, with their precisions and a common behaviour.
    pub fn new(instance: &Instance, epsilon: &[f64], behaviour: &Behaviour) -> Result<Self, Error> {
        if epsilon.len() != instance.oracles.len() {
            let must = format!("one number, or a list of {}", instance.oracles.len());
            return Err(Error::bad_parameter("epsilon", format!("{epsilon:?}"), must));
        }
        let dimension = instance.dimension();
        let members =
            instance.oracles.iter().zip(epsilon).enumerate().map(|(id, (oracle, eps))| Member {
                id: AgentId(id as u64),
                epsilon: *eps,
                oracle: Arc::clone(oracle),
                behaviour: behaviour.clone(),
                gradient: vec![0.0; dimension],
                left: None,
            });
        Ok(Self { members: members.collect(), dimension })
    }
}

impl Engine for Federation {
    fn agents(&self) -> Vec<(AgentId, f64)> {
        self.members.iter().map(|member| (member.id, member.epsilon)).collect()
    }

    fn gather(&mut self, call: &Call<'_>) -> Result<Gathered<'_>, Error> {
        let mut goodbyes = Vec::new();
        let mut reports = Vec::new();
        for member in self.members.iter_mut().filter(|member| member.left.is_none()) {
            let loss = member.oracle.loss_and_gradient(call.weights, &mut member.gradient);
            let choice = member.behaviour.decide(&mut View {
                agent: member.id,
                round: call.round,
                epsilon: member.epsilon,
                evidence: &mut Known(loss),
            });
            match choice {
                Choice::Stay => {
                    let direction = Vector::F64(&member.gradient);
                    reports.push(Report::new(member.id, loss, member.epsilon, direction));
                }
                Choice::Leave => {
                    member.left = Some(call.round);
                    goodbyes.push(member.id);
                }
            }
        }
        let reports = Reports::with_goodbyes(self.dimension, reports, goodbyes)?;
        Ok(Gathered { reports, faults: Vec::new(), assessment: None })
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

    fn memory(&self) -> Value {
        json!(self.members.iter().map(|member| member.left).collect::<Vec<_>>())
    }

    fn recall(&mut self, memory: &Value) -> Result<(), Error> {
        let left: Vec<Option<u32>> = serde_json::from_value(memory.clone())
            .map_err(|error| Error::BadState { why: error.to_string() })?;
        if left.len() != self.members.len() {
            let why = format!("it has {} agents, the problem {}", left.len(), self.members.len());
            return Err(Error::BadState { why });
        }
        for (member, left) in self.members.iter_mut().zip(left) {
            member.left = left;
        }
        Ok(())
    }
}
