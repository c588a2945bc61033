//! The name of a run: what it computes, and nothing about when or how.

use crate::experiment::{Experiment, SpecError};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The number of what runs come to. It is part of every stored result's key, so results from before
/// it was raised are not mistaken for what would be computed today.
///
/// Raise it by one, by hand, with every change that makes some experiment come out differently: other
/// weights, other departures, another stop, other words or fields in a summary or a series, another
/// meaning or default of a key. Do not raise it for what changes no result: speed, messages, pages,
/// new keys whose default leaves everything as it was. The program's version has nothing to do with
/// it; which build computed a result is stored beside it ([`BUILD`]).
///
/// `the_results_number_goes_with_what_is_computed` fails when it was forgotten for some simple runs.
///
/// 7: where 32 constraints or more bind, `retain` begins its projection with those of the round before and
/// computes in blocks; with 256 agents or more that report in single precision, it first multiplies their
/// gradients in single precision. So its steps differ in their last digits, and by the hair that its aims give.
/// 8: the same again, since its blocks and its products in single precision are summed in another order.
/// 9: summaries have the verdicts `empty` and `at-start` with what they rest on, call agents that were not asked
/// unknown, say when losses rose or when nobody foresaw who left, and call agents by their names. They also
/// say what became of the rows of the data set, and warn where many are not used. And agents that take
/// several steps or sample their rows report their gradient too where the rule or the guard predicts losses from it
/// (`local.exact_gradient = "auto"`); a summary says within which distance no model satisfies everybody.
/// One slack, 0.02, for whatever keeps agents by one (the guard had 0.01), and one default rule, `retain`;
/// with `compare_alone`, summaries count who is better off than alone.
/// `retain` returns to its best weights where what it tried came to far less,
/// and caps distances from targets, not losses.
/// 10: summaries of runs on rows with owners say how good models are for each owner on its own held-back
/// rows (`held_back`), and `unseen` is of these; runs that learn a number measure its RMSE.
pub const RESULTS: u32 = 10;

/// Which build this is: the version, and the commit where it is known when building.
pub const BUILD: &str = env!("FEDSTAY_BUILD");

/// The key of a run: a hash of its whole configuration and of [`RESULTS`]. Two runs with one key are
/// the same run, bit for bit.
///
/// # Errors
/// Never, for an experiment that was parsed.
pub fn key(experiment: &Experiment) -> Result<String, SpecError> {
    Ok(hash(&config(experiment)?))
}

/// The whole configuration. Whether Gram matrices are kept is left out: it changes no result.
pub(in crate::sweep) fn config(experiment: &Experiment) -> Result<Value, SpecError> {
    // By its text: code for JSON values would be compiled for every type again.
    let mut config = serde_json::from_str(&serde_json::to_string(experiment)?)?;
    if let Value::Object(keys) = &mut config {
        keys.remove("record_gram");
    }
    Ok(config)
}

/// The first 128 bits of SHA-256 over the results' number and the configuration, keys in order.
pub(in crate::sweep) fn hash(config: &Value) -> String {
    let mut text = format!("fedstay results {RESULTS}\n");
    canonical(config, &mut text);
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// JSON with sorted keys, whatever order the map in memory has.
pub(in crate::sweep) fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            text.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                canonical(&map[key], text);
            }
            text.push('}');
        }
        Value::Array(list) => {
            text.push('[');
            for (index, value) in list.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                canonical(value, text);
            }
            text.push(']');
        }
        leaf => text.push_str(&leaf.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(set: &[(&str, &str)]) -> String {
        let set: Vec<(String, String)> =
            set.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        key(&Experiment::parse("", &set).unwrap()).unwrap()
    }

    #[test]
    fn the_key_is_what_is_computed() {
        let start = key_of(&[]);
        assert_eq!(start.len(), 32);
        assert_eq!(start, key_of(&[("seed", "0"), ("record_gram", "true")]));
        for other in [("seed", "1"), ("epsilon", "0.20001"), ("rule.kind", "fedavg")] {
            assert_ne!(start, key_of(&[other]), "{other:?}");
        }
    }

    #[test]
    fn the_order_of_keys_in_memory_does_not_matter() {
        let mut text = String::new();
        canonical(
            &serde_json::json!({ "b": [1, { "d": null, "c": "x\"y" }], "a": 0.5 }),
            &mut text,
        );
        assert_eq!(text, r#"{"a":0.5,"b":[1,{"c":"x\"y","d":null}]}"#);
    }
}
