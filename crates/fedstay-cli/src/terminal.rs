//! Text on its way to a terminal.
//!
//! Names, labels and paths come from files that others wrote. A control character in them could move
//! the cursor, rewrite what was printed or retitle the window, so it is shown, not sent.

/// The text with its lines as they are and every other control character spelled out.
pub fn printable(text: &str) -> String {
    spelled_out(text, '\n')
}

/// The same in one line, for an error.
pub fn one_line(text: &str) -> String {
    spelled_out(text, ' ')
}

fn spelled_out(text: &str, end_of_line: char) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push(end_of_line),
            // Marks that turn the direction of writing around hide what a name really says.
            c if c.is_control()
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                shown.extend(c.escape_default());
            }
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        let hostile = "red \u{1b}[31m\nbell \u{7}, C1 \u{9b}2J, \u{202e}turned";
        assert_eq!(
            printable(hostile),
            "red \\u{1b}[31m\nbell \\u{7}, C1 \\u{9b}2J, \\u{202e}turned"
        );
        assert!(!one_line(hostile).contains('\n'));
        assert_eq!(printable("ε ≤ 0.1, 4 × 2"), "ε ≤ 0.1, 4 × 2");
    }
}
