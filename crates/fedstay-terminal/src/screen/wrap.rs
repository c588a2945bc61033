//! Breaking lines between words.

use unicode_width::UnicodeWidthStr;

/// A line, broken to fit; further lines are indented like it.
pub(super) fn indented(line: &str, columns: Option<usize>) -> String {
    let text = line.trim_start_matches(' ');
    let indent = &line[..line.len() - text.len()];
    // A point of a list continues beside its dash.
    let point = if text.starts_with("- ") { "- " } else { "" };
    hanging(&format!("{indent}{point}"), &text[point.len()..], columns)
}

/// A label and a text beside it, broken to fit; further lines begin where the text began.
///
/// A word that is longer than a line is not broken: half a path is worse than a long line.
pub(super) fn hanging(label: &str, text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return format!("{label}{text}") };
    // Beside a label that takes most of the line, words would stand one below the other.
    let indent = label.width().min(columns / 2);
    let mut lines = vec![label.to_owned()];
    let mut used = label.width();
    let mut first = true;
    for word in text.split(' ') {
        let gap = usize::from(!first);
        if !first && used + gap + word.width() > columns {
            lines.push(" ".repeat(indent));
            used = indent;
            first = true;
        }
        let line = lines.last_mut().expect("there is a first line");
        if !first {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += word.width();
        first = false;
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_keep_their_indentation() {
        assert_eq!(indented("one two three", Some(8)), "one two\nthree");
        assert_eq!(indented("  one two three", Some(9)), "  one two\n  three");
        assert_eq!(indented("  - one two", Some(8)), "  - one\n    two");
        assert_eq!(indented("one two three", None), "one two three");
        assert_eq!(indented("", Some(8)), "");
        assert_eq!(indented("a runs/very-long-name b", Some(8)), "a\nruns/very-long-name\nb");
        assert_eq!(indented("ε ≤ 0.1 and so on", Some(11)), "ε ≤ 0.1 and\nso on");
    }

    #[test]
    fn a_text_continues_beside_its_label() {
        assert_eq!(hanging("loss  ", "one two three", Some(14)), "loss  one two\n      three");
        // A label that fills the line leaves half of it to the rest.
        assert_eq!(
            hanging("a-long-label  ", "one two", Some(18)),
            "a-long-label  one\n         two"
        );
    }
}
