//! Behaviours: how an agent decides whether to continue taking part, and what it reports.
//!
//! Leaving happens on the agent's side: the server sees only who reported and who said goodbye. One
//! file per behaviour; [`Behaviour`] is the list. A behaviour is its parameters together with what
//! it remembers, so saving an agent is saving this value. `docs/behaviours.md` describes them in
//! plain words, with what can be done about each.

mod amplifying;
mod competitor;
mod contagious;
mod foresight;
mod free_riding;
mod lying;
mod mixed;
mod never;
mod opt_out;
mod returning;
mod shirking;
mod threshold;
mod two_sided;
mod utility;
mod withdrawing;
mod withholding;

pub use amplifying::Amplifying;
pub use competitor::Competitor;
pub use contagious::Contagious;
pub use foresight::Foresight;
pub use free_riding::{Form, FreeRiding};
pub use lying::Lying;
pub use mixed::{Mixed, PopulationPart};
pub use never::Never;
pub use opt_out::OptOut;
pub use returning::Returning;
pub use shirking::Shirking;
pub use threshold::Threshold;
pub use two_sided::TwoSided;
pub use utility::Utility;
pub use withdrawing::Withdrawing;
pub use withholding::Withholding;

use super::forgery::Forgery;
use crate::list::{Origin, listed};
use crate::memory::inside::check_fresh;
use crate::message::{check_not_negative, is_default};
use crate::{AgentId, Error, Seed};
use serde::{Deserialize, Serialize};

/// Whether to stay for another round or to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Report in this round; for an agent that has left, come back.
    Stay,
    /// Say goodbye and report nothing, in this round or later; for an agent that has left, stay
    /// away.
    Leave,
    /// Report nothing in this round, and look at the next model again. This is not a departure.
    SitOut,
}

/// What an agent can find out about the weights it received. Finding out costs it work, so an
/// engine answers only what is asked, and does no more work than needed.
pub trait Evidence {
    /// The loss on the agent's full local data.
    fn loss(&mut self) -> f64;

    /// Whether that loss is at most `bound`: often cheaper than the loss itself.
    fn at_most(&mut self, bound: f64) -> bool {
        self.loss() <= bound
    }

    /// Whether the loss would be at most `bound` after `steps` private gradient steps of size
    /// `rate` on the full local data. An engine whose agents cannot look ahead answers for the
    /// weights as they are.
    fn ahead_at_most(&mut self, steps: u32, rate: f64, bound: f64) -> bool {
        let _ = (steps, rate);
        self.at_most(bound)
    }

    /// The loss of the model that the agent makes from the received one in `rounds` rounds of local
    /// work, alone. It is infinite in an engine whose agents cannot do this: every model is then
    /// better.
    fn alone(&mut self, rounds: u32) -> f64 {
        let _ = rounds;
        f64::INFINITY
    }

    /// The share of all agents that have left so far; zero in an engine that does not tell.
    fn gone(&mut self) -> f64 {
        0.0
    }

    /// The mean of the losses that the others told last, as far as they are in; `None` where nobody
    /// told one, or the engine does not tell.
    fn others(&mut self) -> Option<f64> {
        None
    }
}

/// What an agent knows when it decides.
pub struct View<'a> {
    /// The agent that decides.
    pub agent: AgentId,
    /// The round, from 1.
    pub round: u32,
    /// The target loss at which it is content.
    pub epsilon: f64,
    /// Whether it is taking part. An agent that has left is asked only if it may come back.
    pub present: bool,
    /// What it can find out.
    pub evidence: &'a mut dyn Evidence,
}

/// How an agent that stays reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Manner {
    /// Whether it works for its report; an agent that does not repeats its last direction.
    pub works: bool,
    /// What it adds to the loss it reports.
    pub loss_offset: f64,
    /// What it sends as its direction.
    pub sends: Sends,
    /// The share of its rows that it works on, where it has rows.
    pub rows: f64,
}

/// What an agent sends as its direction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Sends {
    /// Its own.
    #[default]
    Own,
    /// Its own direction, and its own gradient, times a number.
    Times(f64),
    /// Something that it has not worked for.
    Forged(Forgery),
}

impl Default for Manner {
    /// The manner of an honest agent.
    fn default() -> Self {
        Self { works: true, loss_offset: 0.0, sends: Sends::Own, rows: 1.0 }
    }
}

