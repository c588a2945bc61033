//! A column while it is read.

use super::blocks::Blocks;
use super::settings::ReadAs;
use super::values::{CellReading, CellValues, Levels, MISSING};

/// What a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A model reads it.
    Feature,
    /// It is predicted.
    Label,
    /// It says who holds a row.
    Owner,
    /// Rows that agree in it are either all for training or all for testing.
    Together,
    /// It says which rows are the last.
    Time,
    /// It says which rows are for testing.
    Test,
    /// Nobody reads it.
    LeftOut,
}

/// Where a value stands: in which file, and in which of its lines.
pub(super) type CellPlace = (usize, u64);

/// A column.
#[derive(Debug, Clone)]
pub(super) struct TableColumn {
    pub(super) name: String,
    pub(super) role: Role,
    /// What it is read as; nothing where that shows only at the end.
    pub(super) kind: Option<ReadAs>,
    /// Whether that is what the file says.
    pub(super) told: bool,
    pub(super) values: CellValues,
    /// The first text that is none of its kind, and where it stands.
    pub(super) odd: Option<(String, CellPlace)>,
    /// How many rows say nothing, and where the first of them stands.
    pub(super) missing: (usize, Option<CellPlace>),
    /// The first text that is there.
    pub(super) example: String,
    /// Whether all its numbers are whole.
    pub(super) whole: bool,
    /// How many whole numbers are too large to be kept to the last digit.
    pub(super) rounded: usize,
}

/// Whole numbers up to here are kept to the last digit by a feature.
const LARGEST_WHOLE: f32 = (1 << 24) as f32;
/// How much of an example is kept.
const LONGEST_EXAMPLE: usize = 40;

impl TableColumn {
    pub(super) fn new(name: String, role: Role, kind: Option<ReadAs>, told: bool) -> Self {
        let mut column = Self {
            name,
            role,
            kind,
            told,
            values: CellValues::Skipped,
            odd: None,
            missing: (0, None),
            example: String::new(),
            whole: true,
            rounded: 0,
        };
        column.begin();
        column
    }

    /// Forgets what was read.
    fn begin(&mut self) {
        let texts = || CellValues::Texts(Blocks::default(), Levels::default());
        self.values = match (self.role, self.kind) {
            (Role::LeftOut, _) => CellValues::Skipped,
            (Role::Together, _) => CellValues::Marks(Blocks::default()),
            (Role::Time, _) | (Role::Label, Some(ReadAs::Number)) => {
                CellValues::Exact(Blocks::default())
            }
            (Role::Label | Role::Owner | Role::Test, _) => texts(),
            (Role::Feature, Some(ReadAs::Number | ReadAs::Date)) => {
                CellValues::Numbers(Blocks::default())
            }
            (Role::Feature, Some(ReadAs::Category) | None) => texts(),
        };
        self.missing = (0, None);
        (self.whole, self.rounded) = (true, 0);
    }

    /// Lets a column that is not what it seemed to be read again, as texts; whether it has to be.
    pub(super) fn again(&mut self) -> bool {
        let again = self.odd.is_some() && !self.told && self.role == Role::Feature;
        if again {
            self.kind = None;
            self.begin();
        }
        again
    }

    /// Whether it takes the next row.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.values, CellValues::Skipped | CellValues::TooMany)
            && (self.odd.is_none() || self.kind.is_none())
    }

    /// The next row.
    pub(super) fn push(&mut self, text: &str, reads: &CellReading, place: CellPlace) {
        let known = match &mut self.values {
            CellValues::Skipped | CellValues::TooMany => return self.note_example(text, reads),
            CellValues::Numbers(numbers) => {
                let number = match self.kind {
                    Some(ReadAs::Date) => reads.days(text).map(|days| days as f32),
                    _ => reads.single(text),
                };
                match number {
                    None => None,
                    Some(number) => {
                        numbers.push(number);
                        if number.abs() > LARGEST_WHOLE {
                            let exact = reads.number(text);
                            let lost = exact.is_some_and(|exact| {
                                exact != f64::from(number) && exact.fract() == 0.0
                            });
                            self.rounded += usize::from(lost);
                        } else if !number.is_nan() && number.fract() != 0.0 {
                            self.whole = false;
                        }
                        Some(!number.is_nan())
                    }
                }
            }
            CellValues::Exact(numbers) => {
                let days = || (self.role == Role::Time).then(|| reads.days(text)).flatten();
                let number = reads.number(text).or_else(days);
                number.map(|number| {
                    numbers.push(number);
                    !number.is_nan()
                })
            }
            CellValues::Texts(codes, levels) => {
                let there = !reads.is_missing(text);
                // One file writes a code as 1, another as 1.0.
                let text = match self.role {
                    Role::Label => text.into(),
                    _ => super::values::shortest(text),
                };
                match if there { levels.code(&text) } else { Some(MISSING) } {
                    Some(code) => codes.push(code),
                    None => self.values = CellValues::TooMany,
                }
                Some(there)
            }
            CellValues::Marks(marks) => {
                marks.push(super::draw::mark(text.as_bytes()));
                Some(!reads.is_missing(text))
            }
        };
        match known {
            Some(true) => {}
            Some(false) => {
                self.missing.0 += 1;
                self.missing.1.get_or_insert(place);
            }
            None => {
                self.odd.get_or_insert_with(|| (text.to_owned(), place));
            }
        }
        self.note_example(text, reads);
    }

    fn note_example(&mut self, text: &str, reads: &CellReading) {
        if self.example.is_empty() && !reads.is_missing(text) {
            self.example = crate::text::quoted(text, LONGEST_EXAMPLE);
        }
    }

    /// Settles what it is, once all rows are read: texts that all are numbers, or all days, are these.
    pub(super) fn settle(&mut self, reads: &CellReading) {
        let CellValues::Texts(codes, levels) = &self.values else { return };
        if self.role != Role::Feature || self.kind.is_some() {
            return;
        }
        let all = |read: &dyn Fn(&str) -> Option<f64>| -> Option<Vec<f32>> {
            let numbers = levels.texts.iter().map(|text| read(text).map(|number| number as f32));
            numbers.collect::<Option<Vec<f32>>>().filter(|numbers| !numbers.is_empty())
        };
        let single = |text: &str| reads.single(text).map(f64::from);
        let (kind, numbers) = match (all(&single), all(&|text| reads.days(text))) {
            (Some(numbers), _) => (ReadAs::Number, numbers),
            (None, Some(days)) => (ReadAs::Date, days),
            (None, None) => {
                self.kind = Some(ReadAs::Category);
                return;
            }
        };
        self.whole = numbers.iter().all(|number| number.fract() == 0.0);
        let number = |code: u32| numbers.get(code as usize).copied().unwrap_or(f32::NAN);
        self.values = CellValues::Numbers(codes.iter().map(number).collect());
        self.kind = Some(kind);
        self.odd = None;
    }
}
