//! `[worth]`: what is booked about what agents give and get.

use super::{Allowed, Key, On, Section};

const METHODS: Allowed =
    Allowed::Word(&["help", "loo", "shapley", "gtg", "cgsv", "fedce", "reputation", "core"], &[]);

pub(super) static SECTION: Section = Section {
    name: "worth",
    about: "What is booked about what agents give and get; it changes no step",
    on: On::Anything,
    kinds: None,
    keys: &[Key::new(
        "worth.methods",
        "[\"help\", \"cgsv\"]",
        Allowed::List(&METHODS),
        "the ways to say what an agent is worth: see docs/members.md. `loo`, `shapley`, `gtg` and `core` \
         evaluate many models in every round",
    )
    .otherwise("none")],
};
