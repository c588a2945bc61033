//! What values a key may have.
//!
//! Every value is checked against its key's type and bounds before a file is read, memory is
//! allocated or a thread is started, so that a typing error costs one message and not the machine.

use crate::experiment::SpecError;
use crate::experiment::epsilon::Relative;
use crate::experiment::locate::written;
use crate::experiment::table::Tree;
use serde_json::{Value as Json, json};
use std::fmt;
use toml::Value;

/// The largest parameter: squares and products of three such numbers stay within `f64`.
const LARGE: f64 = 1e100;
/// The largest whole number that TOML can write.
pub(super) const LARGEST: u64 = i64::MAX as u64;
/// The largest possible count of rounds or rows.
pub(super) const COUNT: u64 = u32::MAX as u64;

/// What values a key may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Allowed {
    /// The name of one of the section's kinds.
    Kind,
    /// One of these words. The second list has other spellings of them, which are accepted but not
    /// advertised.
    Word(&'static [&'static str], &'static [&'static str]),
    /// A whole number between these two.
    Count(u64, u64),
    /// A number between these two.
    Number(f64, f64),
    /// A number above zero and at most this.
    Positive(f64),
    /// Any finite number.
    Finite,
    /// `true` or `false`.
    Switch,
    /// Any text.
    Text,
    /// Text of one character.
    Character,
    /// A multiple of a loss that is found out, `"1.1 * local"`.
    Relative,
    /// A table of such values, by names that the data have.
    ByName(&'static Allowed),
    /// A list of such values.
    List(&'static Allowed),
    /// A table in which every name has such a value.
    Named(&'static Allowed),
    /// One of several types.
    Either(&'static [Allowed]),
    /// The parts of a mixed population: tables with the keys of a behaviour.
    Parts,
}

impl Allowed {
    /// Any finite number that can be computed with.
    pub(super) const NUMBER: Self = Self::Number(-LARGE, LARGE);

    /// Refuses a value outside, by the name of its key.
    pub(super) fn check(self, key: &str, value: &Value) -> Result<(), SpecError> {
        if self.has(value) {
            return Ok(());
        }
        let instead = self.instead(value);
        Err(SpecError::Value { key: key.to_owned(), value: written(value), must: self, instead })
    }

    /// What to write instead of a value, where that is clear: a whole number, however it was written.
    fn instead(self, value: &Value) -> Option<String> {
        let whole =
            value.as_float().filter(|number| number.fract() == 0.0 && number.abs() < 1e15)?;
        let whole = whole as i64;
        self.has(&Value::from(whole)).then(|| whole.to_string())
    }

    fn has(self, value: &Value) -> bool {
        match self {
            Self::Word(words, aliases) => {
                value.as_str().is_some_and(|word| words.contains(&word) || aliases.contains(&word))
            }
            Self::Count(least, most) => {
                let count = value.as_integer().and_then(|count| u64::try_from(count).ok());
                count.is_some_and(|count| (least..=most).contains(&count))
            }
            Self::Number(least, most) => {
                value.number().is_some_and(|number| (least..=most).contains(&number))
            }
            Self::Positive(most) => {
                value.number().is_some_and(|number| number > 0.0 && number <= most)
            }
            Self::Finite => value.number().is_some_and(f64::is_finite),
            Self::Switch => value.as_bool().is_some(),
            Self::Kind | Self::Text => value.as_str().is_some(),
            Self::Character => value.as_str().is_some_and(|text| text.chars().count() == 1),
            Self::Relative => {
                value.as_str().is_some_and(|text| Relative::try_from(text.to_owned()).is_ok())
            }
            Self::List(of) => {
                value.as_array().is_some_and(|list| list.iter().all(|value| of.has(value)))
            }
            Self::ByName(of) => value.as_table().is_some_and(|table| {
                !table.is_empty() && table.iter().all(|(_, value)| of.has(value))
            }),
            Self::Named(of) => {
                value.as_table().is_some_and(|table| table.values().all(|value| of.has(value)))
            }
            Self::Either(types) => types.iter().any(|one| one.has(value)),
            Self::Parts => {
                value.as_array().is_some_and(|list| list.iter().all(|part| part.is_table()))
            }
        }
    }

    /// Whether a number can be, or be part of, such a value.
    pub fn takes_numbers(self) -> bool {
        match self {
            Self::Count(..) | Self::Number(..) | Self::Positive(_) | Self::Finite => true,
            Self::List(of) | Self::Named(of) => of.takes_numbers(),
            Self::Either(types) => types.iter().any(|one| one.takes_numbers()),
            Self::Kind
            | Self::Word(..)
            | Self::Switch
            | Self::Text
            | Self::Character
            | Self::Relative
            | Self::ByName(_)
            | Self::Parts => false,
        }
    }

    /// The type as a JSON schema. Kinds and parts are described by their section.
    pub(super) fn schema(self) -> Json {
        match self {
            Self::Kind | Self::Text => json!({ "type": "string" }),
            Self::Word(words, aliases) => {
                let words = [words, aliases].concat();
                json!({ "enum": words })
            }
            Self::Count(least, most) => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Self::Number(least, most) => {
                json!({ "type": "number", "minimum": least, "maximum": most })
            }
            Self::Positive(most) => {
                json!({ "type": "number", "exclusiveMinimum": 0, "maximum": most })
            }
            Self::Finite => json!({ "type": "number" }),
            Self::Switch => json!({ "type": "boolean" }),
            Self::Character => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
            Self::Relative => {
                json!({ "type": "string", "pattern": r"\*\s*(local|alone|pooled)\s*$" })
            }
            Self::List(of) => json!({ "type": "array", "items": of.schema() }),
            Self::ByName(of) => {
                json!({ "type": "object", "minProperties": 1, "additionalProperties": of.schema() })
            }
            Self::Named(of) => json!({ "type": "object", "additionalProperties": of.schema() }),
            Self::Either(types) => {
                json!({ "anyOf": types.iter().map(|one| one.schema()).collect::<Vec<_>>() })
            }
            Self::Parts => json!({ "type": "array", "items": { "type": "object" } }),
        }
    }

    /// The type in words, for one value or for several.
    fn words(self, many: bool) -> String {
        let one_or = |one: &str, several: &str| if many { several } else { one }.to_owned();
        let number = one_or("a number", "numbers");
        match self {
            Self::Kind => one_or("a name", "names"),
            Self::Word(words, _) => {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
            }
            Self::Count(least, most) => {
                format!("{} from {least} to {most}", one_or("a whole number", "whole numbers"))
            }
            Self::Number(least, most) => {
                format!("{number} from {} to {}", short(least), short(most))
            }
            Self::Positive(most) => format!("{number} above zero and at most {}", short(most)),
            Self::Finite => one_or("a finite number", "finite numbers"),
            Self::Switch => "true or false".to_owned(),
            Self::Text => one_or("a text", "texts"),
            Self::Character => one_or("one character", "characters"),
            Self::Relative => "\"1.1 * local\", \"1.0 * alone\" or \"1.05 * pooled\"".to_owned(),
            Self::List(of) => format!("{} of {}", one_or("a list", "lists"), of.words(true)),
            Self::ByName(of) => {
                format!("{} of {} by name", one_or("a table", "tables"), of.words(true))
            }
            Self::Named(of) => {
                format!(
                    "{} in which every name has {}",
                    one_or("a table", "tables"),
                    of.words(false)
                )
            }
            Self::Either(types) => {
                types.iter().map(|one| one.words(many)).collect::<Vec<_>>().join(", or ")
            }
            Self::Parts => {
                "a list of parts, as in [{ kind = \"threshold\", share = 1.0 }]".to_owned()
            }
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words(false))
    }
}

/// A number as one would type it.
fn short(number: f64) -> String {
    if number.abs() >= 1e15 { format!("{number:e}") } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_key_the_value_and_what_is_allowed() {
        let said = |allowed: Allowed, value: Value| {
            allowed.check("a.b", &value).map_err(|error| error.to_string())
        };
        assert_eq!(
            said(Allowed::Count(1, 9), Value::from(10)).unwrap_err(),
            "`a.b` is 10, but must be a whole number from 1 to 9"
        );
        assert_eq!(
            said(Allowed::Count(1, 9), Value::from(3.0)).unwrap_err(),
            "`a.b` is 3.0, but must be a whole number from 1 to 9; write 3"
        );
        assert_eq!(
            said(Allowed::Positive(1e38), Value::from(f64::NAN)).unwrap_err(),
            "`a.b` is nan, but must be a number above zero and at most 1e38"
        );
        const EPSILON: Allowed =
            Allowed::Either(&[Allowed::Finite, Allowed::List(&Allowed::Finite), Allowed::Relative]);
        assert_eq!(
            said(EPSILON, Value::from("soon")).unwrap_err(),
            "`a.b` is \"soon\", but must be a finite number, or a list of finite numbers, or \
             \"1.1 * local\", \"1.0 * alone\" or \"1.05 * pooled\""
        );
        const NUMBERS: Allowed = Allowed::List(&Allowed::NUMBER);
        const WORD: Allowed = Allowed::Word(&["stop", "halve"], &["half"]);
        for (allowed, good, bad) in [
            (Allowed::Count(0, 5), Value::from(5), Value::from(-1)),
            (Allowed::Count(0, 5), Value::from(0), Value::from(2.0)),
            (Allowed::NUMBER, Value::from(-1e100), Value::from(f64::INFINITY)),
            (Allowed::NUMBER, Value::from(3), Value::from("three")),
            (Allowed::Finite, Value::from(1e300), Value::from(f64::NAN)),
            (NUMBERS, Value::from(vec![1.0, 2.0]), Value::from(vec![1.0, 1e300])),
            (Allowed::Switch, Value::from(true), Value::from(1)),
            (WORD, Value::from("half"), Value::from("stopp")),
            (Allowed::Character, Value::from("ä"), Value::from("ab")),
            (EPSILON, Value::from("2 * local"), Value::from("local")),
            (EPSILON, Value::from(vec![1, 2]), Value::from(vec!["a"])),
        ] {
            assert_eq!(said(allowed, good), Ok(()));
            assert!(said(allowed, bad).unwrap_err().starts_with("`a.b` is "));
        }
        let long = Value::from("9".repeat(5000));
        assert!(said(Allowed::Switch, long).unwrap_err().len() < 100);
    }
}
