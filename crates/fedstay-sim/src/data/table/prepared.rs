//! A table that was read, with everything settled but the draw: which rows are used, whose they are, and
//! what is predicted of them.

use fedstay::record::UnusedRows;

use super::column::Role;
use super::draw::{Drawable, mark, stir};
use super::named::{classes, owners};
use super::raw::{LONGEST_NAME, Problem, RawTable};
use super::settings::{Fill, POOLED, Small};
use super::values::{CellValues, MISSING};
use super::{Draw, Table, findings};
use crate::data::Targets;
use crate::text::quoted;

/// A table, ready to be drawn from.
pub(super) struct Prepared {
    pub(super) raw: RawTable,
    /// The rows that are used, in the order of the files.
    pub(super) rows: Vec<u32>,
    /// Those that are not, and why.
    pub(super) unused: Vec<UnusedRows>,
    /// What owners are called; none where rows have none.
    pub(super) owners: Vec<String>,
    /// The owner of every row that was read.
    pub(super) owner: Vec<u16>,
    /// The classes; none where a number is predicted, or nothing yet.
    pub(super) classes: Vec<String>,
    /// The class of every row that was read.
    pub(super) class: Vec<u16>,
    /// Owners with too few rows, and how many they have.
    pub(super) small: Vec<(String, usize)>,
}

/// No owner, or no class.
pub(super) const NONE: u16 = u16::MAX;
/// How many owners a sentence names.
const MOST_NAMED: usize = 5;

impl Prepared {
    /// Settles what can be without the seed; what stands in the way is added to the problems.
    pub(super) fn of(mut raw: RawTable, table: &Table, small: Small) -> Self {
        let (owners, owner) = owners(&mut raw);
        let (classes, class) = classes(&mut raw, table);
        let rows = (0..raw.rows as u32).collect();
        let mut prepared = Self {
            raw,
            rows,
            unused: Vec::new(),
            owners,
            owner,
            classes,
            class,
            small: Vec::new(),
        };
        prepared.keep_whole(table);
        prepared.settle_small(table, small);
        prepared.drop_empty();
        prepared
    }

    /// What stands in the way so far: of a table without rows, that alone.
    pub(super) fn problems(&mut self, table: &Table) -> Vec<Problem> {
        let settings = findings::of_settings(self, table);
        match self.raw.rows {
            0 => settings,
            _ => std::mem::take(&mut self.raw.problems).into_iter().chain(settings).collect(),
        }
    }

    /// Leaves out rows without a label, without an owner, and, if that is asked, with something missing.
    fn keep_whole(&mut self, table: &Table) {
        let number = self.raw.of(Role::Label).map(|label| match &label.values {
            CellValues::Exact(numbers) if numbers.len() == self.raw.rows => Some(numbers.clone()),
            _ => None,
        });
        let number = number.flatten();
        if let Some(numbers) = number {
            self.leave_out("rows without a label", |_, row| numbers.get(row).is_nan());
        } else if !self.class.is_empty() {
            self.leave_out("rows without a label", |prepared, row| prepared.class[row] == NONE);
        }
        if !self.owner.is_empty() {
            self.leave_out("rows without an owner", |prepared, row| prepared.owner[row] == NONE);
        }
        let some = self.raw.columns.iter().filter(|column| column.role == Role::Feature);
        let some: Vec<usize> =
            some.filter(|column| column.missing.0 > 0).enumerate().map(|(at, _)| at).collect();
        if table.fill == Fill::Drop && !some.is_empty() {
            self.leave_out(
                "rows with something missing (data.fill = \"drop\")",
                |prepared, row| {
                    let features = prepared.raw.columns.iter();
                    features.filter(|column| column.role == Role::Feature).any(|column| {
                        match &column.values {
                            CellValues::Numbers(numbers) => numbers.get(row).is_nan(),
                            CellValues::Texts(codes, _) => codes.get(row) == MISSING,
                            _ => false,
                        }
                    })
                },
            );
        }
    }

