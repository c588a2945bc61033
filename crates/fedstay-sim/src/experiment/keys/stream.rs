//! `[stream]`: rows that arrive over the rounds.

use super::allowed::COUNT;
use super::{Allowed, Key, On, Section};

pub(super) static SECTION: Section = Section {
    name: "stream",
    about: "Rows that arrive over the rounds; agents decide on those that they see",
    on: On::Training,
    kinds: None,
    keys: &[
        Key::new(
            "stream.kind",
            "\"slide\"",
            Allowed::Word(&["all", "grow", "slide"], &[]),
            "`all` rows are there from the start, arrive and stay (`grow`), or arrive and go (`slide`)",
        )
        .otherwise("all"),
        Key::new(
            "stream.window",
            "0.5",
            Allowed::Positive(1.0),
            "the share of its rows that an agent sees in the first round",
        )
        .otherwise("0.3"),
        Key::new(
            "stream.order",
            "\"class\"",
            Allowed::Word(&["dealt", "class"], &[]),
            "rows arrive at random as they were `dealt`, or `class` after class, so that the mix drifts",
        )
        .otherwise("dealt"),
        Key::new(
            "stream.moves",
            "\"step\"",
            Allowed::Word(&["linear", "step", "periodic"], &[]),
            "whether they arrive a little every round, all at once, or come and go",
        )
        .otherwise("linear"),
        Key::new(
            "stream.over",
            "50",
            Allowed::Count(1, COUNT),
            "over how many rounds, after how many, or with which period",
        )
        .otherwise("100"),
    ],
};
