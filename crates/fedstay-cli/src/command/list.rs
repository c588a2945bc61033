//! `fedstay list`: everything that can be named in a configuration.

#[cfg(not(feature = "paper"))]
use super::absent::{self, FIGURES};
use anyhow::Result;
use fedstay::list::Entry;
use fedstay::problem::Problem;
use fedstay::{Behaviour, Optimiser, Policies, Rule, Schedule};
#[cfg(feature = "paper")]
use fedstay_paper::figure::LIST as FIGURES;
use fedstay_sim::data::Source;
use fedstay_sim::experiment::{KEYS, Key, page};
use fedstay_sim::measure;
use fedstay_sim::model::Model;
use fedstay_sim::partition::Partition;
use fedstay_terminal::{Screen, Usage};
use serde_json::{Map, Value, json};

/// List what there is.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  fedstay list\n  fedstay list rules\n  fedstay list keys --json\n  fedstay list keys --markdown"
)]
pub struct List {
    /// Which list; all of them if not given
    what: Option<What>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Print the keys as a page in Markdown: docs/keys.md
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    Rules,
    Optimisers,
    Policies,
    Behaviours,
    Schedules,
    Problems,
    Data,
    Partitions,
    Models,
    Measures,
    #[cfg_attr(not(feature = "paper"), value(hide = true))]
    Figures,
    Keys,
}

const ALL: &[What] = &[
    What::Rules,
    What::Optimisers,
    What::Policies,
    What::Behaviours,
    What::Schedules,
    What::Problems,
    What::Data,
    What::Partitions,
    What::Models,
    What::Measures,
    #[cfg(feature = "paper")]
    What::Figures,
    What::Keys,
];

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Optimisers => "optimisers",
            Self::Policies => "policies",
            Self::Behaviours => "behaviours",
            Self::Schedules => "schedules",
            Self::Problems => "problems",
            Self::Data => "data",
            Self::Partitions => "partitions",
            Self::Models => "models",
            Self::Measures => "measures",
            Self::Figures => "figures",
            Self::Keys => "keys",
        }
    }

    /// The entries of a list: name, description, and further facts. Those are a reference or, for a
    /// key, its type, its default and an example.
    fn entries(self) -> Vec<Listed> {
        let entries = |list: &'static [Entry]| {
            list.iter().map(|e| Listed::new(e.name, e.about, "reference", e.reference)).collect()
        };
        match self {
            Self::Rules => entries(Rule::LIST),
            Self::Optimisers => entries(Optimiser::LIST),
            Self::Policies => entries(Policies::LIST),
            Self::Behaviours => entries(Behaviour::LIST),
            Self::Schedules => entries(Schedule::LIST),
            Self::Problems => entries(Problem::LIST),
            Self::Data => entries(Source::LIST),
            Self::Partitions => entries(Partition::LIST),
            Self::Models => entries(Model::LIST),
            Self::Measures => measure::LIST
                .iter()
                .map(|listed| Listed::new(listed.name(), listed.about, "reference", ""))
                .collect(),
            Self::Figures => entries(FIGURES),
            Self::Keys => KEYS.iter().map(Listed::key).collect(),
        }
    }
}

/// An entry of a list.
struct Listed {
    name: &'static str,
    about: &'static str,
    /// Further facts, by name.
    more: Vec<(&'static str, String)>,
}

impl Listed {
    fn new(name: &'static str, about: &'static str, more: &'static str, text: &str) -> Self {
        Self { name, about, more: vec![(more, text.to_owned())] }
    }

    fn key(key: &'static Key) -> Self {
        let more = vec![
            ("for", key.kinds().join(", ")),
            ("type", key.type_text()),
            ("default", key.default_text()),
            ("example", key.example.to_owned()),
        ];
        Self { name: key.name, about: key.about, more }
    }

    fn json(&self) -> Value {
        let mut entry = json!({ "name": self.name, "about": self.about });
        for (name, text) in &self.more {
            entry[*name] = text.as_str().into();
        }
        entry
    }

    /// The further facts in words, one per line.
    fn lines(&self) -> Vec<String> {
        let said = self.more.iter().filter(|(_, text)| !text.is_empty());
        said.map(|(name, text)| match *name {
            "reference" | "type" => text.clone(),
            "default" => format!("default: {text}"),
            "example" => format!("for example {} = {text}", self.name),
            name => format!("{name} {text}"),
        })
        .collect()
    }
}

impl List {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        if self.markdown {
            if self.what != Some(What::Keys) {
                let why = "only the keys have a page: fedstay list keys --markdown";
                return Err(Usage(why.into()).into());
            }
            return screen.print(&page());
        }
        #[cfg(not(feature = "paper"))]
        if self.what == Some(What::Figures) {
            return Err(absent::no("figures").into());
        }
        let which: Vec<What> = self.what.map_or(ALL.to_vec(), |what| vec![what]);
        if self.json {
            let lists = which.iter().map(|what| {
                let entries = what.entries().iter().map(Listed::json).collect();
                (what.name().to_owned(), entries)
            });
            let lists: Map<String, Value> = lists.collect();
            // A single list is printed by itself; several are printed under their names.
            let value = match (self.what, lists.values().next()) {
                (Some(_), Some(only)) => only.clone(),
                _ => Value::Object(lists),
            };
            return screen.print(&format!("{}\n", serde_json::to_string_pretty(&value)?));
        }
        for (index, what) in which.iter().enumerate() {
            if self.what.is_none() {
                let gap = if index == 0 { "" } else { "\n" };
                screen.print(&format!("{gap}{}\n", screen.bold(&what.name().to_uppercase())))?;
            }
            let entries = what.entries();
            let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
            for entry in entries {
                let name = format!("  {:width$}  ", entry.name);
                screen.print(&format!("{}\n", screen.labelled(&name, entry.about)))?;
                // Where everything is listed, names and descriptions must do.
                if self.what.is_some() {
                    for line in entry.lines() {
                        let name = format!("  {:width$}  ", "");
                        screen.print(&format!("{}\n", screen.labelled(&name, &line)))?;
                    }
                }
            }
        }
        Ok(())
    }
}
