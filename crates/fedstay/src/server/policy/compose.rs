//! Policies in a list: each acts on what the rule and those before it in the list have made.
//!
//! A round goes through the list twice. First backwards, over what agents reported: each policy that
//! shows agents other weights translates what was said about those into what would have been said
//! without it, so that the rule sees reports about the server's own weights. Then forwards, over the
//! step: each policy sees the step and the decision as those before it left them, what they show, and
//! the reports as if about what it showed itself.
//!
//! What a policy does decides where in a list it may stand ([`Place`]): those that change the step come
//! first, then those that show agents something else, then those that end the run, and last those that
//! choose what is delivered. A list in another order, or of policies that undo each other, is refused by
//! the names of the two.

use super::turn::{Turn, Views, shown};
use super::{Place, Policy, Translation};
use crate::list::{Entry, Listed, Origin, Parameters};
use crate::memory::inside;
use crate::message::Layer;
use crate::rule::{Decision, Facts, Round};
use crate::{Broadcast, Error, Reports};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::fmt;
use std::ops::Deref;

/// What a configuration calls an empty list.
const NONE: Entry = Origin { about: "follow the rule", reference: "" }.named("none");

/// The policies around a rule, in the order in which they act. An empty list follows the rule.
///
/// In a configuration it is one table, as in `{ kind = "guard", delta = 0.05 }`, or a list of such
/// tables and of names.
///
/// ```
/// use fedstay::policy::{Guard, KeepBest, Policies, Preview};
/// let kept: Policies = [Guard::default().into(), KeepBest::default().into()].into();
/// assert_eq!(kept.to_string(), "guard+keep-best");
/// kept.check()?;
///
/// let both: Policies = [Guard::default().into(), Preview::default().into()].into();
/// let why = both.check().unwrap_err().to_string();
/// assert!(why.starts_with("the policy `preview` cannot come after `guard`: the guard holds"));
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Policies(Vec<Policy>);

impl Policies {
    /// The name in a configuration, one sentence, and the reference of every policy; `none` stands
    /// for an empty list.
    pub const LIST: &'static [Entry] = &{
        let mut list = [NONE; Policy::LIST.len() + 1];
        let mut index = 0;
        while index < Policy::LIST.len() {
            list[index + 1] = Policy::LIST[index];
            index += 1;
        }
        list
    };

    /// Checks the parameters of each, and that they go together in this order.
    ///
    /// # Errors
    /// With the name of the parameter, or of the two policies and what to do instead.
    pub fn check(&self) -> Result<(), Error> {
        for (index, later) in self.iter().enumerate() {
            later.inner().check()?;
            for earlier in &self[..index] {
                go_together(earlier, later)?;
            }
        }
        Ok(())
    }

    /// Whether one of them sees to it that nobody reaches its target loss.
    pub fn keep(&self) -> bool {
        self.iter().any(|policy| policy.facts().keeps)
    }

    /// The first of them that does this.
    pub fn first(&self, place: Place) -> Option<&Policy> {
        self.iter().find(|policy| policy.facts().place == place)
    }

    /// Rejects policies that remember something already.
    pub(crate) fn check_fresh(&self) -> Result<(), Error> {
        self.iter().try_for_each(|policy| inside::check_fresh("policy", policy))
    }

    /// What they remember between rounds: one of them its memory, several a list.
    pub(crate) fn memory(&self) -> Result<Value, Error> {
        match &self.0[..] {
            [] => Ok(Value::Null),
            [one] => inside::of(one),
            several => several.iter().map(inside::of).collect(),
        }
    }

    /// Takes up what [`memory`](Self::memory) gave, or forgets everything.
    pub(crate) fn recall(&mut self, memory: Value) -> Result<(), Error> {
        let memories = match memory {
            Value::Null => vec![Value::Null; self.len()],
            Value::Array(several) if self.len() != 1 => several,
            one => vec![one],
        };
        if memories.len() != self.len() {
            let (saved, here) = (memories.len(), self.len());
            let why = format!("it remembers for {saved} policies, and the server has {here}");
            return Err(Error::BadState { why });
        }
        self.0.iter_mut().zip(memories).try_for_each(|(policy, memory)| inside::put(policy, memory))
    }

    /// Room for what [`views`](Self::views) translates.
    pub(crate) fn translations(&self) -> Vec<OnceCell<Translation>> {
        self.iter().map(|_| OnceCell::new()).collect()
    }

    /// The reports of a round as the rule and each policy see them.
    pub(crate) fn views<'a>(
        &self,
        weights: &[f64],
        reports: &'a Reports<'a>,
        facts: &Facts,
        room: &'a [OnceCell<Translation>],
    ) -> Result<Views<'a>, Error> {
        let mut views = Views { made: reports, translated: Vec::new() };
        for (position, room) in room.iter().enumerate().rev() {
            if self[position].inner().layer().is_empty() {
                continue;
            }
            let without = shown(weights, &self[..position]);
            let policy = self[position].inner();
            if let Some(translation) = policy.translate(&without, views.common(), facts)? {
                views.translate(position, room.get_or_init(|| translation));
            }
        }
        Ok(views)
    }

    /// Lets each act in turn, after the rule. Their memory changes only if all of them succeed.
    pub(crate) fn apply(
        &mut self,
        told: &Round<'_>,
        views: &Views<'_>,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error> {
        if let [only] = &mut self.0[..] {
            return take_turn(only, &Turn { round: told, then: &[], now: &[] }, step, decision);
        }
        let mut now = self.0.clone();
        for position in 0..now.len() {
            let (before, rest) = now.split_at_mut(position);
            let round = Round { reports: views.of(position), ..*told };
            let turn = Turn { round: &round, then: &self[..position], now: before };
            let went_on = decision.stop.is_none();
            take_turn(&mut rest[0], &turn, step, decision)?;
            let stopped = went_on && decision.stop.is_some();
            if stopped && rest[0].facts().place == Place::Stops {
                // Nothing moves, so agents are shown what they were shown.
                before.clone_from_slice(&self[..position]);
            }
        }
        self.0 = now;
        Ok(())
    }

    /// Lets each take note of a round without reports.
    pub(crate) fn heard_nobody(&mut self, round: &Round<'_>) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|policy| policy.inner_mut().heard_nobody(round))
    }

    /// The weights to deliver at the end, if they are not the current ones: those of the last policy
    /// that has some.
    pub(crate) fn deliver(&self) -> Option<&[f64]> {
        self.iter().rev().find_map(|policy| policy.inner().deliver())
    }

    /// Tells each how many rounds the run has at most.
    pub(crate) fn expect(&mut self, rounds: u32) {
        self.0.iter_mut().for_each(|policy| policy.inner_mut().expect(rounds));
    }

    /// What each shows agents.
    pub(crate) fn layers(&self) -> impl Iterator<Item = Layer<'_>> {
        self.iter().map(|policy| policy.inner().layer())
    }

    /// What agents are shown, where the server's own weights are `weights`.
    pub(crate) fn broadcast<'a>(&'a self, weights: &'a [f64]) -> Broadcast<'a> {
        shown(weights, self)
    }
}

