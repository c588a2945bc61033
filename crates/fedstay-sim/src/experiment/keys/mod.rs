//! The keys of an experiment, described once.
//!
//! One file per section. From these tables follow what a file may say ([`check_keys`]), what
//! `fedstay list keys` and `docs/keys.md` print ([`page`]), the JSON schema, which keys belong to
//! training, and which runs of a sweep may share work. The default of a key is not stated here but
//! asked of the reader itself ([`Key::defaults`]). The laws check the tables against the structs.

mod allowed;
mod behaviour;
mod check;
mod data;
mod experiment;
mod forget;
#[cfg(test)]
mod laws;
mod library;
mod local;
mod model;
mod page;
mod partition;
mod policy;
mod privacy;
mod problem;
mod rule;
mod schedule;
mod schema;
mod server;
mod starter;
mod stream;
mod training;
mod worth;

pub use allowed::Allowed;
pub use check::check_section;
pub(crate) use check::training_key;
pub(super) use check::{check_keys, name_kinds};
pub use page::page;
pub use starter::starter;

use super::table::{leaves, look_up, parse_value};
use super::{Experiment, to_table};
use fedstay::list::{Entry, Listed, Parameters};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use toml::{Table, Value};

/// The section whose presence makes an experiment one on a problem.
pub(super) const PROBLEM: &str = "problem";

/// The section of which there may be several, in order: a list of tables, or of kinds.
pub(super) const SEVERAL: &str = "policy";

/// Every section, in the order in which they are listed.
pub static SECTIONS: [&Section; 17] = [
    &experiment::SECTION,
    &rule::SECTION,
    &server::SECTION,
    &policy::SECTION,
    &behaviour::SECTION,
    &schedule::SECTION,
    &privacy::SECTION,
    &forget::SECTION,
    &worth::SECTION,
    &problem::SECTION,
    &training::SECTION,
    &data::SECTION,
    &partition::SECTION,
    &model::SECTION,
    &local::SECTION,
    &library::SECTION,
    &stream::SECTION,
];

/// Every key there is, section by section.
pub static KEYS: LazyLock<Vec<Key>> =
    LazyLock::new(|| SECTIONS.iter().flat_map(|section| section.keys).copied().collect());

/// Which experiments have a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// All experiments.
    Anything,
    /// Experiments on a named problem.
    Problem,
    /// Experiments that train on data.
    Training,
}

/// A table of an experiment's file, or the keys outside of all tables.
#[derive(Debug)]
pub struct Section {
    /// Its name; empty for keys outside of all tables.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// Which experiments have it.
    pub on: On,
    /// What its `kind` may be, where it has one.
    pub kinds: Option<Kinds>,
    /// Its keys.
    pub keys: &'static [Key],
}

/// The kinds of a section, as their list says.
#[derive(Debug)]
pub struct Kinds {
    /// Every kind, in the order in which they are listed.
    pub list: &'static [Entry],
    /// Other names for some of them.
    pub aliases: &'static [&'static str],
    default: fn() -> Option<&'static str>,
    listed_as: fn(&str) -> Option<&'static str>,
    parameters: fn(&str) -> Parameters,
}

impl Kinds {
    /// Those of a list.
    const fn of<T: Listed>() -> Self {
        Self {
            list: T::LIST,
            aliases: T::ALIASES,
            default: || T::default().kind(),
            listed_as: T::listed_as,
            parameters: T::parameters,
        }
    }

    /// The names of all kinds, in the order in which they are listed.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.list.iter().map(|entry| entry.name)
    }

    /// The kind that is meant where none is named.
    pub fn default(&self) -> &'static str {
        (self.default)().unwrap_or_default()
    }
}

/// Which kinds have a key, and which of them cannot do without it, as their structs say. None, where all
/// have it.
#[derive(Debug, Default)]
struct KeyKinds {
    kinds: Vec<&'static str>,
    needed_by: Vec<&'static str>,
}

impl KeyKinds {
    fn of(section: &Section, key: &Key) -> Self {
        let Some(kinds) = &section.kinds else { return Self::default() };
        let with = |has: &dyn Fn(Parameters) -> bool| -> Vec<&'static str> {
            kinds.names().filter(|kind| has((kinds.parameters)(kind))).collect()
        };
        let name = key.short_name();
        let has = with(&|parameters| parameters.all.contains(&name));
        Self {
            kinds: if has.len() < kinds.list.len() { has } else { Vec::new() },
            // A population is read without any parts too, but there is none.
            needed_by: with(&|parameters| {
                let parts = key.allowed == Allowed::Parts && parameters.all.contains(&name);
                parts || parameters.needed == Some(name)
            }),
        }
    }
}

/// By the key's full name.
static OWNERS: LazyLock<BTreeMap<&'static str, KeyKinds>> = LazyLock::new(|| {
    let of = |section: &'static Section| {
        section.keys.iter().map(move |key| (key.name, KeyKinds::of(section, key)))
    };
    SECTIONS.into_iter().flat_map(of).collect()
});

/// One key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// Its full name, such as `rule.delta`.
    pub name: &'static str,
    /// A value it may have, as in a file.
    pub example: &'static str,
    /// What values it may have.
    pub allowed: Allowed,
    /// What it does.
    pub about: &'static str,
    /// What applies where it is not given, if that is not simply a value.
    pub otherwise: &'static str,
    /// Whether runs that give it, and differ only in ε, may share work in a sweep. A key whose
    /// table does not say so is not shared, until somebody has thought about it.
    pub shares: bool,
}

