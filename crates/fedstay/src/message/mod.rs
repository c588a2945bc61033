//! What server and agents say to each other, and how it is checked: reports in, decisions and models out.

mod broadcast;
pub(crate) mod coefficients;
mod decision;
mod error;
mod id;
mod name;
mod number;
mod report;
pub(crate) mod score;

pub use broadcast::{Broadcast, Personal};
pub(crate) use broadcast::{Correct, Layer};
pub use decision::{
    Decision, Doubted, Landing, Measured, Miss, Shown, Split, StopReason, Why, carries, stays,
};
pub(crate) use decision::{forecast, forecast_asks, forecast_by, kept, measure};
pub use error::Error;
pub use id::AgentId;
pub use name::{called, called_briefly, called_together};
pub use number::{as_written, briefly, decimals, told_apart};
pub use report::{Loss, Rates, Report, Reports, Standing, tau};
pub use score::{Better, Interval, Measure, MeasureName, Measures, Score, ScorePart, Unit};

/// Checks a parameter that is a number, zero or more.
pub(crate) fn check_not_negative(name: &str, value: f64) -> Result<(), Error> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(Error::bad_parameter(name, value, "a number, zero or more"))
    }
}

/// Whether a field still has its default, so that it can be left out of a file.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
