//! How wide a text will be, measured in the font that is shipped with the program.
//!
//! The layout needs widths before anything is drawn. Measuring in the embedded font rather than in
//! whatever the machine has installed keeps every figure's bytes the same everywhere.

use std::sync::OnceLock;

use ttf_parser::Face;

/// DejaVu Sans, regular and bold (Bitstream Vera licence, changes in the public domain). It has
/// the Greek, the subscripts and the mathematical signs that our labels use.
pub(super) fn font(bold: bool) -> &'static [u8] {
    if bold { dejavu::sans::bold() } else { dejavu::sans::regular() }
}

/// The width of `text` in pixels at font size `size`, without kerning: at label sizes kerning only
/// ever makes a text a little narrower.
pub(super) fn width(text: &str, size: f64, bold: bool) -> f64 {
    static FACES: OnceLock<[Option<Face<'static>>; 2]> = OnceLock::new();
    let faces = FACES.get_or_init(|| [false, true].map(|bold| Face::parse(font(bold), 0).ok()));
    let Some(face) = &faces[usize::from(bold)] else {
        // Cannot happen with the embedded font; a rough width is still better than a panic.
        return 0.65 * size * text.chars().count() as f64;
    };
    let units: u32 = text
        .chars()
        .map(|c| {
            let glyph = face.glyph_index(c).unwrap_or_default();
            face.glyph_hor_advance(glyph).map_or(u32::from(face.units_per_em()), u32::from)
        })
        .sum();
    f64::from(units) / f64::from(face.units_per_em()) * size
}

/// `text` broken at spaces into lines no wider than `limit`; line breaks in it are kept. A single
/// word that is too wide gets a line of its own.
pub(super) fn wrap(text: &str, size: f64, bold: bool, limit: f64) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if !line.is_empty() && width(&longer, size, bold) > limit {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            } else {
                line = longer;
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
}

/// `text` in as few lines as [`wrap`] needs, but narrower if a single word would stand alone in the
/// last of them.
pub(super) fn wrap_evenly(text: &str, size: f64, bold: bool, limit: f64) -> Vec<String> {
    let widest = wrap(text, size, bold, limit);
    let orphan = |lines: &[String]| {
        lines.len() > 1 && lines.last().is_some_and(|line| width(line, size, bold) < 0.25 * limit)
    };
    if !orphan(&widest) {
        return widest;
    }
    let narrower =
        (1..=10).map(|step| wrap(text, size, bold, limit * (1.0 - 0.04 * f64::from(step))));
    let same = |lines: &Vec<String>| lines.len() == widest.len() && !orphan(lines);
    let found = narrower.take_while(|lines| lines.len() == widest.len()).find(same);
    found.unwrap_or(widest)
}

/// `text`, or as much of its start as fits into `limit` with an ellipsis.
pub(super) fn shorten(text: &str, size: f64, limit: f64) -> String {
    if width(text, size, false) <= limit {
        return text.to_owned();
    }
    let mut short: String = text.to_owned();
    while short.pop().is_some() {
        let candidate = format!("{}…", short.trim_end());
        if width(&candidate, size, false) <= limit {
            return candidate;
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_font_has_every_sign_we_use() {
        for bold in [false, true] {
            let face = Face::parse(font(bold), 0).expect("the embedded font is valid");
            for c in "Az09εδαηλ₁₂₃ᵣ⁰⁹−≤≥×→±·–…∇∩∪*‖✓".chars()
            {
                assert!(face.glyph_index(c).is_some(), "no glyph for {c}");
            }
        }
    }

    #[test]
    fn widths_add_up() {
        let (a, b) = (width("acc", 10.0, false), width("uracy", 10.0, false));
        assert!((width("accuracy", 10.0, false) - a - b).abs() < 1e-9);
        assert!(width("accuracy", 10.0, true) > a + b);
        assert!((width("accuracy", 20.0, false) - 2.0 * (a + b)).abs() < 1e-9);
        assert_eq!(width("", 10.0, false), 0.0);
    }

    #[test]
    fn wrapped_lines_fit_and_lose_nothing() {
        let text = "agents leave for good once their loss is at most epsilon";
        let lines = wrap(text, 12.0, false, 120.0);
        assert!(lines.len() > 2);
        assert!(lines.iter().all(|l| width(l, 12.0, false) <= 120.0));
        assert_eq!(lines.join(" "), text);
        assert_eq!(wrap("Donaudampfschifffahrt", 12.0, false, 5.0).len(), 1);
        assert!(wrap("", 12.0, false, 50.0).is_empty());
    }

    #[test]
    fn no_word_stands_alone_in_the_last_line() {
        let text = "ten agents with the images of one digit each and one more";
        let limit = width("ten agents with the images of one digit each and one", 12.0, false);
        assert_eq!(wrap(text, 12.0, false, limit).last().unwrap(), "more");
        let even = wrap_evenly(text, 12.0, false, limit);
        assert_eq!((even.len(), even.join(" ")), (2, text.to_owned()));
        assert_ne!(even[1], "more");
        assert_eq!(wrap_evenly("short", 12.0, false, limit), ["short"]);
    }

    #[test]
    fn long_texts_are_shortened_to_fit() {
        assert_eq!(shorten("agent 7", 12.0, 100.0), "agent 7");
        let short = shorten("agent with an exceedingly long name", 12.0, 80.0);
        assert!(short.starts_with("agent") && short.ends_with('…'));
        assert!(width(&short, 12.0, false) <= 80.0);
        assert_eq!(shorten("agent", 12.0, 0.0), "");
    }
}
