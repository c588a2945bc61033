//! `[problem]`: a named problem with exact oracles, instead of training on data.

use super::{Allowed, Key, On, Section};
use fedstay::problem::Problem;

pub(super) static SECTION: Section = Section {
    keys: &[
        Key::kind(
            "problem.kind",
            "\"observation-3\"",
            "which problem: see `fedstay list problems`",
        ),
        Key::new("problem.alpha", "1.0", Allowed::NUMBER, "shifts agent 1's zero set"),
        Key::new(
            "problem.start",
            "[2.0, 1.0]",
            Allowed::List(&Allowed::NUMBER),
            "where a run begins",
        )
        .otherwise("the problem's own"),
        Key::new("problem.agents", "5", Allowed::Count(1, 100_000), "the number of agents"),
        Key::new("problem.dim", "20", Allowed::Count(1, 100_000), "the number of weights"),
        Key::new("problem.samples", "10", Allowed::Count(1, 100_000), "the samples of each agent"),
    ],
    ..Section::of::<Problem>(
        On::Problem,
        "problem",
        "A named problem with exact oracles, instead of training on data",
    )
};
