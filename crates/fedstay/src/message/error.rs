//! The one error type of the core.
//!
//! An error carries data (which agent, what was expected, what came) and its message says what to
//! do next. Outcomes of a run (settled, stalled, nobody left …) are values, not errors: see
//! [`StopReason`](crate::StopReason).

use super::called;
use crate::AgentId;

/// Something the core was given and cannot use. The server's state is unchanged afterwards.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number that must be finite is NaN or infinite.
    #[error("{}: its {what} is {value}, not a finite number; leave the agent out of this round, or fix its report", called(*agent, None))]
    NotFinite {
        /// The agent that reported it.
        agent: AgentId,
        /// The field, with the position inside a vector.
        what: String,
        /// The value that was reported.
        value: f64,
    },
    /// A finite number that overflows once it is squared and summed.
    #[error("{}: its {what} is too large to compute with (its squared length overflows a 64-bit float); scale the loss or clip the direction", called(*agent, None))]
    TooLarge {
        /// The agent that reported it.
        agent: AgentId,
        /// The field.
        what: &'static str,
    },
    /// A reported number outside its range.
    #[error("{}: its {what} is {value}, but must be {must}", called(*agent, None))]
    OutOfRange {
        /// The agent that reported it.
        agent: AgentId,
        /// The field.
        what: &'static str,
        /// The value that was reported.
        value: f64,
        /// What it must be.
        must: &'static str,
    },
    /// A vector of the wrong length.
    #[error("{}: its {what} has {got} components where the weights have {expected}; do all agents train the same model?", called(*agent, None))]
    WrongDimension {
        /// The agent that reported it.
        agent: AgentId,
        /// The name of the vector.
        what: &'static str,
        /// The number of weights.
        expected: usize,
        /// The number of components it has.
        got: usize,
    },
    /// A vector without components.
    #[error("{}: its direction is empty", called(*agent, None))]
    EmptyDirection {
        /// The agent that reported it.
        agent: AgentId,
    },
    /// Two reports with the same id.
    #[error("{} reported twice in one round; give every agent its own id", called(*agent, None))]
    DuplicateAgent {
        /// The agent that reported twice.
        agent: AgentId,
    },
    /// A goodbye and a report with the same id.
    #[error("{} said goodbye and reported in the same round; an agent that leaves reports nothing", called(*agent, None))]
    ReportAfterGoodbye {
        /// The agent that did both.
        agent: AgentId,
    },
    /// An agent that came back without a report.
    #[error("{} is said to have come back but did not report; an agent that comes back must report", called(*agent, None))]
    ReturnWithoutReport {
        /// The agent that came back.
        agent: AgentId,
    },
    /// The rule needs the exact loss, but the report has only a lower bound, or no loss at all.
    #[error("{}: {rule} needs its exact loss, and the report carries {instead}", called(*agent, None))]
    NeedsExactLoss {
        /// The agent that reported.
        agent: AgentId,
        /// The rule or policy that needs it.
        rule: &'static str,
        /// What the report has instead.
        instead: &'static str,
    },
    /// A parameter outside its range.
    #[error("{name} is {value}, but must be {must}")]
    BadParameter {
        /// The parameter, by the name it has in a configuration.
        name: String,
        /// The value that was given.
        value: String,
        /// What it must be.
        must: String,
    },
    /// Two policies that do not go together, at least not in this order.
    #[error("the policy `{later}` cannot come after `{earlier}`: {why}")]
    PolicyOrder {
        /// The one that comes first in the list.
        earlier: &'static str,
        /// The one that comes later.
        later: &'static str,
        /// Why, and what to do instead.
        why: String,
    },
    /// The step would carry the weights out of the floating-point range.
    #[error(
        "the step would make weight {index} {value}; lower step_size (now {step_size}), or check the agents' directions"
    )]
    StepOverflow {
        /// The index of the weight.
        index: usize,
        /// What it would become.
        value: f64,
        /// The step size in force.
        step_size: f64,
    },
    /// A saved state that cannot be used.
    #[error("this saved state cannot be used: {why}; start over, or use the version that wrote it")]
    BadState {
        /// What is wrong with it.
        why: String,
    },
    /// A server whose rule does not say how it is saved.
    #[error("a server with this rule cannot be saved: implement `Aggregator::save` and `restore`")]
    CannotSave,
    /// A custom rule could not take its step.
    #[error("the rule {rule}: {why}")]
    Rule {
        /// The rule's name.
        rule: String,
        /// What went wrong.
        why: String,
    },
    /// An engine could not gather a round.
    #[error("round {round}: {why}")]
    Engine {
        /// The round that could not be gathered.
        round: u32,
        /// What went wrong.
        why: String,
    },
    /// Training left the floating-point range while a round was gathered or its model measured.
    #[error("round {round}: {why}; lower step_size")]
    Diverged {
        /// The round; 0 for the delivered model.
        round: u32,
        /// Which number is not finite.
        why: String,
    },
    /// A rule that computes with how well groups are served got a report that does not say.
    #[error("{} does not tell how well its groups are served, which {rule} computes with", called(*agent, None))]
    NeedsRates {
        /// The agent.
        agent: AgentId,
        /// The rule.
        rule: &'static str,
    },
    /// The rule asks for something that the engine's agents do not do.
    #[error(
        "{rule} {what}, and the agents of this engine do not do that; choose another rule, or an engine that does"
    )]
    NotApplied {
        /// The rule or policy.
        rule: String,
        /// What it asks for.
        what: &'static str,
    },
    /// A book could not be kept, for instance because the disk is full.
    #[error("{0}")]
    Book(String),
}

