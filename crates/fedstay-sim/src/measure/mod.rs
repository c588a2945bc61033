//! What can be measured besides the loss: one file per measure, from what a model says of each row to
//! one number. A run asks for measures by name (`measure = ["accuracy", "balanced"]`), and the first
//! one is its headline; everything that shows a measure takes its words, unit and direction from here.

mod accuracy;
mod balanced;
mod measuring;

pub use measuring::Measuring;

use crate::model::{Reads, Said};
use fedstay::{Measure, MeasureName};

/// Every measure there is.
pub const LIST: &[Listed] = &[accuracy::ACCURACY, balanced::BALANCED];

/// One of them.
#[derive(Debug)]
pub struct Listed {
    /// Its name, its words, which direction is better, and its unit.
    pub measure: Measure,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// What it reads.
    pub reads: Reads,
    /// Its value for some rows; `None` where it is not defined. There is at least one row.
    pub of: fn(&Said) -> Option<f64>,
}

/// Their names.
pub const NAMES: [&str; LIST.len()] = {
    let (mut names, mut at) = ([""; LIST.len()], 0);
    while at < LIST.len() {
        names[at] = LIST[at].name();
        at += 1;
    }
    names
};

impl Listed {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self.measure.name {
            MeasureName::Borrowed(name) => name,
            MeasureName::Owned(_) => panic!("a listed measure has a name of the program's"),
        }
    }

    /// The measure of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        LIST.iter().find(|listed| listed.measure.name == name)
    }
}

/// What is known of a measure by its name: what the list says or, of one that somebody else computes,
/// nothing.
pub fn describe(name: &str) -> Measure {
    Listed::find(name).map_or_else(|| Measure::named(name), |listed| listed.measure.clone())
}

#[cfg(test)]
mod laws;
