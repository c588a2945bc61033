//! What a rule, a policy or a behaviour remembers between rounds, apart from its parameters.
//!
//! All three are serialised whole, with their memory under one key that is left out while there is
//! nothing to remember. A caller that keeps the parameters itself passes only the memory back and
//! forth.

use crate::Error;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

const KEY: &str = "memory";

/// The memory of a rule, a policy or a behaviour; null if it remembers nothing.
pub(crate) fn of(whole: &impl Serialize) -> Result<Value, Error> {
    let mut whole = serde_json::to_value(whole).map_err(bad)?;
    Ok(whole.get_mut(KEY).map_or(Value::Null, Value::take))
}

/// Replaces the memory of a rule, a policy or a behaviour.
pub(crate) fn put<T: Serialize + DeserializeOwned>(
    whole: &mut T,
    memory: Value,
) -> Result<(), Error> {
    let mut value = serde_json::to_value(&*whole).map_err(bad)?;
    let Value::Object(fields) = &mut value else {
        return Err(Error::BadState { why: "a rule or policy must be an object".into() });
    };
    match memory {
        Value::Null => fields.remove(KEY),
        memory => fields.insert(KEY.to_owned(), memory),
    };
    *whole = serde_json::from_value(value).map_err(bad)?;
    Ok(())
}

/// Rejects a configuration that contains a memory.
pub(crate) fn check_fresh(what: &str, whole: &impl Serialize) -> Result<(), Error> {
    match of(whole)? {
        Value::Null => Ok(()),
        _ => Err(Error::bad_parameter(
            format!("{what}.memory"),
            "given",
            "left out: only a saved state has one",
        )),
    }
}

fn bad(error: serde_json::Error) -> Error {
    Error::BadState { why: error.to_string() }
}

/// A map by agent as a list of pairs: the keys of a map in JSON must be strings.
pub(crate) mod pairs {
    use crate::AgentId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        map: &BTreeMap<AgentId, T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<AgentId, T>, D::Error> {
        Ok(Vec::<(AgentId, T)>::deserialize(deserializer)?.into_iter().collect())
    }
}
