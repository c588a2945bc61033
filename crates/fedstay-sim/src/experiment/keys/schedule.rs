//! `[schedule]`: when agents can be reached.

use super::allowed::COUNT;
use super::{Allowed, Key, On, Section};
use fedstay::Schedule;

pub(super) static SECTION: Section = Section {
    keys: &[
        Key::kind("schedule.kind", "\"markov\"", "when agents can be reached: see `fedstay list schedules`")
            .shares(),
        Key::new(
            "schedule.every",
            "20",
            Allowed::Count(1, COUNT),
            "the rounds between two arrivals or two departures, or that a turn lasts",
        ),
        Key::new(
            "schedule.at",
            "[50, 100]",
            Allowed::List(&Allowed::Count(1, COUNT)),
            "the rounds in which the last agents arrive, one each; all others are there from the start",
        )
        .otherwise("agent m from round 1 + m·every on"),
        Key::new("schedule.turns", "3", Allowed::Count(1, COUNT), "how many groups take turns"),
        Key::new(
            "schedule.p",
            "0.5",
            Allowed::Number(0.0, 1.0),
            "the probability that an agent is there in a round",
        ),
        Key::new(
            "schedule.stay",
            "0.8",
            Allowed::Number(0.0, 1.0),
            "the probability that an agent that is there is there in the next round too",
        ),
        Key::new(
            "schedule.away",
            "0.8",
            Allowed::Number(0.0, 1.0),
            "the probability that an agent that is away is away in the next round too",
        ),
        Key::new(
            "schedule.path",
            "\"times.csv\"",
            Allowed::Text,
            "a file with lines `agent,from,to`: the rounds in which an agent is there; or `shifts`, which is built \
             in",
        ),
    ],
    ..Section::of::<Schedule>(On::Anything, "schedule", "When agents can be reached; an absent agent has not left")
};
