//! Cells of a CSV file, as a spreadsheet will read them.

use std::borrow::Cow;

/// Characters at the start of a cell that make a spreadsheet take it for a formula.
const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];

/// A cell that no spreadsheet computes: a text that begins like a formula gets an apostrophe in
/// front, the usual protection. Numbers stay numbers.
pub fn cell(text: &str) -> Cow<'_, str> {
    match text.starts_with(FORMULA) && text.parse::<f64>().is_err() {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_like_a_formula_is_text_and_numbers_stay_numbers() {
        for formula in ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-"] {
            assert_eq!(cell(formula), format!("'{formula}"));
            assert_eq!(cell(&cell(formula)), cell(formula), "once is enough");
        }
        for plain in ["-0.5", "+3", "-1e-7", "12", "ada-gd", "a=b", "", "'=1", "[0.1,0.2]"] {
            assert_eq!(cell(plain), plain);
        }
    }
}
