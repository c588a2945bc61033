//! One legend for all panels of a figure.

use super::frame::Rect;
use super::layer::{Along, Layer};
use super::mark;
use super::palette::{Colour, Dash, Fill, Marker, Style};
use super::svg::{Label, Svg};
use super::text;

/// Where the legend goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Legend {
    /// The legend is between the title and the panels.
    #[default]
    Top,
    /// The legend is below the panels.
    Bottom,
    /// There is no legend.
    Hidden,
}

const SIZE: f64 = 14.0;
const KEY_WIDTH: f64 = 34.0;
/// The width of a line with a sign on it: the dashes beside the sign are to be seen.
const SIGNED_WIDTH: f64 = 46.0;
const KEY_GAP: f64 = 8.0;
const ENTRY_GAP: f64 = 26.0;
const ROW: f64 = 24.0;

/// The picture beside a name. Layers of one name may add several: a line and its band.
#[derive(Clone, Debug, PartialEq)]
enum Key {
    Fill(Fill, Option<Style>),
    Line {
        colour: Colour,
        width: f64,
        dash: Dash,
        marker: Option<Marker>,
        arrow: bool,
        upright: bool,
    },
    Marker(Marker, Colour, f64),
}

struct Entry {
    name: String,
    keys: Vec<Key>,
}

/// The names of all layers in order of appearance, each once; signs that mark places on lines come
/// last.
fn entries<'a>(layers: impl Iterator<Item = &'a Layer>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut add = |name: &str, key: Key| {
        if name.is_empty() {
            return;
        }
        let kind = std::mem::discriminant(&key);
        // A sign that several series share belongs to none of their colours.
        if let (Some(entry), Key::Marker(_, new, _)) =
            (entries.iter_mut().find(|e| e.name == name), &key)
            && let Some(Key::Marker(_, known, _)) =
                entry.keys.iter_mut().find(|k| matches!(k, Key::Marker(..)))
            && known != new
        {
            *known = Colour::INK;
        }
        match entries.iter_mut().find(|e| e.name == name) {
            Some(entry) if entry.keys.iter().any(|k| std::mem::discriminant(k) == kind) => {}
            Some(entry) => entry.keys.push(key),
            None => entries.push(Entry { name: name.to_owned(), keys: vec![key] }),
        }
    };
    let stroke = |colour, width, dash| Key::Line {
        colour,
        width,
        dash,
        marker: None,
        arrow: false,
        upright: false,
    };
    for layer in layers {
        match layer {
            Layer::Line(l) => {
                let marker = (l.markers && !l.arrows).then_some(l.style.marker);
                let key = Key::Line {
                    colour: l.style.colour,
                    width: l.width,
                    dash: l.style.dash,
                    marker,
                    arrow: l.arrows,
                    upright: false,
                };
                add(&l.name, key);
            }
            Layer::Band(l) => add(&l.name, Key::Fill(l.fill, None)),
            Layer::Points(l) => add(&l.name, Key::Marker(l.marker, l.colour, l.size)),
            Layer::Guide(l) => {
                let upright = matches!(l.along, Along::Vertical(_));
                add(
                    &l.name,
                    Key::Line {
                        colour: l.colour,
                        width: l.width,
                        dash: l.dash,
                        marker: None,
                        arrow: false,
                        upright,
                    },
                );
            }
            Layer::Region(l) => add(&l.name, Key::Fill(l.fill, l.outline)),
            Layer::Contours(l) => add(&l.name, stroke(l.colour, l.width, l.dash)),
            Layer::Arrows(l) => {
                add(
                    &l.name,
                    Key::Line {
                        colour: l.colour,
                        width: 1.0,
                        dash: Dash::Solid,
                        marker: None,
                        arrow: true,
                        upright: false,
                    },
                );
            }
            Layer::Cells(l) => {
                l.categories.iter().for_each(|c| add(&c.name, Key::Fill(c.fill, None)))
            }
            Layer::Bars(l) => l.series.iter().for_each(|s| add(&s.name, Key::Fill(s.fill, None))),
            Layer::Note(_) => {}
        }
    }
    let marks = |key: &Key| matches!(key, Key::Marker(..) | Key::Line { upright: true, .. });
    entries.sort_by_key(|entry| entry.keys.iter().all(marks));
    entries
}

/// Draws the legend of `layers` in rows no wider than `width`, from (x, y) downwards, and returns
/// the height it took.
pub(super) fn draw<'a>(
    svg: &mut Svg,
    layers: impl Iterator<Item = &'a Layer>,
    x: f64,
    y: f64,
    width: f64,
) -> f64 {
    let entries = entries(layers);
    if entries.is_empty() {
        return 0.0;
    }
    let mut at = (x, y);
    for entry in &entries {
        let signed = entry.keys.iter().any(has_sign);
        let lined = entry.keys.iter().any(|key| matches!(key, Key::Line { .. }));
        let key_width = if signed && lined { SIGNED_WIDTH } else { KEY_WIDTH };
        let wide = key_width + KEY_GAP + text::width(&entry.name, SIZE, false);
        if at.0 > x && at.0 + wide > x + width {
            at = (x, at.1 + ROW);
        }
        let area = Rect { x: at.0, y: at.1 + 4.0, width: key_width, height: ROW - 8.0 };
        // Fills first, lines over them, markers on top, whatever order the layers came in.
        for rank in 0..3 {
            entry
                .keys
                .iter()
                .filter(|key| rank == rank_of(key))
                .for_each(|key| draw_key(svg, key, &area, signed));
        }
        svg.text(&Label::new(
            area.right() + KEY_GAP,
            at.1 + ROW / 2.0 + 0.35 * SIZE,
            &entry.name,
            SIZE,
        ));
        at.0 += wide + ENTRY_GAP;
    }
    at.1 + ROW - y
}

