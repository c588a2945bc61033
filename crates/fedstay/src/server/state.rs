//! A server on its way into a checkpoint and back.

use super::{Forgetting, Optimiser, Policies, Server};
use crate::Error;
use crate::memory::inside;
use crate::message::called;
use crate::packed;
use crate::rule::{Aggregator, Rule};
use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use serde_json::Value;

/// The version of the saved state's format; raised when an older one can no longer be read.
const SCHEMA: u32 = 2;

/// How far a server has come.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Clock {
    pub(super) round: u32,
    pub(super) step_size: f64,
    pub(super) initial_step_size: f64,
    pub(super) last_step: f64,
}

/// The whole state of a server, for a checkpoint.
///
/// Serialising it fails for a [custom rule](Server::with_rule) that cannot be
/// [saved](Aggregator::save).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerState {
    schema: u32,
    #[serde(flatten)]
    rule: SavedRule,
    #[serde(default, skip_serializing_if = "Optimiser::is_plain")]
    optimiser: Optimiser,
    #[serde(rename = "policy")]
    policies: Policies,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forgetting: Option<Forgetting>,
    #[serde(flatten)]
    clock: Clock,
    #[serde(with = "packed")]
    weights: Vec<f64>,
}

/// A rule with its memory; of a custom rule, only the memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedRule {
    Rule(Box<Rule>),
    CustomRule {
        #[serde(serialize_with = "saved")]
        memory: Option<String>,
    },
}

fn saved<S: Serializer>(memory: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    let memory = memory.as_ref().ok_or_else(|| S::Error::custom(Error::CannotSave))?;
    serializer.serialize_str(memory)
}

/// How far a server has come and what it remembers, without its weights, rule, optimiser and policy,
/// for a caller that keeps those itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    #[serde(flatten)]
    clock: Clock,
    #[serde(default)]
    rule_memory: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    optimiser_memory: Value,
    #[serde(default)]
    policy_memory: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    forgetting_memory: Value,
}

impl Server {
    /// The whole state, for a checkpoint.
    pub fn state(&self) -> ServerState {
        let rule = match &self.rule {
            rule @ Rule::Custom(_) => SavedRule::CustomRule { memory: rule.save() },
            rule => SavedRule::Rule(Box::new(rule.clone())),
        };
        ServerState {
            schema: SCHEMA,
            rule,
            optimiser: self.optimiser.clone(),
            policies: self.policies.clone(),
            forgetting: self.forgetting.clone(),
            clock: self.clock,
            weights: self.weights.clone(),
        }
    }

    /// A server as it was when [`state`](Self::state) was taken.
    pub fn from_state(state: ServerState) -> Result<Self, Error> {
        match state.rule.clone() {
            SavedRule::Rule(rule) => Self::take_up(state, *rule),
            SavedRule::CustomRule { .. } => Err(Error::BadState {
                why: "it belongs to a custom rule, which must also be given (`from_state_with`; \
                      in Python `from_state(state, rule)`)"
                    .into(),
            }),
        }
    }

    /// A server with a custom rule, as it was when [`state`](Self::state) was taken. The rule
    /// [restores](Aggregator::restore) what it remembered; its parameters are the caller's to keep.
    pub fn from_state_with(
        state: ServerState,
        mut rule: Box<dyn Aggregator>,
    ) -> Result<Self, Error> {
        match &state.rule {
            SavedRule::CustomRule { memory: Some(memory) } => rule.restore(memory)?,
            SavedRule::CustomRule { memory: None } => return Err(Error::CannotSave),
            SavedRule::Rule(rule) => {
                let why = format!("it belongs to {}, not to a custom rule", rule.name());
                return Err(Error::BadState { why });
            }
        }
        Self::take_up(state, rule.into())
    }

    /// This server as it was when `state` was taken, whatever its rule.
    pub(crate) fn continued(&self, state: ServerState) -> Result<Self, Error> {
        match &self.rule {
            Rule::Custom(rule) => Self::from_state_with(state, rule.clone().rule),
            _ => Self::from_state(state),
        }
        .map(|server| Self { rounds: self.rounds, ..server })
    }