impl Manner {
    /// The loss it reports instead of the true one. A lie never makes it negative.
    pub fn told(&self, loss: f64) -> f64 {
        match self.loss_offset {
            0.0 => loss,
            offset => (loss + offset).max(loss.min(0.0)),
        }
    }
}

/// How an agent decides and reports.
pub trait Decide {
    /// Decides whether to stay or leave, on receipt of the weights and before any report.
    fn decide(&mut self, view: &mut View<'_>) -> Choice;

    /// How it reports in the round it has just decided to stay in.
    fn manner(&self) -> Manner {
        Manner::default()
    }

    /// Whether it continues to look at the model after it has left, and may come back.
    fn comes_back(&self) -> bool {
        false
    }

    /// Whether it may repeat its last direction, which the engine must then keep.
    fn repeats(&self) -> bool {
        false
    }

    /// Whether it forges what it sends from the models it received, which the engine must then keep.
    fn forges(&self) -> bool {
        false
    }

    /// Whether it asks nothing but whether its loss is at most its target, always answers the same, and reports
    /// the truth. Such an agent's loss need not be known exactly, and until one leaves no round depends on ε.
    fn is_plain(&self) -> bool {
        false
    }

    /// Whether it asks about the others' losses, which must then be exact.
    fn compares(&self) -> bool {
        false
    }

    /// Whether it needs an engine that knows more than a loss: who has left and what the others told,
    /// what to send instead of work, that a round can be sat out. An engine that does not must refuse
    /// it, because it would be something else there.
    fn needs_simulator(&self) -> bool {
        self.forges() || self.compares()
    }

    /// In how many rounds it reported without having worked.
    fn idle_rounds(&self) -> u32 {
        0
    }

    /// Checks the parameters, once, before the first round.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

listed! {
    /// Every behaviour, under the name it has in a configuration.
    pub enum Behaviour: deref mut Decide, "kind", Threshold {
        /// Leaves once its loss is at most its target.
        Threshold(Threshold) = "threshold", threshold::ORIGIN;
        /// Never leaves.
        Never(Never) = "never", never::ORIGIN;
        /// Stays while the expected gain pays.
        Utility(Utility) = "utility", utility::ORIGIN;
        /// Leaves once a few private steps would do.
        Foresight(Foresight) = "foresight", foresight::ORIGIN;
        /// Leaves content, or when the model stays worse than its own.
        TwoSided(TwoSided) = "two-sided", two_sided::ORIGIN;
        /// Leaves content and comes back when its loss has risen.
        Returning(Returning) = "returning", returning::ORIGIN;
        /// Stays, but stops working once content.
        Shirking(Shirking) = "shirking", shirking::ORIGIN;
        /// Reports a loss other than its own.
        Lying(Lying) = "lying", lying::ORIGIN;
        /// Never leaves, and sits out rounds that are not worth it.
        OptOut(OptOut) = "opt-out", opt_out::ORIGIN;
        /// Leaves content, or in a given round.
        Withdrawing(Withdrawing) = "withdrawing", withdrawing::ORIGIN;
        /// Leaves content, or when others have left.
        Contagious(Contagious) = "contagious", contagious::ORIGIN;
        /// Leaves content, or when its lead over the others does not grow.
        Competitor(Competitor) = "competitor", competitor::ORIGIN;
        /// Never works and never leaves.
        FreeRiding(FreeRiding) = "free-riding", free_riding::ORIGIN;
        /// Sends its direction times a factor.
        Amplifying(Amplifying) = "amplifying", amplifying::ORIGIN;
        /// Works on a share of its rows.
        Withholding(Withholding) = "withholding", withholding::ORIGIN;
        /// Consists of shares of the others. It is assigned to agents first; on its own it always
        /// stays.
        Mixed(Mixed) = "mixed", mixed::ORIGIN;
    }
}

impl Behaviour {
    /// One behaviour per agent: the same for all, or a mixed population's.
    pub fn assign(&self, agents: usize, seed: Seed) -> Result<Vec<Self>, Error> {
        self.check()?;
        match self {
            Self::Mixed(mixed) => mixed.assign(agents, seed),
            same => Ok(vec![same.clone(); agents]),
        }
    }

    /// Checks the parameters, once, before the first round.
    ///
    /// # Errors
    /// With a message that names the key.
    pub fn check(&self) -> Result<(), Error> {
        check_fresh("behaviour", self)?;
        (**self).check()
    }
}

/// Checks a number of rounds: at least one, and not more than are kept.
fn check_patience(patience: u32) -> Result<(), Error> {
    if (1..=100_000).contains(&patience) {
        Ok(())
    } else {
        Err(Error::bad_parameter("behaviour.patience", patience, "1 to 100000 rounds"))
    }
}

#[cfg(test)]
mod tests {
    //! Laws that hold for every behaviour of the list, and what the files' own tests use.

    use super::*;

    /// Evidence of a fixed loss; alone the agent reaches 0.5, and every private step takes `rate`
    /// off.
    struct Fixed(f64);

    /// The same, told what became of the others.
    struct Among {
        own: Fixed,
        gone: f64,
        others: Option<f64>,
    }

    impl Evidence for Among {
        fn loss(&mut self) -> f64 {
            self.own.loss()
        }

        fn gone(&mut self) -> f64 {
            self.gone
        }

        fn others(&mut self) -> Option<f64> {
            self.others
        }
    }

    pub(super) fn among(
        behaviour: &mut impl Decide,
        loss: f64,
        gone: f64,
        others: Option<f64>,
    ) -> Choice {
        let (agent, evidence) = (AgentId(0), &mut Among { own: Fixed(loss), gone, others });
        behaviour.decide(&mut View { agent, round: 1, epsilon: 0.2, present: true, evidence })
    }

    impl Evidence for Fixed {
        fn loss(&mut self) -> f64 {
            self.0
        }

        fn ahead_at_most(&mut self, steps: u32, rate: f64, bound: f64) -> bool {
            self.0 - f64::from(steps) * rate <= bound
        }

        fn alone(&mut self, _: u32) -> f64 {
            0.5
        }
    }

    fn look(behaviour: &mut (impl Decide + ?Sized), loss: f64, present: bool) -> Choice {
        let (agent, evidence) = (AgentId(0), &mut Fixed(loss));
        behaviour.decide(&mut View { agent, round: 1, epsilon: 0.2, present, evidence })
    }

    pub(super) fn choice(behaviour: &mut Behaviour, loss: f64) -> Choice {
        look(&mut **behaviour, loss, true)
    }

    pub(super) fn choices(mut behaviour: impl Decide, losses: &[f64]) -> Vec<Choice> {
        losses.iter().map(|loss| look(&mut behaviour, *loss, true)).collect()
    }

    fn every_behaviour() -> Vec<Behaviour> {
        Behaviour::LIST.iter().map(|entry| Behaviour::named(entry.name).unwrap()).collect()
    }

    #[test]
    fn the_list_and_the_enum_are_the_same() {
        for (behaviour, entry) in every_behaviour().iter().zip(Behaviour::LIST) {
            assert_eq!(behaviour.name(), entry.name);
            assert!(behaviour.check().is_ok() || entry.name == "mixed");
        }
    }

    #[test]
    fn few_stay_when_content_and_only_returning_comes_back() {
        for mut behaviour in every_behaviour() {
            let stays = ["never", "shirking", "mixed", "opt-out", "free-riding"];
            let stays = stays.contains(&behaviour.name());
            let expected = if stays { Choice::Stay } else { Choice::Leave };
            assert_eq!(choice(&mut behaviour, 0.2), expected, "{}", behaviour.name());
            assert_eq!(behaviour.comes_back(), behaviour.name() == "returning");
        }
    }

    #[test]
    fn one_that_was_saved_continues_as_if_nothing_had_happened() {
        let losses: Vec<f64> = (0..120).map(|r| 0.3 + 0.7 * (-0.1 * f64::from(r)).exp()).collect();
        for behaviour in every_behaviour() {
            for cut in [1, 7, 30, 51, 80] {
                let mut whole = behaviour.clone();
                choices_into(&mut whole, &losses[..cut]);
                let text = serde_json::to_string(&whole).unwrap();
                let mut resumed: Behaviour = serde_json::from_str(&text).unwrap();
                for loss in &losses[cut..] {
                    assert_eq!(choice(&mut whole, *loss), choice(&mut resumed, *loss));
                    assert_eq!(whole.manner(), resumed.manner(), "{}", behaviour.name());
                }
                assert_eq!(whole, resumed);
            }
            let fresh = serde_json::to_value(&behaviour).unwrap();
            assert!(fresh.get("memory").is_none(), "{fresh}: a configuration has no memory");
        }
    }

    fn choices_into(behaviour: &mut Behaviour, losses: &[f64]) {
        losses.iter().for_each(|loss| {
            choice(behaviour, *loss);
        });
    }

    /// Answers one question about a loss, and no other.
    struct OnlyTheTarget(f64);

    impl Evidence for OnlyTheTarget {
        fn loss(&mut self) -> f64 {
            unreachable!("it asked for the loss itself")
        }

        fn at_most(&mut self, bound: f64) -> bool {
            assert_eq!(bound, 0.2);
            self.0 <= bound
        }
    }

    #[test]
    fn plain_ones_ask_only_about_their_target_and_report_the_truth() {
        let plain: Vec<Behaviour> =
            every_behaviour().into_iter().filter(|b| b.is_plain()).collect();
        assert_eq!(plain.iter().map(Behaviour::name).collect::<Vec<_>>(), ["threshold", "never"]);
        for mut behaviour in plain {
            assert_eq!(behaviour.manner(), Manner::default());
            assert!(
                !(behaviour.comes_back() || behaviour.repeats() || behaviour.needs_simulator())
            );
            for loss in [0.1, 0.9] {
                let mut decide = |round| {
                    let (agent, evidence) = (AgentId(0), &mut OnlyTheTarget(loss));
                    let view = View { agent, round, epsilon: 0.2, present: true, evidence };
                    behaviour.decide(&mut { view })
                };
                let first = decide(1);
                assert!((2..50).all(|round| decide(round) == first));
            }
        }
    }

    #[test]
    fn a_tie_is_content() {
        let mut threshold = Behaviour::default();
        assert_eq!(choice(&mut threshold, 0.2), Choice::Leave);
        assert_eq!(choice(&mut threshold, 0.2 + 1e-15), Choice::Stay);
        assert_eq!(choice(&mut Behaviour::Never(Never {}), 0.0), Choice::Stay);
    }

    #[test]
    fn foresight_without_steps_is_the_threshold_and_with_them_leaves_earlier() {
        let mut none = Behaviour::Foresight(Foresight { steps: 0, rate: 1.0 });
        assert_eq!(choice(&mut none, 0.21), Choice::Stay);
        let mut some = Behaviour::Foresight(Foresight { steps: 4, rate: 0.1 });
        assert_eq!(choice(&mut some, 0.6), Choice::Leave);
        assert_eq!(choice(&mut some, 0.61), Choice::Stay);
    }

    #[test]
    fn returning_has_a_band_in_which_it_stays_where_it_is() {
        let mut returning = Returning { rise: 0.5 };
        assert_eq!(look(&mut returning, 0.25, true), Choice::Stay);
        assert_eq!(look(&mut returning, 0.25, false), Choice::Leave);
        assert_eq!(look(&mut returning, 0.31, false), Choice::Stay);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for (parameters, name) in [
            (serde_json::json!({ "kind": "utility", "patience": 0 }), "behaviour.patience"),
            (serde_json::json!({ "kind": "utility", "cost": -1.0 }), "behaviour.cost"),
            (serde_json::json!({ "kind": "foresight", "rate": -0.1 }), "behaviour.rate"),
            (serde_json::json!({ "kind": "returning", "rise": -0.1 }), "behaviour.rise"),
            (serde_json::json!({ "kind": "lying", "within": -0.1 }), "behaviour.within"),
            (serde_json::json!({ "kind": "opt-out", "gain": -0.1 }), "behaviour.gain"),
            (serde_json::json!({ "kind": "opt-out", "alone": 100_001 }), "behaviour.alone"),
            (serde_json::json!({ "kind": "contagious", "patience": 0 }), "behaviour.patience"),
            (serde_json::json!({ "kind": "competitor", "rivalry": -1.0 }), "behaviour.rivalry"),
            (serde_json::json!({ "kind": "free-riding", "range": -1.0 }), "behaviour.range"),
            (serde_json::json!({ "kind": "amplifying", "factor": -1.0 }), "behaviour.factor"),
            (serde_json::json!({ "kind": "withholding", "rows": 0.0 }), "behaviour.rows"),
        ] {
            let behaviour: Behaviour = serde_json::from_value(parameters).unwrap();
            let error = behaviour.assign(3, Seed(0)).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