fn rank_of(key: &Key) -> usize {
    match key {
        Key::Fill(..) => 0,
        Key::Line { .. } => 1,
        Key::Marker(..) => 2,
    }
}

/// Whether a sign stands in the middle of the key.
fn has_sign(key: &Key) -> bool {
    matches!(key, Key::Marker(..) | Key::Line { marker: Some(_), .. })
}

/// A line across the key. Its dashes are short enough that the key shows their rhythm, and where a sign
/// stands in the middle, a dash and no gap lies under it, so that the gaps are seen beside it.
fn key_line(svg: &mut Svg, area: &Rect, colour: Colour, width: f64, dash: Dash, signed: bool) {
    let y = area.y + area.height / 2.0;
    let period = width * dash.lengths().iter().sum::<f64>();
    let fit = if period > 0.0 { (0.7 * KEY_WIDTH / period).min(1.0) } else { 1.0 };
    let lengths: Vec<f64> = dash.lengths().iter().map(|length| fit * length).collect();
    let tag = svg.tag("line").num("x1", area.x).num("y1", y).num("x2", area.right()).num("y2", y);
    let tag = tag.stroke(colour, width).dash(&lengths, width);
    let tag = match lengths.first().filter(|_| signed) {
        Some(first) => {
            let behind = width * first / 2.0 - area.width / 2.0;
            tag.num("stroke-dashoffset", behind.rem_euclid(fit * period))
        }
        None => tag,
    };
    tag.close();
}

fn draw_key(svg: &mut Svg, key: &Key, area: &Rect, signed: bool) {
    let middle = (area.x + area.width / 2.0, area.y + area.height / 2.0);
    match *key {
        Key::Fill(fill, outline) => mark::swatch(svg, area, &fill, outline),
        Key::Marker(marker, colour, size) => mark::marker(svg, marker, middle, size, colour),
        Key::Line { colour, width, dash, upright: true, .. } => {
            svg.line(
                (middle.0, area.y - 2.0),
                (middle.0, area.bottom() + 2.0),
                colour,
                width,
                dash.lengths(),
            );
        }
        Key::Line { colour, width, dash, marker, arrow, .. } => {
            key_line(svg, area, colour, width, dash, signed);
            if arrow {
                let size = 4.5 * width.clamp(1.4, 3.0);
                mark::arrow_head(svg, (middle.0 + size / 2.0, middle.1), (1.0, 0.0), size, colour);
            }
            if let Some(marker) = marker {
                mark::marker(svg, marker, middle, mark::on_line(width), colour);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Band, Line, Note, Points};

    #[test]
    fn equal_names_share_an_entry_and_nameless_layers_have_none() {
        let style = Style::of("fedavg");
        let layers: Vec<Layer> = vec![
            Band::new("FedAvg", vec![], style.colour).into(),
            Line::new("FedAvg", vec![], style).into(),
            Line::new("FedAvg", vec![], style).into(),
            Line::new("", vec![], style).into(),
            Note::new((0.0, 0.0), "text", (0.0, 0.0)).into(),
        ];
        let entries = entries(layers.iter());
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].keys.len(), 2, "a band and a line");
    }

    #[test]
    fn a_sign_of_several_series_has_the_colour_of_none() {
        let points = |colour| Points::new("leaves", vec![], Marker::Cross, colour).into();
        let one: Vec<Layer> = vec![points(Colour::BLUE), points(Colour::BLUE)];
        assert!(matches!(entries(one.iter())[0].keys[..], [Key::Marker(_, Colour::BLUE, _)]));
        let two: Vec<Layer> = vec![points(Colour::BLUE), points(Colour::GREEN)];
        assert!(matches!(entries(two.iter())[0].keys[..], [Key::Marker(_, Colour::INK, _)]));
    }

    #[test]
    fn marks_come_after_lines() {
        let style = Style::of("fedavg");
        let layers: Vec<Layer> = vec![
            Points::new("leaves", vec![], Marker::Cross, Colour::INK).into(),
            Line::new("FedAvg", vec![], style).into(),
            Points::new("FedAvg", vec![], Marker::Disc, style.colour).into(),
        ];
        let names: Vec<String> = entries(layers.iter()).into_iter().map(|e| e.name).collect();
        assert_eq!(names, ["FedAvg", "leaves"]);
    }

    #[test]
    fn long_legends_wrap() {
        let style = Style::of("fedavg");
        let layers: Vec<Layer> =
            (0..12).map(|i| Line::new(format!("rule {i}"), vec![], style).into()).collect();
        let height = |width: f64| draw(&mut Svg::default(), layers.iter(), 0.0, 0.0, width);
        assert_eq!(height(1e6), ROW);
        assert!(height(400.0) > 2.0 * ROW);
        assert_eq!(draw(&mut Svg::default(), [].iter(), 0.0, 0.0, 100.0), 0.0);
    }
}