    fn take_up(state: ServerState, rule: Rule) -> Result<Self, Error> {
        if state.schema != SCHEMA {
            let why = format!("its schema is {}, this version reads {SCHEMA}", state.schema);
            return Err(Error::BadState { why });
        }
        state.clock.check()?;
        state.optimiser.check()?;
        state.optimiser.check_dimension(state.weights.len())?;
        state.policies.check()?;
        fits(&state.policies, state.weights.len())?;
        if let Some(forgetting) = &state.forgetting {
            forgetting.check()?;
            forgetting.check_dimension(state.weights.len())?;
        }
        let server = Self::begin(state.weights, rule, state.clock.step_size)?;
        let ServerState { optimiser, policies, forgetting, clock, .. } = state;
        Ok(Self { optimiser, policies, forgetting, clock, ..server })
    }

    /// How far this server has come and what it remembers, without the weights.
    ///
    /// # Errors
    /// If a custom rule cannot be [saved](Aggregator::save).
    pub fn progress(&self) -> Result<Progress, Error> {
        Ok(Progress {
            clock: self.clock,
            rule_memory: self.rule.memory()?,
            optimiser_memory: inside::of(&self.optimiser)?,
            policy_memory: self.policies.memory()?,
            forgetting_memory: match &self.forgetting {
                Some(forgetting) => inside::of(forgetting)?,
                None => Value::Null,
            },
        })
    }

    /// Continues from what [`progress`](Self::progress) gave.
    pub fn resume(&mut self, progress: Progress) -> Result<(), Error> {
        progress.clock.check()?;
        let (mut rule, mut policies) = (self.rule.clone(), self.policies.clone());
        let mut optimiser = self.optimiser.clone();
        rule.recall(progress.rule_memory)?;
        inside::put(&mut optimiser, progress.optimiser_memory)?;
        optimiser.check_dimension(self.weights.len())?;
        policies.recall(progress.policy_memory)?;
        fits(&policies, self.weights.len())?;
        let mut forgetting = self.forgetting.clone();
        if let Some(forgetting) = &mut forgetting {
            inside::put(forgetting, progress.forgetting_memory)?;
            forgetting.check_dimension(self.weights.len())?;
        }
        self.forgetting = forgetting;
        (self.rule, self.optimiser, self.policies) = (rule, optimiser, policies);
        self.clock = progress.clock;
        Ok(())
    }
}

/// Rejects policies that remember vectors of another length than the weights have.
fn fits(policies: &Policies, dimension: usize) -> Result<(), Error> {
    for layer in policies.layers() {
        let listed = layer.personal.iter();
        let named = listed.map(|(agent, personal)| (called(*agent, None), personal));
        let newcomers = layer.newcomers.map(|first| ("a newcomer".to_owned(), first));
        for (who, personal) in named.chain(newcomers) {
            if let Some(got) = personal.len().filter(|length| *length != dimension) {
                let why = format!("{who} is shown {got} numbers, the weights have {dimension}");
                return Err(Error::BadState { why });
            }
        }
    }
    Ok(())
}

impl Clock {
    /// Rejects a state that no server can have reached.
    fn check(&self) -> Result<(), Error> {
        if !self.last_step.is_finite() {
            return Err(Error::BadState { why: format!("its last step is {}", self.last_step) });
        }
        for step_size in [self.step_size, self.initial_step_size] {
            if !(step_size.is_finite() && step_size > 0.0) {
                return Err(Error::BadState { why: format!("its step size is {step_size}") });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mean;

    #[test]
    fn a_state_of_an_earlier_version_is_refused_by_its_schema() {
        let server = Server::new(vec![1.0], Mean::default(), 0.1).unwrap();
        let text = serde_json::to_string(&server.state()).unwrap();
        assert!(text.contains("\"schema\":2"), "{text}");
        let earlier = text.replace("\"schema\":2", "\"schema\":1,\"rule_memory\":null");
        let error = Server::from_state(serde_json::from_str(&earlier).unwrap()).unwrap_err();
        assert!(error.to_string().contains("its schema is 1, this version reads 2"), "{error}");
    }

    #[test]
    fn what_a_failed_resumption_brought_is_dropped() {
        let mut server = Server::new(vec![0.0], Mean::default(), 0.1).unwrap();
        let mut progress = serde_json::to_value(server.progress().unwrap()).unwrap();
        let before = server.state();
        progress["round"] = 7.into();
        progress["rule_memory"] = serde_json::json!([1]);
        let error = server.resume(serde_json::from_value(progress).unwrap()).unwrap_err();
        assert!(matches!(error, Error::BadState { .. }), "{error}");
        assert_eq!(server.state(), before);
    }
}