/// One policy's turn, and what it means for what is promised.
fn take_turn(
    policy: &mut Policy,
    turn: &Turn<'_>,
    step: &mut [f64],
    decision: &mut Decision,
) -> Result<(), Error> {
    policy.inner_mut().apply(turn, step, decision)?;
    let facts = policy.facts();
    if facts.place == Place::Shows && !facts.keeps {
        // Whatever was proved is about other weights than agents are shown.
        decision.kept = Some(false);
    }
    Ok(())
}

/// Refuses a policy behind another with which it makes no sense.
fn go_together(earlier: &Policy, later: &Policy) -> Result<(), Error> {
    let (one, other) = (earlier.name(), later.name());
    let clash = earlier.inner().clash(later).or_else(|| later.inner().clash(earlier));
    let why = match (clash, earlier.facts().place) {
        (Some(why), _) => why.to_owned(),
        (None, _) if one == other => "each acts once: leave one of them out".to_owned(),
        (None, place) if place <= later.facts().place => return Ok(()),
        (None, Place::Stops) => format!(
            "`{one}` would end the run before `{other}` has done what keeps it going: write `{other}` \
             first"
        ),
        (None, Place::Delivers) => {
            format!(
                "`{one}` judges what all others have made, so it comes last: write `{other}` first"
            )
        }
        (None, Place::Step | Place::Shows) => format!(
            "`{other}` would change the step for which `{one}` has chosen what agents are shown: write \
             `{other}` first"
        ),
    };
    Err(Error::PolicyOrder { earlier: one, later: other, why })
}

/// What a configuration may name: an empty list is a kind of its own, several are none.
impl Listed for Policies {
    const KEY: &'static str = <Policy as Listed>::KEY;
    const LIST: &'static [Entry] = Self::LIST;
    const ALIASES: &'static [&'static str] = Policy::ALIASES;

    fn kind(&self) -> Option<&'static str> {
        match &self.0[..] {
            [] => Some(NONE.name),
            [one] => Some(one.name()),
            _ => None,
        }
    }

    fn listed_as(name: &str) -> Option<&'static str> {
        <Policy as Listed>::listed_as(name).or_else(|| (name == NONE.name).then_some(NONE.name))
    }

    fn parameters(kind: &str) -> Parameters {
        <Policy as Listed>::parameters(kind)
    }
}

impl Deref for Policies {
    type Target = [Policy];

    fn deref(&self) -> &[Policy] {
        &self.0
    }
}

/// The names, as in a label: `guard+keep-best`; `none` for an empty list.
impl fmt::Display for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_empty() {
            true => f.write_str(NONE.name),
            false => f.write_str(&self.iter().map(Policy::name).collect::<Vec<_>>().join("+")),
        }
    }
}

impl<P: Into<Policy>> From<P> for Policies {
    fn from(policy: P) -> Self {
        Self(vec![policy.into()])
    }
}

impl From<Vec<Policy>> for Policies {
    fn from(policies: Vec<Policy>) -> Self {
        Self(policies)
    }
}

impl<const N: usize> From<[Policy; N]> for Policies {
    fn from(policies: [Policy; N]) -> Self {
        Self(policies.into())
    }
}

/// One policy is written as its table, none as a table that says so, several as a list of tables.
impl Serialize for Policies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [] => json!({ "kind": NONE.name }).serialize(serializer),
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

/// A policy in a list may be its name alone, and `none` adds nothing to it.
impl<'de> Deserialize<'de> for Policies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = match Value::deserialize(deserializer)? {
            Value::Array(several) => several,
            one => vec![one],
        };
        let tables = given.into_iter().map(|one| match one {
            Value::String(kind) => json!({ "kind": kind }),
            table => table,
        });
        tables
            .filter(|table| table["kind"] != NONE.name)
            .map(|table| Policy::deserialize(table).map_err(D::Error::custom))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}
