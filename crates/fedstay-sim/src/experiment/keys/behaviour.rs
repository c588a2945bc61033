//! `[behaviour]`: how agents decide.

use super::allowed::COUNT;
use super::{Allowed, Key, On, Section};
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
    keys: &[
        Key::kind(
            "behaviour.kind",
            "\"threshold\"",
            "how agents decide: see `fedstay list behaviours`",
        )
        .shares(),
        Key::new(
            "behaviour.steps",
            "5",
            Allowed::Count(0, 10_000),
            "how many private steps an agent looks ahead",
        ),
        Key::new("behaviour.rate", "0.02", Allowed::NUMBER, "the size of a private step"),
        Key::new(
            "behaviour.value",
            "1.0",
            Allowed::NUMBER,
            "what a model under its target loss is worth to an agent",
        ),
        Key::new("behaviour.cost", "0.001", Allowed::NUMBER, "what a round costs an agent"),
        Key::new(
            "behaviour.patience",
            "50",
            Allowed::Count(1, 100_000),
            "the rounds it bears: without progress (utility), with a model worse than its own \
             (two-sided), after a departure (contagious), with a lead that does not grow (competitor)",
        ),
        Key::new(
            "behaviour.alone",
            "10",
            Allowed::Count(0, 100_000),
            "how many rounds of local work its own model has had",
        ),
        Key::new(
            "behaviour.rise",
            "0.25",
            Allowed::NUMBER,
            "it comes back when its loss is above ε(1 + rise)",
        ),
        Key::new(
            "behaviour.refresh",
            "0",
            Allowed::Count(0, COUNT),
            "it works again once in this many rounds; 0 is never",
        ),
        Key::new(
            "behaviour.offset",
            "0.5",
            Allowed::NUMBER,
            "what an agent adds to the loss it reports",
        ),
        Key::new(
            "behaviour.within",
            "0.1",
            Allowed::NUMBER,
            "it lies only while its loss is at most this much above its target loss",
        )
        .otherwise("it always lies"),
        Key::new(
            "behaviour.gain",
            "0.05",
            Allowed::NUMBER,
            "by how much the model must be better than its own for it to take part in a round",
        ),
        Key::new(
            "behaviour.grace",
            "20",
            Allowed::Count(0, COUNT),
            "in how many rounds it takes part whatever the model",
        ),
        Key::new(
            "behaviour.after",
            "30",
            Allowed::Count(0, COUNT),
            "the round in which it leaves at the latest",
        ),
        Key::new(
            "behaviour.rivalry",
            "0.5",
            Allowed::NUMBER,
            "how much the others' losses are worth to it; 0 is nothing, 1 as much as its own",
        ),
        Key::new(
            "behaviour.form",
            "\"random\"",
            Allowed::Word(&["random", "last-delta", "scaled-delta", "adaptive-noise"], &[]),
            "what it sends instead of work: noise, what the model last changed by, the same times \
             `scale`, or noise that fades",
        ),
        Key::new(
            "behaviour.range",
            "0.1",
            Allowed::NUMBER,
            "the largest component of what `random` sends",
        ),
        Key::new(
            "behaviour.scale",
            "2.0",
            Allowed::NUMBER,
            "what `scaled-delta` multiplies the last change of the model by",
        ),
        Key::new(
            "behaviour.fade",
            "0.5",
            Allowed::NUMBER,
            "how fast `adaptive-noise` fades: as t^(−fade)",
        ),
        Key::new(
            "behaviour.factor",
            "3.0",
            Allowed::NUMBER,
            "what it multiplies its direction by; 1 is threshold",
        ),
        Key::new(
            "behaviour.rows",
            "0.5",
            Allowed::Positive(1.0),
            "the share of its rows that it works on; 1 is threshold",
        ),
        Key::new(
            "behaviour.of",
            "[{ kind = \"threshold\", share = 0.7 }, { kind = \"foresight\", share = 0.3, steps = 9 }]",
            Allowed::Parts,
            "the parts of the population, each with a `share` of the agents or a list `agents = [0, 3]`, \
             and with the keys of its kind",
        ),
    ],
    ..Section::of::<Behaviour>(
        On::Anything,
        "behaviour",
        "How agents decide whether to stay, and what they report",
    )
};
