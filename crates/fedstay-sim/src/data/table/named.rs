//! What rows give names to: their owners, and their classes.

use std::collections::HashMap;

use super::Table;
use super::column::{Role, TableColumn};
use super::findings::MOST_LEVELS;
use super::prepared::NONE;
use super::raw::{LONGEST_NAME, Problem, RawTable};
use super::values::CellValues;
use crate::text::quoted;

/// More different numbers than this are hardly classes.
const MOST_CLASSES: usize = MOST_LEVELS;

/// The names of a column of texts, sorted, and the place of every row's.
fn numbered(column: &TableColumn) -> (Vec<String>, Vec<u16>) {
    let CellValues::Texts(codes, levels) = &column.values else { return Default::default() };
    let sorted = levels.sorted();
    let mut places = vec![NONE; sorted.len()];
    for (place, code) in sorted.iter().enumerate().take(usize::from(NONE)) {
        places[*code as usize] = place as u16;
    }
    let of = codes.iter().map(|code| places.get(code as usize).copied().unwrap_or(NONE)).collect();
    (sorted.into_iter().map(|code| levels.texts[code as usize].clone()).collect(), of)
}

/// What the owners are called, and the owner of every row.
pub(super) fn owners(raw: &mut RawTable) -> (Vec<String>, Vec<u16>) {
    if raw.by_file {
        let stems: Vec<String> = raw.files.iter().map(|file| file.stem()).collect();
        let mut of = Vec::with_capacity(raw.rows);
        for (file, start) in raw.starts.iter().enumerate() {
            let end = raw.starts.get(file + 1).copied().unwrap_or(raw.rows);
            of.resize(end.max(*start), file as u16);
        }
        if let Some(twice) = (1..stems.len()).find(|at| stems[..*at].contains(&stems[*at])) {
            let why = format!(
                "two files are called `{}`, so two owners would be: rename one",
                stems[twice]
            );
            raw.problems.push(Problem { key: "data.owner", why });
        }
        return (stems, of);
    }
    let Some(column) = raw.of(Role::Owner) else { return Default::default() };
    match column.values {
        CellValues::TooMany => {
            let why = format!(
                "`{}` has more than 65,536 different values: is it an id?",
                quoted(&column.name, LONGEST_NAME)
            );
            raw.problems.push(Problem { key: "data.owner", why });
            Default::default()
        }
        _ => numbered(column),
    }
}

/// The classes and the class of every row, where classes are predicted.
pub(super) fn classes(raw: &mut RawTable, table: &Table) -> (Vec<String>, Vec<u16>) {
    let Some(column) = raw.of(Role::Label) else { return Default::default() };
    let name = quoted(&column.name, LONGEST_NAME);
    let levels = match &column.values {
        CellValues::Texts(_, levels) => levels,
        CellValues::TooMany => {
            let why = format!(
                "`{name}` has more than 65,536 different values: say data.task = \"number\" if it is \
                 measured, or name another label"
            );
            raw.problems.push(Problem { key: "data.task", why });
            return Default::default();
        }
        _ => return Default::default(),
    };
    if let Some(above) = table.above {
        return halves(raw, above);
    }
    let are_numbers = levels.texts.iter().all(|text| raw.reads.number(text).is_some());
    let mut problems = Vec::new();
    if table.task.is_none() && levels.texts.len() > MOST_CLASSES && are_numbers {
        let why = format!(
            "`{name}` has {} different numbers: say data.task = \"number\" if it is measured, or \
             data.task = \"classes\" if each is a class of its own",
            levels.texts.len()
        );
        problems.push(Problem { key: "data.task", why });
    }
    let mut alike: HashMap<String, &str> = HashMap::new();
    for text in &levels.texts {
        // Neither by its capitals nor as a number is one class another one.
        let same = match raw.reads.number(text) {
            Some(number) => (number + 0.0).to_string(),
            None => text.to_lowercase(),
        };
        let Some(other) = alike.insert(same, text) else { continue };
        let why = format!(
            "the classes `{}` and `{}` of `{name}` mean the same: write them alike",
            quoted(other, LONGEST_NAME),
            quoted(text, LONGEST_NAME)
        );
        problems.push(Problem { key: "data.label", why });
    }
    if levels.texts.is_empty() {
        let why = format!("`{name}` says nothing in any of {} rows: name another column", raw.rows);
        problems.push(Problem { key: "data.label", why });
    }
    let numbered = numbered(column);
    raw.problems.extend(problems);
    numbered
}

/// Two classes of a label of numbers: those above one of them, and the others.
fn halves(raw: &mut RawTable, above: f64) -> (Vec<String>, Vec<u16>) {
    let Some(column) = raw.of(Role::Label) else { return Default::default() };
    let CellValues::Texts(codes, levels) = &column.values else { return Default::default() };
    let numbers: Vec<Option<f64>> =
        levels.texts.iter().map(|text| raw.reads.number(text)).collect();
    if let Some(at) = numbers.iter().position(Option::is_none) {
        let why = format!(
            "`{}` has `{}`, which is neither above {above} nor below: leave this out, or add that to \
             data.missing",
            quoted(&column.name, LONGEST_NAME),
            quoted(&levels.texts[at], LONGEST_NAME)
        );
        raw.problems.push(Problem { key: "data.above", why });
        return Default::default();
    }
    let class = |code: u32| match numbers.get(code as usize).copied().flatten() {
        Some(number) => u16::from(number > above),
        None => NONE,
    };
    (vec![format!("at most {above}"), format!("above {above}")], codes.iter().map(class).collect())
}
