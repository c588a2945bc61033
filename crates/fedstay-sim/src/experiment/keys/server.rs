//! `[server]`: what becomes of the rule's step before it moves the weights.

use super::{Allowed, Key, On, Section};
use fedstay::Optimiser;

pub(super) static SECTION: Section = Section {
    keys: &[
        Key::kind(
            "server.optimiser",
            "\"adam\"",
            "the server optimiser around the rule: see `fedstay list optimisers`",
        )
        .shares(),
        Key::new(
            "server.lr",
            "0.1",
            Allowed::Positive(1e100),
            "the server's own rate; `sgd` with 1 takes the rule's step as it is",
        )
        .shares(),
        Key::new(
            "server.beta1",
            "0.5",
            Allowed::Number(0.0, 1.0),
            "how much of the last step or direction is kept; below 1",
        )
        .shares(),
        Key::new(
            "server.beta2",
            "0.9",
            Allowed::Number(0.0, 1.0),
            "how much of what is known about the length of a weight's steps is kept; below 1",
        )
        .shares(),
        Key::new(
            "server.tau",
            "1e-3",
            Allowed::Positive(1e100),
            "how small a step of one weight still counts",
        )
        .shares(),
    ],
    ..Section::of::<Optimiser>(
        On::Anything,
        "server",
        "What becomes of the rule's step before the policy acts and the weights move",
    )
};
