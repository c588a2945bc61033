//! `[policy]`: what the server does around the rule.

use super::allowed::COUNT;
use super::{Allowed, Key, Kinds, On, Section};
use fedstay::Policy;

pub(super) static SECTION: Section = Section {
    name: "policy",
    about: "What the server does around the rule",
    on: On::Anything,
    kinds: Some(Kinds::of::<Policy>()),
    keys: &[
        Key::new(
            "policy.kind",
            "\"early-stop\"",
            Allowed::Kind,
            "what the server does around the rule: see `fedstay list policies`",
        )
        .shares(),
        Key::new(
            "policy.margin",
            "0.01",
            Allowed::NUMBER,
            "stop this much earlier; preview: keep every agent this much higher",
        ),
        Key::new(
            "policy.delta",
            "0.01",
            Allowed::NUMBER,
            "how far above its target loss every agent is kept",
        )
        .otherwise("for preview the problem's own on a problem"),
        Key::new(
            "policy.by",
            "\"auto\"",
            Allowed::Word(&["auto", "cut", "rewind", "stale", "noise"], &[]),
            "how previews are made: up the gradient, on the way back, or as a control",
        ),
        Key::new(
            "policy.pace",
            "0.1",
            Allowed::NUMBER,
            "by how much the loss shown falls over the run, for impatient agents",
        ),
        Key::new("policy.over", "300", Allowed::Count(1, COUNT), "the rounds over which it falls")
            .otherwise("the rounds of the run"),
        Key::new(
            "policy.until",
            "\"rounds\"",
            Allowed::Word(&["rounds", "content"], &[]),
            "when to deliver: after the last round, or once everybody is content",
        ),
        Key::new(
            "policy.cap",
            "1",
            Allowed::NUMBER,
            "no preview is farther away than this many times the way so far",
        ),
        Key::new(
            "policy.smoothness",
            "1",
            Allowed::NUMBER,
            "a constant H such that every loss is H-smooth, which certifies the landing",
        )
        .otherwise("the problem's own on a problem, unknown elsewhere"),
    ],
};
