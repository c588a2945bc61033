//! Experiments as TOML, by way of JSON.
//!
//! Code that is generic over the format is compiled once per format, for every rule, behaviour, policy and
//! model there is. For TOML alone that was a third of this crate's machine code. So an experiment is written
//! and read as JSON, which checkpoints need anyway, and only [`TomlValue`] and [`toml::Value`] know TOML.
//! Nothing is lost on the way: all numbers of an experiment are finite, and keys keep their order.

use super::SpecError;
use serde::de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use toml::{Table, Value};

/// What was written, with the keys in their order.
enum TomlValue {
    /// What TOML leaves out.
    Nothing,
    Flag(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    List(Vec<TomlValue>),
    Table(Vec<(String, TomlValue)>),
}

impl Serialize for TomlValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nothing => serializer.serialize_none(),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Whole(number) => serializer.serialize_i64(*number),
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(values) => serializer.collect_seq(values),
            Self::Table(entries) => {
                let given = entries.iter().filter(|(_, value)| !matches!(value, Self::Nothing));
                serializer.collect_map(given.map(|(key, value)| (key, value)))
            }
        }
    }
}

impl<'de> Deserialize<'de> for TomlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TomlVisitor)
    }
}

struct TomlVisitor;

impl<'de> Visitor<'de> for TomlVisitor {
    type Value = TomlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what TOML can hold")
    }

    fn visit_unit<E>(self) -> Result<TomlValue, E> {
        Ok(TomlValue::Nothing)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<TomlValue, E> {
        Ok(TomlValue::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<TomlValue, E> {
        Ok(TomlValue::Whole(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<TomlValue, E> {
        let number = i64::try_from(number);
        number.map(TomlValue::Whole).map_err(|_| E::custom("a whole number too large for TOML"))
    }

    fn visit_f64<E>(self, number: f64) -> Result<TomlValue, E> {
        Ok(TomlValue::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<TomlValue, E> {
        Ok(TomlValue::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<TomlValue, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(TomlValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<TomlValue, A::Error> {
        let mut table = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            table.push(entry);
        }
        Ok(TomlValue::Table(table))
    }
}

fn write(value: &impl Serialize) -> Result<TomlValue, SpecError> {
    Ok(serde_json::from_str(&serde_json::to_string(value)?)?)
}

/// A value as the text of a TOML file.
pub(super) fn to_text(value: &impl Serialize) -> Result<String, SpecError> {
    Ok(toml::to_string(&write(value)?)?)
}

/// A section of an experiment, or all of one, as TOML.
///
/// # Errors
/// When it is not a table, or has a number that TOML cannot hold.
pub fn to_table(value: &impl Serialize) -> Result<Table, SpecError> {
    Ok(Table::try_from(write(value)?)?)
}

/// Reads a section of an experiment, or all of one, whose keys were checked.
///
/// # Errors
/// When a value is not what its key holds.
pub fn from_toml<T: DeserializeOwned>(value: impl Into<Value>) -> Result<T, SpecError> {
    let json = serde_json::to_vec(&value.into())?;
    serde_json::from_slice(&json).map_err(SpecError::unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn toml_by_way_of_json_is_toml() {
        for text in ["", "problem.kind = \"red-blue\"", "rule.kind = \"ada-gd\"\nseed = 7"] {
            let experiment = Experiment::parse(text, &[]).unwrap();
            assert_eq!(to_text(&experiment).unwrap(), toml::to_string(&experiment).unwrap());
            let table = Table::try_from(&experiment).unwrap();
            assert_eq!(to_table(&experiment).unwrap(), table);
            assert_eq!(from_toml::<Experiment>(table.clone()).unwrap(), table.try_into().unwrap());
        }
    }

    #[test]
    fn numbers_keep_their_kind_and_their_bits() {
        #[derive(Serialize, Deserialize, PartialEq, Debug)]
        struct Numbers {
            whole: i64,
            number: f64,
            small: f64,
            absent: Option<f64>,
            nested: Vec<Vec<u32>>,
        }
        let (number, small) = (2.0, 0.1 + 0.2);
        let nested = vec![vec![1, 2], vec![]];
        let numbers = Numbers { whole: -3, number, small, absent: None, nested };
        let text = to_text(&numbers).unwrap();
        assert_eq!(text, toml::to_string(&numbers).unwrap());
        assert!(text.contains("number = 2.0") && !text.contains("absent"), "{text}");
        assert_eq!(from_toml::<Numbers>(to_table(&numbers).unwrap()).unwrap(), numbers);
        let large = std::collections::BTreeMap::from([("seed", u64::MAX)]);
        assert!(to_table(&large).is_err());
    }
}
