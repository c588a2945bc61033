//! What holds for every key: the tables match what the structs read.

use super::*;
use crate::experiment::{SpecError, read_table};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// A table with one section of one kind, with what that kind needs.
fn minimal(section: &Section, kind: Option<&'static str>) -> Table {
    let mut inner = Table::new();
    if let Some(kind) = kind {
        inner.insert(section.kind_key().to_owned(), Value::from(kind));
        for key in section.keys.iter().filter(|key| key.needed_by().contains(&kind)) {
            inner.insert(key.short_name().to_owned(), parse_value(key.example));
        }
    }
    match section.name {
        "" => inner,
        name => Table::from_iter([(name.to_owned(), Value::Table(inner))]),
    }
}

/// The kinds of a section; a single `None` for a section without any.
fn kinds(section: &Section) -> Vec<Option<&'static str>> {
    match &section.kinds {
        Some(kinds) => kinds.names().map(Some).collect(),
        None => vec![None],
    }
}

/// Every section with every kind, as a file that says only that, and as the whole experiment.
fn every_kind() -> Vec<(&'static Section, Option<&'static str>, Table, Experiment)> {
    let mut all = Vec::new();
    for section in SECTIONS {
        for kind in kinds(section) {
            let table = minimal(section, kind);
            let experiment = Experiment::from_table(table.clone())
                .unwrap_or_else(|error| panic!("[{}] {kind:?}: {error}", section.name));
            all.push((section, kind, table, experiment));
        }
    }
    all
}

#[test]
fn every_key_that_is_written_is_in_the_tables() {
    for (_, _, _, experiment) in every_kind() {
        let whole = Value::try_from(&experiment).unwrap();
        for (name, value) in leaves(&whole) {
            let key = KEYS.iter().find(|key| key.name == name);
            let key = key.unwrap_or_else(|| panic!("`{name}` is in no table"));
            key.allowed.check(key.name, value).unwrap();
        }
        check_keys(whole.as_table().unwrap()).unwrap();
    }
}

/// The tables and serde agree on which kind has which key. It is read without the tables' check, so
/// that serde is the one to refuse.
#[test]
fn a_kind_has_a_key_if_and_only_if_its_struct_does() {
    for (section, kind, mut table, _) in every_kind() {
        let Some(kind) = kind else { continue };
        crate::experiment::complete::complete(&mut table).unwrap();
        for key in section.keys.iter().filter(|key| key.allowed != Allowed::Kind) {
            let mut table = table.clone();
            let inner = table.get_mut(section.name).and_then(Value::as_table_mut).unwrap();
            inner.insert(key.short_name().to_owned(), parse_value(key.example));
            let read: Result<Experiment, toml::de::Error> = table.try_into();
            match read {
                Ok(_) if kind == "none" => {} // It has no struct that could refuse.
                Ok(_) => assert!(key.belongs_to(kind), "{} is read for {kind}", key.name),
                Err(error) => {
                    assert!(!key.belongs_to(kind), "{} for {kind}: {error}", key.name);
                    assert!(error.message().contains("unknown field"), "{}: {error}", key.name);
                }
            }
        }
    }
}

#[test]
fn every_key_is_read_with_its_example_and_written_back() {
    for key in KEYS.iter() {
        let set = key.with().into_iter().map(|(name, value)| (name, value.to_owned()));
        let set: Vec<(String, String)> =
            set.chain([(key.name.to_owned(), key.example.to_owned())]).collect();
        let experiment =
            Experiment::parse("", &set).unwrap_or_else(|error| panic!("{}: {error}", key.name));
        let whole = Value::try_from(&experiment).unwrap();
        let read = look_up(&whole, key.name).unwrap_or_else(|| panic!("{} is lost", key.name));
        let given = parse_value(key.example);
        // The parts of a population are completed: each has all parameters of its kind.
        if key.allowed == Allowed::Parts {
            assert_eq!(read.as_array().map(Vec::len), given.as_array().map(Vec::len));
            continue;
        }
        assert!(crate::experiment::table::same(read, &given), "{}: {read} for {given}", key.name);
    }
}

