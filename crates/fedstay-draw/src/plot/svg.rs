//! The handful of SVG elements the figures need, written so that equal input gives equal bytes.
//!
//! Every number is rounded to a hundredth of a pixel and every text is escaped here and nowhere
//! else, so no caller can forget either.

use std::fmt::Write as _;

use super::palette::{Colour, Fill, Pattern};
use crate::markup::escape_line;

/// The font stack of every text. DejaVu Sans is what [`super::png`] and the text measurements use;
/// Verdana is cut to nearly the same widths, and other sans-serif faces are narrower, so a reader's
/// substitute never needs more room than was reserved.
pub(super) const FONT_FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

/// Stands for the figure's own prefix inside ids until the figure is finished. A control character
/// cannot occur in the rest of the drawing because [`escape_line`] drops it.
const ID_MARK: char = '\u{1}';

/// The `value` rounded to hundredths without trailing zeros; anything not finite becomes `0`,
/// because a `NaN` in an attribute makes renderers drop the whole element or the whole file.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".into();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Which end of a text is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// One line of text. `y` is the baseline.
pub(super) struct Label<'a> {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) text: &'a str,
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    pub(super) bold: bool,
    pub(super) colour: Colour,
    /// The rotation about the position in degrees, clockwise.
    pub(super) rotate: f64,
    /// A white rim, so that text over lines stays readable.
    pub(super) halo: bool,
}

impl<'a> Label<'a> {
    pub(super) fn new(x: f64, y: f64, text: &'a str, size: f64) -> Self {
        Self {
            x,
            y,
            text,
            size,
            anchor: Anchor::Start,
            bold: false,
            colour: Colour::INK,
            rotate: 0.0,
            halo: false,
        }
    }
}

/// A drawing under construction.
#[derive(Default)]
pub(super) struct Svg {
    body: String,
    defs: String,
    clips: usize,
    patterns: Vec<(Pattern, Colour)>,
}

/// An element whose attributes are being written; [`Tag::close`] ends it.
pub(super) struct SvgTag<'a>(&'a mut String);

impl SvgTag<'_> {
    pub(super) fn num(self, name: &str, value: f64) -> Self {
        self.raw(name, &number(value))
    }

    pub(super) fn attr(self, name: &str, value: &str) -> Self {
        let value = escape_line(value);
        self.raw(name, &value)
    }

    /// For values made here (numbers, ids), which need no escaping.
    fn raw(self, name: &str, value: &str) -> Self {
        // Writing to a `String` cannot fail; the result is ignored on purpose, here and below.
        let _ = write!(self.0, " {name}=\"{value}\"");
        self
    }

    pub(super) fn stroke(self, colour: Colour, width: f64) -> Self {
        self.attr("stroke", &colour.hex()).num("stroke-width", width)
    }

    pub(super) fn dash(self, lengths: &[f64], width: f64) -> Self {
        if lengths.is_empty() {
            return self;
        }
        let list: Vec<String> = lengths.iter().map(|l| number(l * width)).collect();
        self.raw("stroke-dasharray", &list.join(" "))
    }

    pub(super) fn close(self) {
        self.0.push_str("/>\n");
    }
}

