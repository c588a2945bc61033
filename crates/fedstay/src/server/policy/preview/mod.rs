//! `preview`: the server's own model moves as if nobody could leave, and an agent that would be content
//! with it is shown another one until the end.
//!
//! Every agent m that is about to be content receives its *preview* `w̃_m` instead of `w`: the
//! nearest point to `w` at which its loss is predicted to be its floor,
//!
//! ```text
//! floor_m = ε_m + δ + margin + pace·(1 − round/rounds) + what predictions about m have missed by
//! ```
//!
//! (where `relative`, δ, margin and pace count in units of how far above its target its first loss was;
//! but never more than its first loss: an agent that came in with less is shown no worse than it came
//! with, and sees that fall)
//!
//! and what it reports about the preview is translated to `w` before the rule sees it. At the end,
//! everyone who stayed is given `w`. Agents know this: it is a rule of the federation.
//!
//! **By cut**, where m reports the exact loss L and gradient g at what it received: with `w⁺` the
//! server's new weights,
//!
//! ```text
//! c  = L + ⟨g, w⁺ − w̃⟩             m's loss at w⁺, predicted; a lower bound if it is convex
//! w̃⁺ = w⁺ + max(0, floor − c)/‖g‖² · g
//! ```
//!
//! **Certified.** For convex losses `F_m(w̃⁺) ≥ L + ⟨g, w̃⁺ − w̃⟩ ≥ floor_m > ε_m`: nobody leaves,
//! whatever the step, the number of agents and of dimensions. Only an agent that is content with the
//! first weights of all, before it has reported anything, cannot be held.
//!
//! **By rewind**, where m sends only a loss and where its training ended: see `rewind.rs`.
//!
//! A preview that cannot be trusted (a gradient of zero, an offset longer than all steps so far) is
//! not sent. The agent is then shown once more what it was shown before, with which it was not
//! content. An agent that is silent keeps its last cut, and one that has not been heard yet is shown
//! the first weights of all. Only agents that are held cost memory: one vector each; where some are
//! silent in a round, all that are still in do.
//!
//! **Landing.** For H-smooth losses `F_m(w) ≤ c + ½H‖w − w̃‖² `. When that is at most ε_m for
//! everybody, `w` satisfies all of them: certified if H is known, the losses are convex and the
//! reports exact. It holds for small δ only, so δ is halved whenever `c ≤ ε_m − δ` for all m.
//!
//! Theory and measurements: `docs/preview.md`.

mod arrival;
mod known;
mod landing;
mod offset;
mod rewind;
mod round;
mod showing;

use super::translation::{Slope, Translation, estimate};
use super::{Place, Policy, PolicyFacts, PolicyOption, Turn, Values, Wrap};
use crate::list::Origin;
use crate::message::{Layer, is_default};
use crate::rule::{Decision, Facts, Round, SLACK};
use crate::{AgentId, Error, Report, Reports};
use crate::{Broadcast, Personal};
use known::PreviewMemory;
use rewind::Rewind;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "let the model move freely; show those about to be content the nearest model they are not content with",
    reference: "this project, after Karimireddy et al., arXiv 2207.04557",
};

pub(super) const OPTIONS: &[PolicyOption] = &[
    PolicyOption {
        key: "policy.by",
        example: "\"auto\"",
        values: Values::Words(&["auto", "cut", "rewind", "stale", "noise"]),
        about: "how previews are made: up the gradient, on the way back, or as a control",
        otherwise: "",
    },
    PolicyOption {
        key: "policy.pace",
        example: "0.1",
        values: Values::ANY,
        about: "by how much the loss shown falls over the run, for impatient agents",
        otherwise: "",
    },
    PolicyOption {
        key: "policy.relative",
        example: "true",
        values: Values::Switch,
        about: "whether δ, margin and pace are shares of how far above its target an agent was at first",
        otherwise: "false; true under the rule `stay`",
    },
    PolicyOption {
        key: "policy.over",
        example: "300",
        values: Values::ROUNDS,
        about: "the rounds over which it falls",
        otherwise: "the rounds of the run",
    },
    PolicyOption {
        key: "policy.until",
        example: "\"rounds\"",
        values: Values::Words(&["rounds", "content"]),
        about: "when to deliver: after the last round, or once everybody is content",
        otherwise: "",
    },
    PolicyOption {
        key: "policy.cap",
        example: "1",
        values: Values::ANY,
        about: "no preview is farther away than this many times the way so far",
        otherwise: "",
    },
    PolicyOption {
        key: "policy.smoothness",
        example: "1",
        values: Values::ANY,
        about: "a constant H such that every loss is H-smooth, which certifies the landing",
        otherwise: "the problem's own on a problem, unknown elsewhere",
    },
];

/// The rounds over which `pace` falls, if nobody says how many there are.
const USUAL_ROUNDS: u32 = 1000;

/// Show agents that would be content something else until the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Preview {
    /// How far above its target loss every agent is kept.
    pub delta: f64,
    /// More of the same, against agents that leave early or tell too large a loss. It must be larger
    /// than what they gain by it.
    pub margin: f64,
    /// How previews are made.
    pub by: By,
    /// By how much the loss shown falls over the whole run, a little in every round, so that
    /// impatient agents see progress. 0 is none.
    pub pace: f64,
    /// Whether `delta`, `margin` and `pace` are shares of how far above its target loss an agent was when it was first
    /// heard, instead of losses: where all of training moves losses by 0.03, a δ of 0.02 is most of it. δ is then halved,
    /// three times at most, while everybody is predicted to be below its target by it.
    #[serde(skip_serializing_if = "is_default")]
    pub relative: bool,
    /// The rounds over which it falls: those of the run, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<u32>,
    /// When to deliver.
    pub until: Until,
    /// No preview is farther from the server's weights than this many times the way they have come.
    pub cap: f64,
    /// A constant H such that every loss is H-smooth, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothness: Option<f64>,
    #[serde(skip_serializing_if = "is_default")]
    memory: PreviewMemory,
}