#[test]
fn a_value_of_another_type_is_refused_by_the_type_and_not_by_serde() {
    for key in KEYS.iter() {
        let fits = |text: &&str| key.allowed.check(key.name, &parse_value(text)).is_ok();
        let wrong = ["3", "\"neither this nor that\"", "1.5"];
        let wrong = wrong.into_iter().find(|text| !fits(text)).unwrap();
        let set = key.with().into_iter().map(|(name, value)| (name, value.to_owned()));
        let set: Vec<(String, String)> =
            set.chain([(key.name.to_owned(), wrong.to_owned())]).collect();
        match Experiment::parse("", &set).unwrap_err() {
            SpecError::Value { key: named, must, .. } => {
                assert_eq!((named.as_str(), must), (key.name, key.allowed));
            }
            error => panic!("{}: {error}", key.name),
        }
    }
}

#[test]
fn what_a_key_is_when_it_is_not_given_is_said() {
    for key in KEYS.iter() {
        for (kinds, value) in key.defaults() {
            match value {
                Some(value) => key.allowed.check(key.name, &value).unwrap(),
                None => assert!(!key.otherwise.is_empty(), "{} for {kinds:?}", key.name),
            }
        }
        assert!(!key.default_text().is_empty(), "{}", key.name);
    }
    let default = |name: &str| {
        KEYS.iter().find(|key| key.name == name).map(|key| key.default_text()).unwrap()
    };
    assert!(default("seed").starts_with('0') && default("epsilon").starts_with("0.2"));
    assert!(default("rule.delta").contains("0.02 for ada-gd, retain"), "{}", default("rule.delta"));
    assert_eq!(default("partition.alpha"), "must be given for dirichlet");
}

#[test]
fn tables_name_only_kinds_and_sections_that_there_are() {
    let mut names = BTreeSet::new();
    for key in KEYS.iter() {
        assert!(names.insert(key.name), "{} is there twice", key.name);
        let section = key.section();
        let inside = key.name.split_once('.').map_or("", |(section, _)| section);
        assert_eq!(section.name, inside, "{}", key.name);
    }
    for section in SECTIONS {
        if let Some(kinds) = &section.kinds {
            assert!(kinds.names().any(|name| name == kinds.default()), "[{}]", section.name);
        }
    }
}

#[test]
fn the_default_kinds_are_those_of_an_experiment_that_names_none() {
    for section in SECTIONS {
        let Some(kinds) = &section.kinds else { continue };
        let table = Table::from_iter([(section.name.to_owned(), Value::Table(Table::new()))]);
        let whole = Value::try_from(Experiment::from_table(table).unwrap()).unwrap();
        let kind = look_up(&whole, &section.kind_name()).unwrap();
        assert_eq!(kind.as_str(), Some(kinds.default()));
        if section.on != On::Problem {
            let whole = Value::try_from(Experiment::parse("", &[]).unwrap()).unwrap();
            let kind = look_up(&whole, &section.kind_name()).unwrap();
            assert_eq!(kind.as_str(), Some(kinds.default()), "without [{}]", section.name);
        }
    }
}

/// Checks a value against the subset of JSON Schema that the schema uses; says where something does
/// not fit.
fn fits(schema: &Json, value: &Json, place: &str) -> Result<(), String> {
    let no = |why: &str| Err(format!("{place}: {why}"));
    let schema = match schema {
        Json::Bool(true) => return Ok(()),
        Json::Bool(false) => return no("must not be there"),
        Json::Object(schema) => schema,
        other => panic!("{place}: {other} is not a schema"),
    };
    for (word, rule) in schema {
        let number = |at_least: fn(f64, f64) -> bool| {
            value.as_f64().is_none_or(|value| at_least(value, rule.as_f64().unwrap()))
        };
        let length = value.as_str().map(|text| text.chars().count() as u64);
        let ok = match word.as_str() {
            "$schema" | "title" | "description" => true,
            "type" => match rule.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_i64() || value.is_u64(),
                "number" => value.is_number(),
                other => panic!("type {other}"),
            },
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => number(|value, least| value >= least),
            "maximum" => number(|value, most| value <= most),
            "exclusiveMinimum" => number(|value, least| value > least),
            "minLength" => length.is_none_or(|length| length >= rule.as_u64().unwrap()),
            "maxLength" => length.is_none_or(|length| length <= rule.as_u64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| {
                ["* local", "* alone", "* pooled"].iter().any(|end| text.trim().ends_with(end))
            }),
            "required" => rule.as_array().unwrap().iter().all(|name| {
                value.as_object().is_none_or(|value| value.contains_key(name.as_str().unwrap()))
            }),
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    fits(rule, item, &format!("{place}[]"))?;
                }
                true
            }
            "properties" => {
                for (name, rule) in rule.as_object().unwrap() {
                    if let Some(part) = value.get(name) {
                        fits(rule, part, &format!("{place}.{name}"))?;
                    }
                }
                true
            }
            "minProperties" => {
                let least = rule.as_u64().unwrap() as usize;
                value.as_object().is_none_or(|value| value.len() >= least)
            }
            "additionalProperties" if rule.is_object() => {
                for (name, part) in value.as_object().into_iter().flatten() {
                    fits(rule, part, &format!("{place}.{name}"))?;
                }
                true
            }
            "additionalProperties" => {
                assert_eq!(rule, false);
                let known = schema["properties"].as_object().unwrap();
                value
                    .as_object()
                    .is_none_or(|value| value.keys().all(|name| known.contains_key(name)))
            }
            "anyOf" | "oneOf" => {
                let of = rule.as_array().unwrap();
                let count = of.iter().filter(|one| fits(one, value, place).is_ok()).count();
                count == 1 || count > 1 && word == "anyOf"
            }
            "dependentSchemas" => {
                for (name, rule) in rule.as_object().unwrap() {
                    if value.get(name).is_some() {
                        fits(rule, value, place)?;
                    }
                }
                true
            }
            other => panic!("the checker does not know `{other}`"),
        };
        if !ok {
            return no(word);
        }
    }
    Ok(())
}