    /// Takes rows out of use.
    fn leave_out(&mut self, why: &str, is_out: impl Fn(&Self, usize) -> bool) {
        let before = self.rows.len();
        let mut rows = std::mem::take(&mut self.rows);
        rows.retain(|row| !is_out(self, *row as usize));
        self.rows = rows;
        let rows = before - self.rows.len();
        if rows > 0 {
            self.unused.push(UnusedRows { rows, why: why.to_owned(), asked: true });
        }
    }

    /// How many of the rows in use each owner has.
    pub(super) fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.owners.len()];
        for row in self.rows.iter().filter(|_| !self.owner.is_empty()) {
            sizes[usize::from(self.owner[*row as usize])] += 1;
        }
        sizes
    }

    /// Joins owners with too few rows, leaves them out, or refuses them.
    fn settle_small(&mut self, table: &Table, small: Small) {
        let sizes = self.sizes();
        let few: Vec<usize> = (0..sizes.len())
            .filter(|owner| sizes[*owner] > 0 && sizes[*owner] < table.least)
            .collect();
        self.small = few.iter().map(|owner| (self.owners[*owner].clone(), sizes[*owner])).collect();
        if few.is_empty() {
            return;
        }
        match small {
            // One owner by itself cannot be joined to any other of its kind.
            Small::Join if few.len() == 1 => {}
            Small::Join => {
                let mut name = "others".to_owned();
                while self.owners.contains(&name) {
                    name.push('*');
                }
                self.owners.push(name);
                let joined = (self.owners.len() - 1) as u16;
                for owner in
                    self.owner.iter_mut().filter(|owner| few.contains(&usize::from(**owner)))
                {
                    *owner = joined;
                }
            }
            Small::LeaveOut => {
                let why = format!("rows of {}", self.few(table.least));
                self.leave_out(&why, |prepared, row| {
                    few.contains(&usize::from(prepared.owner[row]))
                });
            }
            Small::Refuse => {
                let why = format!(
                    "{}; set it to \"join\" or \"leave-out\", or lower data.least",
                    self.few(table.least)
                );
                self.raw.problems.push(Problem { key: "partition.small", why });
            }
        }
    }

    /// The owners with too few rows, in words.
    pub(super) fn few(&self, least: usize) -> String {
        let named = self.small.iter().take(MOST_NAMED);
        let named: Vec<String> =
            named.map(|(name, rows)| format!("{} ({rows})", quoted(name, LONGEST_NAME))).collect();
        let more = match self.small.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let noun = if self.small.len() == 1 { "owner" } else { "owners" };
        format!("{noun} with fewer than data.least = {least} rows: {}{more}", named.join(", "))
    }

    /// Forgets owners and classes that no row in use has.
    fn drop_empty(&mut self) {
        let sizes = self.sizes();
        self.owners = renumbered(&mut self.owner, std::mem::take(&mut self.owners), &sizes);
        let mut counts = vec![0; self.classes.len()];
        for row in self.rows.iter().filter(|_| !self.class.is_empty()) {
            counts[usize::from(self.class[*row as usize])] += 1;
        }
        let before = self.classes.len();
        self.classes = renumbered(&mut self.class, std::mem::take(&mut self.classes), &counts);
        if before > 0 && self.classes.len() < 2 {
            let only = self.classes.first().map_or("nothing".to_owned(), |name| {
                format!("`{}` alone", quoted(name, LONGEST_NAME))
            });
            let why = format!(
                "the label has {only} in {} rows: a label with one class teaches nothing, so name another \
                 column",
                self.rows.len()
            );
            self.raw.problems.push(Problem { key: "data.label", why });
        }
    }

    /// What the label's column says, once nothing stands in the way; by row in use.
    pub(super) fn targets(&self) -> Targets {
        if !self.classes.is_empty() {
            let of = self.rows.iter().map(|row| self.class[*row as usize]).collect();
            return Targets::Classes { of, names: self.classes.clone() };
        }
        let label = self.raw.of(Role::Label);
        let name = label.map_or_else(String::new, |label| label.name.clone());
        let numbers: Vec<f64> = match label.map(|label| &label.values) {
            Some(CellValues::Exact(numbers)) => {
                self.rows.iter().map(|row| numbers.get(*row as usize)).collect()
            }
            _ => vec![0.0; self.rows.len()],
        };
        Targets::numbers(&numbers, name)
    }

    /// Which of the rows in use are for testing.
    pub(super) fn tests(&self, table: &Table, draw: Draw) -> Vec<bool> {
        let mut test = vec![false; self.raw.rows];
        if let Some(first) = self.raw.tests {
            test[first..].fill(true);
        } else if let Some(column) = self.raw.of(Role::Test) {
            if let CellValues::Texts(codes, levels) = &column.values {
                let is_test: Vec<bool> =
                    levels.texts.iter().map(|text| says_test(text) == Some(true)).collect();
                test.iter_mut().zip(codes.iter()).for_each(|(test, code)| {
                    *test = is_test.get(code as usize).copied().unwrap_or(false);
                });
            }
        } else {
            let marks = self.marks();
            let pooled = table.test == POOLED || self.owner.is_empty();
            let together = self.raw.of(Role::Together).and_then(|column| match &column.values {
                CellValues::Marks(marks) => Some(|row: usize| marks.get(row)),
                _ => None,
            });
            let time = self.raw.of(Role::Time).and_then(|column| match &column.values {
                CellValues::Exact(times) => Some(|row: usize| times.get(row)),
                _ => None,
            });
            let drawable = Drawable {
                marks: &marks,
                owner: &|row| if pooled { 0 } else { usize::from(self.owner[row]) },
                class: &|row| self.class.get(row).map_or(0, |class| usize::from(*class)),
                together: together.as_ref().map(|of| of as &dyn Fn(usize) -> u64),
                time: time.as_ref().map(|of| of as &dyn Fn(usize) -> f64),
                share: table.test_share,
                seed: draw.seed,
            };
            for row in drawable.draw(&self.rows) {
                test[row as usize] = true;
            }
        }
        self.rows.iter().map(|row| test[*row as usize]).collect()
    }

    /// A mark of what each row holds, by the names and values of its columns in any order, without its
    /// owner.
    fn marks(&self) -> Vec<u64> {
        let mut marks = vec![0u64; self.raw.rows];
        for column in &self.raw.columns {
            if matches!(column.role, Role::Owner | Role::LeftOut | Role::Test) {
                continue;
            }
            let name = mark(column.name.as_bytes());
            let mut add = |values: &mut dyn Iterator<Item = u64>| {
                for (all, value) in marks.iter_mut().zip(values) {
                    *all = all.wrapping_add(stir(name ^ stir(value)));
                }
            };
            match &column.values {
                CellValues::Numbers(numbers) => {
                    add(&mut numbers.iter().map(|n| u64::from(n.to_bits())))
                }
                CellValues::Exact(numbers) => add(&mut numbers.iter().map(f64::to_bits)),
                CellValues::Marks(values) => add(&mut values.iter()),
                CellValues::Texts(codes, levels) => {
                    let known: Vec<u64> =
                        levels.texts.iter().map(|text| mark(text.as_bytes())).collect();
                    add(&mut codes
                        .iter()
                        .map(|code| known.get(code as usize).copied().unwrap_or(0)));
                }
                CellValues::Skipped | CellValues::TooMany => {}
            }
        }
        marks
    }
}

/// Whether a text says that its row is for testing; nothing if it says neither.
pub(super) fn says_test(text: &str) -> Option<bool> {
    match &text.to_ascii_lowercase()[..] {
        "test" | "1" | "true" | "yes" | "held-out" => Some(true),
        "train" | "training" | "0" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// Numbers names that are used anew, in their order; returns those.
fn renumbered(of: &mut [u16], names: Vec<String>, counts: &[usize]) -> Vec<String> {
    let mut places = vec![NONE; names.len()];
    let mut kept = Vec::new();
    for (at, name) in names.into_iter().enumerate().filter(|(at, _)| counts[*at] > 0) {
        places[at] = kept.len() as u16;
        kept.push(name);
    }
    for number in of.iter_mut().filter(|number| **number != NONE) {
        *number = places[usize::from(*number)];
    }
    kept
}
