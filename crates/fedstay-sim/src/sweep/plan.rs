//! What a sweep's file asks for: a grid over a base experiment.
//!
//! ```toml
//! base = "fig2.toml"               # optional: an experiment or a sweep to start from
//! rounds = 300                     # any key of an experiment, on top of the base
//!
//! [grid]                           # every combination is a run
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

use super::key::{config, hash};
use crate::spec::{Experiment, SpecError, insert, read_table};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use toml::{Table, Value};

/// More runs than anybody would wait for are a typing error.
const MOST_RUNS: usize = 1_000_000;
/// A longer label would not do as a file's name, of which many disks take 255 bytes.
const LONGEST_LABEL: usize = 120;
/// How many files may stand on each other.
const MOST_BASES: usize = 16;

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
}

impl Planned {
    /// A setting by its key, such as `partition.q`.
    pub fn setting(&self, key: &str) -> Option<&serde_json::Value> {
        key.split('.').try_fold(&self.config, |value, part| value.get(part))
    }

    pub(super) fn new(experiment: Experiment) -> Result<Self, SpecError> {
        let config = config(&experiment)?;
        Ok(Self { key: hash(&config), experiment, config })
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

fn wrong(why: impl Into<String>) -> SpecError {
    SpecError(why.into())
}

impl Plan {
    /// Reads a sweep's file. Keys in `set` replace an axis of that name, or set the base.
    ///
    /// # Errors
    /// With a message that names the file and the key.
    pub fn read(path: &Path, set: &[(String, String)]) -> Result<Self, SpecError> {
        let located = |error: String| wrong(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| located(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::parse(&text, folder, set).map_err(|error| located(error.0))
    }

    /// Reads a sweep's text; `folder` is where a relative `base` is looked for.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, folder: &Path, set: &[(String, String)]) -> Result<Self, SpecError> {
        let over = read_table(text)?;
        let mut table = on_base(over, folder)?;
        let grid = take_table(&mut table, "grid")?.ok_or_else(|| {
            wrong("there is no [grid]: this is one experiment, run it with `fedstay run`")
        })?;
        let mut axes = Vec::new();
        flatten(&grid, "", &mut |key, value| axes.push((key, value)));
        let mut axes: Vec<Axis> = axes
            .into_iter()
            .map(|(key, value)| Ok(Axis { values: values(&key, value)?, key }))
            .collect::<Result<_, SpecError>>()?;
        let whens = take_list(&mut table, "when")?;
        let whens: Vec<When> = whens.iter().map(When::new).collect::<Result<_, _>>()?;
        let skip: Vec<Filter> = take_list(&mut table, "skip")?.iter().map(Filter::new).collect();
        let only: Vec<Filter> = take_list(&mut table, "only")?.iter().map(Filter::new).collect();
        let mut base = table;
        for (key, text) in set {
            match axes.iter_mut().find(|axis| axis.key == *key) {
                Some(axis) => axis.values = values(key, parse_value(text))?,
                None => insert(&mut base, key, text)?,
            }
        }
        if let Some(axis) = axes.iter().find(|axis| axis.values.is_empty()) {
            return Err(wrong(format!("[grid]: `{}` has no values", axis.key)));
        }
        let plan = Self { runs: expand(&base, &axes, &whens, &skip, &only)?, axes };
        if plan.runs.is_empty() {
            return Err(wrong(
                "every cell of the grid is filtered out; loosen [[skip]] or [[only]]",
            ));
        }
        Ok(plan)
    }

    /// What tells a run from the others, fit for a file's name: `epsilon=0.2 seed=0`. Where that is
    /// long or not enough, because `[[when]]` changes an axis, with the run's key.
    pub fn label(&self, run: &Planned) -> String {
        let axes = self.axes.iter().filter(|axis| axis.values.len() > 1);
        let told: Vec<String> = axes
            .map(|axis| {
                let value = match run.setting(&axis.key) {
                    Some(serde_json::Value::String(text)) => text.clone(),
                    Some(value) => value.to_string(),
                    None => String::new(),
                };
                // A relative precision holds signs that a file's name had better not.
                let plain = |sign: char| match sign.is_alphanumeric() || "._-".contains(sign) {
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

fn take_table(table: &mut Table, key: &str) -> Result<Option<Table>, SpecError> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::Table(inner)) => Ok(Some(inner)),
        Some(_) => Err(wrong(format!("`{key}` must be a table, [{key}]"))),
    }
}

fn take_list(table: &mut Table, key: &str) -> Result<Vec<Table>, SpecError> {
    let bad = || wrong(format!("`{key}` must be a list of tables, [[{key}]]"));
    match table.remove(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => {
            list.into_iter().map(|entry| entry.try_into::<Table>().map_err(|_| bad())).collect()
        }
        Some(_) => Err(bad()),
    }
}

/// A table over the file it names as its base, which may itself have a grid or a base.
fn on_base(mut table: Table, folder: &Path) -> Result<Table, SpecError> {
    let mut folder = folder.to_owned();
    for _ in 0..MOST_BASES {
        let Some(base) = table.remove("base") else { return Ok(table) };
        let Some(name) = base.as_str() else {
            return Err(wrong("`base` must be the name of an experiment's file"));
        };
        let path = folder.join(name);
        let located = |error: String| wrong(format!("base {}: {error}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| located(error.to_string()))?;
        let mut under = read_table(&text).map_err(|error| located(error.0))?;
        merge(&mut under, table);
        table = under;
        folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    }
    Err(wrong("`base` leads to `base` without an end"))
}

/// Puts one table over another, key by key. A section of another kind replaces the whole section:
/// the parameters of one kind mean nothing to another.
fn merge(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => {
                let (old, new) = (inner.get("kind"), value.get("kind"));
                if new.is_some() && old.is_some() && old != new {
                    *inner = value;
                } else {
                    merge(inner, value);
                }
            }
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// Every leaf of a table under its dotted name.
fn flatten(table: &Table, prefix: &str, found: &mut dyn FnMut(String, Value)) {
    for (name, value) in table {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(inner) => flatten(inner, &name, found),
            _ => found(name, value.clone()),
        }
    }
}

/// A value as TOML writes it; what is no TOML value is a string.
fn parse_value(text: &str) -> Value {
    let table = toml::from_str::<Table>(&format!("value = {text}"));
    table
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The values of an axis: a list, one value, or a range `"0..10"`.
fn values(key: &str, value: Value) -> Result<Vec<Value>, SpecError> {
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
            Some(_) => Err(wrong(format!(
                "[grid]: `{key} = \"{text}\"` is empty or too long: a range has 1 to {MOST_RUNS} values"
            ))),
            None => Ok(vec![Value::String(text)]),
        },
        value => Ok(vec![value]),
    }
}

/// Cells in which every key has one of its values.
#[derive(Debug)]
struct Filter(Vec<(String, Value)>);

impl Filter {
    fn new(table: &Table) -> Self {
        let mut keys = Vec::new();
        flatten(table, "", &mut |key, value| keys.push((key, value)));
        Self(keys)
    }

    fn matches(&self, cell: &Table) -> Result<bool, SpecError> {
        for (key, wanted) in &self.0 {
            let found = look_up(cell, key).ok_or_else(|| {
                wrong(format!(
                    "a filter asks for `{key}`, which is neither in the [grid] nor in the base"
                ))
            })?;
            let any = wanted.as_array().is_some_and(|list| list.iter().any(|one| same(one, found)));
            if !any && !same(wanted, found) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What to set in cells that match.
struct When {
    filter: Filter,
    set: Vec<(String, Value)>,
}

impl When {
    fn new(table: &Table) -> Result<Self, SpecError> {
        let bad = || {
            wrong(
                "[[when]] has two keys: match = { local.steps = 5 } and set = { step_size = 0.1 }",
            )
        };
        let inner = |key: &str| table.get(key).and_then(Value::as_table).ok_or_else(bad);
        if table.len() != 2 {
            return Err(bad());
        }
        let filter = Filter::new(inner("match")?);
        let mut set = Vec::new();
        flatten(inner("set")?, "", &mut |key, value| set.push((key, value)));
        Ok(Self { filter, set })
    }
}

fn look_up<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    let mut parts = key.split('.');
    let mut value = table.get(parts.next()?)?;
    for part in parts {
        value = value.as_table()?.get(part)?;
    }
    Some(value)
}

/// Equal as a reader sees it: 1 and 1.0 are.
fn same(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn put(table: &mut Table, key: &str, value: Value) -> Result<(), SpecError> {
    let (head, rest) = match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
            return Ok(());
        }
        Some(parts) => parts,
    };
    let entry = table.entry(head.to_owned()).or_insert_with(|| Value::Table(Table::new()));
    let Value::Table(inner) = entry else {
        return Err(wrong(format!("`{key}` cannot be set: `{head}` is not a table")));
    };
    put(inner, rest, value)
}

fn expand(
    base: &Table,
    axes: &[Axis],
    whens: &[When],
    skip: &[Filter],
    only: &[Filter],
) -> Result<Vec<Arc<Planned>>, SpecError> {
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.values.len()));
    let count = count.filter(|count| *count <= MOST_RUNS).ok_or_else(|| {
        wrong(format!("the grid has more than {MOST_RUNS} cells; is there an axis too many?"))
    })?;
    let (mut runs, mut seen) = (Vec::new(), HashSet::new());
    for index in 0..count {
        let mut cell = base.clone();
        let mut rest = index;
        let mut named = Vec::new();
        for axis in axes.iter().rev() {
            let value = &axis.values[rest % axis.values.len()];
            rest /= axis.values.len();
            put(&mut cell, &axis.key, value.clone())?;
            named.push(format!("{} = {value}", axis.key));
        }
        for when in whens {
            if when.filter.matches(&cell)? {
                for (key, value) in &when.set {
                    put(&mut cell, key, value.clone())?;
                }
            }
        }
        let matches = |filters: &[Filter]| -> Result<bool, SpecError> {
            filters.iter().try_fold(false, |any, filter| Ok(any || filter.matches(&cell)?))
        };
        if matches(skip)? || !only.is_empty() && !matches(only)? {
            continue;
        }
        let experiment = Experiment::from_table(cell).map_err(|error| {
            named.reverse();
            wrong(format!("{error} (in the cell {})", named.join(", ")))
        })?;
        let run = Planned::new(experiment)?;
        // Cells that come out the same, because of [[when]], are one run.
        if seen.insert(run.key.clone()) {
            runs.push(Arc::new(run));
        }
    }
    Ok(runs)
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
        ] {
            let error = plan(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
