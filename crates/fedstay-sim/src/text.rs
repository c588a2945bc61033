//! Text from outside, fit to be shown.

/// Text in one line: control characters are written out, so that nothing that came in a file or a key
/// breaks a line or speaks to a terminal.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

/// The same, cut after so many characters: longer quotations say nothing more.
pub fn quoted(text: &str, longest: usize) -> String {
    let mut line = one_line(text);
    if let Some((end, _)) = line.char_indices().nth(longest) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_line_or_reach_a_terminal_is_written_out() {
        assert_eq!(one_line("a\nb\u{1b}[31mc"), "a\\nb\\u{1b}[31mc");
        assert_eq!(quoted("ääää", 3), "äää…");
        assert_eq!(quoted("abc", 3), "abc");
    }
}
