//! `fedstay data read`: a look at a table before anything is made of it.

use anyhow::Result;
use fedstay_draw::words::{Tone, count};
use fedstay_sim::data::table::{ColumnReading, OwnerReading, Reading, Role};
use fedstay_sim::data::{Draw, Small, Source};
use fedstay_sim::experiment::{Experiment, set_keys};
use fedstay_sim::run::write_whole;
use fedstay_sim::text::for_shell;
use fedstay_terminal::{Cell, Column, Screen, Table, Usage, pair_of};
use std::path::PathBuf;
use toml::Value;

pub(super) const EXAMPLES: &str = "\
Examples:
  # what is in a table, who holds it, and what is wrong with it
  fedstay data read hospitals.csv --owner site --label died
  # one file for each hospital, and an experiment in which every guess stands
  fedstay data read 'sites/*.csv' --owner file --label died --out hospitals.toml
  # a number instead of classes
  fedstay data read stays.parquet --owner clinic --label days --task number
  # without a column that gives the answer away
  fedstay data read s.csv --label days --set 'data.leave_out=[\"discharged\"]'

Nothing is trained. What is wrong is listed all at once, with what to type.";

/// A table, and what is known about it.
#[derive(Debug, clap::Args)]
pub struct Read {
    /// Files or patterns: CSV, TSV, either with gzip, or Parquet
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The column that says who holds a row, or `file`
    #[arg(long, value_name = "COLUMN")]
    owner: Option<String>,
    /// The column that is predicted
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,
    /// What is predicted: classes or number
    #[arg(long)]
    task: Option<String>,
    /// Write an experiment on it, with every guess in it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Set a key: `--set data.decimal=, --set data.least=50`
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Show at most this many owners
    #[arg(long, default_value_t = 20)]
    most: usize,
}

impl Read {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        if let Some(out) = self.out.as_ref().filter(|out| out.exists()) {
            return Err(
                Usage(format!("{} already exists; choose another name", out.display())).into()
            );
        }
        let reading = self.reading()?;
        show(&reading, self.most, screen)?;
        let Some(out) = self.out else {
            let tail = match reading.problems.is_empty() {
                true => "\n`--out FILE` writes an experiment in which every guess stands.",
                false => "",
            };
            return screen.mention(tail);
        };
        write_whole(&out, reading.experiment().as_bytes())?;
        screen.print("\n")?;
        screen.written(&out)?;
        let out = for_shell(&out.display().to_string());
        screen.mention(&format!(
            "\nNext:\n  fedstay data show {out}\n  fedstay compare {out} --rules fedavg,retain"
        ))
    }

    fn reading(&self) -> Result<Reading> {
        let paths: Vec<Value> =
            self.files.iter().map(|file| Value::from(file.display().to_string())).collect();
        let mut data = toml::Table::new();
        data.insert("kind".into(), "table".into());
        data.insert("path".into(), if paths.len() == 1 { paths[0].clone() } else { paths.into() });
        for (key, value) in [("owner", &self.owner), ("label", &self.label), ("task", &self.task)] {
            if let Some(value) = value {
                data.insert(key.into(), Value::from(&value[..]));
            }
        }
        let mut table = toml::Table::from_iter([("data".to_owned(), Value::Table(data))]);
        let set = self.set.iter().map(|pair| pair_of("--set", pair));
        set_keys(&mut table, &set.collect::<Result<Vec<_>, _>>()?)?;
        let experiment = Experiment::from_table(table)?;
        let training = experiment.training();
        let small = training.map_or(Small::default(), |training| training.partition.small());
        match training.map(|training| &training.data.source) {
            Some(Source::Table(table)) => {
                Ok(Reading::of(table, Draw { seed: experiment.seed, small })?)
            }
            _ => Err(Usage("`data read` reads tables: leave out data.kind".into()).into()),
        }
    }
}

