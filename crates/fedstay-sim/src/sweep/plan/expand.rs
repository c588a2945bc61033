//! The cells of a grid, and which of them are runs.

use super::{Axis, MOST_RUNS, PlanError, Planned};
use crate::experiment::table::{leaves, look_up, put, same};
use crate::experiment::{Experiment, SpecError};
use crate::text::one_line;
use std::collections::HashSet;
use std::sync::Arc;
use toml::{Table, Value};

/// What a sweep's file says about cells.
#[derive(Debug)]
pub(super) struct Conditions {
    pub(super) whens: Vec<When>,
    /// Cells that match one of these are dropped.
    pub(super) skip: Vec<Filter>,
    /// If there are any of these, cells that match none are dropped.
    pub(super) only: Vec<Filter>,
}

/// Cells in which every key has one of its values.
#[derive(Debug)]
pub(super) struct Filter(Vec<(String, Value)>);

impl Filter {
    pub(super) fn new(table: &Value) -> Self {
        Self(owned_leaves(table))
    }

    fn matches(&self, cell: &Value) -> Result<bool, SpecError> {
        for (key, wanted) in &self.0 {
            let found =
                look_up(cell, key).ok_or_else(|| PlanError::Filter { key: one_line(key) })?;
            let any = wanted.as_array().is_some_and(|list| list.iter().any(|one| same(one, found)));
            if !any && !same(wanted, found) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn any_matches(filters: &[Self], cell: &Value) -> Result<bool, SpecError> {
        filters.iter().try_fold(false, |any, filter| Ok(any || filter.matches(cell)?))
    }
}

/// What to set in cells that match.
#[derive(Debug)]
pub(super) struct When {
    filter: Filter,
    set: Vec<(String, Value)>,
}

impl When {
    pub(super) fn new(table: &Value) -> Result<Self, PlanError> {
        let inner = |key: &str| table.get(key).filter(|inner| inner.is_table());
        match (table.as_table().map(Table::len), inner("match"), inner("set")) {
            (Some(2), Some(matching), Some(set)) => {
                Ok(Self { filter: Filter::new(matching), set: owned_leaves(set) })
            }
            _ => Err(PlanError::When),
        }
    }
}

/// Every value of a table under its dotted key.
pub(super) fn owned_leaves(table: &Value) -> Vec<(String, Value)> {
    leaves(table).into_iter().map(|(key, value)| (key, value.clone())).collect()
}

/// The runs of a grid over a base, each once, in the order of the grid.
pub(super) fn expand(
    base: &Table,
    axes: &[Axis],
    conditions: &Conditions,
) -> Result<Vec<Arc<Planned>>, SpecError> {
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.values.len()));
    let count = count.filter(|count| *count <= MOST_RUNS).ok_or(PlanError::TooManyCells)?;
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
        let Some(cell) = conditions.apply(cell)? else { continue };
        let experiment = Experiment::from_table(cell).map_err(|error| {
            named.reverse();
            PlanError::Cell { cell: one_line(&named.join(", ")), error: Box::new(error) }
        })?;
        let run = Planned::new(experiment)?;
        // Cells that come out the same, because of [[when]], are one run.
        if seen.insert(run.key.clone()) {
            runs.push(Arc::new(run));
        }
    }
    Ok(runs)
}

impl Conditions {
    /// The cell as it is run; `None` where it is dropped.
    fn apply(&self, cell: Table) -> Result<Option<Table>, SpecError> {
        let mut cell = Value::Table(cell);
        for when in &self.whens {
            if when.filter.matches(&cell)?
                && let Value::Table(cell) = &mut cell
            {
                for (key, value) in &when.set {
                    put(cell, key, value.clone())?;
                }
            }
        }
        let dropped = Filter::any_matches(&self.skip, &cell)?
            || !self.only.is_empty() && !Filter::any_matches(&self.only, &cell)?;
        match cell {
            Value::Table(cell) if !dropped => Ok(Some(cell)),
            _ => Ok(None),
        }
    }
}
