//! What is suspicious about columns: ids, leaks, texts that are nearly numbers, columns that say nothing.

use super::column::{Role, TableColumn};
use super::prepared::{Prepared, says_test};
use super::raw::{LONGEST_NAME, Problem};
use super::settings::{Fill, OWNER, POOLED, Scaling};
use super::values::{CellReading, CellValues, MISSING, has_decimal_comma, has_thousands};
use super::{Table, leaks};
use crate::text::quoted;

/// Something about a column.
pub(super) struct Finding {
    /// Its place.
    pub(super) column: usize,
    /// The key that settles it, where a run is refused until it is settled.
    pub(super) key: Option<&'static str>,
    /// What it is, and what to type.
    pub(super) why: String,
    /// The same in a few words, where a reading leaves the column out.
    pub(super) leave: Option<&'static str>,
}

/// More different texts than this are hardly a category.
pub(super) const MOST_LEVELS: usize = 50;
/// An id is not suspected of a table with fewer rows.
const FEWEST_ROWS: usize = 50;

/// What is to be known about the columns that a model is to read.
pub(super) fn of_columns(prepared: &Prepared, table: &Table) -> Vec<Finding> {
    let raw = &prepared.raw;
    let mut findings = Vec::new();
    for (column, about) in raw.columns.iter().enumerate() {
        if about.role != Role::Feature {
            continue;
        }
        let name = format!("`{}`", quoted(&about.name, LONGEST_NAME));
        let mut tell = |key, why: String, leave| findings.push(Finding { column, key, why, leave });
        if about.missing.0 == raw.rows {
            let why = format!("{name} says nothing in any row: add it to data.leave_out");
            tell(Some("data.leave_out"), why, Some("empty"));
            continue;
        }
        if let Some((key, why, leave)) = of_texts(about, &name, &raw.reads) {
            tell(Some(key), why, leave);
            continue;
        }
        if about.missing.0 > 0 && table.fill == Fill::Refuse {
            let place = about.missing.1.map(|place| raw.at(place)).unwrap_or_default();
            let why = format!(
                "{name} is missing in {} rows, first in {place}, and \"refuse\" is asked for; \"median\" \
                 fills in",
                about.missing.0
            );
            tell(Some("data.fill"), why, None);
        }
        if says_nothing(about) {
            tell(
                None,
                format!("{name} has one value in all rows and tells nothing"),
                Some("constant"),
            );
            continue;
        }
        if is_owner(prepared, about) {
            let why = format!(
                "{name} has one value for each owner and another for every other: a model would learn whose \
                 row it is; add it to data.leave_out"
            );
            tell(None, why, Some("says whose a row is"));
            continue;
        }
        if is_id(prepared, about) {
            let why = format!(
                "{name} has another value in every row, as an id has: add it to data.leave_out unless it is \
                 measured"
            );
            tell(None, why, Some("an id: another value in every row"));
            continue;
        }
        if about.rounded > 0 {
            let why = format!(
                "{name} has {} whole numbers above 16,777,216 that are rounded: leave it out if it is an id",
                about.rounded
            );
            tell(None, why, None);
        }
        if let Some(share) = leaks::tells(prepared, about) {
            let why = format!(
                "{name} alone tells the label ({share}): if it is known only afterwards, add it to \
                 data.leave_out"
            );
            tell(None, why, None);
        }
    }
    findings
}

/// What is wrong with a category, the key that settles it, and why a reading leaves it out.
fn of_texts(
    column: &TableColumn,
    name: &str,
    reads: &CellReading,
) -> Option<(&'static str, String, Option<&'static str>)> {
    let CellValues::Texts(_, levels) = &column.values else {
        let too_many = column.values == CellValues::TooMany;
        return too_many.then(|| {
            let why =
                format!("{name} has more than 65,536 different texts: add it to data.leave_out");
            ("data.leave_out", why, Some("more than 65,536 different texts"))
        });
    };
    // Whoever calls it a category means its texts.
    if column.told {
        return None;
    }
    let texts = &levels.texts;
    if texts.iter().all(|text| has_decimal_comma(text)) {
        let why = format!(
            "{name} has numbers such as `{}`: set it to \",\" if the comma separates decimals",
            quoted(&texts[0], LONGEST_NAME)
        );
        return Some(("data.decimal", why, Some("numbers with a decimal comma")));
    }
    let is_number = |text: &&String| reads.number(text).is_some();
    let split = texts.iter().any(|text| has_thousands(text));
    if split && texts.iter().all(|text| has_thousands(text) || is_number(&text)) {
        let example = texts.iter().find(|text| has_thousands(text)).unwrap_or(&texts[0]);
        let why = format!(
            "{name} has numbers such as `{}`: take the signs between thousands out of the file, or add the \
             column to data.leave_out",
            quoted(example, LONGEST_NAME)
        );
        return Some(("data.leave_out", why, Some("numbers with signs between thousands")));
    }
    let numbers = texts.iter().filter(is_number).count();
    if texts.len() > 10 && numbers * 10 >= texts.len() * 8 {
        let odd: Vec<String> = texts
            .iter()
            .filter(|text| !is_number(text))
            .take(3)
            .map(|text| format!("`{}`", quoted(text, LONGEST_NAME)))
            .collect();
        let why = format!(
            "{name} has numbers, but also {}: add these to data.missing if they mean missing, or the column \
             to data.leave_out; data.as = {{ … = \"category\" }} keeps them as texts",
            odd.join(", ")
        );
        return Some(("data.missing", why, Some("numbers among other texts")));
    }
    (texts.len() > MOST_LEVELS).then(|| {
        let hint = match texts.iter().all(|text| looks_dated(text)) {
            true => "; days are read as 2024-05-31",
            false => "",
        };
        let why = format!(
            "{name} has {} different texts, such as `{}`: add it to data.leave_out, or say data.as = {{ … = \
             \"category\" }} to have a feature for each{hint}",
            texts.len(),
            quoted(&texts[0], LONGEST_NAME)
        );
        ("data.leave_out", why, Some("too many different texts"))
    })
}