/// Prints a reading.
fn show(reading: &Reading, most: usize, screen: &Screen) -> Result<()> {
    let files = match &reading.files[..] {
        [one] => one.display().to_string(),
        many => count(many.len(), "file"),
    };
    let (rows, columns) = (count(reading.rows, "row"), count(reading.columns.len(), "column"));
    screen.say(&format!("{files}: {rows} of {columns}\n"))?;
    screen.print(&screen.table(&column_table(&reading.columns)))?;
    if !reading.owners.is_empty() {
        screen.print("\n")?;
        screen.print(&screen.table(&owner_table(reading, most)))?;
        let more = reading.owners.len().saturating_sub(most);
        if more > 0 {
            screen.say(&format!("… and {} more (--most)", count(more, "owner")))?;
        }
    }
    screen.print("\n")?;
    for line in accounted(reading) {
        screen.say(&line)?;
    }
    for told in &reading.warnings {
        screen.print(&format!("\n{}\n", screen.labelled("NOTE  ", told)))?;
    }
    for problem in &reading.problems {
        let told = format!("{}: {}", problem.key, problem.why);
        screen.print(&format!("\n{}\n", screen.labelled("TO DO  ", &told)))?;
    }
    Ok(())
}

fn column_table(columns: &[ColumnReading]) -> Table {
    let mut table = Table::new([
        Column::kept("column"),
        Column::kept("missing"),
        Column::dispensable("values", 1),
        Column::dispensable("such as", 2),
        Column::kept("what becomes of it"),
    ]);
    for column in columns {
        let missing = match column.missing {
            0.0 => String::new(),
            share => format!("{:.0}%", (100.0 * share).max(1.0)),
        };
        let values = column.distinct.map_or_else(String::new, |distinct| distinct.to_string());
        let becomes = match column.role {
            Role::LeftOut => Cell::toned(&column.becomes[..], Tone::Open),
            _ => Cell::from(&column.becomes[..]),
        };
        let texts = [&column.name, &missing, &values, &column.example];
        table.row(texts.map(|text| Cell::from(&text[..])).into_iter().chain([becomes]));
    }
    table
}

fn owner_table(reading: &Reading, most: usize) -> Table {
    let mut columns =
        vec![Column::kept("owner"), Column::kept("rows"), Column::kept("for testing")];
    let counted = reading.classes.len() == 2;
    if counted {
        columns.push(Column::kept(format!("`{}`", reading.classes[1])));
        columns.push(Column::kept("share"));
    }
    let mean = reading.owners.iter().any(|owner| owner.mean.is_some());
    if mean {
        columns.push(Column::kept("mean"));
    }
    let mut table = Table::new(columns);
    for OwnerReading { name, rows, test, positives, mean, small } in
        reading.owners.iter().take(most)
    {
        let few = if *small { " (few)" } else { "" };
        let mut row = vec![name.clone(), format!("{rows}{few}"), test.to_string()];
        if let Some(positives) = positives {
            row.push(positives.to_string());
            row.push(format!("{:.0}%", 100.0 * *positives as f64 / (*rows).max(1) as f64));
        }
        row.extend(mean.map(|mean| format!("{mean:.4}")));
        table.row(row);
    }
    table
}

/// Where every row is.
fn accounted(reading: &Reading) -> Vec<String> {
    let mut lines = vec![format!(
        "{} read: {} for training, {} for testing and {} not used",
        count(reading.rows, "row"),
        reading.used - reading.test,
        reading.test,
        reading.rows - reading.used
    )];
    lines.extend(reading.unused.iter().map(|part| format!("  {} {}", part.rows, part.why)));
    if !reading.small.is_empty() {
        const MOST: usize = 8;
        let named: Vec<String> = reading
            .small
            .iter()
            .take(MOST)
            .map(|(name, rows)| format!("{name} ({rows})"))
            .collect();
        let more = match reading.small.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let becomes = match (reading.small_owners(), reading.small.len()) {
            (Small::Join, 1) => "stays as it is, since there is no other to join",
            (Small::Join, _) => "are one owner, `others`",
            (Small::LeaveOut, _) => "are left out",
            (Small::Refuse, _) => "are refused",
        };
        let least = reading.table().least;
        lines.push(format!(
            "with fewer than data.least = {least} rows: {}{more}; partition.small decides: {becomes}",
            named.join(", ")
        ));
    }
    lines
}
