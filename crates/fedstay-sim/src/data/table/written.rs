//! An experiment made of a reading: every guess in it, with a word about each column.

use std::fmt::Write;

use toml::Value;

use super::column::Role;
use super::reading::{Reading, named};
use super::settings::{DecimalSign, Encoding, Fill, Paths, Scaling, Small};
use crate::data::Predicted;
use crate::text::one_line;

/// The width of a comment.
const COLUMNS: usize = 96;

impl Reading {
    /// The text of an experiment on this table. Every guess stands in it.
    #[must_use]
    pub fn experiment(&self) -> String {
        let mut text = String::new();
        self.head(&mut text);
        self.how(&mut text);
        self.data(&mut text);
        self.columns(&mut text);
        if self.table().owner.is_some() && self.small_owners() != Small::Join {
            let small = match self.small_owners() {
                Small::LeaveOut => "leave-out",
                _ => "refuse",
            };
            let _ = writeln!(text, "\n[partition]\nkind = \"owner\"\nsmall = \"{small}\"");
        }
        text
    }

    fn head(&self, text: &mut String) {
        let files: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        let files = match &files[..] {
            [one] => one.clone(),
            many => format!("{} files", many.len()),
        };
        let owners = match self.owners.len() {
            0 => String::new(),
            owners => format!(" of {owners} owners"),
        };
        let about = format!(
            "{}, as `fedstay data read` saw it: {} rows{owners}. Every guess stands here: change what is wrong.",
            one_line(&files),
            self.rows
        );
        text.push_str(&comment(&about));
        for told in
            self.problems.iter().map(|problem| format!("TO DO  {}: {}", problem.key, problem.why))
        {
            text.push_str(&comment(&told));
        }
        for told in &self.warnings {
            text.push_str(&comment(&format!("NOTE  {told}")));
        }
    }

    /// How it is learned: what fits the task, for a start.
    fn how(&self, text: &mut String) {
        let model = match (self.table().task, self.classes.len()) {
            (Some(Predicted::Number), _) => "linear-regression",
            (_, 0..=2) => "logistic-regression",
            _ => "softmax-regression",
        };
        let _ = write!(
            text,
            "\n# An agent is content with ten percent above the loss that it reaches alone.\n\
             epsilon = \"1.1 * local\"\n\n[model]\nkind = \"{model}\"\n\n[data]\nkind = \"table\"\n"
        );
    }

    fn data(&self, text: &mut String) {
        let table = self.table();
        let mut line = |key: &str, value: Value, about: &str| {
            let line = format!("{key} = {value}");
            let _ = match about {
                "" => writeln!(text, "{line}"),
                _ if line.len() + 4 + about.len() <= COLUMNS => writeln!(text, "{line}  # {about}"),
                _ => writeln!(text, "# {about}\n{line}"),
            };
        };
        let texts = |texts: &[String]| {
            Value::from(texts.iter().map(|text| Value::from(&text[..])).collect::<Vec<_>>())
        };
        let path = |path: &std::path::Path| Value::from(path.display().to_string());
        match &table.path {
            Paths::One(one) => line("path", path(one), ""),
            Paths::Several(all) => {
                line("path", all.iter().map(|one| path(one)).collect::<Vec<_>>().into(), "")
            }
        }
        match &table.owner {
            Some(owner) => line("owner", named(owner), "who holds a row"),
            None => line(
                "# owner",
                Value::from("…"),
                "the column that says who holds a row, or \"file\"",
            ),
        }
        match &table.label {
            Some(label) => line("label", named(label), "what is predicted"),
            None => line("# label", Value::from("…"), "the column that is predicted"),
        }
        if let Some(task) = table.task {
            let task = if task == Predicted::Number { "number" } else { "classes" };
            line("task", Value::from(task), "`classes` or `number`");
        }
        if let Some(above) = table.above {
            line("above", Value::from(above), "two classes: above this, and all others");
        }
        if !table.header {
            line("header", Value::from(false), "");
        }
        if let Some(sign) = table.delimiter {
            line("delimiter", Value::from(sign.to_string()), "");
        }
        let decimal = if table.decimal == DecimalSign::Comma { "," } else { "." };
        line("decimal", Value::from(decimal), "");
        let encoding = if table.encoding == Encoding::Latin1 { "latin-1" } else { "utf-8" };
        line("encoding", Value::from(encoding), "");
        line("missing", texts(&table.missing), "what means that nothing is there");
        line(
            "fill",
            Value::from(table.fill.name()),
            match table.fill {
                Fill::Median | Fill::Mean => {
                    "of the training rows; where it is used, another feature says so"
                }
                Fill::Drop | Fill::Refuse => "",
            },
        );
        let scale = match table.scale {
            Scaling::Federated => "federated",
            Scaling::Owner => "owner",
            Scaling::None => "none",
        };
        line(
            "scale",
            Value::from(scale),
            "by counts, sums and sums of squares of all training rows, \"owner\" or \"none\"",
        );
        line("test", Value::from(&table.test[..]), "whose rows are kept for testing");
        line("test_share", Value::from(table.test_share), "of them, drawn by the seed");
        for (key, value) in [("together", &table.together), ("time", &table.time)] {
            if let Some(value) = value {
                line(key, Value::from(&value[..]), "");
            }
        }
        if table.owner.is_some() {
            line(
                "least",
                Value::from(table.least as i64),
                "rows that an owner must have; smaller ones are joined",
            );
        }
        if !table.leave_out.is_empty() {
            line("leave_out", texts(&table.leave_out), "see below");
        }
    }

    /// Every column with what it is and becomes.
    fn columns(&self, text: &mut String) {
        let _ = writeln!(text, "\n# What columns hold: `number`, `category` or `date`.\n[data.as]");
        for column in &self.columns {
            let example = match &column.example[..] {
                "" => String::new(),
                example => format!(", such as {}", one_line(example)),
            };
            let missing = match column.missing {
                0.0 => String::new(),
                share => format!(", {:.0}% missing", (100.0 * share).max(1.0)),
            };
            let name = key(&column.name);
            let about = format!("{}{missing}{example}", one_line(&column.becomes));
            let _ = match (column.role, column.kind) {
                (Role::Feature, Some(kind)) => {
                    writeln!(text, "{name} = \"{}\"  # {about}", kind.name())
                }
                _ => writeln!(text, "# {name}: {about}"),
            };
        }
    }
}

/// A name as a key of TOML.
fn key(name: &str) -> String {
    let bare = |sign: char| sign.is_ascii_alphanumeric() || "_-".contains(sign);
    match !name.is_empty() && name.chars().all(bare) {
        true => name.to_owned(),
        // What JSON makes of a text is a text in TOML, too, and always in one line.
        false => serde_json::Value::from(name).to_string(),
    }
}

/// A comment, in as many lines as it takes.
fn comment(about: &str) -> String {
    let mut text = String::new();
    let mut line = String::from("#");
    for word in one_line(about).split(' ') {
        if line.chars().count() + 1 + word.chars().count() > COLUMNS {
            let _ = writeln!(text, "{line}");
            line = String::from("#  ");
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(text, "{line}");
    text
}
