//! Whether a table says only what can be said.

use super::{Allowed, KEYS, Key, Kinds, On, PROBLEM, SECTIONS, SEVERAL, Section, behaviour};
use crate::experiment::SpecError;
use crate::text::{one_line, quoted};
use serde::Serialize;
use toml::{Table, Value};

/// How many sections with a key of the same name are told.
const MOST_NEAR: usize = 3;
/// Names as alike as this are one name with a typing error.
const SAME: f64 = 0.88;
/// Names less alike than this are not related.
const RELATED: f64 = 0.7;

/// Checks every key of a table, its value, and that it belongs to the kind of its section.
pub(in crate::experiment) fn check_keys(table: &Table) -> Result<(), SpecError> {
    for (name, value) in table {
        match (section(name), value) {
            (Some(section), Value::Table(inner)) => section.check(inner)?,
            (Some(section), value) if section.name == SEVERAL => section.check_several(value)?,
            (Some(section), value) => return Err(section.not_a_table(value)),
            (None, value) => outside(name)?.allowed.check(name, value)?,
        }
    }
    Ok(())
}

/// Checks a section that was given by itself, such as a rule in a request. What TOML cannot express is
/// left to the reader.
///
/// # Errors
/// As for a file.
pub fn check_section(name: &str, value: &impl Serialize) -> Result<(), SpecError> {
    match Value::try_from(value) {
        Ok(value) => check_keys(&Table::from_iter([(name.to_owned(), value)])),
        Err(_) => Ok(()),
    }
}

/// Names the default kind in every section that names none.
pub(in crate::experiment) fn name_kinds(table: &mut Table) {
    for section in SECTIONS {
        let (Some(kinds), Some(Value::Table(inner))) =
            (&section.kinds, table.get_mut(section.name))
        else {
            continue;
        };
        inner.entry(section.kind_key().to_owned()).or_insert_with(|| Value::from(kinds.default()));
    }
}

/// A key of training in an experiment on a problem.
pub(crate) fn training_key(table: &Table) -> Option<&'static str> {
    let training = SECTIONS.iter().filter(|section| section.on == On::Training);
    let mut names = training.flat_map(|section| section.entries());
    table.contains_key(PROBLEM).then_some(())?;
    names.find(|name| table.contains_key(*name))
}

fn section(name: &str) -> Option<&'static Section> {
    SECTIONS.into_iter().find(|section| !section.name.is_empty() && section.name == name)
}

/// A key outside of all tables, by its name.
fn outside(name: &str) -> Result<&'static Key, SpecError> {
    let key = KEYS.iter().find(|key| key.name == name).ok_or_else(|| unknown(name))?;
    match name.contains('.') {
        true => Err(SpecError::Quoted { key: key.name }),
        false => Ok(key),
    }
}

impl Section {
    /// Its names at the top of a file: its own, or those of its keys.
    pub(super) fn entries(&self) -> Vec<&'static str> {
        match self.name {
            "" => self.keys.iter().map(|key| key.name).collect(),
            name => vec![name],
        }
    }

    fn check(&'static self, table: &Table) -> Result<(), SpecError> {
        let kind = match &self.kinds {
            Some(kinds) => Some(self.kind(kinds, table.get(self.kind_key()))?),
            None => None,
        };
        for (name, value) in table {
            self.key(name)?.check(self, kind, value)?;
        }
        let needed = |key: &&Key| kind.is_some_and(|kind| key.needed_by().contains(&kind));
        match (
            self.keys.iter().filter(needed).find(|key| !table.contains_key(key.short_name())),
            kind,
        ) {
            (Some(key), Some(kind)) => Err(SpecError::Missing {
                key: key.name,
                section: self.name,
                kind,
                example: key.example,
            }),
            _ => Ok(()),
        }
    }

    /// A kind, or a list of kinds and of tables, where there may be several.
    fn check_several(&'static self, value: &Value) -> Result<(), SpecError> {
        match (value, &self.kinds) {
            (Value::Array(several), _) => several.iter().try_for_each(|one| match one {
                Value::Array(_) => Err(self.not_a_table(one)),
                Value::Table(inner) => self.check(inner),
                kind => self.check_several(kind),
            }),
            (Value::String(_), Some(kinds)) => self.kind(kinds, Some(value)).map(|_| ()),
            _ => Err(self.not_a_table(value)),
        }
    }

    /// A value where the section belongs; often it is the kind.
    fn not_a_table(&self, value: &Value) -> SpecError {
        let named = value.as_str().zip(self.kinds.as_ref());
        let kind = named.map(|(named, kinds)| match self.kind(kinds, Some(value)) {
            Ok(kind) => kind.to_owned(),
            Err(SpecError::UnknownKind { near: Some(near), .. }) => near.to_owned(),
            Err(_) => quoted(named, 40),
        });
        SpecError::NotASection { section: self.name, kind }
    }

    fn key(&self, name: &str) -> Result<&'static Key, SpecError> {
        let key = self.keys.iter().find(|key| key.short_name() == name);
        key.ok_or_else(|| unknown(&format!("{}.{name}", self.name)))
    }

    /// The kind that is named, or the default.
    fn kind(&self, kinds: &Kinds, named: Option<&Value>) -> Result<&'static str, SpecError> {
        let Some(named) = named else { return Ok(kinds.default()) };
        Allowed::Kind.check(&self.kind_name(), named)?;
        let named = named.as_str().unwrap_or_default();
        (kinds.listed_as)(named).ok_or_else(|| SpecError::UnknownKind {
            section: self.name,
            kind: quoted(named, 80),
            near: nearest(named, RELATED, kinds.names().map(|name| (name, name))),
            all: kinds.names().collect(),
        })
    }

    /// A part of a mixed population.
    fn check_part(&'static self, part: &Table) -> Result<(), SpecError> {
        let (Some(kinds), Some(named)) = (&self.kinds, part.get("kind")) else {
            return Err(SpecError::Missing {
                key: "kind",
                section: self.name,
                kind: "mixed",
                example: "\"threshold\"",
            });
        };
        let kind = self.kind(kinds, Some(named))?;
        for (name, value) in part {
            match behaviour::PART.iter().find(|key| key.short_name() == name) {
                Some(key) => key.allowed.check(key.name, value)?,
                None => self.key(name)?.check(self, Some(kind), value)?,
            }
        }
        Ok(())
    }
}

