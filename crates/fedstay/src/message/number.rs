//! Numbers as sentences have them: for warnings, terminal, report, pictures and Python.

/// A number with four decimals, or with two significant digits where these would all be zeros.
pub fn decimals(value: f64) -> String {
    rounded(value, 4)
}

/// A number with three decimals, as sentences have them, or with two significant digits where these
/// would all be zeros.
pub fn briefly(value: f64) -> String {
    rounded(value, 3)
}

fn rounded(value: f64, places: i32) -> String {
    match value != 0.0 && value.abs() < 0.5 * 10f64.powi(-places) {
        true => format!("{value:.1e}"),
        false => format!("{value:.0$}", places as usize),
    }
}

/// A number that somebody chose, with all its digits and without a row of zeros in front of them.
pub fn as_written(value: f64) -> String {
    match value != 0.0 && value.abs() < 1e-4 {
        true => format!("{value:e}"),
        false => value.to_string(),
    }
}

/// Two numbers with as many digits as tell them apart, if they differ.
pub fn told_apart(one: f64, other: f64) -> (String, String) {
    let short = (decimals(one), decimals(other));
    if one == other || short.0 != short.1 {
        return short;
    }
    let longer = (5..=12).map(|digits| (format!("{one:.digits$}"), format!("{other:.digits$}")));
    let mut apart = longer.filter(|(one, other)| one != other);
    apart.next().unwrap_or_else(|| (format!("{one:e}"), format!("{other:e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_differ_look_different() {
        assert_eq!(
            [0.25, 1e-300, 0.0, -3e-7].map(decimals),
            ["0.2500", "1.0e-300", "0.0000", "-3.0e-7"]
        );
        assert_eq!([0.25, 4e-4, 1e-300].map(briefly), ["0.250", "4.0e-4", "1.0e-300"]);
        assert_eq!([0.1, 0.025, 1e-300, -5.0].map(as_written), ["0.1", "0.025", "1e-300", "-5"]);
        let apart = |one, other| {
            let (one, other) = told_apart(one, other);
            format!("{one} {other}")
        };
        assert_eq!(apart(2.4, 0.5), "2.4000 0.5000");
        assert_eq!(apart(0.500_001, 0.5), "0.500001 0.500000");
        assert_eq!(apart(1.31e-300, 1.3e-300), "1.31e-300 1.3e-300");
        assert_eq!(apart(0.5, 0.5), "0.5000 0.5000");
    }
}