impl Error {
    /// Whether this is how a run ends whose steps are far too long: with a number that is not
    /// finite, or too large to compute with. Such a run would end the same way again, so this is a
    /// result; any other error is a failure.
    pub fn is_divergence(&self) -> bool {
        matches!(
            self,
            Self::NotFinite { .. }
                | Self::TooLarge { .. }
                | Self::StepOverflow { .. }
                | Self::Diverged { .. }
        )
    }

    /// A parameter that is out of range.
    pub fn bad_parameter(
        name: impl Into<String>,
        value: impl ToString,
        must: impl Into<String>,
    ) -> Self {
        Self::BadParameter { name: name.into(), value: value.to_string(), must: must.into() }
    }

    /// What went wrong, where the agent that is to blame has a name: the same words, with it.
    pub fn by_name(&self, name: Option<&str>) -> String {
        let text = self.to_string();
        let Some(agent) = self.agent() else { return text };
        match text.strip_prefix(&called(agent, None)) {
            Some(rest) => format!("{}{rest}", called(agent, name)),
            None => text,
        }
    }

    /// What went wrong, for a reader who knows which agent it is about.
    pub(crate) fn reason(&self) -> String {
        let text = self.to_string();
        let who = self.agent().map(|agent| format!("{}: ", called(agent, None)));
        who.and_then(|who| text.strip_prefix(&who).map(str::to_owned)).unwrap_or(text)
    }

    /// The agent whose report is to blame, if one agent's report is.
    pub fn agent(&self) -> Option<AgentId> {
        match self {
            Self::NotFinite { agent, .. }
            | Self::TooLarge { agent, .. }
            | Self::OutOfRange { agent, .. }
            | Self::WrongDimension { agent, .. }
            | Self::EmptyDirection { agent }
            | Self::DuplicateAgent { agent }
            | Self::ReportAfterGoodbye { agent }
            | Self::ReturnWithoutReport { agent }
            | Self::NeedsRates { agent, .. }
            | Self::NeedsExactLoss { agent, .. } => Some(*agent),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_to_blame_is_called_by_its_name_where_it_has_one() {
        let agent = AgentId(7);
        let empty = Error::EmptyDirection { agent };
        assert_eq!(empty.by_name(None), "agent 7: its direction is empty");
        assert_eq!(empty.by_name(Some("NSW")), "NSW: its direction is empty");
        assert_eq!(empty.reason(), "its direction is empty");
        let twice = Error::DuplicateAgent { agent };
        assert!(twice.by_name(Some("NSW")).starts_with("NSW reported twice"));
        assert_eq!(Error::CannotSave.by_name(Some("NSW")), Error::CannotSave.to_string());
        for error in [
            Error::NotFinite { agent, what: "loss".into(), value: f64::NAN },
            Error::TooLarge { agent, what: "loss" },
            Error::OutOfRange { agent, what: "loss", value: 1.0, must: "less" },
            Error::WrongDimension { agent, what: "direction", expected: 1, got: 2 },
            Error::ReportAfterGoodbye { agent },
            Error::ReturnWithoutReport { agent },
            Error::NeedsExactLoss { agent, rule: "retain", instead: "none" },
            Error::NeedsRates { agent, rule: "fairfed" },
        ] {
            let said = error.by_name(Some("NSW"));
            assert!(said.starts_with("NSW") && !said.contains("agent 7"), "{said}");
        }
    }
}
