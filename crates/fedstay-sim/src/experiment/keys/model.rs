//! `[model]`: what is trained.

use super::allowed::LARGEST;
use super::{Allowed, Key, On, Section};
use crate::model::{MOST_CHANNELS, Model};

/// A width; the model itself says which are too large or too small, and what would fit.
const WIDTH: Allowed = Allowed::Count(0, LARGEST);

pub(super) static SECTION: Section = Section {
    keys: &[
        Key::kind("model.kind", "\"mlp\"", "the model: see `fedstay list models`").shares(),
        Key::new(
            "model.channels",
            "[6, 16]",
            Allowed::List(&Allowed::Count(1, MOST_CHANNELS as u64)),
            "the number of filters of the two convolutions",
        )
        .shares(),
        Key::new(
            "model.hidden",
            "[64]",
            Allowed::Either(&[WIDTH, Allowed::List(&WIDTH)]),
            "the widths of the hidden layers",
        )
        .shares(),
        Key::new(
            "model.activation",
            "\"softplus\"",
            Allowed::Word(&["softplus", "relu", "tanh"], &[]),
            "what a hidden unit does with its input",
        )
        .shares(),
        Key::new(
            "model.init",
            "\"torch\"",
            Allowed::Word(&["torch", "he", "zero-output", "small"], &[]),
            "how the first weights are drawn",
        )
        .shares(),
    ],
    ..Section::of::<Model>(On::Training, "model", "What is trained")
};
