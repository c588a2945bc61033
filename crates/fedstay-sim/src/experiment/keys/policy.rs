//! `[policy]`: what the server does around the rule. The keys are the options that each policy's file
//! in the core describes.

use super::{Allowed, Key, Kinds, On, Section};
use fedstay::Policies;
use fedstay::policy::{OPTIONS, PolicyOption, Values};

pub(super) static SECTION: Section = Section {
    name: "policy",
    about: "What the server does around the rule",
    on: On::Anything,
    kinds: Some(Kinds::of::<Policies>()),
    keys: &keys(),
};

const KIND: Key = Key::new(
    "policy.kind",
    "\"early-stop\"",
    Allowed::Kind,
    "what the server does around the rule: see `fedstay list policies`",
)
.shares();

const HOW_MANY: usize = {
    let (mut count, mut policy) = (1, 0);
    while policy < OPTIONS.len() {
        count += OPTIONS[policy].len();
        policy += 1;
    }
    count
};

/// The kind, and then the options of one policy after the other.
const fn keys() -> [Key; HOW_MANY] {
    let mut keys = [KIND; HOW_MANY];
    let (mut place, mut policy) = (1, 0);
    while policy < OPTIONS.len() {
        let mut option = 0;
        while option < OPTIONS[policy].len() {
            keys[place] = key(OPTIONS[policy][option]);
            (place, option) = (place + 1, option + 1);
        }
        policy += 1;
    }
    keys
}

const fn key(option: PolicyOption) -> Key {
    let allowed = match option.values {
        Values::Number(least, most) => Allowed::Number(least, most),
        Values::Count(least, most) => Allowed::Count(least, most),
        Values::Words(words) => Allowed::Word(words, &[]),
        Values::Switch => Allowed::Switch,
    };
    Key::new(option.key, option.example, allowed, option.about).otherwise(option.otherwise)
}
