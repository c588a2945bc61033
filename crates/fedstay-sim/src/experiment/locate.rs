//! Where in a file a key is, so that an error can point at it.

use super::SpecError;
use crate::text::{one_line, quoted};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Longer lines are not quoted: a person could not see the place in them.
const LONGEST: usize = 120;

/// The error with the line of the text that it is about, where it names a key that the text has.
pub(super) fn locate(error: SpecError, text: &str) -> SpecError {
    let Some(span) = error.key().and_then(|key| find(text, &key)) else { return error };
    let (line, excerpt) = (line_of(text, span.start), excerpt(text, span));
    SpecError::At { line, excerpt, error: Box::new(error) }
}

/// The place of a dotted key and its value.
fn find(text: &str, key: &str) -> Option<Range<usize>> {
    let table = DeTable::parse(text).ok()?;
    let mut table: &DeTable<'_> = table.get_ref();
    // A name with a dot in quotes is one name, and is itself what is wrong.
    if let Some((name, value)) = entry(table, key) {
        return Some(match value.get_ref() {
            DeValue::Table(_) => name.span(),
            _ => whole(name, value),
        });
    }
    let mut names = key.split('.').peekable();
    loop {
        let (name, value) = entry(table, names.next()?)?;
        match (names.peek(), value.get_ref()) {
            (Some(_), DeValue::Table(inner)) => table = inner,
            (None, DeValue::Table(_)) => return Some(name.span()),
            _ => return Some(whole(name, value)),
        }
    }
}

type Name<'i> = Spanned<std::borrow::Cow<'i, str>>;

fn entry<'a, 'i>(
    table: &'a DeTable<'i>,
    name: &str,
) -> Option<(&'a Name<'i>, &'a Spanned<DeValue<'i>>)> {
    table.iter().find(|(known, _)| known.get_ref() == name)
}

/// From the beginning of a name to the end of its value.
fn whole(name: &Name<'_>, value: &Spanned<DeValue<'_>>) -> Range<usize> {
    name.span().start..value.span().end.max(name.span().end)
}

/// The number of the line with this byte, counted from 1.
fn line_of(text: &str, byte: usize) -> usize {
    text.get(..byte).map_or(0, |before| before.matches('\n').count()) + 1
}

/// The line of a place, with carets under it, as compilers draw it.
pub(super) fn excerpt(text: &str, span: Range<usize>) -> Option<String> {
    let before = text.get(..span.start)?;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let indent = text.get(start..span.start)?.chars().count();
    let marked = text.get(span.start..span.end.min(start + line.len()).max(span.start))?;
    let shown = one_line(line);
    // Where a character had to be spelled out, carets would point at the wrong place.
    if shown != line || line.chars().count() > LONGEST {
        return None;
    }
    let number = line_of(text, span.start).to_string();
    let gutter = " ".repeat(number.len());
    let carets = "^".repeat(marked.chars().count().max(1));
    Some(format!(" {gutter} |\n {number} | {shown}\n {gutter} | {}{carets}", " ".repeat(indent)))
}

/// What a syntax error points at, where its place is known.
pub(super) fn syntax_excerpt(error: &toml::de::Error, text: &str) -> Option<String> {
    excerpt(text, error.span()?)
}

/// A value as one would write it in a file, cut where it is long.
pub(super) fn written(value: &toml::Value) -> String {
    match value {
        // `--set` takes text without quotes, and a number beyond 64 bits arrives as text.
        toml::Value::String(text) if text.parse::<f64>().is_ok() => quoted(text, 40),
        value => quoted(&value.to_string(), 40),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    fn refused(text: &str) -> SpecError {
        Experiment::parse(text, &[]).unwrap_err()
    }

    #[test]
    fn a_wrong_value_is_shown_in_its_line() {
        let error = refused("rounds = 3\n\n[rule]\ndelta = \"big\" # too big\n");
        assert_eq!(
            error.to_string(),
            "line 4: `rule.delta` is \"big\", but must be a number from -1e100 to 1e100"
        );
        assert_eq!(
            error.excerpt().unwrap(),
            "   |\n 4 | delta = \"big\" # too big\n   | ^^^^^^^^^^^^^"
        );
    }

    #[test]
    fn keys_are_found_however_they_are_written() {
        for (text, line, marked) in [
            ("rule.kind = \"fedavg\"\nrule.on_settled = \"halve\"", 2, "^^^^^^^^^^^^^^^^^^^^"),
            ("rule = { kind = \"fedavg\", projection = true }", 1, "^^^^^^^^^^^^^^^^^"),
            ("[rule]\nkind = 3", 2, "^^^^^^^^"),
            ("\nsed = 4", 2, "^^^^^^^"),
            ("[rulee]\nkind = 'ada-gd'", 1, "^^^^^"),
            ("'rule.delta' = 3", 1, "^^^^^^^^^^^^^^^^"),
            ("[data]\nkind = 'csv'", 1, "^^^^"),
            ("rule = 'fedavg'", 1, "^^^^^^^^^^^^^^^"),
        ] {
            let error = refused(text);
            assert!(error.to_string().starts_with(&format!("line {line}: ")), "{text}: {error}");
            let excerpt = error.excerpt().unwrap();
            assert!(excerpt.ends_with(&format!(" {marked}")), "{text}:\n{excerpt}");
        }
    }

    #[test]
    fn what_was_set_from_outside_has_no_line() {
        let set = [("rounds".to_owned(), "0".to_owned())];
        let error = Experiment::parse("rounds = 3", &set).unwrap_err();
        assert!(error.to_string().starts_with("`rounds` is 0"), "{error}");
        assert!(error.excerpt().is_none());
        // What the text says under a key that was set from outside is still found.
        let error = Experiment::parse("rounds = 0", &[("seed".into(), "1".into())]).unwrap_err();
        assert!(error.to_string().starts_with("line 1: "), "{error}");
    }

    #[test]
    fn a_syntax_error_keeps_its_carets() {
        let error = refused("rounds = 3\n[rule]\nkind = ada-gd\n");
        assert!(error.to_string().starts_with("line 3, column 8: "), "{error}");
        assert_eq!(error.excerpt().unwrap(), "   |\n 3 | kind = ada-gd\n   |        ^^^^^^");
        // Control characters are not drawn: the carets would stand elsewhere.
        assert!(refused("a = \"\u{7}\"").excerpt().is_none());
    }
}
