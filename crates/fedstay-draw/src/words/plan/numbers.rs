//! Values of a measure as a plan shows them: three places are more than any table of patients decides.

use fedstay::{Interval, Measure};

/// A value: `0.713`, `71.3%`, `23.4`.
pub(crate) fn value(measure: &Measure, value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    match measure.is_share() {
        true => format!("{:.1}%", 100.0 * value),
        false => plain(value),
    }
}

/// A difference: `+0.054`, `−1.2 points`; the sign is always there.
pub(crate) fn difference(measure: &Measure, value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let unit = if measure.is_share() { " points" } else { "" };
    format!("{}{unit}", signed(measure, value))
}

/// A difference without its unit.
fn signed(measure: &Measure, value: f64) -> String {
    let shown = match measure.is_share() {
        true => format!("{:.1}", 100.0 * value.abs()),
        false => plain(value.abs()),
    };
    // What is zero as it is shown has no direction.
    let is_zero = shown.chars().all(|sign| sign == '0' || sign == '.');
    let sign = match (is_zero, value < 0.0) {
        (true, _) => "±",
        (false, true) => "−",
        (false, false) => "+",
    };
    format!("{sign}{shown}")
}

/// The interval of a difference: `[+0.010, +0.098]`.
pub(crate) fn interval(measure: &Measure, of: Interval) -> String {
    // Of an error of which nothing is known, any number would do.
    let is_known = |end: f64| end.abs() < 1e299;
    match is_known(of.low) && is_known(of.high) {
        true => format!("[{}, {}]", signed(measure, of.low), signed(measure, of.high)),
        false => "–".to_owned(),
    }
}

/// Three places below ten, and at least three digits above.
fn plain(value: f64) -> String {
    let text = match value.abs() {
        small if small < 9.9995 => format!("{value:.3}"),
        middle if middle < 99.995 => format!("{value:.2}"),
        large if large < 999.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_differences_are_short_and_say_their_direction() {
        let (share, number) = (Measure::ACCURACY, Measure::LOSS);
        assert_eq!(
            (value(&share, 0.7131), value(&number, 0.7131)),
            ("71.3%".into(), "0.713".into())
        );
        assert_eq!(
            [9.9996, 23.456, 123.45, 12345.6].map(|x| value(&number, x)).join(" "),
            "10.00 23.46 123.5 12346"
        );
        assert_eq!(difference(&share, -0.0121), "−1.2 points");
        assert_eq!(
            [0.054, -0.0001, 0.0].map(|x| difference(&number, x)).join(" "),
            "+0.054 ±0.000 ±0.000"
        );
        let known = Interval { value: 0.05, low: -0.01, high: 0.1 };
        assert_eq!(interval(&number, known), "[−0.010, +0.100]");
        assert_eq!(value(&number, f64::NAN), "–");
    }
}
