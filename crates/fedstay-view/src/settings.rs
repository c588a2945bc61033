//! The keys of a run's `config.toml`, flat: what the list is searched, sorted and compared by.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use toml::Table;

/// The most keys of one run, and the most characters of one value, that are passed on.
const MOST_KEYS: usize = 200;
const MOST_CHARACTERS: usize = 120;

/// The settings of a run: `rule.kind` is `"retain"`, `partition.q` is `0.9`.
pub(crate) type Settings = BTreeMap<String, Value>;

/// The settings in a configuration; none if it cannot be read.
pub(crate) fn read(config: &str) -> Settings {
    let mut flat = Settings::new();
    if let Ok(table) = toml::from_str::<Table>(config) {
        flatten("", &table, &mut flat);
    }
    flat
}

fn flatten(before: &str, table: &Table, into: &mut Settings) {
    for (key, value) in table {
        let key = if before.is_empty() { key.clone() } else { format!("{before}.{key}") };
        if into.len() >= MOST_KEYS {
            return;
        }
        let value = match value {
            toml::Value::Table(inner) => {
                flatten(&key, inner, into);
                continue;
            }
            toml::Value::Boolean(value) => json!(value),
            toml::Value::Integer(value) => json!(value),
            toml::Value::Float(value) => json!(value),
            toml::Value::String(text) => json!(cut(text)),
            other => {
                // Several policies are known by what each is called.
                let kinds = other.as_array().filter(|_| before.is_empty()).and_then(|several| {
                    let kinds = several.iter().map(|one| one.get("kind")?.as_str());
                    kinds.collect::<Option<Vec<_>>>().filter(|kinds| !kinds.is_empty())
                });
                if let Some(kinds) = kinds {
                    into.insert(format!("{key}.kind"), json!(kinds.join("+")));
                }
                json!(cut(&other.to_string()))
            }
        };
        into.insert(key, value);
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The settings that all runs have in common. The others are those that can tell them apart.
pub(crate) fn common<'a>(runs: impl Iterator<Item = &'a Settings> + Clone) -> Settings {
    let keys: BTreeSet<&String> = runs.clone().flat_map(BTreeMap::keys).collect();
    let shared = |key: &&String| {
        let mut values = runs.clone().map(|settings| settings.get(*key));
        let first = values.next().flatten();
        first.is_some() && values.all(|value| value == first)
    };
    let Some(first) = runs.clone().next() else { return Settings::new() };
    keys.into_iter().filter(shared).map(|key| (key.clone(), first[key].clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_flat_and_long_values_are_cut() {
        let long = "x".repeat(500);
        let read = read(&format!(
            "seed = 3\nname = \"{long}\"\n[rule]\nkind = \"retain\"\n[model]\nhidden = [32]\n"
        ));
        assert_eq!((&read["seed"], &read["rule.kind"]), (&json!(3), &json!("retain")));
        assert_eq!(read["model.hidden"], json!("[32]"));
        assert_eq!(read["name"].as_str().unwrap().chars().count(), MOST_CHARACTERS + 1);
        let several = super::read("[[policy]]\nkind = 'guard'\n[[policy]]\nkind = 'keep-best'");
        assert_eq!(several["policy.kind"], json!("guard+keep-best"));
        assert!(super::read("not = = toml").is_empty());
    }

    #[test]
    fn common_is_what_every_run_has_with_the_same_value() {
        let runs = ["a = 1\nb = 1\nc = 1", "a = 1\nb = 2", "a = 1\nb = 1\nc = 1"].map(read);
        assert_eq!(common(runs.iter()), BTreeMap::from([("a".to_owned(), json!(1))]));
        assert_eq!(common(runs[..1].iter()).len(), 3);
        assert!(common([].iter()).is_empty());
    }
}
