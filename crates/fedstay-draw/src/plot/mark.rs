//! The small shapes: markers, arrow heads, bars and cells.

use super::field::Arrows;
use super::frame::{DataArea, Rect};
use super::palette::{Colour, Dash, Fill, Marker, Pattern, Style};
use super::scale::short;
use super::svg::{Anchor, Label, Svg, path_data};
use super::table::{Bars, Cells};
use super::text;

/// The radius of markers on a line of some width; those of a wide one would hide its neighbours otherwise.
pub(super) fn on_line(width: f64) -> f64 {
    (2.0 * width).min(5.0)
}

/// Draws `marker` with radius `size` about `at`. A thin white rim keeps it apart from lines that
/// run through it.
pub(super) fn marker(svg: &mut Svg, marker: Marker, at: (f64, f64), size: f64, colour: Colour) {
    let (x, y) = at;
    // Corners at these angles (in twelfths of a turn from the top) and radii, in multiples of size.
    let corners: &[(f64, f64)] = match marker {
        Marker::Disc | Marker::Ring => {
            let (fill, rim, width) = if marker == Marker::Ring {
                (Colour::WHITE, colour, 0.35 * size)
            } else {
                (colour, Colour::WHITE, 1.0)
            };
            let radius = if marker == Marker::Ring { 0.8 * size } else { size };
            svg.tag("circle")
                .num("cx", x)
                .num("cy", y)
                .num("r", radius)
                .attr("fill", &fill.hex())
                .stroke(rim, width)
                .close();
            return;
        }
        Marker::Cross => {
            let r = 0.85 * size;
            let data = format!(
                "{}{}",
                path_data(&[(x - r, y - r), (x + r, y + r)], false),
                path_data(&[(x - r, y + r), (x + r, y - r)], false)
            );
            for (colour, width) in [(Colour::WHITE, 0.45 * size + 2.5), (colour, 0.45 * size)] {
                svg.tag("path")
                    .attr("d", &data)
                    .attr("stroke-linecap", "round")
                    .stroke(colour, width)
                    .close();
            }
            return;
        }
        Marker::Square => &[(1.5, 1.2), (4.5, 1.2), (7.5, 1.2), (10.5, 1.2)],
        Marker::Diamond => &[(0.0, 1.3), (3.0, 1.3), (6.0, 1.3), (9.0, 1.3)],
        Marker::Triangle => &[(0.0, 1.3), (4.0, 1.3), (8.0, 1.3)],
        Marker::TriangleDown => &[(6.0, 1.3), (10.0, 1.3), (2.0, 1.3)],
        Marker::Star => &[
            (0.0, 1.5),
            (1.2, 0.6),
            (2.4, 1.5),
            (3.6, 0.6),
            (4.8, 1.5),
            (6.0, 0.6),
            (7.2, 1.5),
            (8.4, 0.6),
            (9.6, 1.5),
            (10.8, 0.6),
        ],
    };
    let points: Vec<(f64, f64)> = corners
        .iter()
        .map(|&(hour, radius)| {
            let angle = hour * std::f64::consts::PI / 6.0;
            (x + radius * size * angle.sin(), y - radius * size * angle.cos())
        })
        .collect();
    let data = path_data(&points, true);
    svg.tag("path").attr("d", &data).attr("fill", &colour.hex()).stroke(Colour::WHITE, 1.0).close();
}

/// An arrow head `size` long whose tip is at `tip`, pointing along `direction`.
pub(super) fn arrow_head(
    svg: &mut Svg,
    tip: (f64, f64),
    direction: (f64, f64),
    size: f64,
    colour: Colour,
) {
    let length = direction.0.hypot(direction.1);
    if length == 0.0 || !length.is_finite() {
        return;
    }
    let (ux, uy) = (direction.0 / length, direction.1 / length);
    let (bx, by) = (tip.0 - size * ux, tip.1 - size * uy);
    let half = 0.42 * size;
    svg.polygon(&[tip, (bx - half * uy, by + half * ux), (bx + half * uy, by - half * ux)], colour);
}

/// A vector field. Lengths are compared in pixels, so that a stretched axis does not lie.
pub(super) fn arrows(svg: &mut Svg, frame: &DataArea, layer: &Arrows) {
    let pixels: Vec<((f64, f64), (f64, f64))> = layer
        .arrows
        .iter()
        .filter_map(|&(at, direction)| {
            let from = frame.point(at).filter(|p| frame.area.contains(*p))?;
            // A direction is a derivative: its picture is that of a tiny step along it.
            let tiny = 1e-6;
            let to = frame.point((at.0 + tiny * direction.0, at.1 + tiny * direction.1))?;
            Some((from, ((to.0 - from.0) / tiny, (to.1 - from.1) / tiny)))
        })
        .collect();
    let longest = pixels.iter().map(|(_, d)| d.0.hypot(d.1)).fold(0.0, f64::max);
    if longest <= 0.0 {
        return;
    }
    for ((x, y), (dx, dy)) in pixels {
        let factor = layer.length / longest;
        let length = dx.hypot(dy) * factor;
        if length < 1.0 {
            continue;
        }
        // Centred on its place: a field of arrows that start there looks shifted.
        let half = (0.5 * dx * factor, 0.5 * dy * factor);
        let head = (0.4 * length).clamp(3.0, 6.0);
        let tip = (x + half.0, y + half.1);
        let neck =
            (tip.0 - head * 0.8 * dx * factor / length, tip.1 - head * 0.8 * dy * factor / length);
        svg.line((x - half.0, y - half.1), neck, layer.colour, 1.0, &[]);
        arrow_head(svg, tip, (dx, dy), head, layer.colour);
    }
}

