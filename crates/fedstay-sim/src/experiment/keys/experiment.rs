//! The keys that every experiment has.

use super::allowed::LARGEST;
use super::{Allowed, Key, On, Section};

const EPSILON: Allowed = Allowed::Either(&[
    Allowed::Finite,
    Allowed::List(&Allowed::Finite),
    Allowed::ByName(&Allowed::Finite),
    Allowed::Relative,
]);

pub(super) static SECTION: Section = Section {
    name: "",
    about: "The run as a whole",
    on: On::Anything,
    kinds: None,
    keys: &[
        Key::new("seed", "0", Allowed::Count(0, LARGEST), "the seed of all randomness").shares(),
        Key::new("rounds", "300", Allowed::Count(1, 100_000_000), "the most rounds to run")
            .otherwise("10000 on a problem")
            .shares(),
        Key::new("step_size", "0.1", Allowed::Positive(1e38), "the server's step size η")
            .otherwise("the problem's own on a problem")
            .shares(),
        // Runs that differ only in ε are the ones that share.
        Key::new(
            "epsilon",
            "0.2",
            EPSILON,
            "the target loss at which an agent is content: one for all, one for each agent in a list or by \
             owner's name (`\"*\"` is the rest), or a multiple: of what the agent reaches by the same work \
             alone (`local`), by the best model of its own rows (`alone`), or of everybody's (`pooled`)",
        )
        .otherwise("the problem's own on a problem")
        .shares(),
        Key::new(
            "record_gram",
            "true",
            Allowed::Switch,
            "keep the Gram matrices of the agents' gradients, for `fedstay check`",
        )
        .otherwise("false"),
        Key::new(
            "check_reports",
            "true",
            Allowed::Switch,
            "flag agents whose reports contradict themselves",
        )
        .otherwise("true where a contradiction is a proof: convex losses, exact reports")
        .shares(),
        // Not shared: what an agent ends with is measured at the weights of the run it left.
        Key::new(
            "compare_alone",
            "true",
            Allowed::Switch,
            "tell in the summary what every agent ends with, what it would have made alone in `rounds` \
             rounds, and in how many rounds it reported without having worked",
        )
        .otherwise("false"),
    ],
};
