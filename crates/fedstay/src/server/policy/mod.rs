//! Server policies that wrap any rule: what a server without a better idea would do about
//! departures. They belong in every comparison. One file per policy; [`Policy`] is the list.

mod early_stop;
mod guard;
mod keep_best;
mod preview;

pub use early_stop::EarlyStop;
pub use guard::Guard;
pub use keep_best::KeepBest;
pub use preview::{By, Preview, Until};

use crate::Personal;
use crate::list::{Entry, Listed, Origin, Parameters};
use crate::message::check_not_negative;
use crate::rule::{Decision, Facts, Round};
use crate::{AgentId, Error, Reports};
pub(crate) use preview::Translation;
use serde::{Deserialize, Serialize};

/// What a policy does around a rule.
trait Wrap {
    /// Checks the parameters, once, before the first round.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Acts after the rule. It changes its own memory only if it succeeds.
    fn apply(
        &mut self,
        round: &Round<'_>,
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

    /// What some agents are shown instead of the server's weights, by id.
    fn personal(&self) -> &[(AgentId, Personal)] {
        &[]
    }

    /// What agents are shown that have not been heard yet, if not the server's weights.
    fn newcomers(&self) -> Option<&Personal> {
        None
    }

    /// What was said about those, as if it had been said about the server's weights.
    fn translate(
        &self,
        weights: &[f64],
        reports: &Reports<'_>,
        facts: &Facts,
    ) -> Result<Option<Translation>, Error> {
        let _ = (weights, reports, facts);
        Ok(None)
    }
}

/// Makes the enum `Policy` from lines `Variant = "name", file;`, where the file has the type of
/// that name and an `ORIGIN`.
macro_rules! policies {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $file:ident;)+) => {
        /// Every policy, under the name it has in a configuration.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum Policy {
            /// Follow the rule.
            #[default]
            #[serde(rename = "none")]
            None,
            $(
                $(#[$doc])*
                #[serde(rename = $name)]
                $variant($variant),
            )+
        }

        impl Listed for Policy {
            const KEY: &'static str = "kind";
            const LIST: &'static [Entry] = Self::LIST;
            const ALIASES: &'static [&'static str] = &[];

            fn kind(&self) -> Option<&'static str> {
                Some(self.name())
            }

            fn listed_as(name: &str) -> Option<&'static str> {
                Self::LIST.iter().map(|entry| entry.name).find(|listed| *listed == name)
            }

            fn parameters(kind: &str) -> Parameters {
                match kind {
                    $($name => Parameters::of::<$variant>(),)+
                    _ => Parameters::default(),
                }
            }
        }

        impl Policy {
            /// The name in a configuration, one sentence, and the reference of every policy.
            pub const LIST: &'static [Entry] = &[
                Origin { about: "follow the rule", reference: "" }.named("none"),
                $($file::ORIGIN.named($name),)+
            ];

            /// The name in a configuration.
            pub fn name(&self) -> &'static str {
                match self {
                    Self::None => "none",
                    $(Self::$variant(_) => $name,)+
                }
            }

            fn inner(&self) -> Option<&dyn Wrap> {
                match self {
                    Self::None => None,
                    $(Self::$variant(policy) => Some(policy),)+
                }
            }

            fn inner_mut(&mut self) -> Option<&mut dyn Wrap> {
                match self {
                    Self::None => None,
                    $(Self::$variant(policy) => Some(policy),)+
                }
            }
        }
    };
}

policies! {
    /// Stop instead of taking the first step that is predicted to make an agent leave.
    EarlyStop = "early-stop", early_stop;
    /// Follow the rule, but return the best weights seen, not the last.
    KeepBest = "keep-best", keep_best;
    /// Follow the rule as closely as everybody's floor allows.
    Guard = "guard", guard;
    /// Let the server's own model move freely, and show agents that would be content another one.
    Preview = "preview", preview;
}

impl Policy {
    /// Checks the parameters, once, before the first round.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.inner().map_or(Ok(()), Wrap::check)
    }

    /// Whether every report must carry an exact loss, not a lower bound.
    pub(crate) fn needs_exact_losses(&self) -> bool {
        self.inner().is_some()
    }

    /// Whether it sees to it that nobody reaches its target loss.
    pub(crate) fn keeps(&self) -> bool {
        matches!(self, Self::EarlyStop(_) | Self::Guard(_) | Self::Preview(_))
    }

    /// Acts after the rule. It changes its own memory only if it succeeds.
    pub(crate) fn apply(
        &mut self,
        round: &Round<'_>,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error> {
        self.inner_mut().map_or(Ok(()), |policy| policy.apply(round, step, decision))
    }

    /// Takes note of a round without reports, whose goodbyes still count.
    pub(crate) fn heard_nobody(&mut self, round: &Round<'_>) -> Result<(), Error> {
        self.inner_mut().map_or(Ok(()), |policy| policy.heard_nobody(round))
    }

    /// The weights to deliver at the end, if they are not the current ones.
    pub(crate) fn deliver(&self) -> Option<&[f64]> {
        self.inner().and_then(Wrap::deliver)
    }

    /// Is told how many rounds the run has at most.
    pub(crate) fn expect(&mut self, rounds: u32) {
        if let Some(policy) = self.inner_mut() {
            policy.expect(rounds);
        }
    }

    /// What some agents are shown instead of the server's weights, by id.
    pub(crate) fn personal(&self) -> &[(AgentId, Personal)] {
        self.inner().map_or(&[], Wrap::personal)
    }

    /// What agents are shown that have not been heard yet, if not the server's weights.
    pub(crate) fn newcomers(&self) -> Option<&Personal> {
        self.inner().and_then(Wrap::newcomers)
    }

    /// What was said about those, as if it had been said about the server's weights.
    pub(crate) fn translate(
        &self,
        weights: &[f64],
        reports: &Reports<'_>,
        facts: &Facts,
    ) -> Result<Option<Translation>, Error> {
        self.inner().map_or(Ok(None), |policy| policy.translate(weights, reports, facts))
    }
}
