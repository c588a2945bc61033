//! Verdicts, stop reasons and landings.

use fedstay::StopReason;
use fedstay::record::{Guarantee, Summary};
use fedstay::rule::Landing;
use fedstay::verdict::Verdict;
use serde::Serialize;

/// The colour in which something is said. Each verdict has its own.
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
    /// Agents that are content with the delivered model.
    pub content: usize,
    /// Agents that were asked about it and are not content.
    pub failed: usize,
    /// Agents that could not be asked about it.
    pub unasked: usize,
    /// Agents that were not measured.
    pub unmeasured: usize,
}

impl Counts {
    /// The counts of a summary.
    pub fn of(summary: &Summary) -> Self {
        let unasked = summary.agents.iter().filter(|agent| agent.loss_of_round.is_some()).count();
        let content = summary.satisfied();
        Self {
            agents: summary.count(),
            left: summary.leavers(),
            content,
            failed: summary.measured().saturating_sub(content + unasked),
            unasked,
            unmeasured: summary.unmeasured,
        }
    }

    /// How many agents are content, as every verdict says it: `7 of 10 content`. Of a sample only the
    /// sample is spoken of: `7 of 10 measured agents content, 990 not measured`.
    pub fn content_words(&self) -> String {
        let Self { content, agents, unmeasured, .. } = self;
        match (agents.saturating_sub(*unmeasured), unmeasured) {
            (_, 0) => format!("{content} of {agents} content"),
            (0, _) => format!("none of the {agents} agents was measured"),
            (measured, _) => {
                format!(
                    "{content} of {measured} measured agents content, {unmeasured} not measured"
                )
            }
        }
    }

    /// How many agents the model fails: `1 agent`, `3 agents`.
    pub(super) fn failed_words(&self) -> String {
        format!("{} agent{}", self.failed, if self.failed == 1 { "" } else { "s" })
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
    let Counts { left, agents, unasked, .. } = counts;
    let (content, failed) = (counts.content_words(), counts.failed_words());
    let (tone, head, text) = match verdict {
        Verdict::Retained => (Tone::Good, "Retained", format!("All stayed; {content}.")),
        Verdict::Unsatisfied => (
            Tone::Warn,
            "Unsatisfied",
            format!("All stayed, but the model satisfies nobody; {content}."),
        ),
        Verdict::Benign => {
            let text = format!("{left} of {agents} left, and it harmed nobody; {content}.");
            (Tone::Fair, "Benign", text)
        }
        Verdict::Harmful => {
            let text = format!("{left} of {agents} left, and the model fails {failed}; {content}.");
            (Tone::Bad, "Harmful", text)
        }
        Verdict::Unknown if *agents == 0 => {
            (Tone::Open, "Unknown", format!("Nobody took part; {content}."))
        }
        Verdict::Unknown if *left == 0 => {
            (Tone::Open, "Unknown", format!("All stayed; {content}."))
        }
        Verdict::Unknown if counts.unmeasured > 0 => {
            (Tone::Open, "Unknown", format!("{left} of {agents} left; {content}."))
        }
        Verdict::Unknown => {
            let text = format!(
                "{left} of {agents} left; {unasked} could not be asked about the model, which \
                 satisfies all others; {content}."
            );
            (Tone::Open, "Unknown", text)
        }
    };
    VerdictWords { tone, head, text }
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
            "it stopped: no model near here brings everybody under their target loss, provably"
        }
        StopReason::TooFew => "it stopped: fewer agents answered than it was told to continue with",
    }
}

/// How sure it is that the rule kept everybody.
pub fn sureness(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::Certified => {
            "certified: convex losses and exact gradients, so every step was proved to keep everybody"
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
