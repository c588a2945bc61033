//! A score in a file: its parts side by side, under their names. Where a file has other fields beside
//! them, what does not look like a part is passed over.

use super::{Measure, MeasureName, Measures, Score};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;
use std::marker::PhantomData;

/// What a score may be made of: numbers, columns of them, or small tables.
pub trait ScorePart: Serialize + Sized {
    /// Whether it is a column: one that is not there is then empty, else null.
    const COLUMN: bool = false;

    /// What stands for a part that is not known.
    fn unknown() -> Self;

    /// What a number says.
    fn from_number(_: f64) -> Option<Self> {
        None
    }

    /// What a list says, which has to be read to its end.
    ///
    /// # Errors
    /// When the list cannot be read.
    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    /// What a table says.
    fn from_table(_: Map<String, Value>) -> Option<Self> {
        None
    }
}

impl ScorePart for f64 {
    fn unknown() -> Self {
        Self::NAN
    }

    fn from_number(value: f64) -> Option<Self> {
        Some(value)
    }
}

/// A column in which an unknown number is null.
impl ScorePart for Vec<f64> {
    const COLUMN: bool = true;

    fn unknown() -> Self {
        Self::new()
    }

    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let (mut column, mut numbers) = (Self::new(), true);
        while let Some(found) = list.next_element_seed(Reader::<f64>(PhantomData))? {
            match found {
                Found::Part(value) => column.push(value),
                Found::Nothing => column.push(f64::NAN),
                Found::Else => numbers = false,
            }
        }
        Ok(Some(column).filter(|_| numbers))
    }
}

/// What was found where a part may stand.
enum Found<T> {
    Part(T),
    Nothing,
    Else,
}

/// Reads whatever is there.
struct Reader<T>(PhantomData<T>);

impl<'de, T: ScorePart> DeserializeSeed<'de> for Reader<T> {
    type Value = Found<T>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, T: ScorePart> Visitor<'de> for Reader<T> {
    type Value = Found<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(T::from_number(value).map_or(Found::Else, Found::Part))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Found::Nothing)
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Found::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Found::Else)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Found::Else)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Ok(T::from_list(list)?.map_or(Found::Else, Found::Part))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Self::Value, A::Error> {
        let mut found = Map::new();
        while let Some((key, value)) = table.next_entry()? {
            found.insert(key, value);
        }
        Ok(T::from_table(found).map_or(Found::Else, Found::Part))
    }
}

impl<T: ScorePart> Score<T> {
    /// Takes up what a file has under a name, if that is a part of a score.
    pub(crate) fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: String,
        file: &mut A,
    ) -> Result<(), A::Error> {
        let found = file.next_value_seed(Reader::<T>(PhantomData))?;
        match (found, name == Measure::LOSS.name) {
            (Found::Part(loss), true) => self.loss = loss,
            (Found::Else, true) => return Err(A::Error::custom("its loss is not one")),
            (Found::Part(value), false) => {
                let usual = Measure::ACCURACY.name;
                let name = if name == usual { usual } else { MeasureName::Owned(name) };
                self.measures.set(name, value);
            }
            _ => {}
        }
        Ok(())
    }
}

impl<T: ScorePart> Serialize for Score<T> {
    /// The accuracy is always there, null or empty where it means nothing, as files have had it from
    /// the first version.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let accuracy = Measure::ACCURACY.name;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("loss", &self.loss)?;
        match self.measures.get(&accuracy) {
            Some(value) => map.serialize_entry(&accuracy, value)?,
            None if T::COLUMN => map.serialize_entry(&accuracy, &[(); 0])?,
            None => map.serialize_entry(&accuracy, &())?,
        }
        for (name, value) in self.measures.iter().filter(|(name, _)| *name != accuracy) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<T: Serialize> Serialize for Measures<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Measures<T> {
    /// In the order of the file.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Measures<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("values by the names of their measures")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut file: A) -> Result<Self::Value, A::Error> {
                let mut measures = Measures::default();
                while let Some((name, value)) = file.next_entry::<String, T>()? {
                    measures.set(name, value);
                }
                Ok(measures)
            }
        }

        from.deserialize_map(InOrder(PhantomData))
    }
}

impl<'de, T: ScorePart> Deserialize<'de> for Score<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Parts<T>(PhantomData<T>);

        impl<'de, T: ScorePart> Visitor<'de> for Parts<T> {
            type Value = Score<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a loss and what else was measured")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut file: A) -> Result<Self::Value, A::Error> {
                let mut score = Score::new(T::unknown());
                while let Some(name) = file.next_key::<String>()? {
                    score.read(name, &mut file)?;
                }
                Ok(score)
            }
        }

        from.deserialize_map(Parts(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written<T: ScorePart>(score: &Score<T>) -> Value {
        serde_json::to_value(score).unwrap()
    }

    #[test]
    fn parts_stand_side_by_side_and_survive_a_file() {
        let score = Score::new(0.5).with("balanced", 0.25).with("accuracy", 0.75);
        let file = json!({ "loss": 0.5, "accuracy": 0.75, "balanced": 0.25 });
        assert_eq!(written(&score), file);
        let read: Score = serde_json::from_value(file).unwrap();
        assert_eq!(
            (read.loss, read.of("accuracy"), read.of("balanced")),
            (0.5, Some(0.75), Some(0.25))
        );
        let columns = Score::new(vec![0.5, f64::NAN]).with("balanced", vec![1.0]);
        let file = json!({ "loss": [0.5, null], "accuracy": [], "balanced": [1.0] });
        assert_eq!(written(&columns), file);
        let read: Score<Vec<f64>> = serde_json::from_value(file).unwrap();
        assert!(read.loss[1].is_nan() && read.get("balanced").unwrap() == &[1.0]);
    }

    #[test]
    fn accuracy_is_null_where_it_means_nothing_and_is_then_not_there() {
        assert_eq!(written(&Score::new(1.0)), json!({ "loss": 1.0, "accuracy": null }));
        let read: Score = serde_json::from_value(json!({ "accuracy": null })).unwrap();
        assert!(read.loss.is_nan() && read.measures.is_empty());
    }

    #[test]
    fn what_is_no_part_is_passed_over_but_a_loss_must_be_one() {
        let other =
            json!({ "loss": 2, "name": "x", "on": true, "list": [1, "a"], "table": { "a": [] } });
        let read: Score = serde_json::from_value(other).unwrap();
        assert_eq!(read, Score::new(2.0));
        let error = serde_json::from_value::<Score>(json!({ "loss": "low" })).unwrap_err();
        assert!(error.to_string().contains("loss"), "{error}");
    }
}