impl Key {
    /// A key that every kind of its section has.
    const fn new(
        name: &'static str,
        example: &'static str,
        allowed: Allowed,
        about: &'static str,
    ) -> Self {
        Self { name, example, allowed, about, otherwise: "", shares: false }
    }

    /// The key that names the kind of its section.
    const fn kind(name: &'static str, example: &'static str, about: &'static str) -> Self {
        Self::new(name, example, Allowed::Kind, about)
    }

    const fn otherwise(self, otherwise: &'static str) -> Self {
        Self { otherwise, ..self }
    }

    const fn shares(self) -> Self {
        Self { shares: true, ..self }
    }

    /// The section it is in.
    ///
    /// # Panics
    /// For a key that is not in [`KEYS`].
    pub fn section(&self) -> &'static Section {
        let has = |section: &&&Section| section.keys.iter().any(|key| key.name == self.name);
        SECTIONS.iter().find(has).expect("a key of the list")
    }

    /// Its name within the section.
    pub fn short_name(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, name)| name)
    }

    /// Whether a value of this name is its value, or a part of it.
    fn has(&self, name: &str) -> bool {
        let part = || name.strip_prefix(self.name).is_some_and(|rest| rest.starts_with('.'));
        self.name == name || matches!(self.allowed, Allowed::Named(_)) && part()
    }

    /// The kinds of its section that have it; all of them, if empty.
    pub fn kinds(&self) -> &'static [&'static str] {
        OWNERS.get(self.name).map_or(&[], |owners| &owners.kinds)
    }

    /// The kinds that cannot do without it.
    pub fn needed_by(&self) -> &'static [&'static str] {
        OWNERS.get(self.name).map_or(&[], |owners| &owners.needed_by)
    }

    /// Whether a kind of its section has it.
    pub fn belongs_to(&self, kind: &str) -> bool {
        self.kinds().is_empty() || self.kinds().contains(&kind)
    }

    /// The kinds of its section that have it; none where the section has no kinds.
    pub fn all_kinds(&self) -> Vec<&'static str> {
        let kinds = self.section().kinds.iter();
        kinds.flat_map(Kinds::names).filter(|kind| self.belongs_to(kind)).collect()
    }

    /// What else must be set for the key to have a meaning: the kind, and what that needs.
    pub fn with(&self) -> Vec<(String, &'static str)> {
        let section = self.section();
        let Some(kinds) = &section.kinds else { return Vec::new() };
        // Rather one that cannot do without it.
        let some = self.needed_by().first().or(self.kinds().first()).copied();
        let kind = some.unwrap_or_else(|| kinds.default());
        let mut with = Vec::new();
        if self.allowed != Allowed::Kind {
            with.push((section.kind_name(), kind));
        }
        let needed = section.keys.iter().filter(|key| key.needed_by().contains(&kind));
        let needed = needed.filter(|key| key.name != self.name);
        with.extend(needed.map(|key| (key.name.to_owned(), key.example)));
        with
    }

    /// Its value when it is not given, with the kinds for which that holds: what the reader itself
    /// makes of an experiment that says no more than it must. `None` where it then has no value.
    pub fn defaults(&self) -> Vec<(Vec<&'static str>, Option<Value>)> {
        let section = self.section();
        let kinds = self.all_kinds();
        if kinds.is_empty() {
            return vec![(Vec::new(), section.unsaid(None, self))];
        }
        let mut defaults: Vec<(Vec<&'static str>, Option<Value>)> = Vec::new();
        for kind in kinds.into_iter().filter(|kind| !self.needed_by().contains(kind)) {
            let value = section.unsaid(Some(kind), self);
            match defaults.iter_mut().find(|(_, known)| *known == value) {
                Some((kinds, _)) => kinds.push(kind),
                None => defaults.push((vec![kind], value)),
            }
        }
        defaults
    }
}

impl Section {
    /// A section that has the kinds of a list, without keys so far.
    const fn of<T: Listed>(on: On, name: &'static str, about: &'static str) -> Self {
        Self { name, about, on, kinds: Some(Kinds::of::<T>()), keys: &[] }
    }

    /// The key that names its kind: `kind`, but `optimiser` for the server.
    pub(crate) fn kind_key(&self) -> &'static str {
        let names_it = self.keys.iter().find(|key| key.allowed == Allowed::Kind);
        names_it.map_or("kind", |key| key.short_name())
    }

    /// The same by its full name.
    pub(super) fn kind_name(&self) -> String {
        format!("{}.{}", self.name, self.kind_key())
    }

    /// The value of a key in an experiment that does not give it.
    fn unsaid(&self, kind: Option<&'static str>, key: &Key) -> Option<Value> {
        let mut table = Table::new();
        if !self.name.is_empty() {
            let mut inner = Table::new();
            if let Some(kind) = kind.filter(|_| key.allowed != Allowed::Kind) {
                inner.insert(self.kind_key().to_owned(), Value::from(kind));
                for needed in self.keys.iter().filter(|key| key.needed_by().contains(&kind)) {
                    let value = parse_value(needed.example);
                    inner.insert(needed.short_name().to_owned(), value);
                }
            }
            table.insert(self.name.to_owned(), Value::Table(inner));
        }
        let experiment = Experiment::from_table(table).expect("a kind with what it needs is whole");
        let whole = to_table(&experiment).expect("an experiment can be written");
        look_up(&Value::from(whole), key.name).cloned()
    }
}

/// Whether a configuration allows its runs with other ε to share work. A key that is not in the
/// list is not shared.
pub(crate) fn may_share(config: &serde_json::Value) -> bool {
    let shares = |name: &str| KEYS.iter().any(|key| key.shares && key.has(name));
    leaves(config).iter().all(|(name, _)| shares(name))
}