impl Svg {
    pub(super) fn tag(&mut self, name: &str) -> SvgTag<'_> {
        let _ = write!(self.body, "<{name}");
        SvgTag(&mut self.body)
    }

    pub(super) fn line(
        &mut self,
        a: (f64, f64),
        b: (f64, f64),
        colour: Colour,
        width: f64,
        dash: &[f64],
    ) {
        self.tag("line")
            .num("x1", a.0)
            .num("y1", a.1)
            .num("x2", b.0)
            .num("y2", b.1)
            .stroke(colour, width)
            .dash(dash, width)
            .close();
    }

    pub(super) fn polygon(&mut self, points: &[(f64, f64)], colour: Colour) {
        let data = path_data(points, true);
        self.tag("path").attr("d", &data).attr("fill", &colour.hex()).close();
    }

    pub(super) fn text(&mut self, label: &Label<'_>) {
        if label.text.is_empty() {
            return;
        }
        let mut tag = self
            .tag("text")
            .num("x", label.x)
            .num("y", label.y)
            .num("font-size", label.size)
            .attr("fill", &label.colour.hex());
        match label.anchor {
            Anchor::Start => {}
            Anchor::Middle => tag = tag.attr("text-anchor", "middle"),
            Anchor::End => tag = tag.attr("text-anchor", "end"),
        }
        if label.bold {
            tag = tag.attr("font-weight", "bold");
        }
        if label.rotate != 0.0 {
            let turn =
                format!("rotate({} {} {})", number(label.rotate), number(label.x), number(label.y));
            tag = tag.attr("transform", &turn);
        }
        if label.halo {
            tag = tag
                .stroke(Colour::WHITE, 3.5)
                .attr("stroke-linejoin", "round")
                .attr("paint-order", "stroke");
        }
        let out = tag.0;
        let _ = writeln!(out, ">{}</text>", escape_line(label.text));
    }

    /// Opens a group that is cut off at the given rectangle; [`Svg::end_group`] closes it.
    pub(super) fn begin_clip(&mut self, x: f64, y: f64, width: f64, height: f64) {
        let id = format!("{ID_MARK}c{}", self.clips);
        self.clips += 1;
        let _ = writeln!(
            self.defs,
            "<clipPath id=\"{id}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>",
            number(x),
            number(y),
            number(width),
            number(height)
        );
        let _ = writeln!(self.body, "<g clip-path=\"url(#{id})\">");
    }

    pub(super) fn end_group(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// Fills the path `data` (even-odd) with a tint and, over it, the fill's pattern.
    pub(super) fn filled_path(&mut self, data: &str, fill: &Fill) {
        if data.is_empty() {
            return;
        }
        self.tag("path")
            .attr("d", data)
            .attr("fill", &fill.colour.hex())
            .num("fill-opacity", fill.opacity.clamp(0.0, 1.0))
            .attr("fill-rule", "evenodd")
            .close();
        if fill.pattern != Pattern::Plain {
            let url = self.pattern_url(fill.pattern, fill.ink);
            self.tag("path").attr("d", data).raw("fill", &url).attr("fill-rule", "evenodd").close();
        }
    }

    /// A reference to the pattern, which is defined on first use.
    fn pattern_url(&mut self, pattern: Pattern, ink: Colour) -> String {
        let known = self.patterns.iter().position(|&p| p == (pattern, ink));
        let index = known.unwrap_or_else(|| {
            self.patterns.push((pattern, ink));
            let index = self.patterns.len() - 1;
            let side = number(pattern.side());
            let _ = writeln!(
                self.defs,
                "<pattern id=\"{ID_MARK}p{index}\" width=\"{side}\" height=\"{side}\" \
                 patternUnits=\"userSpaceOnUse\"{}</pattern>",
                pattern.tile(ink)
            );
            index
        });
        format!("url(#{ID_MARK}p{index})")
    }

    /// The finished document. Ids get a prefix derived from the drawing itself, so that several
    /// figures can be pasted into one HTML page without borrowing each other's clips and patterns.
    pub(super) fn finish(self, width: f64, height: f64, title: &str, description: &str) -> String {
        let (w, h) = (number(width), number(height));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" font-family=\"{FONT_FAMILY}\">\n"
        );
        for (name, text) in [("title", title), ("desc", description)] {
            if !text.is_empty() {
                let _ = writeln!(out, "<{name}>{}</{name}>", escape_line(text));
            }
        }
        if !self.defs.is_empty() {
            let _ = writeln!(out, "<defs>\n{}</defs>", self.defs);
        }
        let _ =
            writeln!(out, "<rect width=\"{w}\" height=\"{h}\" fill=\"{}\"/>", Colour::WHITE.hex());
        out.push_str(&self.body);
        out.push_str("</svg>\n");
        let prefix = format!("f{:08x}", fnv1a(out.as_bytes()));
        out.replace(ID_MARK, &prefix)
    }
}

/// The `d` attribute of a polyline, after dropping points that lie on the line between their
/// neighbours: a contour of straight pieces shrinks to its corners.
pub(super) fn path_data(points: &[(f64, f64)], closed: bool) -> String {
    let mut kept: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for (i, &p) in points.iter().enumerate() {
        let on_the_way = match (kept.last(), points.get(i + 1)) {
            (Some(&last), Some(&next)) => between(last, p, next),
            _ => false,
        };
        if !on_the_way {
            kept.push(p);
        }
    }
    let mut out = String::new();
    for (i, (x, y)) in kept.iter().enumerate() {
        let _ = write!(out, "{}{} {}", if i == 0 { "M" } else { "L" }, number(*x), number(*y));
    }
    if closed && !out.is_empty() {
        out.push('Z');
    }
    out
}

/// Whether `b` lies on the segment from `a` to `c`, to within a fiftieth of a pixel. Turning back
/// counts as leaving the segment, so the tip of a path that retraces its steps is kept.
fn between(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> bool {
    let (ux, uy) = (c.0 - a.0, c.1 - a.1);
    let length = ux.hypot(uy);
    if length == 0.0 {
        return a == b;
    }
    let (vx, vy) = (b.0 - a.0, b.1 - a.1);
    let along = (vx * ux + vy * uy) / length;
    (ux * vy - uy * vx).abs() / length < 0.02 && (0.0..=length).contains(&along)
}

/// FNV-1a in 32 bits. [`fedstay::fingerprint`] has 64, and would give every drawing other ids and
/// every rule without a look of its own another one.
pub(super) fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &b| (hash ^ u32::from(b)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_always_finite() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(-0.001), "0");
        assert_eq!(number(2.346), "2.35");
        assert_eq!(number(100.0), "100");
        assert_eq!(number(f64::NAN), "0");
    }

    #[test]
    fn straight_runs_shrink_to_their_ends() {
        let straight: Vec<(f64, f64)> =
            (0..50).map(|i| (f64::from(i), 2.0 * f64::from(i))).collect();
        assert_eq!(path_data(&straight, false), "M0 0L49 98");
        assert_eq!(path_data(&[(0.0, 0.0), (5.0, 0.0), (2.0, 0.0)], false), "M0 0L5 0L2 0");
        assert_eq!(path_data(&[], true), "");
    }

    #[test]
    fn different_figures_have_different_ids() {
        let finish = |title: &str| {
            let mut svg = Svg::default();
            svg.begin_clip(0.0, 0.0, 1.0, 1.0);
            svg.end_group();
            svg.finish(10.0, 10.0, title, "")
        };
        let id = |svg: String| svg.split("url(#").nth(1).map(|s| s[..9].to_owned());
        assert!(id(finish("a")).is_some());
        assert_ne!(id(finish("a")), id(finish("b")));
        assert!(!finish("a").contains(ID_MARK));
    }
}
