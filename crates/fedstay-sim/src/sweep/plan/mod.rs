//! What a sweep's file asks for: a grid over a base experiment.
//!
//! ```toml
//! base = "fig2.toml"               # optional: an experiment or a sweep to start from
//! rounds = 300                     # any key of an experiment, on top of the base
//!
//! [grid]                           # every combination is a run
//! label = ["fedavg", "ada-gd+halve", "fedavg+guard"]   # rules with what is changed about them
//! partition.q = [0.5, 0.9]
//! local.steps = [1, 5]
//! epsilon = [0.2, 0.4, 0.8]
//! seed = "0..10"                   # a range; the same seeds in every cell, so that they pair
//!
//! [[when]]                         # what else to set where the cell matches
//! match = { local.steps = 5 }
//! set = { step_size = 0.05 }
//!
//! [[skip]]                         # drop cells that match; [[only]] keeps those that do
//! local.steps = 5
//! partition.q = [0.5]
//! ```
//!
//! `label` is not a key of an experiment: each of its values is put on top of the base
//! ([`under`](crate::experiment::under)) before the other axes are, and filters, conditions and tables
//! know a run by it.

mod base;
mod expand;
pub(super) mod family;
pub(super) mod key;

use crate::experiment::table::{look_up, parse_value};
use crate::experiment::{Experiment, MOST_RUNS, PlanError, SpecError, read_table};
use crate::sweep::plan::key::{config, hash};
use crate::text::one_line;
use base::on_base;
use expand::{Base, Conditions, Filter, When, expand, owned_leaves};
use std::path::Path;
use std::sync::Arc;
use toml::{Table, Value};

/// The axis whose values are rules with what is changed about them.
pub(in crate::sweep) const LABEL: &str = "label";
/// A longer label would not do as a file's name, of which many disks take 255 bytes.
const LONGEST_LABEL: usize = 120;

/// One key of the grid with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The key, such as `partition.q`.
    pub key: String,
    /// Its values, in the order of the file.
    pub values: Vec<Value>,
}

/// One run of a plan.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The run's name.
    pub key: String,
    /// The whole experiment.
    pub experiment: Experiment,
    /// The same as JSON, as it is stored and queried.
    pub config: serde_json::Value,
    /// Its value on the axis `label`, where the grid has one.
    pub label: Option<serde_json::Value>,
}

impl Planned {
    /// A setting by its key, such as `partition.q`, or the run's `label`.
    pub fn setting(&self, key: &str) -> Option<&serde_json::Value> {
        match key {
            LABEL => self.label.as_ref(),
            _ => look_up(&self.config, key),
        }
    }

    pub(in crate::sweep) fn new(experiment: Experiment) -> Result<Self, SpecError> {
        let config = config(&experiment)?;
        Ok(Self { key: hash(&config), experiment, config, label: None })
    }
}

/// All runs of a sweep.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The axes of the grid, by name.
    pub axes: Vec<Axis>,
    /// The runs, each once, in the order of the grid.
    pub runs: Vec<Arc<Planned>>,
}

