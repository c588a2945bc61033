//! What the command line asks: tables and what their columns are, or an experiment's file.

use super::PlanCommand;
use anyhow::Result;
use fedstay_sim::data::Source;
use fedstay_sim::plan::Question;
use fedstay_terminal::{Usage, pair_of};
use std::path::PathBuf;
use toml::{Table, Value};

/// The federation that comes with the program.
const BUILT_IN: &str = "clinics";

/// The question that a command line asks.
pub(super) fn question(asked: &PlanCommand) -> Result<Question> {
    let mut set: Vec<(String, String)> =
        asked.set.iter().map(|pair| pair_of("--set", pair)).collect::<Result<_, _>>()?;
    // Without names, columns have numbers.
    let numbered = set.iter().any(|(key, value)| key == "data.header" && value == "false");
    let mut quoted = |key: &str, value: &Option<String>| {
        let Some(value) = value else { return };
        let is_number = numbered && value.chars().all(|sign| sign.is_ascii_digit());
        let text = Value::from(value.as_str()).to_string();
        set.push((key.to_owned(), if is_number { value.clone() } else { text }));
    };
    quoted("data.owner", &asked.owner);
    quoted("data.label", &asked.label);
    quoted("data.task", &asked.task);
    if let Some(epsilon) = &asked.epsilon {
        set.push(("epsilon".to_owned(), epsilon.clone()));
    }
    let (labels, seeds) = (asked.rules.as_deref(), asked.seeds);
    let is_experiment = |path: &PathBuf| path.extension().is_some_and(|end| end == "toml");
    match asked.files.as_slice() {
        [] if asked.owner.is_none() && Source::named(BUILT_IN).is_some() => {
            let text = format!("[data]\nkind = \"{BUILT_IN}\"\n");
            Ok(Question::parse(&text, &set, labels, seeds)?)
        }
        [] => {
            let why = "name a table and the column that says who holds a row: fedstay plan \
                       hospitals.csv --owner site --label died";
            Err(Usage(why.to_owned()).into())
        }
        [file] if is_experiment(file) => Ok(Question::read(file, &set, labels, seeds)?),
        files if files.iter().any(is_experiment) => {
            let why = "give one experiment's file, or tables of rows, not both";
            Err(Usage(why.to_owned()).into())
        }
        files => Ok(Question::parse(&text_of(files)?, &set, labels, seeds)?),
    }
}

/// An experiment on these tables that leaves everything else open.
fn text_of(files: &[PathBuf]) -> Result<String> {
    let name = |path: &PathBuf| Value::from(path.display().to_string());
    let mut data = Table::new();
    data.insert("kind".to_owned(), Value::from("table"));
    let path = match files {
        [file] => name(file),
        files => Value::Array(files.iter().map(name).collect()),
    };
    data.insert("path".to_owned(), path);
    let mut table = Table::new();
    table.insert("data".to_owned(), Value::Table(data));
    Ok(toml::to_string(&table)?)
}