/// Whether a text may be a day, written in some way.
fn looks_dated(text: &str) -> bool {
    let signs = text.matches(['/', '-', '.']).count();
    signs == 2 && text.chars().filter(char::is_ascii_digit).count() >= 4
}

/// Whether a column has the same value everywhere, and is nowhere missing.
fn says_nothing(column: &TableColumn) -> bool {
    column.missing.0 == 0
        && match &column.values {
            CellValues::Texts(_, levels) => levels.texts.len() == 1,
            CellValues::Numbers(numbers) => {
                let mut all = numbers.iter();
                let first = all.next();
                first.is_some_and(|first| all.all(|number| number == first))
            }
            _ => false,
        }
}

/// What a row has in a column, as bits.
pub(super) fn bits(column: &TableColumn, row: usize) -> Option<u32> {
    match &column.values {
        CellValues::Numbers(numbers) => Some(numbers.get(row))
            .map(|number| if number.is_nan() { MISSING } else { number.to_bits() }),
        CellValues::Texts(codes, _) => Some(codes.get(row)),
        _ => None,
    }
}

/// Whether every owner has one value, and no other owner has it.
fn is_owner(prepared: &Prepared, column: &TableColumn) -> bool {
    let owners = prepared.owners.len();
    if owners < 2 || column.missing.0 > 0 || prepared.rows.len() <= owners {
        return false;
    }
    let mut own: Vec<Option<u32>> = vec![None; owners];
    for row in &prepared.rows {
        let row = *row as usize;
        let Some(value) = bits(column, row) else { return false };
        if *own[usize::from(prepared.owner[row])].get_or_insert(value) != value {
            return false;
        }
    }
    let mut values: Vec<u32> = own.into_iter().flatten().collect();
    values.sort_unstable();
    values.windows(2).all(|two| two[0] != two[1])
}

/// Whether whole numbers differ in all rows.
fn is_id(prepared: &Prepared, column: &TableColumn) -> bool {
    let CellValues::Numbers(numbers) = &column.values else { return false };
    let rows = prepared.raw.rows;
    if !column.whole || column.missing.0 > 0 || rows < FEWEST_ROWS {
        return false;
    }
    // Most columns of whole numbers repeat themselves early.
    let first: Vec<f32> = numbers.iter().take(FEWEST_ROWS).collect();
    let distinct = |mut some: Vec<f32>| {
        some.sort_unstable_by(f32::total_cmp);
        some.dedup();
        some.len()
    };
    // What is rounded may fall together.
    distinct(first) * 10 >= FEWEST_ROWS * 9
        && distinct(numbers.iter().collect()) + column.rounded >= rows
}

/// What is wrong with the settings, given the table.
pub(super) fn of_settings(prepared: &Prepared, table: &Table) -> Vec<Problem> {
    let raw = &prepared.raw;
    let mut problems = Vec::new();
    let mut tell = |key, why: String| problems.push(Problem { key, why });
    if raw.rows == 0 {
        tell("data.path", "there are names of columns, but no rows below them".to_owned());
        return problems;
    }
    if table.label.is_none() {
        let names: Vec<String> =
            raw.columns.iter().take(12).map(|column| quoted(&column.name, LONGEST_NAME)).collect();
        tell("data.label", format!("say which column is predicted: {}, …", names.join(", ")));
    }
    if !(0.0..1.0).contains(&table.test_share) {
        let why = format!(
            "{} is not a share of the rows: choose one from 0 to below 1",
            table.test_share
        );
        tell("data.test_share", why);
    }
    let drawn = [OWNER, POOLED].contains(&&table.test[..]);
    let named: Vec<&str> = [("data.together", &table.together), ("data.time", &table.time)]
        .into_iter()
        .filter_map(|(key, value)| value.as_ref().map(|_| key))
        .collect();
    match &named[..] {
        ["data.together", "data.time"] => {
            tell(
                "data.time",
                "tests on the last rows, whoever they belong to: leave out data.together"
                    .to_owned(),
            );
        }
        [key] if !drawn => {
            let why = format!(
                "test rows are named by data.test, so that nothing is drawn: leave out {key}"
            );
            tell(if *key == "data.time" { "data.time" } else { "data.together" }, why);
        }
        _ => {}
    }
    for (role, key) in
        [(Role::Together, "data.together"), (Role::Time, "data.time"), (Role::Test, "data.test")]
    {
        let Some(column) = raw.of(role) else { continue };
        let name = quoted(&column.name, LONGEST_NAME);
        if column.missing.0 > 0 {
            let place = column.missing.1.map(|place| raw.at(place)).unwrap_or_default();
            tell(
                key,
                format!("`{name}` says nothing in {} rows, first in {place}", column.missing.0),
            );
        }
        if let (Role::Test, CellValues::Texts(_, levels)) = (role, &column.values)
            && let Some(text) = levels.texts.iter().find(|text| says_test(text).is_none())
        {
            let text = quoted(text, LONGEST_NAME);
            tell(
                key,
                format!("`{name}` has `{text}`; it has to say `test` or `train` of every row"),
            );
        }
    }
    if table.scale == Scaling::Owner && table.owner.is_none() {
        tell("data.scale", "\"owner\" needs data.owner".to_owned());
    }
    problems
}
