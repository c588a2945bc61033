//! What can be measured besides the loss: one file per measure, from what a model says of each row to
//! one number. A run asks for measures by name (`measure = ["accuracy", "balanced"]`), and the first
//! one is its headline; everything that shows a measure takes its words, unit and direction from here.
//!
//! A measure is of classes or of numbers ([`Over`]), and a run asks for those of what it predicts.
//! Every measure can count rows more than once ([`Weighted`]). So rows can be drawn again, many times,
//! at the price of an addition a row: [`interval`] says how far a value would lie elsewhere for other
//! rows of the same kind, and [`difference`] how far two models are apart on the same rows.

mod accuracy;
mod auroc;
mod average_precision;
mod balanced;
mod bootstrap;
mod brier;
mod calibration;
mod log_loss;
mod mae;
mod measuring;
mod numbers;
mod r2;
mod ranks;
mod rmse;
mod weights;

pub use bootstrap::{DRAWS, Draws, difference, interval, intervals};
pub use measuring::Measuring;

use crate::data::Predicted;
use crate::model::{ClassesSaid, NumbersSaid, Reads, Said};
use fedstay::{Measure, MeasureName};

/// Every measure there is.
pub const LIST: &[Listed] = &[
    accuracy::ACCURACY,
    balanced::BALANCED,
    auroc::AUROC,
    average_precision::AVERAGE_PRECISION,
    brier::BRIER,
    log_loss::LOG_LOSS,
    calibration::CALIBRATION,
    rmse::RMSE,
    mae::MAE,
    r2::R2,
];

/// One of them.
#[derive(Debug)]
pub struct Listed {
    /// Its name, its words, which direction is better, and its unit.
    pub measure: Measure,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// What it reads.
    pub reads: Reads,
    /// What it is computed from.
    pub over: Over,
}

/// What a measure is computed from.
#[derive(Debug, Clone, Copy)]
pub enum Over {
    /// What a model says of rows that have classes.
    Classes(for<'a> fn(&'a ClassesSaid) -> Weighted<'a>),
    /// What it says of rows that have numbers.
    Numbers(for<'a> fn(&'a NumbersSaid) -> Weighted<'a>),
}

/// A measure of some rows, each of which counts as often as its weight says; `None` where it is not
/// defined. What can be done once, such as sorting, is done before.
pub type Weighted<'a> = Box<dyn Fn(&[u32]) -> Option<f64> + 'a>;

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

    /// What it is a measure of.
    pub fn task(&self) -> Predicted {
        match self.over {
            Over::Classes(_) => Predicted::Classes,
            Over::Numbers(_) => Predicted::Number,
        }
    }

    /// Its value, as a function of how often each row counts; `None` for what is said of rows of the
    /// other kind.
    pub fn weighted<'a>(&self, said: &'a Said) -> Option<Weighted<'a>> {
        match (self.over, said) {
            (Over::Classes(over), Said::Classes(said)) => Some(over(said)),
            (Over::Numbers(over), Said::Numbers(said)) => Some(over(said)),
            _ => None,
        }
    }

    /// Its value for some rows; `None` where it is not defined, and where there is none.
    pub fn of(&self, said: &Said) -> Option<f64> {
        let value = self.weighted(said)?(&vec![1; said.len()])?;
        value.is_finite().then_some(value)
    }
}

/// What the name of a measure begins with that agents of other engines took on their own held-back rows.
const HELD_BACK: &str = "held_back_";

/// What is known of a measure by its name: what the list says (also of `held_back_rmse`, which agents
/// that compute their own measures may send) or, of one that somebody else computes, nothing.
pub fn describe(name: &str) -> Measure {
    let known = |name: &str| Listed::find(name).map(|listed| listed.measure.clone());
    let held_back = || {
        let own = known(name.strip_prefix(HELD_BACK)?)?;
        let label = format!("{} on held-back rows", own.label);
        Some(Measure { name: name.to_owned().into(), label: label.into(), ..own })
    };
    known(name).or_else(held_back).unwrap_or_else(|| Measure::named(name))
}

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod laws;
