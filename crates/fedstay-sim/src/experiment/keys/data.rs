//! `[data]`: what agents train on.

use super::allowed::{COUNT, LARGEST};
use super::{Allowed, Key, On, Section};
use crate::data::Source;

/// A class or a column, by number or by name.
pub(super) const NAMED: Allowed = Allowed::Either(&[Allowed::Count(0, LARGEST), Allowed::Text]);

pub(super) static SECTION: Section = Section {
    keys: &[
        Key::kind("data.kind", "\"digits\"", "the data set: see `fedstay list data`")
            .shares(),
        Key::new(
            "data.per_agent",
            "100",
            Allowed::Count(1, COUNT),
            "how many samples each agent holds, on average where partition.sizes is not equal",
        )
        .otherwise("as many as all can have equally")
        .shares(),
        Key::new(
            "data.replace",
            "true",
            Allowed::Switch,
            "whether agents draw their samples with replacement: there may be any number of them",
        )
        .otherwise("false")
        .shares(),
        Key::new(
            "data.classes",
            "[0, 1, 2]",
            Allowed::List(&NAMED),
            "use only these classes, by number or name",
        )
        .otherwise("all")
        .shares(),
        Key::new(
            "data.group",
            "\"brightness\"",
            NAMED,
            "which of two groups a row belongs to, for fairfed: above the mean of a feature (by number, \
             the label not counted, or by the name of a csv column) or of all features (`brightness`)",
        )
        .otherwise("rows have no groups"),
        Key::new(
            "data.positive",
            "1",
            NAMED,
            "the class about which both groups are to be treated alike",
        )
        .otherwise("all rows count"),
        Key::new(
            "data.test_share",
            "0.2",
            Allowed::NUMBER,
            "the share of the rows kept for testing: of every class, and of every owner's",
        )
        .shares(),
        Key::new("data.path", "\"table.csv\"", Allowed::Text, "where the file or the files are")
            .otherwise("where `fedstay data fetch` puts them")
            .shares(),
        Key::new("data.check", "true", Allowed::Switch, "check the files' checksums")
            .shares(),
        Key::new(
            "data.label",
            "\"class\"",
            NAMED,
            "the label's column, by number or by its name in the first line",
        )
        .otherwise("the last")
        .shares(),
        Key::new(
            "data.task",
            "\"number\"",
            Allowed::Word(&["classes", "number"], &[]),
            "what is learned of the label: which of the `classes`, or a `number`, by squared loss after \
             standardising it over the training rows",
        )
        .otherwise("classes")
        .shares(),
        Key::new(
            "data.owner",
            "\"site\"",
            NAMED,
            "the column that says who holds a row, by number or name, which is then no feature; implies \
             partition.kind = \"owner\", in which every owner is an agent under its name",
        )
        .otherwise("rows have no owners")
        .shares(),
        Key::new(
            "data.header",
            "true",
            Allowed::Switch,
            "whether the first line names the columns",
        )
        .shares(),
        Key::new("data.delimiter", "\";\"", Allowed::Character, "what separates the columns")
            .shares(),
        Key::new("data.x", "\"x\"", Allowed::Text, "the name of the array of inputs")
            .shares(),
        Key::new("data.y", "\"y\"", Allowed::Text, "the name of the array of labels")
            .shares(),
    ],
    ..Section::of::<Source>(On::Training, "data", "What agents train on")
};
