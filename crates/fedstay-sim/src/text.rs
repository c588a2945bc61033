//! Text from outside, made safe to show.
//!
//! Names, labels, keys and paths come from files that others wrote. A control character in them
//! could break a line, move the cursor, rewrite what was printed or retitle the window, so it is
//! spelled out instead.

/// Text in one line, with every control character spelled out.
pub fn one_line(text: &str) -> String {
    spelled_out(text, false)
}

/// Text with its line breaks kept and every other control character spelled out, for a table or a
/// paragraph.
pub fn printable(text: &str) -> String {
    spelled_out(text, true)
}

/// Text in one line, cut after `longest` characters: longer quotations say nothing more.
pub fn quoted(text: &str, longest: usize) -> String {
    let mut line = one_line(text);
    if let Some((end, _)) = line.char_indices().nth(longest) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// A path as a shell takes it, in one line.
pub fn for_shell(path: &str) -> String {
    let path = one_line(path);
    let plain = |sign: char| sign.is_alphanumeric() || "/._-+=,:@%".contains(sign);
    match path.chars().all(plain) && !path.starts_with('-') {
        true => path,
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

fn spelled_out(text: &str, keeps_lines: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' if keeps_lines => shown.push(c),
            // Marks that reverse the direction of writing hide what a name really says.
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
    fn what_would_break_a_line_or_reach_a_terminal_is_spelled_out() {
        assert_eq!(one_line("a\nb\u{1b}[31mc"), "a\\nb\\u{1b}[31mc");
        let hostile = "red \u{1b}[31m\nbell \u{7}, C1 \u{9b}2J, \u{202e}turned";
        let shown = "red \\u{1b}[31m\nbell \\u{7}, C1 \\u{9b}2J, \\u{202e}turned";
        assert_eq!(printable(hostile), shown);
        assert_eq!(printable("ε ≤ 0.1, 4 × 2"), "ε ≤ 0.1, 4 × 2");
        assert_eq!(quoted("ääää", 3), "äää…");
        assert_eq!(quoted("abc", 3), "abc");
    }

    #[test]
    fn a_path_is_quoted_where_a_shell_would_read_more_into_it() {
        for plain in ["runs/a-b_1.2", "runs/grün", "a=1,b:2@3%"] {
            assert_eq!(for_shell(plain), plain);
        }
        assert_eq!(for_shell("my run"), "'my run'");
        assert_eq!(for_shell("it's"), "'it'\\''s'");
        assert_eq!(for_shell("-x"), "'-x'");
        assert_eq!(for_shell("a\nb"), "'a\\nb'");
    }
}