impl Plan {
    /// Reads a sweep's file. Keys in `set` replace an axis of that name, or set the base.
    ///
    /// # Errors
    /// With a message that names the file and the key.
    pub fn read(path: &Path, set: &[(String, String)]) -> Result<Self, SpecError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SpecError::Io { path: path.to_owned(), source })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::parse(&text, folder, set).map_err(|error| error.in_file(path))
    }

    /// Reads a sweep's text; `folder` is where a relative `base` is looked for.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, folder: &Path, set: &[(String, String)]) -> Result<Self, SpecError> {
        let mut table = on_base(read_table(text)?, folder)?;
        let grid = match table.remove("grid") {
            Some(grid) if grid.is_table() => grid,
            Some(_) => return Err(SpecError::NotASection { section: "grid", kind: None }),
            None => return Err(PlanError::NoGrid.into()),
        };
        let mut axes: Vec<Axis> = owned_leaves(&grid)
            .into_iter()
            .map(|(key, value)| Ok(Axis { values: values(&key, value)?, key }))
            .collect::<Result<_, PlanError>>()?;
        let whens = take_list(&mut table, "when")?;
        let conditions = Conditions {
            whens: whens.iter().map(When::new).collect::<Result<_, _>>()?,
            skip: take_list(&mut table, "skip")?.iter().map(Filter::new).collect(),
            only: take_list(&mut table, "only")?.iter().map(Filter::new).collect(),
        };
        let mut base = Base { table, set: Vec::new() };
        for (key, text) in set {
            match axes.iter_mut().find(|axis| axis.key == *key) {
                Some(axis) => axis.values = values(key, parse_value(text))?,
                None => base.set.push((key.clone(), parse_value(text))),
            }
        }
        if let Some(axis) = axes.iter().find(|axis| axis.values.is_empty()) {
            return Err(PlanError::NoValues { key: one_line(&axis.key) }.into());
        }
        let plan = Self { runs: expand(&base, &axes, &conditions)?, axes };
        if plan.runs.is_empty() {
            return Err(PlanError::NothingLeft.into());
        }
        Ok(plan)
    }

    /// What tells a run from the others, fit for a file's name: `epsilon=0.2 seed=0`. Where that is
    /// long or not enough, because `[[when]]` changes an axis, with the run's key.
    pub fn label(&self, run: &Planned) -> String {
        let axes = self.axes.iter().filter(|axis| axis.values.len() > 1);
        let told: Vec<String> = axes
            .map(|axis| {
                let value = run.setting(&axis.key).map_or_else(String::new, in_words);
                // A relative target loss holds signs that a file's name had better not.
                let plain = |sign: char| match sign.is_alphanumeric() || "._-+".contains(sign) {
                    true => sign,
                    false => '_',
                };
                format!("{}={}", axis.key, value.chars().map(plain).collect::<String>())
            })
            .collect();
        let told = told.join(" ");
        let named = |other: &&Arc<Planned>| {
            let same = |axis: &Axis| run.setting(&axis.key) == other.setting(&axis.key);
            self.axes.iter().all(same)
        };
        let alone = self.runs.iter().filter(named).nth(1).is_none();
        if told.is_empty() {
            run.key.clone()
        } else if alone && told.len() <= LONGEST_LABEL {
            told
        } else {
            let short: String = told.chars().take(LONGEST_LABEL / 2).collect();
            format!("{short} {}", &run.key[..8])
        }
    }

    /// The axes that tell cells apart: all but the seed.
    pub fn cell_axes(&self) -> Vec<&Axis> {
        self.axes.iter().filter(|axis| axis.key != "seed").collect()
    }
}

/// A setting in a few signs: of a section its kind, of several sections their kinds.
pub(in crate::sweep) fn in_words(value: &serde_json::Value) -> String {
    let kind = |value: &serde_json::Value| value.get("kind")?.as_str().map(str::to_owned);
    let several = |list: &Vec<serde_json::Value>| list.iter().map(kind).collect::<Option<Vec<_>>>();
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(list) if !list.is_empty() => {
            several(list).map_or_else(|| value.to_string(), |kinds| kinds.join("+"))
        }
        value => kind(value).unwrap_or_else(|| value.to_string()),
    }
}

fn take_list(table: &mut Table, key: &'static str) -> Result<Vec<Value>, PlanError> {
    match table.remove(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) if list.iter().all(Value::is_table) => Ok(list),
        Some(_) => Err(PlanError::NotAList { key }),
    }
}