/// How previews are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// By cut for agents that report an exact gradient at what they received, else by rewind.
    #[default]
    Auto,
    /// Up the gradient at what the agent received.
    Cut,
    /// On the way from what the agent received to the server's weights.
    Rewind,
    /// What the agent was shown last: the control that shows what moving a preview is worth.
    Stale,
    /// As far as by cut, in a random direction: the control that shows what the gradient is worth.
    Noise,
}

/// When the server's weights are delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// After the last round.
    #[default]
    Rounds,
    /// As soon as they satisfy everybody: provably, where a smoothness is given, or else as far as
    /// can be predicted.
    Content,
}

impl Default for Preview {
    fn default() -> Self {
        Self {
            delta: SLACK,
            margin: 0.0,
            by: By::Auto,
            pace: 0.1,
            relative: false,
            over: None,
            until: Until::Rounds,
            cap: 1.0,
            smoothness: None,
            memory: PreviewMemory::default(),
        }
    }
}

impl Preview {
    fn slack(&self) -> f64 {
        self.memory.delta.unwrap_or(self.delta)
    }

    /// What δ, margin and pace of an agent are multiplied with.
    fn unit(&self, epsilon: f64, first: Option<f64>) -> f64 {
        match first {
            Some(first) if self.relative => (first - epsilon).clamp(0.0, f64::MAX),
            _ => 1.0,
        }
    }

    /// What an agent is kept above in the round after `round`, apart from its own misses; `first` is
    /// the first loss that it told.
    fn floor(&self, epsilon: f64, first: Option<f64>, round: u32) -> f64 {
        let over = self.over.or(self.memory.rounds).unwrap_or(USUAL_ROUNDS);
        let left = (1.0 - f64::from(round) / f64::from(over.max(1))).max(0.0);
        let unit = self.unit(epsilon, first);
        let (slack, margin, pace) = (unit * self.slack(), unit * self.margin, unit * self.pace);
        let lowest = epsilon + slack;
        match first.filter(|first| *first < lowest + margin + pace) {
            None => epsilon + slack + margin + pace * left,
            // It falls all the same, by half the pace at least.
            Some(first) => {
                let end = (lowest + margin).min(first - pace / 2.0).max(lowest);
                end + (first - end).max(0.0) * left
            }
        }
    }

    /// Forgets agents that left.
    fn forget(&mut self, goodbyes: &[AgentId]) {
        for agent in goodbyes {
            self.memory.agents.remove(agent);
            self.memory.personal.retain(|(other, _)| other != agent);
        }
    }

    /// Keeps the initial weights until every agent has been heard, and while others may still come.
    /// An agent that has not reported is shown them, so that nobody is content before its cut is known,
    /// except with the initial weights themselves.
    fn await_newcomers(&mut self, strangers: bool, round: &Round<'_>) {
        if !strangers && !round.reports.newcomers() {
            self.memory.first = None;
        } else if round.number == 1 {
            self.memory.first = Some(Personal::Fixed(round.weights.to_vec()));
        }
    }

    /// What is known of the gradient at what an agent received, from its report and from those
    /// before.
    fn slope<'r>(&self, report: &Report<'r>) -> Slope<'r> {
        let fresh = Rewind::default();
        let known = self.memory.agents.get(&report.agent);
        let rewind = known.map_or(&fresh, |known| &known.rewind);
        showing::slope(report, (!self.cuts(report)).then_some(rewind))
    }
}

impl Wrap for Preview {
    fn facts(&self) -> PolicyFacts {
        PolicyFacts { takes_problem: true, ..PolicyFacts::keeping(Place::Shows) }
    }

    fn clash(&self, other: &Policy) -> Option<&'static str> {
        matches!(other, Policy::Guard(_)).then_some(
            "the guard holds the server's own model back, and previews are there to let it move \
             freely: leave one of them out",
        )
    }

    fn check(&self) -> Result<(), Error> {
        let named = [("delta", self.delta), ("margin", self.margin), ("pace", self.pace)];
        for (name, value) in named.into_iter().chain([("cap", self.cap)]) {
            super::check_not_negative(&format!("policy.{name}"), value)?;
        }
        if let Some(smoothness) = self.smoothness {
            super::check_not_negative("policy.smoothness", smoothness)?;
        }
        if self.over == Some(0) {
            return Err(Error::bad_parameter("policy.over", 0, "one round or more"));
        }
        Ok(())
    }

    fn expect(&mut self, rounds: u32) {
        self.memory.rounds = Some(rounds);
    }

    fn layer(&self) -> Layer<'_> {
        self.memory.layer()
    }

    fn translate(
        &self,
        without: &Broadcast<'_>,
        reports: &Reports<'_>,
        facts: &Facts,
    ) -> Result<Option<Translation>, Error> {
        let (layer, cuts) = (self.layer(), facts.cuts);
        Translation::new("preview", layer, without, reports, cuts, |report| self.slope(report))
            .map(Some)
    }

    fn apply(
        &mut self,
        turn: &Turn<'_>,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error> {
        self.take_round(turn.round, step, decision)
    }

    fn heard_nobody(&mut self, round: &Round<'_>) -> Result<(), Error> {
        self.forget(round.reports.goodbyes());
        let strangers = round.reports.absent() > self.memory.agents.len();
        self.await_newcomers(strangers, round);
        Ok(())
    }
}
