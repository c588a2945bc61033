//! The values of a column: numbers, or texts of which there are few.

use std::collections::HashMap;

use super::blocks::Blocks;
use super::date;
use super::settings::{DecimalSign, ReadAs};

/// The code of a text that is missing.
pub(super) const MISSING: u32 = u32::MAX;

/// A column's values. A number that is missing is NaN.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CellValues {
    /// Nothing is kept.
    Skipped,
    /// Numbers as features have them.
    Numbers(Blocks<f32>),
    /// Numbers in full.
    Exact(Blocks<f64>),
    /// Texts.
    Texts(Blocks<u32>, Levels),
    /// What tells texts apart, and not what they are.
    Marks(Blocks<u64>),
    /// There were too many different texts.
    TooMany,
}

/// The different texts of a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Levels {
    codes: HashMap<String, u32>,
    /// The texts, in the order in which they first appear.
    pub(super) texts: Vec<String>,
    /// How many rows have each.
    pub(super) counts: Vec<usize>,
}

/// More different texts than this are no category, no classes and no owners.
pub(super) const MOST_TEXTS: usize = 1 << 16;

impl Levels {
    /// The code of a text; none if there are too many already.
    pub(super) fn code(&mut self, text: &str) -> Option<u32> {
        let code = match self.codes.get(text) {
            Some(code) => *code,
            None if self.texts.len() == MOST_TEXTS => return None,
            None => {
                let code = self.texts.len() as u32;
                self.codes.insert(text.to_owned(), code);
                self.texts.push(text.to_owned());
                self.counts.push(0);
                code
            }
        };
        self.counts[code as usize] += 1;
        Some(code)
    }

    /// The codes in the order of their texts: as whole numbers where all of them are.
    pub(super) fn sorted(&self) -> Vec<u32> {
        let whole: Option<Vec<i128>> = self.texts.iter().map(|text| text.parse().ok()).collect();
        let mut codes: Vec<u32> = (0..self.texts.len() as u32).collect();
        let text = |code: &u32| &self.texts[*code as usize];
        codes.sort_by(|left, right| match &whole {
            Some(values) => values[*left as usize]
                .cmp(&values[*right as usize])
                .then_with(|| text(left).cmp(text(right))),
            None => text(left).cmp(text(right)),
        });
        codes
    }
}

/// How a text is read.
#[derive(Debug, Clone)]
pub(super) struct CellReading {
    missing: Vec<String>,
    /// Whether a text that is a number may mean missing.
    missing_number: bool,
    decimal: DecimalSign,
}

impl CellReading {
    pub(super) fn new(missing: &[String], decimal: DecimalSign) -> Self {
        let missing_number = missing.iter().any(|text| plain(text).is_some());
        Self { missing: missing.to_vec(), missing_number, decimal }
    }

    pub(super) fn is_missing(&self, text: &str) -> bool {
        self.missing.iter().any(|missing| missing == text)
    }

    /// A number as features have it: missing is NaN, what is no number is none.
    pub(super) fn single(&self, text: &str) -> Option<f32> {
        match self.written(text).parse::<f32>() {
            Ok(number) if number.is_finite() && !self.means_missing(text) => Some(number),
            _ => self.is_missing(text).then_some(f32::NAN),
        }
    }

    /// A number in full, likewise.
    pub(super) fn number(&self, text: &str) -> Option<f64> {
        match self.written(text).parse::<f64>() {
            Ok(number) if number.is_finite() && !self.means_missing(text) => Some(number),
            _ => self.is_missing(text).then_some(f64::NAN),
        }
    }

    /// Days, likewise.
    pub(super) fn days(&self, text: &str) -> Option<f64> {
        date::days(text).or_else(|| self.is_missing(text).then_some(f64::NAN))
    }

    /// What a text is as far as it alone can say; nothing if it is missing.
    pub(super) fn kind(&self, text: &str) -> Option<ReadAs> {
        if self.is_missing(text) {
            return None;
        }
        Some(match () {
            () if self.number(text).is_some() => ReadAs::Number,
            () if date::days(text).is_some() => ReadAs::Date,
            () => ReadAs::Category,
        })
    }

