//! A sweep's file on top of the file it names as its base.

use super::PlanError;
use crate::experiment::{SECTIONS, SpecError, read_table};
use std::path::Path;
use toml::{Table, Value};

/// How many files may stand on each other.
const MOST_BASES: usize = 16;

/// A table over the file it names as its base, which may itself have a grid or a base.
pub(super) fn on_base(mut table: Table, folder: &Path) -> Result<Table, SpecError> {
    let mut folder = folder.to_owned();
    for _ in 0..MOST_BASES {
        let Some(base) = table.remove("base") else { return Ok(table) };
        let path = folder.join(base.as_str().ok_or(PlanError::BaseName)?);
        let text = std::fs::read_to_string(&path)
            .map_err(|source| PlanError::BaseUnreadable { path: path.clone(), source })?;
        let mut under = read_table(&text).map_err(|error| error.in_base(&path))?;
        merge(&mut under, table);
        table = under;
        folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    }
    Err(PlanError::BaseLoop.into())
}

/// Puts one table over another, key by key. A section of another kind replaces the whole section:
/// the parameters of one kind mean nothing to another.
fn merge(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => {
                let section = SECTIONS.iter().find(|section| section.name == key);
                let kind = section.map_or("kind", |section| section.kind_key());
                let (old, new) = (inner.get(kind), value.get(kind));
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
