//! Server policies that wrap any rule: what a server without a better idea would do about
//! departures. They belong in every comparison. One file per policy; [`Policy`] is the list of all
//! of them, [`Policies`] the ones that a server has, in order.

mod compose;
mod early_stop;
mod guard;
mod keep_best;
#[cfg(test)]
mod laws;
mod option;
mod path;
mod preview;
mod translation;
mod turn;

pub use compose::Policies;
pub use early_stop::EarlyStop;
pub use guard::Guard;
pub use keep_best::KeepBest;
pub use option::{PolicyOption, Values};
pub use preview::{By, Preview, Until};

use crate::list::listed;
use crate::message::{Layer, check_not_negative};
use crate::rule::{Decision, Facts, Round};
use crate::{Broadcast, Error, Reports};
use translation::Translation;
use turn::Turn;

listed! {
    /// Every policy, under the name it has in a configuration.
    ///
    /// ```
    /// use fedstay::policy::Guard;
    /// use fedstay::{AgentId, Loss, Mean, Report, Reports, Server, Vector};
    ///
    /// // The mean would take the first agent to where it leaves. The guard bends the step.
    /// let near = Report::new(AgentId(0), Loss::Exact(0.2).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
    /// let far = Report::new(AgentId(1), Loss::Exact(3.0).leaves_at(0.1), Vector::F64(&[1.0, 1.0]));
    /// let server = Server::new(vec![0.0, 0.0], Mean::default(), 0.5)?;
    /// let mut server = server.with_policy(Guard::default())?;
    /// let decision = server.step(&Reports::new(2, vec![near, far])?)?;
    /// assert!(decision.guarded && decision.kept == Some(true));
    /// assert!(0.2 + server.weights()[0] > 0.1 && server.weights()[1] < 0.0);
    /// # Ok::<(), fedstay::Error>(())
    /// ```
    pub enum Policy: mut Wrap, "kind", Preview {
        /// Stop instead of taking the first step that is predicted to make an agent leave.
        EarlyStop(EarlyStop) = "early-stop", early_stop::ORIGIN;
        /// Follow the rule, but return the best weights seen, not the last.
        KeepBest(KeepBest) = "keep-best", keep_best::ORIGIN;
        /// Follow the rule as closely as everybody's floor allows.
        Guard(Guard) = "guard", guard::ORIGIN;
        /// Let the server's own model move freely, and show agents that would be content another one.
        Preview(Preview) = "preview", preview::ORIGIN;
    }
}

/// The options of one policy after the other, as a configuration's reference describes them.
pub const OPTIONS: &[&[PolicyOption]] = &[early_stop::OPTIONS, guard::OPTIONS, preview::OPTIONS];

/// What a policy does around a rule.
trait Wrap {
    /// What others need to know about it, with its parameters as they are.
    fn facts(&self) -> PolicyFacts;

    /// Checks the parameters, once, before the first round.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Why it does not go with another policy, in whichever order, and what to do instead.
    fn clash(&self, other: &Policy) -> Option<&'static str> {
        let _ = other;
        None
    }

    /// Acts when its turn comes, after the rule and those before it in the list. It changes its own
    /// memory only if it succeeds.
    fn apply(
        &mut self,
        turn: &Turn<'_>,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error>;

    /// Takes note of a round without reports, whose goodbyes still count.
    fn heard_nobody(&mut self, round: &Round<'_>) -> Result<(), Error> {
        let _ = round;
        Ok(())
    }

    /// The weights to deliver at the end, if they are not the current ones.
    fn deliver(&self) -> Option<&[f64]> {
        None
    }

    /// Is told how many rounds the run has at most.
    fn expect(&mut self, rounds: u32) {
        let _ = rounds;
    }

    /// What agents are shown instead of what they are shown without this policy.
    fn layer(&self) -> Layer<'_> {
        Layer::default()
    }

    /// What was said about that, as if it had been said about what is shown without this policy.
    fn translate(
        &self,
        without: &Broadcast<'_>,
        reports: &Reports<'_>,
        facts: &Facts,
    ) -> Result<Option<Translation>, Error> {
        let _ = (without, reports, facts);
        Ok(None)
    }
}

/// What a policy does. In a list, each place comes before those below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// It changes the rule's step.
    Step,
    /// It shows agents other weights than they are shown without it.
    Shows,
    /// It ends the run.
    Stops,
    /// It delivers other weights than the last.
    Delivers,
}

/// The facts about a policy that lists of policies, configurations and engines ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyFacts {
    /// What it does.
    pub place: Place,
    /// Whether it sees to it that nobody reaches its target loss, so that a run has a guarantee.
    pub keeps: bool,
    /// Whether it bounds the step by what reports predict, taken for gradients at the weights that
    /// were received. Where agents take several local steps or sample their rows, the gradient has to
    /// be sent as well.
    pub reads_gradients: bool,
    /// Whether it takes its `delta` and its `smoothness` from a named problem, unless a
    /// configuration gives them.
    pub takes_problem: bool,
}

impl PolicyFacts {
    /// The facts about a policy that keeps everybody, or stops where it could not.
    const fn keeping(place: Place) -> Self {
        Self { keeps: true, ..Self::in_place(place) }
    }

    /// The facts about a policy of which nothing is known but what it does.
    const fn in_place(place: Place) -> Self {
        Self { place, keeps: false, reads_gradients: false, takes_problem: false }
    }
}

impl Policy {
    /// What others need to know about it.
    pub fn facts(&self) -> PolicyFacts {
        self.inner().facts()
    }
}
