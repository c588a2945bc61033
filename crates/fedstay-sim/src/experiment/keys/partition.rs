//! `[partition]`: how rows are dealt to agents.

use super::allowed::COUNT;
use super::data::NAMED;
use super::{Allowed, Key, On, Section};
use crate::partition::Partition;

pub(super) static SECTION: Section = Section {
    keys: &[
        Key::kind("partition.kind", "\"by-class\"", "how rows are dealt to agents: see `fedstay list partitions`")
            .shares(),
        Key::new(
            "partition.q",
            "0.9",
            Allowed::NUMBER,
            "heterogeneity; partition.mix says what it means",
        )
        .shares(),
        Key::new(
            "partition.mix",
            "\"as-described\"",
            Allowed::Word(&["as-described", "as-printed"], &[]),
            "a device keeps the share q of its own class (`as-described`) or 1 − q (`as-printed`)",
        )
        .shares(),
        Key::new(
            "partition.map",
            "[[0], [1], [2], [3], [4], [5], [6], [7], [8], [9]]",
            Allowed::List(&Allowed::List(&NAMED)),
            "the classes of each device, by number or name",
        )
        .otherwise("device i has class i")
        .shares(),
        Key::new(
            "partition.alpha",
            "0.5",
            Allowed::NUMBER,
            "the concentration; smaller is more different",
        )
        .shares(),
        Key::new(
            "partition.sizes",
            "\"power\"",
            Allowed::Word(&["equal", "power", "dirichlet"], &[]),
            "how many rows agents have: all `equal`, by a `power` law in which agent 0 has the most, or \
             random shares (`dirichlet`)",
        )
        .shares(),
        Key::new(
            "partition.skew",
            "1.5",
            Allowed::Number(0.0, 100.0),
            "how unequal `power` and `dirichlet` are; 0 is equal, 1.5 under `power` gives the first of \
             ten agents half of the rows",
        )
        .shares(),
        Key::new(
            "partition.small",
            "\"leave-out\"",
            Allowed::Word(&["join", "leave-out", "refuse"], &[]),
            "what becomes of owners with fewer rows than data.least: they are one owner together, their rows \
             are not used, or the table is refused",
        )
        .otherwise("join")
        .shares(),
        Key::new("partition.k", "2", Allowed::Count(1, COUNT), "how many shards each agent gets")
            .shares(),
    ],
    ..Section::of::<Partition>(On::Training, "partition", "How rows are dealt to agents")
};
