//! `[local]`: the agents' local work.

use super::allowed::LARGEST;
use super::{Allowed, Key, On, Section};

pub(super) static SECTION: Section = Section {
    name: "local",
    about: "The agents' local work",
    on: On::Training,
    kinds: None,
    keys: &[
        Key::new(
            "local.steps",
            "5",
            Allowed::Count(1, 1_000_000),
            "local steps K of an agent in a round, each on a batch drawn by itself",
        )
        .shares(),
        Key::new(
            "local.epochs",
            "1",
            Allowed::Count(1, 1_000_000),
            "instead of local.steps: passes over the agent's samples in a round, in random order",
        )
        .otherwise("local.steps applies")
        .shares(),
        Key::new(
            "local.step",
            "\"eta\"",
            Allowed::Word(&["eta", "eta/K"], &["eta-over-k", "eta / K"]),
            "the size of a local step: `eta`, or `eta/K` as the paper prints it",
        )
        .shares(),
        Key::new(
            "local.batch",
            "64",
            Allowed::Either(&[Allowed::Count(1, LARGEST), Allowed::Word(&["full"], &[])]),
            "samples in a local step, or `full` for all of them",
        )
        .shares(),
        Key::new(
            "local.mu",
            "0.0",
            Allowed::Number(0.0, 1e30),
            "FedProx: the pull μ back to the received model",
        )
        .shares(),
        Key::new(
            "local.exact_gradient",
            "true",
            Allowed::Either(&[Allowed::Switch, Allowed::Word(&["auto"], &[])]),
            "also report the full gradient at the received model, when that is not what is computed; `auto`: where \
             the rule or the guard predicts losses from it",
        )
        .shares(),
    ],
};