    fn means_missing(&self, text: &str) -> bool {
        self.missing_number && self.is_missing(text)
    }

    /// A number as a computer writes it.
    fn written<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        match self.decimal {
            DecimalSign::Point => text.into(),
            // A point would be one of thousands: nobody knows.
            DecimalSign::Comma if text.contains('.') => "".into(),
            DecimalSign::Comma => text.replace(',', ".").into(),
        }
    }
}

/// A finite number, as a computer writes it.
pub(super) fn plain(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A number with a point without the zeros that it can do without: 1 for 1.0. Any other text as it is.
pub(super) fn shortest(text: &str) -> std::borrow::Cow<'_, str> {
    match text.contains('.').then(|| plain(text)).flatten() {
        Some(number) => number.to_string().into(),
        None => text.into(),
    }
}

/// Whether a text would be a number if commas were read as decimals.
pub(super) fn has_decimal_comma(text: &str) -> bool {
    text.matches(',').count() == 1
        && !text.contains('.')
        && plain(&text.replace(',', ".")).is_some()
}

/// Whether a text would be a number without the signs between its thousands.
pub(super) fn has_thousands(text: &str) -> bool {
    let whole = text.split('.').next().unwrap_or_default().trim_start_matches(['-', '+']);
    let mut parts = whole.split([',', '\'', ' ', '\u{a0}']);
    let first = parts.next().is_some_and(|part| (1..=3).contains(&part.len()));
    let is_part = |part: &str| part.len() == 3 && part.bytes().all(|sign| sign.is_ascii_digit());
    let rest: Vec<&str> = parts.collect();
    first
        && !rest.is_empty()
        && rest.into_iter().all(is_part)
        && plain(&text.replace([',', '\'', ' ', '\u{a0}'], "")).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_missing_or_a_number_or_neither() {
        let reads =
            CellReading::new(&["", "NA", "-9", "NaN"].map(String::from), DecimalSign::Point);
        assert_eq!((reads.single("3.5"), reads.number("1e3")), (Some(3.5), Some(1000.0)));
        assert!(reads.single("-9").unwrap().is_nan() && reads.number("NaN").unwrap().is_nan());
        assert_eq!(
            (reads.single("x"), reads.single("1e40"), reads.single("inf")),
            (None, None, None)
        );
        assert_eq!(reads.single("3,5"), None);
        assert_eq!((reads.kind("NA"), reads.kind("2024-05-31")), (None, Some(ReadAs::Date)));
        let comma = CellReading::new(&[], DecimalSign::Comma);
        assert_eq!(
            (comma.single("3,5"), comma.single("3"), comma.single("3.5")),
            (Some(3.5), Some(3.0), None)
        );
    }

    #[test]
    fn texts_that_are_nearly_numbers_are_known() {
        let short = ["1.0", "01", "1.50", "a.b", "-2.0"].map(shortest);
        assert_eq!(short, ["1", "01", "1.5", "a.b", "-2"]);
        assert!(
            has_decimal_comma("3,0") && has_decimal_comma("-12,75") && !has_decimal_comma("a,b")
        );
        for text in ["1,068.00", "12'000", "1 000 000", "-1,000"] {
            assert!(has_thousands(text), "{text}");
        }
        for text in ["1068", "10,68", "1,0680", "a,000", "V6", ""] {
            assert!(!has_thousands(text), "{text}");
        }
    }

    #[test]
    fn levels_are_sorted_as_whole_numbers_where_all_of_them_are() {
        let sorted = |texts: &[&str]| {
            let mut levels = Levels::default();
            for text in texts {
                levels.code(text);
            }
            levels
                .sorted()
                .into_iter()
                .map(|code| levels.texts[code as usize].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(sorted(&["10", "9", "10", "-1"]), ["-1", "9", "10"]);
        assert_eq!(sorted(&["10", "9", "x"]), ["10", "9", "x"]);
    }
}