impl Key {
    fn check(
        &'static self,
        section: &'static Section,
        kind: Option<&'static str>,
        value: &Value,
    ) -> Result<(), SpecError> {
        if let Some(kind) = kind.filter(|kind| !self.belongs_to(kind)) {
            let (key, section, kinds) = (self.name, section.name, self.kinds());
            return Err(SpecError::OfAnotherKind { key, section, kinds, kind });
        }
        self.allowed.check(self.name, value)?;
        if self.allowed == Allowed::Parts {
            let parts = value.as_array().into_iter().flatten().filter_map(Value::as_table);
            parts.into_iter().try_for_each(|part| section.check_part(part))?;
        }
        Ok(())
    }
}

fn unknown(name: &str) -> SpecError {
    SpecError::UnknownKey { key: one_line(name), near: meant(name) }
}

/// What was probably meant by a key that does not exist: the same name in other sections, else the
/// key of its section with the most similar name.
fn meant(name: &str) -> Vec<&'static str> {
    let (section, last) = name.rsplit_once('.').unwrap_or(("", name));
    let elsewhere = KEYS.iter().filter(|key| key.short_name() == last).map(|key| key.name);
    let elsewhere: Vec<&'static str> = elsewhere.take(MOST_NEAR).collect();
    if !elsewhere.is_empty() {
        return elsewhere;
    }
    let of = |key: &&Key| key.name.rsplit_once('.').map_or("", |(section, _)| section) == section;
    let keys = KEYS.iter().filter(of).map(|key| (key.short_name(), key.name));
    let sections = SECTIONS.iter().map(|section| (section.name, section.name));
    let sections = sections.filter(|(name, _)| section.is_empty() && !name.is_empty());
    let near = nearest(last, RELATED, keys.chain(sections));
    // With the section misspelled as well, the whole name may still tell.
    let whole = || nearest(name, SAME, KEYS.iter().map(|key| (key.name, key.name)));
    near.or_else(whole).into_iter().collect()
}