fn as_json(table: &Table) -> Json {
    serde_json::to_value(table).unwrap()
}

#[test]
fn the_schema_takes_what_the_reader_takes() {
    let schema = Experiment::schema();
    for (section, kind, table, experiment) in every_kind() {
        fits(&schema, &as_json(&table), &format!("[{}] {kind:?}", section.name)).unwrap();
        fits(&schema, &serde_json::to_value(&experiment).unwrap(), section.name).unwrap();
    }
    for key in KEYS.iter() {
        let mut table = Table::new();
        for (name, value) in key.with() {
            crate::experiment::table::put(&mut table, &name, parse_value(value)).unwrap();
        }
        crate::experiment::table::put(&mut table, key.name, parse_value(key.example)).unwrap();
        fits(&schema, &as_json(&table), key.name).unwrap();
    }
}

#[test]
fn the_schema_takes_a_list_where_there_may_be_several() {
    let schema = Experiment::schema();
    for text in [
        "policy = 'guard'",
        "policy = ['guard', { kind = 'early-stop', margin = 0.1 }]",
        "[[policy]]\nkind = 'preview'\npace = 0.0\n[[policy]]\nkind = 'keep-best'",
    ] {
        let table = read_table(text).unwrap();
        fits(&schema, &as_json(&table), text).unwrap();
        let whole = Experiment::from_table(table).unwrap();
        fits(&schema, &serde_json::to_value(&whole).unwrap(), text).unwrap();
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let schema = Experiment::schema();
    for text in [
        "policy = ['gaurd']",
        "policy = [['guard']]",
        "policy = [{ kind = 'guard', margin = 0.1 }]",
        "sed = 1",
        "seed = -1",
        "rounds = 2.5",
        "rule = 3",
        "[rule]\ndetla = 1",
        "[rule]\nkind = 'ada-dg'",
        "[rule]\nkind = 'ada-gd'\nq = 1.0",
        "[rule]\nkind = 'ada-gd'\non_settled = 'stopp'",
        "[partition]\nkind = 'dirichlet'",
        "[data]\nkind = 'csv'",
        "[local]\nbatch = 0",
        "step_size = 0",
        "epsilon = 'soon'",
        "agents = 3\n[problem]\nkind = 'huber'",
        "[problem]\n[data]",
        "[behaviour]\nkind = 'mixed'",
        "[behaviour]\nkind = 'mixed'\nof = [{ kind = 'lying', share = 1.0, steps = 3 }]",
    ] {
        let table = read_table(text).unwrap();
        assert!(fits(&schema, &as_json(&table), "").is_err(), "the schema takes {text}");
        assert!(Experiment::from_table(table).is_err(), "the reader takes {text}");
    }
}

#[test]
fn the_schema_takes_every_experiment_of_the_project() {
    let schema = Experiment::schema();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut table = read_table(&text).unwrap();
        // What makes a sweep of an experiment is not part of the experiment.
        for key in ["base", "grid", "when", "skip", "only"] {
            table.remove(key);
        }
        fits(&schema, &as_json(&table), &path.display().to_string()).unwrap();
        count += 1;
    }
    assert!(count > 8, "{count} files");
}
