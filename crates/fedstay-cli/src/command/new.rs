//! `fedstay new`: a commented experiment to start from.

use anyhow::Result;
use fedstay_sim::data::table::Reading;
use fedstay_sim::data::{Draw, Load, Source};
use fedstay_sim::experiment::{DEFAULT, Experiment, default_under, read_table, set_keys, starter};
use fedstay_sim::run::write_whole;
use fedstay_sim::text::one_line;
use fedstay_terminal::{Screen, Usage, pair_of};
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use toml::Value;

const EXAMPLES: &str = "\
Examples:
  # experiment.toml, with every key there is and what it means
  fedstay new
  # the same for a table of your own; its last column is the label
  fedstay new hospitals.toml --csv hospitals.csv --set agents=3
  # what it says, checked, before it is run
  fedstay run hospitals.toml --dry-run

Beside it goes the JSON schema that its first line names: with it an editor completes keys and marks \
mistakes while you type.";

/// Write a commented experiment to start from
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct New {
    /// Where to write it
    #[arg(default_value = "experiment.toml")]
    file: PathBuf,
    /// Train on this table instead of the built-in digits
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Set a key: `--set agents=4 --set epsilon=0.3`
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl New {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        let file = self.file.display();
        if self.file.exists() {
            return Err(Usage(format!("{file} already exists; choose another name")).into());
        }
        let mut table = read_table(DEFAULT)?;
        if let Some(csv) = &self.csv {
            let mut data = toml::Table::new();
            data.insert("kind".to_owned(), Value::from("csv"));
            data.insert("path".to_owned(), Value::from(csv.display().to_string()));
            if let Some(delimiter) = delimiter(csv)? {
                data.insert("delimiter".to_owned(), Value::from(delimiter.to_string()));
            }
            table.insert("data".to_owned(), Value::Table(data));
        }
        let set = self.set.iter().map(|pair| pair_of("--set", pair));
        let set = set.collect::<Result<Vec<_>, _>>()?;
        let mut table_of_texts = None;
        // What the default says about its own kind of something does not belong to another.
        let mut table = read_table(&default_under(&toml::to_string(&table)?, &set)?)?;
        set_keys(&mut table, &set)?;
        if let Some(csv) = &self.csv {
            table_of_texts = as_table(csv, &table, &set)?;
        }
        if let Some(reading) = &table_of_texts {
            table.insert("data".to_owned(), settings(reading)?);
            set_keys(&mut table, &set)?;
        }
        Experiment::from_table(table.clone())?;
        let text = format!("{}{}", head(&one_line(&file.to_string())), starter(&table)?);
        write_whole(&self.file, text.as_bytes())?;
        screen.written(&self.file)?;
        write_schema(&self.file, EXPERIMENT_SCHEMA, &Experiment::schema(), screen)?;
        if let Some(reading) = &table_of_texts {
            screen.mention(&format!(
                "\n{} has texts or blanks and is read as data.kind = \"table\"; `fedstay data read` tells what \
                 becomes of each column.",
                one_line(&reading.files[0].display().to_string())
            ))?;
            for problem in &reading.problems {
                let told = format!("{}: {}", problem.key, problem.why);
                screen.mention(&format!("\n{}", screen.labelled("TO DO  ", &told)))?;
            }
        }
        let own = match self.csv.is_some() && !set.iter().any(|(key, _)| key == "epsilon") {
            true => {
                "\n`epsilon`, the loss at which an agent has what it came for, is that of the built-in \
                 digits: choose yours, or write epsilon = \"1.1 * local\", ten percent above what each \
                 agent reaches alone.\n"
            }
            false => "",
        };
        screen.mention(&format!(
            "{own}\nNext:\n  fedstay run {file} --dry-run\n  fedstay compare {file} --rules fedavg,retain"
        ))
    }
}

