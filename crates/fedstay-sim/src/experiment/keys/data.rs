//! `[data]`: what agents train on.

use super::allowed::{COUNT, LARGEST};
use super::{Allowed, Key, On, Section};
use crate::data::Source;

/// A class or a column, by number or by name.
pub(super) const NAMED: Allowed = Allowed::Either(&[Allowed::Count(0, LARGEST), Allowed::Text]);

/// A path, or several.
const PATHS: Allowed = Allowed::Either(&[Allowed::Text, Allowed::List(&Allowed::Text)]);

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
        Key::new(
            "data.path",
            "\"table.csv\"",
            PATHS,
            "where the file or the files are; a table may be several (a list, or a pattern such as \
             `sites/*.csv`) of CSV, TSV, either with gzip, or Parquet",
        )
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
        .otherwise("the last of a csv; must be said of a table")
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
            "data.above",
            "0.0",
            Allowed::NUMBER,
            "makes two classes of a label of numbers: those above this, and all others",
        )
        .otherwise("every value is a class")
        .shares(),
        Key::new(
            "data.owner",
            "\"site\"",
            NAMED,
            "the column that says who holds a row, by number or name, which is then no feature, or in tables \
             `file`; implies partition.kind = \"owner\", in which every owner is an agent under its name",
        )
        .otherwise("rows have no owners")
        .shares(),
        Key::new(
            "data.leave_out",
            "[\"patient_id\", \"date_of_death\"]",
            Allowed::List(&Allowed::Text),
            "columns that no model reads: ids, and what is known only afterwards",
        )
        .otherwise("none")
        .shares(),
        Key::new(
            "data.as",
            "{ stage = \"category\", admitted = \"date\" }",
            Allowed::Named(&Allowed::Word(&["number", "category", "date"], &[])),
            "what columns hold: numbers, one of several texts (a feature of 0 and 1 for each), or days such \
             as 2024-05-31",
        )
        .otherwise("as their values show")
        .shares(),
        Key::new(
            "data.missing",
            "[\"\", \"NA\"]",
            Allowed::List(&Allowed::Text),
            "the texts that mean that something is missing",
        )
        .shares(),
        Key::new(
            "data.fill",
            "\"median\"",
            Allowed::Word(&["median", "mean", "refuse", "drop"], &[]),
            "what stands in for a missing number: the `median` or `mean` of the training rows, beside a \
             feature of 0 and 1 that says so; or nothing: the table is refused, or the row dropped. What is \
             missing in a category is a text of its own",
        )
        .shares(),
        Key::new(
            "data.decimal",
            "\".\"",
            Allowed::Word(&[".", ","], &[]),
            "what separates the decimals of a number",
        )
        .shares(),
        Key::new(
            "data.encoding",
            "\"utf-8\"",
            Allowed::Word(&["utf-8", "latin-1"], &[]),
            "how letters are written as bytes",
        )
        .shares(),
        Key::new(
            "data.scale",
            "\"federated\"",
            Allowed::Word(&["federated", "owner", "none"], &[]),
            "by whose training rows features get mean 0 and deviation 1: all (`federated`: what owners find \
             out together by counts, sums and sums of squares), each `owner`'s own, or nobody's",
        )
        .shares(),
        Key::new(
            "data.test",
            "\"owner\"",
            Allowed::Text,
            "which rows test: a share of every `owner`'s or of all (`pooled`), drawn by the seed and \
             stratified by label; or what a column (`test` or `train`) or a second path says",
        )
        .shares(),
        Key::new(
            "data.together",
            "\"patient\"",
            Allowed::Text,
            "the column whose values are not torn apart: all rows of one patient train, or all test",
        )
        .otherwise("rows are drawn one by one")
        .shares(),
        Key::new(
            "data.time",
            "\"admitted\"",
            Allowed::Text,
            "the column, no feature, by which every owner's last rows test",
        )
        .otherwise("rows are drawn")
        .shares(),
        Key::new(
            "data.least",
            "20",
            Allowed::Count(0, COUNT),
            "the rows that an owner must have; see partition.small",
        )
        .shares(),
        Key::new(
            "data.header",
            "true",
            Allowed::Switch,
            "whether the first line names the columns",
        )
        .shares(),
        Key::new("data.delimiter", "\";\"", Allowed::Character, "what separates the columns")
            .otherwise("what the first line of a table has most of")
            .shares(),
        Key::new("data.x", "\"x\"", Allowed::Text, "the name of the array of inputs")
            .shares(),
        Key::new("data.y", "\"y\"", Allowed::Text, "the name of the array of labels")
            .shares(),
    ],
    ..Section::of::<Source>(On::Training, "data", "What agents train on")
};
