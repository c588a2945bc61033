//! `fedstay list`: what there is, by the names a configuration uses.

use crate::figure;
use anyhow::Result;
use fedstay::list::Entry;
use fedstay::problem::Problem;
use fedstay::{Behaviour, Policy, Rule};
use fedstay_sim::data::Source;
use fedstay_sim::model::Model;
use fedstay_sim::partition::Partition;
use fedstay_sim::spec::KEYS;
use serde_json::{Map, Value, json};
use std::io::Write;

/// List what there is.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  fedstay list\n  fedstay list rules\n  fedstay list keys --json"
)]
pub struct List {
    /// Which list; all of them if not given
    what: Option<What>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    Rules,
    Policies,
    Behaviours,
    Problems,
    Data,
    Partitions,
    Models,
    Figures,
    Keys,
}

const ALL: [What; 9] = [
    What::Rules,
    What::Policies,
    What::Behaviours,
    What::Problems,
    What::Data,
    What::Partitions,
    What::Models,
    What::Figures,
    What::Keys,
];

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Policies => "policies",
            Self::Behaviours => "behaviours",
            Self::Problems => "problems",
            Self::Data => "data",
            Self::Partitions => "partitions",
            Self::Models => "models",
            Self::Figures => "figures",
            Self::Keys => "keys",
        }
    }

    /// Name, what it is, and what more there is to say: a reference or an example.
    fn entries(self) -> Vec<(&'static str, &'static str, &'static str)> {
        let entries =
            |list: &[Entry]| list.iter().map(|e| (e.name, e.about, e.reference)).collect();
        let pairs = |list: &[(&'static str, &'static str)]| {
            list.iter().map(|(name, about)| (*name, *about, "")).collect()
        };
        match self {
            Self::Rules => entries(Rule::LIST),
            Self::Policies => entries(Policy::LIST),
            Self::Behaviours => entries(Behaviour::LIST),
            Self::Problems => entries(Problem::LIST),
            Self::Data => pairs(&Source::KINDS),
            Self::Partitions => pairs(&Partition::KINDS),
            Self::Models => pairs(&Model::KINDS),
            Self::Figures => entries(figure::LIST),
            Self::Keys => KEYS.iter().map(|key| (key.name, key.about, key.example)).collect(),
        }
    }
}

impl List {
    pub(super) fn run(self) -> Result<()> {
        let which: Vec<What> = self.what.map_or(ALL.to_vec(), |what| vec![what]);
        let mut out = std::io::stdout().lock();
        if self.json {
            let lists: Map<String, Value> = which
                .iter()
                .map(|what| {
                    let more = if *what == What::Keys { "example" } else { "reference" };
                    let entries = what.entries();
                    let entries = entries.iter().map(
                        |(name, about, extra)| json!({ "name": name, "about": about, more: extra }),
                    );
                    (what.name().to_owned(), entries.collect())
                })
                .collect();
            // One list is the list itself; several are named.
            let value = match (self.what, lists.values().next()) {
                (Some(_), Some(only)) => only.clone(),
                _ => Value::Object(lists),
            };
            return Ok(writeln!(out, "{}", serde_json::to_string_pretty(&value)?)?);
        }
        for (index, what) in which.iter().enumerate() {
            if self.what.is_none() {
                let gap = if index == 0 { "" } else { "\n" };
                writeln!(out, "{gap}{}", what.name().to_uppercase())?;
            }
            let entries = what.entries();
            let width = entries.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
            for (name, about, extra) in entries {
                writeln!(out, "  {name:width$}  {about}")?;
                match (*what == What::Keys, extra.is_empty()) {
                    (true, _) => writeln!(out, "  {:width$}  for example {name} = {extra}", "")?,
                    (false, false) if self.what.is_some() => {
                        writeln!(out, "  {:width$}  {extra}", "")?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