/// What separates a table's columns, by its first line; nothing for a comma, which needs no saying.
fn delimiter(csv: &Path) -> Result<Option<char>> {
    let named = |error: std::io::Error| {
        Usage(format!("{}: {error}; --csv takes a table that is there", csv.display()))
    };
    let mut first = Vec::new();
    let file = std::fs::File::open(csv).map_err(named)?;
    BufReader::new(file.take(LONGEST)).read_until(b'\n', &mut first).map_err(named)?;
    let count = |sign: char| first.iter().filter(|byte| **byte == sign as u8).count();
    let others = [';', '\t', '|'].into_iter().max_by_key(|sign| count(*sign));
    Ok(others.filter(|sign| count(*sign) > count(',')))
}

/// The table at a path, read as one that may hold texts and blanks, where it cannot be read as one of
/// numbers. Its label is the last column unless the keys say otherwise.
fn as_table(
    csv: &Path,
    table: &toml::Table,
    set: &[(String, String)],
) -> Result<Option<Reading>, anyhow::Error> {
    let experiment = Experiment::from_table(table.clone());
    let source = experiment.as_ref().ok().and_then(Experiment::training);
    let numbers = match source.map(|training| &training.data.source) {
        // A large table of texts is told at its first lines, one of numbers only at its last.
        Some(Source::Csv(csv)) => {
            std::fs::metadata(&csv.path).is_ok_and(|about| about.len() > LARGE)
                || csv.load().is_ok()
        }
        // Keys that a csv does not have.
        None => false,
        Some(_) => true,
    };
    if numbers {
        return Ok(None);
    }
    let read = |label: Option<&str>| -> Result<Option<Reading>> {
        let mut data = toml::Table::new();
        data.insert("kind".to_owned(), Value::from("table"));
        data.insert("path".to_owned(), Value::from(csv.display().to_string()));
        if let Some(label) = label {
            data.insert("label".to_owned(), Value::from(label));
        }
        let mut table = toml::Table::from_iter([("data".to_owned(), Value::Table(data))]);
        let set = set.iter().filter(|(key, _)| key.starts_with("data."));
        set_keys(&mut table, &set.cloned().collect::<Vec<_>>())?;
        let experiment = Experiment::from_table(table)?;
        match experiment.training().map(|training| &training.data.source) {
            Some(Source::Table(table)) => Ok(Some(Reading::of(table, Draw::default())?)),
            _ => Ok(None),
        }
    };
    let Some(first) = read(None)? else { return Ok(None) };
    match (first.label(), first.columns.last()) {
        (None, Some(last)) => read(Some(&last.name)),
        _ => Ok(Some(first)),
    }
}

/// The settings of a table as a file has them.
fn settings(reading: &Reading) -> Result<Value> {
    let mut data = toml::Table::try_from(reading.table())?;
    data.insert("kind".to_owned(), Value::from("table"));
    Ok(Value::Table(data))
}

/// Larger tables are believed to be what they look like.
const LARGE: u64 = 1 << 25;

/// How much of a table's first line is looked at.
const LONGEST: u64 = 1 << 20;

/// The name of the schema beside an experiment.
const EXPERIMENT_SCHEMA: &str = "experiment.schema.json";

fn head(file: &str) -> String {
    format!(
        "#:schema ./{EXPERIMENT_SCHEMA}\n\
         # An experiment. Every key there is stands here once: those in force as they are, all others\n\
         # behind a `# `, with the value they have anyway or an example. Remove the `# ` to set one; a\n\
         # file need not say more than what differs from the defaults.\n\
         #\n\
         #   fedstay run {file} --dry-run     what it comes to, without running it\n\
         #   fedstay run {file}               run it\n\
         #   fedstay compare {file}           the same federation under several rules\n"
    )
}

/// Writes a schema beside a file, unless something else has its name.
pub(super) fn write_schema(file: &Path, name: &str, schema: &Json, screen: &Screen) -> Result<()> {
    let path = file.with_file_name(name);
    let ours = |text: &str| {
        let known = serde_json::from_str::<Json>(text).ok();
        known.is_some_and(|known| known.get("title") == schema.get("title"))
    };
    if path.exists() && !std::fs::read_to_string(&path).is_ok_and(|text| ours(&text)) {
        return screen.mention(&format!("{} is something else and was left alone", path.display()));
    }
    write_whole(&path, format!("{}\n", serde_json::to_string_pretty(schema)?).as_bytes())?;
    screen.written(&path)
}
