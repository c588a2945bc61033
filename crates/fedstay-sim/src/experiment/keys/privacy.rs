//! `[privacy]`: what agents do to their reports before they send them.

use super::{Allowed, Key, On, Section};

pub(super) static SECTION: Section = Section {
    name: "privacy",
    about: "Differential privacy: what agents do to their reports before they send them. Without the \
            table, nothing",
    on: On::Anything,
    kinds: None,
    keys: &[
        Key::new("privacy.clip", "1.0", Allowed::NUMBER, "directions are clipped to this length"),
        Key::new("privacy.loss_clip", "2.0", Allowed::NUMBER, "losses are clipped to at most this"),
        Key::new(
            "privacy.noise",
            "0.5",
            Allowed::NUMBER,
            "the noise's deviation, relative to what is clipped",
        ),
        Key::new(
            "privacy.delta",
            "1e-5",
            Allowed::NUMBER,
            "the δ for which the budget ε is stated",
        ),
    ],
};
