//! The few elements a report is made of. All text is escaped here.

use crate::markup::escape;

/// The most rows of a table that is printed on one page.
const SHORT: usize = 20;

/// A table.
pub(in crate::picture) fn rows_of(
    headings: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let cells = |tag: &str, cells: Vec<String>| -> String {
        cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect()
    };
    let head = cells("th", headings.iter().map(|heading| (*heading).to_owned()).collect());
    let rows: Vec<String> = rows.map(|row| format!("<tr>{}</tr>\n", cells("td", row))).collect();
    let (body, class) = (rows.concat(), if rows.len() <= SHORT { " class=\"short\"" } else { "" });
    // A table wider than the screen scrolls, by keyboard too.
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table{class}>\
         <thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>\n"
    )
}

/// A paragraph with a class.
pub(in crate::picture) fn paragraph(class: &str, text: &str) -> String {
    format!("<p class=\"{class}\">{}</p>\n", escape(text))
}
