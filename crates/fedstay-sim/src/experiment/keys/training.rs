//! The keys of training on data that stand outside of all tables.

use super::allowed::COUNT;
use super::{Allowed, Key, On, Section};
use crate::measure::NAMES;

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
            "decides_on_rows",
            "\"held-back\"",
            Allowed::Word(&["training", "held-back"], &[]),
            "the rows its loss is measured on when it decides and reports: those it trains on, or its own test \
             rows; gradients are always of training rows, so what rules foresee is then an estimate",
        )
        .otherwise("`training`")
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
            "every how many rounds everybody is measured",
        )
        .shares(),
        Key::new(
            "measure",
            "[\"accuracy\", \"balanced\"]",
            Allowed::List(&Allowed::Word(&NAMES, &[])),
            "what is measured then besides the loss; headlines tell the first",
        )
        .otherwise("`accuracy`, or `rmse` of a number")
        .shares(),
        Key::new(
            "eval_agents",
            "100",
            Allowed::Either(&[Allowed::Count(1, COUNT), Allowed::Word(&["all", "none"], &[])]),
            "whose rows are evaluated then: `all` agents', `none`, or those of a fixed random sample of this many",
        )
        .otherwise("`all`")
        .shares(),
    ],
};
