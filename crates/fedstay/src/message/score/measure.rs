//! What a measure is: its name in files, its words, which direction is better, and how a value of it
//! is shown. Code that shows a measure asks this and need not know it.

use crate::message::number::decimals;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The name of a measure in files.
pub type MeasureName = Cow<'static, str>;

/// The longest name of a measure.
const LONGEST: usize = 40;

/// A number that says how good weights are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// Its name in files, in keys and on the command line.
    pub name: MeasureName,
    /// What it is called in words.
    pub label: MeasureName,
    /// Which values are better.
    pub better: Better,
    /// What its values are.
    pub unit: Unit,
}

/// Which values of a measure are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// The higher ones.
    Higher,
    /// The lower ones.
    Lower,
}

/// What the values of a measure are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A share, from 0 to 1, shown in percent.
    Share,
    /// A number without a unit, such as a loss.
    Number,
}

impl Measure {
    /// The loss on which agents decide. Every score has one.
    pub const LOSS: Self = Self::new("loss", "loss", Better::Lower, Unit::Number);
    /// The share of correct predictions.
    pub const ACCURACY: Self = Self::new("accuracy", "accuracy", Better::Higher, Unit::Share);
    /// The accuracy on rows that nobody trained on, weighed by an agent's own mix of classes.
    pub const UNSEEN: Self =
        Self::new("unseen", "accuracy on unseen rows", Better::Higher, Unit::Share);

    /// A measure that is known when the program is built.
    pub const fn new(name: &'static str, label: &'static str, better: Better, unit: Unit) -> Self {
        Self { name: Cow::Borrowed(name), label: Cow::Borrowed(label), better, unit }
    }

    /// A measure of which nothing but its name is known: a number, of which more is better.
    pub fn named(name: &str) -> Self {
        let name = MeasureName::Owned(name.to_owned());
        Self { label: name.clone(), name, better: Better::Higher, unit: Unit::Number }
    }

    /// Whether a text can be the name of a measure: a small letter, then small letters, digits, `_` and
    /// `-`, 40 signs at most.
    pub fn is_name(text: &str) -> bool {
        let sign = |sign: char| {
            sign.is_ascii_lowercase() || sign.is_ascii_digit() || matches!(sign, '_' | '-')
        };
        text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.len() <= LONGEST
            && text.chars().all(sign)
    }

    /// What runs measure unless they are asked for something else.
    pub fn usual() -> Vec<Self> {
        vec![Self::ACCURACY]
    }

    /// Whether these are the usual ones, which files need not name.
    pub(crate) fn are_usual(measures: &Vec<Self>) -> bool {
        *measures == Self::usual()
    }

    /// A value as text.
    pub fn shown(&self, value: f64) -> String {
        match self.unit {
            Unit::Share => format!("{:.1}%", 100.0 * value),
            Unit::Number => decimals(value),
        }
    }

    /// A value as text, or a dash where there is none.
    pub fn or_dash(&self, value: impl Into<Option<f64>>) -> String {
        value.into().map_or("–".to_owned(), |value| self.shown(value))
    }

    /// By how much a chart's numbers are larger than the values: shares are drawn in percent.
    pub fn scale(&self) -> f64 {
        if self.is_share() { 100.0 } else { 1.0 }
    }

    /// What stands at the axis of a chart: `accuracy, %`.
    pub fn axis(&self) -> String {
        if self.is_share() { format!("{}, %", self.label) } else { self.label.to_string() }
    }

    /// Whether values are shares.
    pub fn is_share(&self) -> bool {
        self.unit == Unit::Share
    }

    /// Of a smallest and a largest value, the worse one.
    pub fn worse(&self, smallest: f64, largest: f64) -> f64 {
        match self.better {
            Better::Higher => smallest,
            Better::Lower => largest,
        }
    }

    /// A value as a number of which less is better, to sort by.
    pub fn badness(&self, value: f64) -> f64 {
        match self.better {
            Better::Higher => -value,
            Better::Lower => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_by_their_unit_and_judged_by_their_direction() {
        let (share, number) = (Measure::ACCURACY, Measure::LOSS);
        assert_eq!((share.shown(0.4567), number.shown(0.4567)), ("45.7%".into(), "0.4567".into()));
        assert_eq!((share.or_dash(None), number.or_dash(0.25)), ("–".into(), "0.2500".into()));
        assert_eq!((share.axis(), number.axis()), ("accuracy, %".into(), "loss".into()));
        assert_eq!((share.worse(0.1, 0.9), number.worse(0.1, 0.9)), (0.1, 0.9));
        assert!(
            share.badness(0.9) < share.badness(0.1) && number.badness(0.9) > number.badness(0.1)
        );
    }

    #[test]
    fn names_can_stand_in_files_and_on_the_command_line() {
        for name in ["accuracy", "f1", "macro_f1", "log-loss"] {
            assert!(Measure::is_name(name), "{name}");
        }
        let long = "a".repeat(41);
        for name in ["", "F1", "1f", "a.b", "a b", "ä", "_a", &long] {
            assert!(!Measure::is_name(name), "{name}");
        }
    }
}
