//! `[forget]`: agents that ask to be forgotten when they leave.

use super::allowed::{COUNT, LARGEST};
use super::{Allowed, Key, On, Section};

pub(super) static SECTION: Section = Section {
    name: "forget",
    about: "Agents that ask to be forgotten when they leave. Without the table, nobody does",
    on: On::Anything,
    kinds: None,
    keys: &[
        Key::new(
            "forget.how",
            "\"retrain\"",
            Allowed::Word(&["keep", "retrain", "eraser", "subtract"], &[]),
            "do nothing (`keep`), begin again without the agent (`retrain`), the same with steps as long \
             as they were (`eraser`), or take its part of all steps back (`subtract`)",
        ),
        Key::new(
            "forget.agents",
            "[3]",
            Allowed::List(&Allowed::Count(0, LARGEST)),
            "whose goodbyes ask for it",
        )
        .otherwise("everybody's"),
        Key::new(
            "forget.every",
            "2",
            Allowed::Count(1, COUNT),
            "`eraser`: every how many rounds the lengths of updates are kept, and later replayed",
        ),
    ],
};