/// The values of an axis: a list, one value, or a range `"0..10"`.
fn values(key: &str, value: Value) -> Result<Vec<Value>, PlanError> {
    let range = |text: &str| -> Option<(i64, i64)> {
        let (from, to) = text.split_once("..")?;
        Some((from.trim().parse().ok()?, to.trim().parse().ok()?))
    };
    match value {
        Value::Array(values) => Ok(values),
        Value::String(text) => match range(&text) {
            Some((from, to)) if (1..=MOST_RUNS as i64).contains(&to.saturating_sub(from)) => {
                Ok((from..to).map(Value::from).collect())
            }
            Some(_) => Err(PlanError::Range { key: one_line(key), range: one_line(&text) }),
            None => Ok(vec![Value::String(text)]),
        },
        value => Ok(vec![value]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<Plan, SpecError> {
        Plan::parse(text, Path::new("."), &[])
    }

    #[test]
    fn a_grid_is_every_combination_with_filters_and_conditions() {
        let text = "rounds = 7\n[rule]\nkind = \"fedavg\"\n[grid]\npartition.q = [0.5, 1.0]\n\
                    \"local.steps\" = [1, 5]\nepsilon = [0.1, 0.2, 0.4]\nseed = \"3..5\"\n\
                    [[when]]\nmatch = { local.steps = 5 }\nset = { step_size = 0.01 }\n\
                    [[skip]]\npartition.q = 1\nlocal.steps = [5, 9]\n";
        let plan = plan(text).unwrap();
        assert_eq!(plan.runs.len(), 3 * 3 * 2);
        let first = &plan.runs[0].experiment;
        assert_eq!((first.seed, first.rounds, first.step_size), (3, 7, 0.1));
        let fives: Vec<_> =
            plan.runs.iter().filter(|run| run.config["local"]["steps"] == 5).collect();
        assert!(fives.iter().all(|run| run.experiment.step_size == 0.01));
        assert!(fives.iter().all(|run| run.config["partition"]["q"] == 0.5));
        assert_eq!(plan.cell_axes().len(), 3);
        // The same seeds in every cell.
        assert_eq!(plan.runs[1].experiment.seed, 4);
    }

    #[test]
    fn keys_set_from_outside_replace_an_axis_or_set_the_base() {
        let set = [("seed", "0..3"), ("rounds", "9"), ("epsilon", "[0.5]")];
        let set: Vec<(String, String)> =
            set.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let text = "[grid]\nepsilon = [0.1, 0.2]\nseed = 7";
        let plan = Plan::parse(text, Path::new("."), &set).unwrap();
        assert_eq!(plan.runs.len(), 3);
        assert!(plan.runs.iter().all(|run| run.experiment.rounds == 9));
    }

    #[test]
    fn a_label_is_put_on_the_base_before_everything_else() {
        let text = "[rule]\nkind = \"ada-gd\"\ndelta = 0.1\n[grid]\nlabel = [\"fedavg+guard\", \
                    \"ada-gd+halve\", \"retain+horizon\", \"retain\"]\nbehaviour.kind = \
                    [\"threshold\", \"mixed\"]\n[[when]]\nmatch = { behaviour.kind = \"mixed\" }\nset = \
                    { behaviour.of = [{ kind = \"lying\", share = 1.0 }] }\n[[skip]]\nlabel = \
                    \"retain\"\nbehaviour.kind = \"mixed\"";
        let set = [("rule.delta".to_owned(), "0.3".to_owned())];
        let plan = Plan::parse(text, Path::new("."), &set).unwrap();
        assert_eq!(plan.runs.len(), 4 * 2 - 1);
        let labels: Vec<_> = plan.runs.iter().map(|run| run.setting("label").unwrap()).collect();
        assert_eq!(labels[..4], ["fedavg+guard", "ada-gd+halve", "retain+horizon", "retain"]);
        assert_eq!(plan.label(&plan.runs[0]), "behaviour.kind=threshold label=fedavg+guard");
        assert_eq!(plan.runs[0].config["policy"]["kind"], "guard");
        assert_eq!(plan.runs[1].config["rule"]["on_settled"], "halve");
        assert_eq!(plan.runs[2].config["rule"]["horizon"], 0.1);
        assert_eq!(plan.runs[6].config["behaviour"]["of"][0]["kind"], "lying");
        // What is set from outside holds under every label; a label is not part of a run.
        assert!(plan.runs.iter().all(|run| run.config["rule"]["delta"] == 0.3));
        assert!(plan.runs.iter().all(|run| run.config.get("label").is_none()));
        // Labels that say the same are one run, known by the first of them.
        let twins = super::tests::plan("[grid]\nlabel = [\"ada-gd+stop\", \"ada-gd\"]").unwrap();
        assert_eq!(twins.runs.len(), 1);
        assert_eq!(twins.runs[0].setting("label").unwrap(), "ada-gd+stop");
    }

    #[test]
    fn an_axis_of_policies_takes_names_and_lists() {
        let text = "[rule]\nkind = \"fedavg\"\n[grid]\npolicy = [\"none\", \"guard\", [\"guard\", \
                    \"keep-best\"]]\nseed = \"0..2\"\n";
        let swept = plan(text).unwrap();
        let labels: Vec<_> = swept.runs.iter().map(|run| run.experiment.rule_label()).collect();
        assert_eq!(labels[..2], ["fedavg", "fedavg"]);
        assert_eq!(labels[2..4], ["fedavg+guard", "fedavg+guard"]);
        assert_eq!(labels[4..], ["fedavg+guard+keep-best", "fedavg+guard+keep-best"]);
        assert_eq!(swept.label(&swept.runs[5]), "policy=guard+keep-best seed=1");
        // However a policy is written, it is the same run.
        let single = plan("rule.kind = \"fedavg\"\n[grid]\npolicy.kind = [\"none\", \"guard\"]");
        let single = single.unwrap();
        let keys = |plan: &Plan| plan.runs.iter().map(|run| run.key.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&single), [&keys(&swept)[0][..], &keys(&swept)[2]]);
        assert_eq!(single.runs[1].config["policy"]["kind"], "guard");
        let set = [("policy".to_owned(), "[['preview', 'early-stop'], 'preview']".to_owned())];
        let other = Plan::parse(text, Path::new("."), &set).unwrap();
        assert_eq!(other.label(&other.runs[0]), "policy=preview+early-stop seed=0");
        let skipping = plan(&format!("{text}[[skip]]\npolicy = [[\"guard\", \"keep-best\"]]"));
        assert_eq!(skipping.unwrap().runs.len(), 4);
        let refused = plan(&text.replace("\"keep-best\"", "\"preview\"")).unwrap_err();
        assert!(refused.to_string().contains("`preview` cannot come after `guard`"), "{refused}");
    }

    #[test]
    fn a_base_is_read_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        write(
            "base.toml",
            "rounds = 4\n[rule]\nkind = \"ada-gd\"\ndelta = 0.5\n[data]\nper_agent = 9",
        );
        write("a.toml", "base = \"base.toml\"\n[rule]\nkind = \"fedavg\"\n[grid]\nseed = \"0..2\"");
        let plan = Plan::read(&folder.path().join("a.toml"), &[]).unwrap();
        assert_eq!(plan.runs[1].config["rule"]["delta"], 0.0);
        assert_eq!(plan.runs[1].config["data"]["per_agent"], 9);
        write("b.toml", "base = \"nowhere.toml\"\n[grid]\nseed = 0");
        let error = Plan::read(&folder.path().join("b.toml"), &[]).unwrap_err().to_string();
        assert!(error.contains("b.toml") && error.contains("nowhere.toml"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("rounds = 3", "fedstay run"),
            ("[grid]\nepsilom = [1]", "`epsilon`"),
            ("[grid]\nrule.kind = [\"fedavg\", \"ada-dg\"]", "rule.kind = \"ada-dg\""),
            ("[grid]\nseed = \"4..4\"", "empty or too long"),
            ("[grid]\nseed = []", "no values"),
            ("[grid]\nseed = \"0..2000\"\nrounds = \"1..2000\"", "more than 1000000"),
            ("[grid]\nseed = 1\n[[skip]]\nseed = 1", "filtered out"),
            ("[grid]\nseed = 1\n[[skip]]\nsteps = 1", "`steps`"),
            ("[grid]\nseed = 1\n[[when]]\nmatch = { seed = 1 }", "two keys"),
            ("[grid]\nseed = 1\n[when]\nmatch = { seed = 1 }", "[[when]]"),
            ("grid = 3", "[grid]"),
            ("[grid]\nlabel = [\"fedavg+slowly\"]", "not +slowly"),
            ("[grid]\nlabel = [3]", "of the [grid]"),
            (
                "[grid]\nlabel = \"fedavg\"\n[[when]]\nmatch = {}\nset = { label = \"afl\" }",
                "not set otherwise",
            ),
            ("label = \"fedavg\"\n[grid]\nseed = 1", "`label`"),
        ] {
            let error = plan(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
