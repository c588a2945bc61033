//! A commented experiment to start from, made of the keys' descriptions.

use super::{Allowed, Key, On, SECTIONS, Section};
use crate::experiment::SpecError;
use crate::experiment::table::{look_up, parse_value};
use std::fmt::Write;
use toml::{Table, Value};

/// The width of a comment.
const COLUMNS: usize = 96;

/// The text of a file with every key there is: those that `table` gives are in force, all others
/// are commented out, with the value that applies where they are not given, or with an example.
///
/// # Errors
/// For a table that is not an experiment.
pub fn starter(table: &Table) -> Result<String, SpecError> {
    super::check_keys(table)?;
    let given = Value::Table(table.clone());
    let mut text = String::new();
    // In TOML what stands outside of all tables comes first.
    let (outside, tables): (Vec<&Section>, Vec<&Section>) =
        SECTIONS.into_iter().partition(|section| section.name.is_empty());
    for section in outside.into_iter().chain(tables) {
        let there = section.name.is_empty() || given.get(section.name).is_some();
        let more = if there { "" } else { instead(section) };
        let _ = write!(text, "\n{}", comment(&format!("== {}{more}", section.about)));
        let _ = match section.name {
            "" => Ok(()),
            name if there => writeln!(text, "[{name}]"),
            name => writeln!(text, "# [{name}]"),
        };
        for key in section.keys {
            text.push_str(&key.lines(&given, there));
        }
    }
    Ok(text)
}

/// A comment, in as many lines as it takes.
fn comment(about: &str) -> String {
    let mut text = String::new();
    let mut line = String::from("#");
    for word in about.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > COLUMNS {
            let _ = writeln!(text, "{line}");
            line = String::from("#  ");
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(text, "{line}");
    text
}

/// What a section replaces.
fn instead(section: &Section) -> &'static str {
    match section.on {
        On::Problem => ", instead of training: without agents, data, partition, model and local",
        On::Anything | On::Training => "",
    }
}

impl Key {
    /// What it does, in comments, and the line that sets it.
    fn lines(&self, given: &Value, section_there: bool) -> String {
        let mut about = format!("{}: {}", self.short_name(), self.about);
        if self.allowed == Allowed::Kind {
            let _ = write!(about, " ({})", self.type_text());
        }
        if !self.kinds().is_empty() {
            let _ = write!(about, " (only {})", self.kinds().join(", "));
        }
        let mut text = comment(&about);
        let known = look_up(given, self.name);
        let mark = if known.is_some() && section_there { "" } else { "# " };
        let value = known.cloned().or_else(|| self.usual(given));
        let value = value.unwrap_or_else(|| parse_value(self.example));
        let _ = writeln!(text, "{mark}{} = {value}", self.short_name());
        text
    }

    /// The value that applies where the key is not given, for the kind that is in force.
    fn usual(&self, given: &Value) -> Option<Value> {
        let section = self.section();
        let kind = look_up(given, &format!("{}.kind", section.name)).and_then(Value::as_str);
        let kind = kind.or(section.kinds.as_ref().map(|kinds| kinds.default()));
        let defaults = self.defaults();
        let of_kind =
            defaults.iter().find(|(kinds, _)| kind.is_some_and(|kind| kinds.contains(&kind)));
        of_kind.or(defaults.first()).and_then(|(_, value)| value.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::keys::KEYS;
    use crate::experiment::{DEFAULT, Experiment, read_table};

    fn default() -> String {
        starter(&read_table(DEFAULT).unwrap()).unwrap()
    }

    #[test]
    fn the_starter_is_the_experiment_it_was_made_of() {
        let parse = |text: &str| Experiment::parse(text, &[]).unwrap();
        assert_eq!(parse(&default()), parse(DEFAULT));
        for text in ["", "[problem]\nkind = 'huber'", "[data]\nkind = 'csv'\npath = 'a.csv'"] {
            let made = starter(&read_table(text).unwrap()).unwrap();
            assert_eq!(parse(&made), parse(text), "{made}");
        }
    }

    #[test]
    fn every_key_is_there_once_and_each_line_can_be_put_in_force() {
        let text = default();
        for section in SECTIONS.iter().filter(|section| !section.name.is_empty()) {
            let head = format!("[{}]", section.name);
            let heads = text.lines().filter(|line| line.trim_start_matches("# ") == head);
            assert_eq!(heads.count(), 1, "{head}");
        }
        for key in KEYS.iter() {
            let set = format!("{} = ", key.short_name());
            let lines = text.lines().filter(|line| line.trim_start_matches("# ").starts_with(&set));
            let lines: Vec<&str> = lines.collect();
            assert!(!lines.is_empty(), "{}", key.name);
            for line in lines {
                let line = line.trim_start_matches("# ");
                assert!(toml::from_str::<Table>(line).is_ok(), "{line}");
            }
        }
        // A value may be long; what is said about a key is wrapped.
        let comments = text.lines().filter(|line| line.starts_with('#') && !line.contains(" = "));
        for comment in comments {
            assert!(comment.chars().count() <= COLUMNS, "{comment}");
        }
    }
}
