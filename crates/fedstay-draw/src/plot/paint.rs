//! Draws the layers of one panel.
//!
//! Two passes: what belongs to the data is cut off at the frame; markers and texts come after it,
//! uncut and on top, so that a point on the axis is whole and no line strikes through a word.

use super::contour::Path;
use super::field::{Contours, Region};
use super::frame::{DataArea, LabelRoom};
use super::label;
use super::layer::{Along, Band, Guide, Layer, Line};
use super::mark;
use super::palette::{Colour, Style};
use super::svg::{Svg, path_data};

/// Arrow heads along a line are this far apart, in pixels, and markers that far: many curves have them.
const ARROW_SPACING: f64 = 75.0;
const MARK_SPACING: f64 = 110.0;

/// Draws all layers into the frame.
pub(super) fn layers(svg: &mut Svg, frame: &DataArea, layers: &[Layer]) {
    let mut places = LabelRoom::default();
    let area = frame.area;
    svg.begin_clip(area.x, area.y, area.width, area.height);
    for layer in layers {
        match layer {
            Layer::Line(line) => stroke_line(svg, frame, line, &mut places),
            Layer::Band(band) => fill_band(svg, frame, band),
            Layer::Guide(guide) => stroke_guide(svg, frame, guide, &mut places),
            Layer::Region(region) => fill_region(svg, frame, region),
            Layer::Contours(contours) => stroke_contours(svg, frame, contours),
            Layer::Arrows(arrows) => {
                arrows
                    .arrows
                    .iter()
                    .filter_map(|(at, _)| frame.point(*at))
                    .for_each(|p| places.add_line(&[p]));
                mark::arrows(svg, frame, arrows);
            }
            Layer::Cells(cells) => mark::cells(svg, frame, cells),
            Layer::Bars(bars) => mark::bars(svg, frame, bars),
            Layer::Points(_) | Layer::Note(_) => {}
        }
    }
    svg.end_group();
    for layer in layers {
        match layer {
            Layer::Line(line) => mark_line(svg, frame, line),
            Layer::Points(layer) => {
                for pixel in layer.points.iter().filter_map(|p| frame.point(*p)) {
                    if area.grown(0.5).contains(pixel) {
                        mark::marker(svg, layer.marker, pixel, layer.size, layer.colour);
                        places.add_line(&[pixel]);
                    }
                }
            }
            _ => {}
        }
    }
    // Notes have the place they asked for, guides must find one, contour labels may be left out.
    for layer in layers {
        if let Layer::Note(note) = layer {
            label::note(svg, frame, note, &mut places);
        }
    }
    for layer in layers {
        if let Layer::Guide(guide) = layer {
            label::guide(svg, frame, guide, &mut places);
        }
    }
    for layer in layers {
        if let Layer::Contours(contours) = layer {
            label::contours(svg, frame, contours, &mut places);
        }
    }
}

/// The runs of a line as pixels, nudged.
fn line_runs(frame: &DataArea, line: &Line) -> Vec<Path> {
    let finite = line.nudge.0.is_finite() && line.nudge.1.is_finite();
    let (dx, dy) = if finite { line.nudge } else { (0.0, 0.0) };
    let mut runs = frame.runs(&line.points);
    runs.iter_mut().flatten().for_each(|p| *p = (p.0 + dx, p.1 - dy));
    runs
}

fn stroke_line(svg: &mut Svg, frame: &DataArea, line: &Line, places: &mut LabelRoom) {
    for run in line_runs(frame, line) {
        places.add_line(&run);
        let data = path_data(&run, false);
        svg.tag("path")
            .attr("d", &data)
            .attr("fill", "none")
            .stroke(line.style.colour, line.width)
            .dash(line.style.dash.lengths(), line.width)
            .attr("stroke-linejoin", "round")
            .close();
    }
}

