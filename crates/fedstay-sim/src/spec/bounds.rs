//! How large the numbers of an experiment may be.
//!
//! Every number is checked against its key's bounds before a file is read, memory is taken or a
//! thread is started, so that a typing error costs a sentence and not the machine.

use super::SpecError;
use crate::text::quoted;
use toml::Value;

/// The largest parameter: squares and products of three stay within `f64`.
const LARGE: f64 = 1e100;
/// The most threads that are started on request. Starting more takes longer than it saves.
pub const MOST_THREADS: usize = 512;
/// The most weights all agents may hold at once, of four bytes each.
const MOST_HELD: u64 = 1 << 30;
/// The most samples an agent may draw for the local steps of one round.
const MOST_DRAWN: u64 = 100_000_000;

/// What values a key may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Allowed {
    /// Something else than a number, checked where it is read.
    Other,
    /// A whole number between these two.
    Count(u64, u64),
    /// A number between these two.
    Number(f64, f64),
    /// A number above zero and at most this.
    Positive(f64),
    /// A list of numbers.
    Numbers,
    /// `true` or `false`.
    Switch,
}

impl Allowed {
    /// Any finite number that can be computed with.
    pub(super) const NUMBER: Self = Self::Number(-LARGE, LARGE);

    /// Refuses a value outside, by the name of its key.
    pub(super) fn check(self, key: &str, value: &Value) -> Result<(), SpecError> {
        if self.has(value) {
            return Ok(());
        }
        Err(SpecError(format!("`{key}` is {}, but must be {self}", shown(value))))
    }

    fn has(self, value: &Value) -> bool {
        match self {
            Self::Other => true,
            Self::Count(least, most) => {
                let count = value.as_integer().and_then(|count| u64::try_from(count).ok());
                count.is_some_and(|count| (least..=most).contains(&count))
            }
            Self::Number(least, most) => {
                number(value).is_some_and(|number| (least..=most).contains(&number))
            }
            Self::Positive(most) => {
                number(value).is_some_and(|number| number > 0.0 && number <= most)
            }
            Self::Numbers => value
                .as_array()
                .is_some_and(|list| list.iter().all(|value| Self::NUMBER.has(value))),
            Self::Switch => value.as_bool().is_some(),
        }
    }
}

impl std::fmt::Display for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Other => write!(f, "of the right kind"),
            Self::Count(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Number(least, most) => {
                write!(f, "a number from {} to {}", short(least), short(most))
            }
            Self::Positive(most) => write!(f, "a number above zero and at most {}", short(most)),
            Self::Numbers => {
                write!(f, "a list of numbers from {} to {}", short(-LARGE), short(LARGE))
            }
            Self::Switch => write!(f, "true or false"),
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

/// A number as one would type it.
fn short(number: f64) -> String {
    if number.abs() >= 1e15 { format!("{number:e}") } else { number.to_string() }
}

/// A value as it was typed, cut where it is long. What `--set` could not read as TOML is text
/// without its quotes: a whole number beyond 64 bits, for instance.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    quoted(&text, 40)
}

/// Refuses more threads than anybody has cores for, before one is started.
///
/// # Errors
/// For none, and for more than [`MOST_THREADS`].
pub fn check_threads(threads: usize) -> Result<usize, SpecError> {
    match threads {
        1..=MOST_THREADS => Ok(threads),
        _ => Err(SpecError(format!(
            "`threads` is {threads}, but must be a whole number from 1 to {MOST_THREADS}"
        ))),
    }
}

/// Refuses what `agents` models of `weights` numbers each would not leave room for.
pub(crate) fn check_held(agents: usize, weights: usize) -> Result<(), SpecError> {
    let held = (agents as u64).saturating_mul(weights as u64);
    if held <= MOST_HELD {
        return Ok(());
    }
    Err(SpecError(format!(
        "`agents` × weights of the model is {agents} × {weights}, but must be at most {MOST_HELD}: \
         lower `agents` or `model.hidden`"
    )))
}

/// Refuses local work whose batches would not fit in memory.
pub(crate) fn check_drawn(steps: usize, batch: usize) -> Result<(), SpecError> {
    let drawn = (steps as u64).saturating_mul(batch as u64);
    if drawn <= MOST_DRAWN {
        return Ok(());
    }
    Err(SpecError(format!(
        "`local.steps` × `local.batch` is {steps} × {batch}, but must be at most {MOST_DRAWN}: lower \
         one of them, or use local.batch = \"full\""
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_key_the_value_and_what_is_allowed() {
        let said = |allowed: Allowed, value: Value| {
            allowed.check("a.b", &value).map_err(|error| error.to_string())
        };
        assert_eq!(
            said(Allowed::Count(1, 9), Value::from(10)).unwrap_err(),
            "`a.b` is 10, but must be a whole number from 1 to 9"
        );
        assert_eq!(
            said(Allowed::Positive(1e38), Value::from(f64::NAN)).unwrap_err(),
            "`a.b` is nan, but must be a number above zero and at most 1e38"
        );
        for (allowed, good, bad) in [
            (Allowed::Count(0, 5), Value::from(5), Value::from(-1)),
            (Allowed::Count(0, 5), Value::from(0), Value::from(2.0)),
            (Allowed::NUMBER, Value::from(-1e100), Value::from(f64::INFINITY)),
            (Allowed::NUMBER, Value::from(3), Value::from("three")),
            (Allowed::Numbers, Value::from(vec![1.0, 2.0]), Value::from(vec![1.0, 1e300])),
            (Allowed::Switch, Value::from(true), Value::from(1)),
        ] {
            assert_eq!(said(allowed, good), Ok(()));
            assert!(said(allowed, bad).unwrap_err().starts_with("`a.b` is "));
        }
        let long = Value::from("9".repeat(5000));
        assert!(said(Allowed::Switch, long).unwrap_err().len() < 100);
    }

    #[test]
    fn products_of_sizes_do_not_wrap_around() {
        check_held(10, 1 << 26).unwrap();
        assert!(check_held(usize::MAX, usize::MAX).is_err());
        check_drawn(1_000_000, 64).unwrap();
        assert!(check_drawn(1_000_000, usize::MAX).is_err());
        assert!(check_threads(0).is_err() && check_threads(1_000_000).is_err());
    }
}
