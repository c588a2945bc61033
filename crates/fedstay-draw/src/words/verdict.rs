//! Verdicts, stop reasons and landings.

use fedstay::StopReason;
use fedstay::record::{AgentSummary, Guarantee, Summary};
use fedstay::rule::Landing;
use fedstay::verdict::{Empty, Verdict};
use serde::Serialize;

/// The colour in which something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tone {
    /// Green, for what is as it should be.
    Good,
    /// Blue, for what is not as wished for but harmless.
    Fair,
    /// Amber, for something amiss.
    Warn,
    /// Red, for harm to somebody.
    Bad,
    /// Grey, for what nobody can say.
    Open,
}

/// How many agents left a run and how many the delivered model satisfies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All agents.
    pub agents: usize,
    /// Agents that left at some time, each counted once.
    pub left: usize,
    /// Those of them that were content with the starting model and never took part.
    pub at_start: usize,
    /// Agents that are content with the delivered model.
    pub content: usize,
    /// Agents that were asked about it and are not content.
    pub failed: usize,
    /// Those of them that had left: they keep the model of their round.
    pub failed_left: usize,
    /// Agents that could not be asked about it.
    pub unasked: usize,
    /// Agents that were not measured.
    pub unmeasured: usize,
    /// Why the model is worth nothing, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty: Option<Empty>,
}

impl Counts {
    /// The counts of a summary.
    pub fn of(summary: &Summary) -> Self {
        let unasked = summary.agents.iter().filter(|agent| agent.loss_of_round.is_some()).count();
        let content = summary.satisfied();
        let failed_left = |agent: &&AgentSummary| {
            let left = summary.left.iter().any(|left| left.agent == agent.id);
            left && agent.is_asked() && !agent.is_content()
        };
        Self {
            agents: summary.count(),
            left: summary.leavers(),
            at_start: summary.content_at_start.len(),
            content,
            failed: summary.known().saturating_sub(content),
            failed_left: summary.agents.iter().filter(failed_left).count(),
            unasked,
            unmeasured: summary.unmeasured,
            empty: summary.empty,
        }
    }

    /// How many agents are content, as every verdict says it: `7 of 10 content`. Where something is
    /// known of some only, it speaks of those: `7 of 10 measured agents content, 990 not measured`.
    pub fn content_words(&self) -> String {
        let Self { content, agents, unmeasured, unasked, .. } = self;
        let known = agents.saturating_sub(*unmeasured + *unasked);
        match (known, unmeasured, unasked) {
            (_, 0, 0) => format!("{content} of {agents} content"),
            (0, _, 0) => format!("none of the {agents} agents was measured"),
            (0, ..) => format!("none of the {agents} agents was asked about the model"),
            (_, _, 0) => {
                format!("{content} of {known} measured agents content, {unmeasured} not measured")
            }
            _ => {
                let others = agents - known;
                format!("{content} of {known} asked agents content, {others} not asked")
            }
        }
    }

    /// Who left, as every verdict says it: `3 of 10 left`. Agents that were content with the starting
    /// model are told apart, since no training drove them away.
    pub(super) fn left_words(&self) -> String {
        let Self { left, at_start, agents, .. } = self;
        match (left.saturating_sub(*at_start), at_start) {
            (_, 0) => format!("{left} of {agents} left"),
            (0, _) => format!("{at_start} of {agents} {}", self.at_start_words()),
            (others, _) => {
                format!("{others} of {agents} left, {at_start} more {}", self.at_start_words())
            }
        }
    }

    /// What is said of agents that were content with the starting model.
    fn at_start_words(&self) -> String {
        let were = if self.at_start == 1 { "was" } else { "were" };
        format!("{were} content with the starting model and never took part")
    }

    /// How many agents the model fails, and how many of them keep another one: `3 agents`,
    /// `3 agents, 2 of which left and keep the model of their round`.
    pub(super) fn failed_words(&self) -> String {
        let Self { failed, failed_left, .. } = self;
        let failed_words = format!("{failed} agent{}", if *failed == 1 { "" } else { "s" });
        match failed_left {
            0 => failed_words,
            left if left == failed && *failed == 1 => {
                format!("{failed_words}, which left and keeps the model of its round")
            }
            left if left == failed => {
                format!("{failed_words}, which left and keep the models of their rounds")
            }
            1 => format!("{failed_words}, 1 of which left and keeps the model of its round"),
            left => {
                format!("{failed_words}, {left} of which left and keep the models of their rounds")
            }
        }
    }
}

