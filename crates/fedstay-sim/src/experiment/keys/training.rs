//! The keys of training on data that stand outside of all tables.

use super::allowed::COUNT;
use super::{Allowed, Key, On, Section};

pub(super) static SECTION: Section = Section {
    name: "",
    about: "Who trains, and how often everybody is measured",
    on: On::Training,
    kinds: None,
    keys: &[
        Key::new(
            "agents",
            "10",
            Allowed::Count(1, 1_000_000),
            "how many agents take part; with data.owner as many as there are owners",
        )
        .shares(),
        Key::new(
            "population",
            "20",
            Allowed::Count(1, 1_000_000),
            "how many devices there are; those left out serve the population metric",
        )
        .otherwise("as many as take part")
        .shares(),
        Key::new(
            "participation",
            "1.0",
            Allowed::Positive(1.0),
            "the share of the remaining agents that is asked each round",
        )
        .shares(),
        Key::new(
            "decides_on",
            "\"received\"",
            Allowed::Word(&["received", "own"], &[]),
            "an agent decides on the model it `received`, or on its `own` after its local work",
        )
        .shares(),
        Key::new(
            "last_stays",
            "false",
            Allowed::Switch,
            "whether the last remaining agent continues to train",
        )
        .shares(),
        Key::new(
            "eval_every",
            "10",
            Allowed::Count(1, COUNT),
            "every how many rounds accuracy is measured for everybody",
        )
        .shares(),
        Key::new(
            "eval_agents",
            "100",
            Allowed::Either(&[Allowed::Count(1, COUNT), Allowed::Word(&["all", "none"], &[])]),
            "whose rows are evaluated then: `all` agents', `none`, or those of so many, drawn once",
        )
        .otherwise("`all`")
        .shares(),
    ],
};
