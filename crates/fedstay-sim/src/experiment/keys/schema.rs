//! The keys as a JSON schema, for editors and other programs.

use super::{Allowed, Key, Kinds, On, PROBLEM, SECTIONS, SEVERAL, Section, behaviour};
use crate::experiment::Experiment;
use serde_json::{Map, Value, json};

/// The dialect the schema is written in.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

impl Experiment {
    /// The JSON schema (draft 2020-12) of an experiment's file.
    ///
    /// It knows every key, its type and bounds, and which kind it belongs to. What depends on
    /// several values, such as the size of a model, is checked only by
    /// [`from_table`](Self::from_table).
    pub fn schema() -> Value {
        let mut properties = Map::new();
        for section in SECTIONS {
            match section.name {
                "" => properties.extend(section.keys.iter().map(Key::property)),
                name => {
                    properties.insert(name.to_owned(), section.schema());
                }
            }
        }
        let training = SECTIONS.iter().filter(|section| section.on == On::Training);
        let never: Map<String, Value> = training
            .flat_map(|section| section.entries())
            .map(|name| (name.to_owned(), Value::Bool(false)))
            .collect();
        json!({
            "$schema": DIALECT,
            "title": "An experiment of fedstay",
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
            // A problem brings its own agents: no key about training can be set with it.
            "dependentSchemas": { PROBLEM: { "properties": never } },
        })
    }
}

impl Experiment {
    /// The JSON schema of a sweep's file: an experiment with a grid. Whether axes name keys, and
    /// their values, is checked only by [`Plan::parse`](crate::sweep::Plan::parse).
    pub fn sweep_schema() -> Value {
        let mut schema = Self::schema();
        schema["title"] = "A sweep of fedstay".into();
        let tables = json!({ "type": "array", "items": { "type": "object" } });
        for (name, about, mut part) in [
            (
                "grid",
                "the axes: lists of values, or ranges such as \"0..5\"",
                json!({ "type": "object" }),
            ),
            ("when", "what else to set in cells that match", tables.clone()),
            ("skip", "cells to leave out", tables.clone()),
            ("only", "cells to keep", tables),
            ("base", "the file with the experiment", json!({ "type": "string" })),
        ] {
            part["description"] = about.into();
            schema["properties"][name] = part;
        }
        schema["required"] = json!(["grid"]);
        schema
    }
}

impl Section {
    fn schema(&self) -> Value {
        match &self.kinds {
            None => self.table(None, false),
            Some(kinds) => {
                let names: Vec<&'static str> = kinds.names().collect();
                let tables = names.iter().map(|kind| self.table(Some((kinds, kind)), false));
                let one = json!({ "oneOf": tables.collect::<Vec<_>>() });
                let mut schema = if self.name == SEVERAL { several(&one, &names) } else { one };
                schema["description"] = self.about.into();
                schema
            }
        }
    }

    /// The table of one kind. Only the default kind may be left out; a part of a mixed population
    /// gives its kind, and how large a part it is.
    fn table(&self, kind: Option<(&Kinds, &'static str)>, part: bool) -> Value {
        let keys = self.keys.iter().filter(|key| kind.is_none_or(|(_, kind)| key.belongs_to(kind)));
        let mut properties: Map<String, Value> = keys.map(Key::property).collect();
        let mut required: Vec<&str> = Vec::new();
        if let Some((kinds, kind)) = kind {
            properties.insert(self.kind_key().to_owned(), json!({ "enum": kinds.spellings(kind) }));
            let needed = self.keys.iter().filter(|key| key.needed_by().contains(&kind));
            required.extend(needed.map(Key::short_name));
            if part || kind != kinds.default() {
                required.push(self.kind_key());
            }
        }
        if part {
            properties.extend(behaviour::PART.iter().map(Key::property));
        }
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

/// One table, the name of its kind alone, or a list of both.
fn several(table: &Value, names: &[&str]) -> Value {
    let one = json!({ "anyOf": [table, { "enum": names }] });
    json!({ "anyOf": [one, { "type": "array", "items": one }] })
}

impl Kinds {
    fn spellings(&self, kind: &'static str) -> Vec<&'static str> {
        let aliases = self.aliases.iter().copied();
        let aliases = aliases.filter(|alias| (self.listed_as)(alias) == Some(kind));
        std::iter::once(kind).chain(aliases).collect()
    }
}

impl Key {
    fn property(&self) -> (String, Value) {
        let mut schema = match self.allowed {
            Allowed::Parts => {
                let section = &behaviour::SECTION;
                let kinds = section.kinds.iter().flat_map(|kinds| {
                    let parts = kinds.names().filter(|kind| *kind != "mixed");
                    parts.map(move |kind| section.table(Some((kinds, kind)), true))
                });
                json!({ "type": "array", "items": { "oneOf": kinds.collect::<Vec<_>>() } })
            }
            allowed => allowed.schema(),
        };
        if let Value::Object(schema) = &mut schema {
            schema.insert("description".to_owned(), self.about.into());
        }
        (self.short_name().to_owned(), schema)
    }
}
