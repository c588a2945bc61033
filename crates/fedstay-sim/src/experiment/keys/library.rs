//! `[library]`: the models that are kept for agents that come later.

use super::allowed::COUNT;
use super::{Allowed, Key, On, Section};

pub(super) static SECTION: Section = Section {
    name: "library",
    about: "The models that are kept for agents that come later; they change no step",
    on: On::Training,
    kinds: None,
    keys: &[
        Key::new(
            "library.keep",
            "8",
            Allowed::Count(0, 10_000),
            "how many models are kept, of which an agent that comes later is offered the best",
        )
        .otherwise("none"),
        Key::new(
            "library.every",
            "50",
            Allowed::Count(1, COUNT),
            "every how many rounds a model is kept, beside those that agents first left with",
        )
        .otherwise("25"),
    ],
};
