//! `[policy]`: what the server does around the rule.

use super::{Allowed, Key, Kinds, On, Section};
use fedstay::Policy;

pub(super) static SECTION: Section = Section {
    name: "policy",
    about: "What the server does around the rule",
    on: On::Anything,
    kinds: Some(Kinds {
        default: "none",
        names: || super::names(Policy::LIST),
        alias: super::no_alias,
    }),
    keys: &[
        Key::new(
            "policy.kind",
            "\"early-stop\"",
            Allowed::Kind,
            "what the server does around the rule: see `fedstay list policies`",
        )
        .shares(),
        Key::new("policy.margin", "0.01", Allowed::NUMBER, "stop this much earlier")
            .of(&["early-stop"]),
        Key::new(
            "policy.delta",
            "0.01",
            Allowed::NUMBER,
            "how far above its target loss every agent is kept",
        )
        .of(&["guard"]),
    ],
};