/// Markers and arrow heads at even distances along the line.
fn mark_line(svg: &mut Svg, frame: &DataArea, line: &Line) {
    if !line.markers && !line.arrows {
        return;
    }
    let Style { colour, dash, marker } = line.style;
    // Not at the very start, where callers put marks of their own, and for each look a little
    // later, so that the markers of curves that rise together do not pile up.
    let (spacing, phase) = match line.arrows {
        true => (ARROW_SPACING, 0.5),
        false => (MARK_SPACING, 0.2 + 0.02 * (5 * marker as usize + dash as usize) as f64),
    };
    for run in line_runs(frame, line) {
        let steps = || run.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1));
        let whole: f64 = steps().map(|step| step.0.hypot(step.1)).sum();
        // A curve that is short, or ends early, has its marker too.
        let mut due =
            if line.arrows { phase * spacing } else { (phase * spacing).min(0.6 * whole) };
        let mut walked = 0.0;
        for (at, direction) in run.iter().skip(1).zip(steps()) {
            walked += direction.0.hypot(direction.1);
            if walked < due {
                continue;
            }
            due = walked + spacing;
            if !frame.area.contains(*at) {
                continue;
            }
            match line.arrows {
                true => mark::arrow_head(svg, *at, direction, 4.5 * line.width.min(3.0), colour),
                false => mark::marker(svg, marker, *at, mark::on_line(line.width), colour),
            }
        }
    }
}

fn fill_band(svg: &mut Svg, frame: &DataArea, band: &Band) {
    // One polygon for each stretch without gaps: along the upper edge and back along the lower.
    let pixel = |&(x, low, high): &(f64, f64, f64)| {
        let x = frame.px(x)?;
        Some(((x, frame.py(low)?), (x, frame.py(high)?)))
    };
    let pixels: Vec<_> = band.points.iter().map(pixel).collect();
    for run in pixels.split(Option::is_none) {
        let upper = run.iter().flatten().map(|(_, high)| *high);
        let lower = run.iter().flatten().rev().map(|(low, _)| *low);
        let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
        if outline.len() > 2 {
            svg.filled_path(&path_data(&outline, true), &band.fill);
        }
    }
}

fn stroke_guide(svg: &mut Svg, frame: &DataArea, guide: &Guide, places: &mut LabelRoom) {
    let area = frame.area;
    let ends = match guide.along {
        Along::Vertical(x) => frame.px(x).map(|x| ((x, area.y), (x, area.bottom()))),
        Along::Horizontal(y) => frame.py(y).map(|y| ((area.x, y), (area.right(), y))),
    };
    if let Some((a, b)) = ends {
        svg.line(a, b, guide.colour, guide.width, guide.dash.lengths());
        places.add_line(&[a, b]);
    }
}

fn fill_region(svg: &mut Svg, frame: &DataArea, region: &Region) {
    let rings = region.grid.sublevel_rings(region.threshold);
    let data: String = rings
        .iter()
        .filter_map(|ring| ring.iter().map(|p| frame.point(*p)).collect::<Option<Path>>())
        .map(|ring| path_data(&ring, true))
        .collect();
    svg.filled_path(&data, &region.fill);
    // Only the true boundary is outlined, not the stretches along the edge of the grid.
    if let Some(style) = region.outline {
        let lines = region.grid.level_lines(region.threshold);
        stroke_paths(svg, frame, &lines, style.colour, 1.7, style.dash.lengths());
    }
}

fn stroke_paths(
    svg: &mut Svg,
    frame: &DataArea,
    paths: &[Path],
    colour: Colour,
    width: f64,
    dash: &[f64],
) {
    let data: String =
        paths.iter().flat_map(|path| frame.runs(path)).map(|run| path_data(&run, false)).collect();
    if !data.is_empty() {
        svg.tag("path")
            .attr("d", &data)
            .attr("fill", "none")
            .stroke(colour, width)
            .dash(dash, width)
            .close();
    }
}

fn stroke_contours(svg: &mut Svg, frame: &DataArea, contours: &Contours) {
    for &level in &contours.levels {
        let paths = contours.grid.level_lines(level);
        stroke_paths(svg, frame, &paths, contours.colour, contours.width, contours.dash.lengths());
    }
}