/// What a verdict says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictWords {
    /// The colour in which it is said.
    pub tone: Tone,
    /// One word, for a badge.
    pub head: &'static str,
    /// One sentence, which always says how many are content.
    pub text: String,
}

/// What a verdict says of a run with these counts.
pub fn verdict(verdict: Verdict, counts: &Counts) -> VerdictWords {
    let (content, failed, left) =
        (counts.content_words(), counts.failed_words(), counts.left_words());
    let (tone, head, text) = match verdict {
        Verdict::Retained => (Tone::Good, "Retained", format!("All stayed; {content}.")),
        Verdict::Unsatisfied => (
            Tone::Warn,
            "Unsatisfied",
            format!("All stayed, but the model satisfies nobody; {content}."),
        ),
        Verdict::AtStart => {
            let text = format!("{left}; all others stayed; {content}.");
            (Tone::Fair, "At-start", text)
        }
        Verdict::Benign => {
            let text = format!("{left}, and it harmed nobody; {content}.");
            (Tone::Fair, "Benign", text)
        }
        Verdict::Harmful => {
            let text = format!("{left}, and the delivered model fails {failed}; {content}.");
            (Tone::Bad, "Harmful", text)
        }
        Verdict::Unknown if counts.left == 0 => {
            (Tone::Open, "Unknown", format!("All stayed; {content}."))
        }
        Verdict::Unknown if counts.unmeasured > 0 => {
            (Tone::Open, "Unknown", format!("{left}; {content}."))
        }
        Verdict::Unknown => {
            let unasked = counts.unasked;
            let text = format!(
                "{left}; {unasked} could not be asked about the model, which satisfies all others; \
                 {content}."
            );
            (Tone::Open, "Unknown", text)
        }
        Verdict::Empty => {
            let also = if counts.left == 0 { String::new() } else { format!("; {left}") };
            let text = format!("{}{also}; {content}.", emptiness(counts.empty));
            (Tone::Bad, "Empty", super::capital(&text))
        }
    };
    VerdictWords { tone, head, text }
}

/// Why a model is worth nothing: a clause.
pub fn emptiness(empty: Option<Empty>) -> &'static str {
    match empty {
        Some(Empty::NobodyTrained) => {
            "nobody trained a round, so the model is the one the run began with"
        }
        Some(Empty::NoStep) => "no step was taken, so the model is the one the run began with",
        Some(Empty::Constant) => {
            "the model is no better than one that gives everybody the same answer"
        }
        None => "the model is worth nothing",
    }
}

/// Why a run ended: a clause that begins with "it".
pub fn stop(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Settled => "it stopped: everybody is within reach of their target loss",
        StopReason::Landed => "it landed: everybody was brought under their target loss at once",
        StopReason::Stalled => {
            "it stalled: no direction helps somebody and leaves those about to leave alone"
        }
        StopReason::EveryoneLeft => "it ended because everyone had left",
        StopReason::EarlyStop => {
            "it was stopped early, before a predicted departure or by a callback"
        }
        StopReason::RoundLimit => "it ended after the rounds asked for",
        StopReason::Unrealizable => {
            "it stopped: no model brings everybody under their target loss, provably"
        }
        StopReason::TooFew => "it stopped: fewer agents answered than it was told to continue with",
    }
}

/// How sure it is that the rule kept everybody.
pub fn sureness(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::Certified => {
            "certified: convex losses and exact gradients, so every step was proved to keep everybody \
             who took part"
        }
        Guarantee::Estimated => {
            "estimated: that steps keep everybody is predicted from gradients, not proved"
        }
    }
}

/// Whether the last step keeps everybody.
pub fn keeping(kept: Option<bool>) -> &'static str {
    match kept {
        Some(true) => "the last step keeps everybody, by first-order information",
        Some(false) => "the last step does not keep everybody, by first-order information",
        None => "not known: the losses that would tell were not asked for",
    }
}

/// Whether everybody was brought under their target loss at once, in words.
pub fn landing(landing: Landing) -> &'static str {
    match landing {
        Landing::Certified => "yes, certified: provably under every target loss at once",
        Landing::Estimated => "yes, as far as can be predicted",
        Landing::No => "not yet",
    }
}
