//! Text made safe for SVG and HTML.

/// Text for element content and attribute values: it cannot end either of them.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// [`escape`] for XML and one line. Characters that XML 1.0 forbids are dropped: a stray control
/// character in an agent's name must not make the file unreadable.
pub(crate) fn escape_line(text: &str) -> String {
    let allowed = |c: char| match c {
        '\t' | '\n' | '\r' => Some(' '),
        c if c.is_control() || c == '\u{fffe}' || c == '\u{ffff}' => None,
        c => Some(c),
    };
    escape(&text.chars().filter_map(allowed).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out_of_the_document() {
        assert_eq!(escape_line("<script>\"&'\u{1}\u{0}"), "&lt;script&gt;&quot;&amp;&#39;");
        assert_eq!(escape_line("ε ≤ 0.12"), "ε ≤ 0.12");
        assert_eq!(escape_line("a\nb"), "a b");
        assert_eq!(escape("a\n<b>"), "a\n&lt;b&gt;");
    }
}