fn rect_data(rect: &Rect) -> String {
    let (x, y) = (rect.x, rect.y);
    path_data(&[(x, y), (rect.right(), y), (rect.right(), rect.bottom()), (x, rect.bottom())], true)
}

/// A strip of categories. Neighbours of one category become one rectangle: five hundred rounds
/// would otherwise show hairlines between them, and the file would be a hundred times as long.
pub(super) fn cells(svg: &mut Svg, frame: &DataArea, layer: &Cells) {
    for (index, row) in layer.rows.iter().enumerate() {
        let middle = index as f64;
        let (Some(top), Some(bottom)) = (frame.py(middle - 0.5), frame.py(middle + 0.5)) else {
            continue;
        };
        let (top, bottom) = (top.min(bottom), top.max(bottom));
        let gap = if bottom - top > 8.0 { 1.5 } else { 0.0 };
        let mut start = 0;
        while start < row.len() {
            // Cells that say something stand by themselves.
            let run = match layer.texts.is_empty() {
                true => row[start..].iter().take_while(|c| **c == row[start]).count(),
                false => 1,
            };
            let edge = |column: usize| frame.px(layer.start + column as f64 * layer.step);
            if let (Some(category), Some(left), Some(right)) =
                (layer.categories.get(row[start]), edge(start), edge(start + run))
            {
                let rect = Rect {
                    x: left,
                    y: top + gap,
                    width: right - left,
                    height: bottom - top - 2.0 * gap,
                };
                svg.filled_path(&rect_data(&rect), &category.fill);
                if let Some(said) = layer.texts.get(index).and_then(|row| row.get(start)) {
                    cell_text(svg, &rect, said);
                }
            }
            start += run;
        }
    }
}

/// The lines of a cell, in its middle; the first one bold.
fn cell_text(svg: &mut Svg, cell: &Rect, text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    let size = (0.8 * cell.height / lines.len().max(1) as f64).min(12.0);
    let (middle, height) = (cell.x + cell.width / 2.0, 1.15 * size);
    let first = cell.y + cell.height / 2.0 - height * (lines.len() as f64 - 1.0) / 2.0;
    for (index, line) in lines.iter().enumerate() {
        let baseline = first + index as f64 * height + 0.36 * size;
        let label = Label::new(middle, baseline, line, size);
        svg.text(&Label { anchor: Anchor::Middle, bold: index == 0, ..label });
    }
}

/// Bars, side by side or stacked, with error bars and values.
pub(super) fn bars(svg: &mut Svg, frame: &DataArea, layer: &Bars) {
    let groups = layer.series.iter().map(|s| s.values.len()).max().unwrap_or(0);
    let slots = if layer.stacked { 1 } else { layer.series.len().max(1) };
    let width = 0.8 / slots as f64;
    for group in 0..groups {
        let mut base = 0.0;
        for (slot, series) in layer.series.iter().enumerate() {
            let Some(value) = series.values.get(group).copied().filter(|v| v.is_finite()) else {
                continue;
            };
            let slot = if layer.stacked { 0 } else { slot };
            let left = group as f64 - 0.4 + slot as f64 * width;
            let edges =
                (frame.px(left), frame.px(left + width), frame.py(base), frame.py(base + value));
            let (Some(x0), Some(x1), Some(y0), Some(y1)) = edges else {
                continue;
            };
            let gap = if slots > 1 { 1.0 } else { 0.0 };
            let rect = Rect {
                x: x0 + gap,
                y: y0.min(y1),
                width: x1 - x0 - 2.0 * gap,
                height: (y1 - y0).abs(),
            };
            // Grid lines must not shine through a pale bar.
            svg.filled_path(&rect_data(&rect), &Fill::tint(Colour::WHITE, 1.0));
            svg.filled_path(&rect_data(&rect), &series.fill);
            let middle = (x0 + x1) / 2.0;
            let error = series.errors.get(group).copied().filter(|e| e.is_finite() && *e > 0.0);
            let mut top = rect.y;
            let ends = error
                .and_then(|e| Some((frame.py(base + value - e)?, frame.py(base + value + e)?)));
            if let Some((low, high)) = ends {
                svg.line((middle, low), (middle, high), Colour::INK, 1.2, &[]);
                for y in [low, high] {
                    svg.line((middle - 4.0, y), (middle + 4.0, y), Colour::INK, 1.2, &[]);
                }
                top = top.min(high);
            }
            if layer.show_values && !layer.stacked {
                let text = short(value);
                // Over narrow bars smaller, or neighbours would run into each other.
                let size = 12.5_f64.min(12.0 * (x1 - x0) / text::width(&text, 12.5, false));
                svg.text(&Label {
                    anchor: Anchor::Middle,
                    ..Label::new(middle, top - 5.0, &text, size)
                });
            }
            if layer.stacked {
                base += value;
            }
        }
    }
}

/// A filled rectangle for the legend.
pub(super) fn swatch(svg: &mut Svg, rect: &Rect, fill: &Fill, outline: Option<Style>) {
    let data = rect_data(rect);
    svg.filled_path(&data, fill);
    // A texture alone has no edge of its own and would look like stray dots.
    let edge = match outline {
        Some(style) => Some((style.colour, style.dash)),
        None => (fill.pattern != Pattern::Plain).then_some((Colour::GREY, Dash::Solid)),
    };
    if let Some((colour, dash)) = edge {
        let tag = svg.tag("path").attr("d", &data).attr("fill", "none");
        tag.stroke(colour, 1.2).dash(dash.lengths(), 1.2).close();
    }
}
