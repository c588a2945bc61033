//! The cells of a grid, and which of them are runs.

use super::{Axis, LABEL, MOST_RUNS, PlanError, Planned};
use crate::experiment::table::{leaves, look_up, put, same};
use crate::experiment::{Experiment, SpecError, under};
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
            (Some(2), Some(_), Some(set)) if set.get(LABEL).is_some() => Err(PlanError::Label),
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

/// What every cell starts from.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) table: Table,
    /// Keys set from outside, on top of the table and of what a label says.
    pub(super) set: Vec<(String, Value)>,
}

impl Base {
    /// The start of a cell: the table, under the cell's label, with the keys set from outside.
    fn under(&self, label: Option<&Value>) -> Result<Table, SpecError> {
        let mut table = self.table.clone();
        if let Some(label) = label {
            table = under(table, label.as_str().ok_or(PlanError::Label)?)?;
        }
        for (key, value) in &self.set {
            put(&mut table, key, value.clone())?;
        }
        Ok(table)
    }
}

/// The runs of a grid over a base, each once, in the order of the grid.
pub(super) fn expand(
    base: &Base,
    axes: &[Axis],
    conditions: &Conditions,
) -> Result<Vec<Arc<Planned>>, SpecError> {
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.values.len()));
    let count = count.filter(|count| *count <= MOST_RUNS).ok_or(PlanError::TooManyCells)?;
    let (mut runs, mut seen) = (Vec::new(), HashSet::new());
    for index in 0..count {
        let place = place(axes, index);
        let label = place.iter().find(|(axis, _)| axis.key == LABEL).map(|(_, value)| *value);
        let mut cell = base.under(label)?;
        for (axis, value) in &place {
            put(&mut cell, &axis.key, (*value).clone())?;
        }
        let Some(mut cell) = conditions.apply(cell)? else { continue };
        if label.is_some() {
            cell.remove(LABEL);
        }
        let experiment = Experiment::from_table(cell).map_err(|error| {
            let named: Vec<String> =
                place.iter().map(|(axis, value)| format!("{} = {value}", axis.key)).collect();
            PlanError::Cell { cell: one_line(&named.join(", ")), error: Box::new(error) }
        })?;
        let label = label.map(serde_json::to_value).transpose()?;
        let run = Planned { label, ..Planned::new(experiment)? };
        // Cells that come out the same, because of [[when]], are one run.
        if seen.insert(run.key.clone()) {
            runs.push(Arc::new(run));
        }
    }
    Ok(runs)
}

/// Where a cell stands on every axis; the last axis changes fastest.
fn place(axes: &[Axis], index: usize) -> Vec<(&Axis, &Value)> {
    let mut rest = index;
    let mut place = Vec::with_capacity(axes.len());
    for axis in axes.iter().rev() {
        place.push((axis, &axis.values[rest % axis.values.len()]));
        rest /= axis.values.len();
    }
    place.reverse();
    place
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