/// What the most similar of some names stands for; none where none is as alike as that.
fn nearest(
    name: &str,
    least: f64,
    names: impl Iterator<Item = (&'static str, &'static str)>,
) -> Option<&'static str> {
    let near = names
        .map(|(candidate, stands_for)| (strsim::jaro_winkler(name, candidate), stands_for))
        .filter(|(likeness, _)| *likeness >= least);
    near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, stands_for)| stands_for)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let table: Table = toml::from_str(text).unwrap();
        check_keys(&table).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_key_that_belongs_elsewhere_is_told_where() {
        assert_eq!(
            said("[rule]\nkind = 'ada-gd'\nq = 1.0"),
            "`rule.q` belongs to `q-fedavg`, but rule.kind is `ada-gd`: set rule.kind, or remove \
             `rule.q`"
        );
        // The kind that is meant where none is named.
        assert!(said("[behaviour]\nsteps = 3").contains("but behaviour.kind is `threshold`"));
        assert!(said("[policy]\nmargin = 0.1").contains("belongs to `early-stop`"));
        assert!(said("steps = 5").contains("`local.steps`"));
        assert!(said("[rule]\nper_agent = 5").contains("`data.per_agent`"));
        assert!(said("'rule.delta' = 5").contains("without the quotes"));
    }

    #[test]
    fn another_spelling_of_a_kind_has_its_keys() {
        assert_eq!(said("[rule]\nkind = 'fedmgda+'\ne = 0.2"), "");
        assert!(said("[rule]\nkind = 'fedmgda+'\nq = 0.2").contains("is `fedmgda-plus`"));
    }

    #[test]
    fn what_a_kind_cannot_do_without_is_asked_for() {
        assert_eq!(
            said("[partition]\nkind = 'dirichlet'"),
            "partition.kind = \"dirichlet\" needs `partition.alpha`; for example partition.alpha = 0.5"
        );
        assert!(said("[data]\nkind = 'csv'").contains("needs `data.path`"));
        assert!(said("[behaviour]\nkind = 'mixed'").contains("needs `behaviour.of`"));
    }

    #[test]
    fn the_parts_of_a_population_are_checked_like_behaviours() {
        let part = |part: &str| said(&format!("[behaviour]\nkind = 'mixed'\nof = [{{ {part} }}]"));
        assert_eq!(part("kind = 'foresight', share = 1.0, steps = 3"), "");
        assert_eq!(part("kind = 'lying', agents = [0]"), "");
        assert!(part("kind = 'lying', agents = [0], steps = 3").contains("`foresight`"));
        assert!(part("kind = 'lie', share = 1.0").contains("`lying`"));
        assert!(part("share = 1.0").contains("kind = \"threshold\""));
        assert!(part("kind = 'foresight', share = 1.0, steps = -3").contains("from 0 to 10000"));
    }

    #[test]
    fn a_value_where_a_table_belongs_is_told() {
        assert_eq!(
            said("rule = 3"),
            "`rule` is a section with keys of its own: write them under [rule], or as rule.KEY"
        );
        for kind in ["fedavg", "fedavgg"] {
            assert_eq!(
                said(&format!("rule = '{kind}'")),
                "`rule` is a section with keys of its own; did you mean rule.kind = \"fedavg\"?"
            );
        }
        assert!(said("local = 'fast'").contains("write them under [local]"));
        assert!(said("[rule]\nkind = 3").contains("`rule.kind` is 3, but must be a name"));
    }

    #[test]
    fn where_there_may_be_several_each_is_checked() {
        let several = |list: &str| said(&format!("policy = {list}"));
        for list in
            ["'guard'", "[]", "['guard', { kind = 'early-stop', margin = 0.1 }]", "['none']"]
        {
            assert_eq!(several(list), "", "{list}");
        }
        assert_eq!(said("[[policy]]\nkind = 'guard'\n[[policy]]\nkind = 'keep-best'"), "");
        assert_eq!(several("['gaurd']"), "there is no policy `gaurd`; did you mean `guard`?");
        assert!(
            several("[{ kind = 'guard', margin = 0.1 }]").contains("but policy.kind is `guard`")
        );
        assert!(
            several("[{ kind = 'guard', delta = 'big' }]").contains("`policy.delta` is \"big\"")
        );
        for list in ["3", "[3]", "[['guard']]"] {
            assert!(several(list).starts_with("`policy` is a section with keys"), "{list}");
        }
        assert!(said("rule = ['fedavg']").starts_with("`rule` is a section with keys"));
    }

    #[test]
    fn a_section_as_json_is_checked_like_one_in_a_file() {
        let said =
            |json: serde_json::Value| check_section("rule", &json).map_err(|e| e.to_string());
        assert_eq!(said(serde_json::json!({ "kind": "ada-gd", "delta": 0.05 })), Ok(()));
        let wrong = said(serde_json::json!({ "kind": "adagd" })).unwrap_err();
        assert_eq!(wrong, "there is no rule `adagd`; did you mean `ada-gd`?");
        let wrong = said(serde_json::json!({ "kind": "fedavg", "on_settled": "halve" }));
        assert!(wrong.unwrap_err().starts_with("`rule.on_settled` belongs to `ada-gd`"));
        // There is nothing like it in TOML.
        assert_eq!(said(serde_json::json!({ "kind": null })), Ok(()));
    }

    #[test]
    fn a_typing_error_is_answered_with_one_good_name() {
        for (text, near) in [
            ("epsilom = 1", "did you mean `epsilon`?"),
            ("sed = 1", "did you mean `seed`?"),
            ("[rule]\ndetla = 1", "did you mean `rule.delta`?"),
            ("[rulee]\ndelta = 1", "did you mean `rule`?"),
            ("[rule]\nper_agent = 5", "did you mean `data.per_agent`?"),
            ("steps = 5", "did you mean `behaviour.steps` or `local.steps`?"),
            ("colour = 'blue'", "`fedstay list keys` has all keys"),
            ("[rule]\nkind = 'adagd'", "did you mean `ada-gd`?"),
            ("[rule]\nkind = 'xyz'", "there are `fedavg`"),
        ] {
            assert!(said(text).ends_with(near) || said(text).contains(near), "{}", said(text));
        }
    }
}
