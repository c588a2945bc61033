//! `[behaviour]`: how agents decide.

use super::allowed::COUNT;
use super::{Allowed, Key, Kinds, On, Section};
use fedstay::Behaviour;

/// The keys of a part of a mixed population, in addition to those of its behaviour.
pub(super) const PART: [Key; 2] = [
    Key::new(
        "behaviour.share",
        "0.5",
        Allowed::NUMBER,
        "a part's share of the agents that no part names; shares sum to one",
    ),
    Key::new(
        "behaviour.agents",
        "[0, 3]",
        Allowed::List(&Allowed::Count(0, COUNT)),
        "the agents of a part, by number",
    ),
];

pub(super) static SECTION: Section = Section {
    name: "behaviour",
    about: "How agents decide whether to stay, and what they report",
    on: On::Anything,
    kinds: Some(Kinds {
        default: "threshold",
        names: || super::names(Behaviour::LIST),
        alias: super::no_alias,
    }),
    keys: &[
        Key::new(
            "behaviour.kind",
            "\"threshold\"",
            Allowed::Kind,
            "how agents decide: see `fedstay list behaviours`",
        )
        .shares(),
        Key::new(
            "behaviour.steps",
            "5",
            Allowed::Count(0, 10_000),
            "how many private steps an agent looks ahead",
        )
        .of(&["foresight"]),
        Key::new("behaviour.rate", "0.02", Allowed::NUMBER, "the size of a private step")
            .of(&["foresight"]),
        Key::new(
            "behaviour.value",
            "1.0",
            Allowed::NUMBER,
            "what a model under its target loss is worth to an agent",
        )
        .of(&["utility"]),
        Key::new("behaviour.cost", "0.001", Allowed::NUMBER, "what a round costs an agent")
            .of(&["utility"]),
        Key::new(
            "behaviour.patience",
            "50",
            Allowed::Count(1, 100_000),
            "utility: the rounds it bears without progress; two-sided: with a model worse than its own",
        )
        .of(&["utility", "two-sided"]),
        Key::new(
            "behaviour.alone",
            "10",
            Allowed::Count(0, 100_000),
            "how many rounds of local work its own model has had",
        )
        .of(&["two-sided"]),
        Key::new(
            "behaviour.rise",
            "0.25",
            Allowed::NUMBER,
            "it comes back when its loss is above ε(1 + rise)",
        )
        .of(&["returning"]),
        Key::new(
            "behaviour.refresh",
            "0",
            Allowed::Count(0, COUNT),
            "it works again once in this many rounds; 0 is never",
        )
        .of(&["shirking"]),
        Key::new(
            "behaviour.offset",
            "0.5",
            Allowed::NUMBER,
            "what an agent adds to the loss it reports",
        )
        .of(&["lying"]),
        Key::new(
            "behaviour.within",
            "0.1",
            Allowed::NUMBER,
            "it lies only while its loss is at most this much above its target loss",
        )
        .of(&["lying"])
        .otherwise("it always lies"),
        Key::new(
            "behaviour.of",
            "[{ kind = \"threshold\", share = 0.7 }, { kind = \"foresight\", share = 0.3, steps = 9 }]",
            Allowed::Parts,
            "the parts of the population, each with a `share` of the agents or a list `agents = [0, 3]`, \
             and with the keys of its kind",
        )
        .of(&["mixed"])
        .needed_by(&["mixed"]),
    ],
};
