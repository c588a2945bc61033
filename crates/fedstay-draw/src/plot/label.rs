//! Texts inside a panel: notes, names of guides, levels of contours.

use super::contour::Path;
use super::field::Contours;
use super::frame::{DataArea, LabelRoom, Rect};
use super::layer::{Along, Guide, Note};
use super::mark;
use super::palette::Colour;
use super::scale::short;
use super::svg::{Anchor, Label, Svg};
use super::text;

/// The size of texts inside a panel.
const NOTE_SIZE: f64 = 13.0;
const NOTE_LEADING: f64 = 1.25 * NOTE_SIZE;

/// Writes a note where it wants to be, or on the mirrored side if there it hides less.
pub(super) fn note(svg: &mut Svg, frame: &DataArea, note: &Note, places: &mut LabelRoom) {
    let Some(at) = frame.point(note.at) else {
        return;
    };
    if !note.offset.0.is_finite() || !note.offset.1.is_finite() {
        return;
    }
    let lines: Vec<&str> = note.text.lines().collect();
    let width = lines.iter().map(|l| text::width(l, NOTE_SIZE, note.bold)).fold(0.0, f64::max);
    let height = lines.len() as f64 * NOTE_LEADING;
    // The text grows away from the place: to the right of it if it stands to the right, and so on.
    let share = |offset: f64| {
        if offset.abs() < 8.0 {
            0.5
        } else if offset > 0.0 {
            0.0
        } else {
            1.0
        }
    };
    let inside = frame.area.grown(-5.0);
    let (wx, wy) = (note.offset.0, -note.offset.1);
    let wish = |(dx, dy): (f64, f64)| Rect {
        x: at.0 + dx - share(dx) * width,
        y: at.1 + dy - share(dy) * height,
        width,
        height,
    };
    // Sides where the frame would push the text far back onto its place are tried last.
    let strays = |offset: &(f64, f64)| {
        let (wished, pushed) = (wish(*offset), wish(*offset).pushed_into(&inside));
        (wished.x - pushed.x).hypot(wished.y - pushed.y) > 15.0
    };
    let mut offsets = [(wx, wy), (-wx, wy), (wx, -wy), (-wx, -wy)];
    offsets.sort_by_key(strays);
    let rects = offsets.map(|offset| wish(offset).pushed_into(&inside));
    let Some((chosen, _)) = places.take(&rects, &frame.area) else {
        return;
    };
    let (rect, dx) = (rects[chosen], offsets[chosen].0);
    places.add_text(rect);
    if note.leader {
        let from =
            (at.0.clamp(rect.x - 3.0, rect.right() + 3.0), at.1.clamp(rect.y, rect.bottom()));
        let direction = (at.0 - from.0, at.1 - from.1);
        let length = direction.0.hypot(direction.1);
        // Stops short, so that the marker it points at stays visible.
        let stop = 9.0;
        if length > stop + 6.0 {
            let to = |share: f64| (from.0 + direction.0 * share, from.1 + direction.1 * share);
            let tip = to(1.0 - stop / length);
            svg.line(from, to(1.0 - (stop + 5.0) / length), Colour::INK, 1.0, &[]);
            mark::arrow_head(svg, tip, direction, 7.0, Colour::INK);
        }
    }
    // A pale plate, because a white rim alone does not carry text over dots and hatches.
    let plate = rect.grown(2.0);
    svg.tag("rect")
        .num("x", plate.x)
        .num("y", plate.y)
        .num("width", plate.width)
        .num("height", plate.height)
        .num("rx", 3.0)
        .attr("fill", &Colour::WHITE.hex())
        .num("fill-opacity", 0.75)
        .close();
    let (anchor, x) = match dx {
        dx if dx.abs() < 8.0 => (Anchor::Middle, rect.x + rect.width / 2.0),
        dx if dx > 0.0 => (Anchor::Start, rect.x),
        _ => (Anchor::End, rect.right()),
    };
    for (row, line) in lines.iter().enumerate() {
        let baseline = rect.y + (row as f64 + 0.78) * NOTE_LEADING;
        let label = Label::new(x, baseline, line, NOTE_SIZE);
        svg.text(&Label { anchor, colour: note.colour, bold: note.bold, halo: true, ..label });
    }
}

/// Writes a guide's label beside it.
pub(super) fn guide(svg: &mut Svg, frame: &DataArea, guide: &Guide, places: &mut LabelRoom) {
    let area = frame.area;
    let (width, height) = (text::width(&guide.label, NOTE_SIZE, false), NOTE_LEADING);
    if guide.label.is_empty() {
        return;
    }
    let at = |x: f64, y: f64| Rect { x, y, width, height };
    // Beside the line, as near to its end as other texts and lines allow.
    let candidates: Vec<Rect> = match guide.along {
        Along::Vertical(x) => {
            let Some(x) = frame.px(x).filter(|x| (area.x..=area.right()).contains(x)) else {
                return;
            };
            let rows =
                (0..(area.height / height) as usize).map(|row| area.y + 3.0 + row as f64 * height);
            rows.flat_map(|y| [at(x + 5.0, y), at(x - 5.0 - width, y)]).collect()
        }
        Along::Horizontal(y) => {
            let Some(y) = frame.py(y).filter(|y| (area.y..=area.bottom()).contains(y)) else {
                return;
            };
            let slots =
                (0..8).map(|slot| area.right() - 4.0 - width - f64::from(slot) * area.width / 8.0);
            slots.flat_map(|x| [at(x, y - height - 2.0), at(x, y + 2.0)]).collect()
        }
    };
    if let Some((index, _)) = places.take(&candidates, &area) {
        let rect = candidates[index];
        let label = Label::new(rect.x, rect.y + 0.8 * height, &guide.label, NOTE_SIZE);
        svg.text(&Label { colour: guide.colour.darker(0.2), halo: true, ..label });
    }
}

/// Writes each level on its longest line, turned along it, at the first free of a few spots.
pub(super) fn contours(
    svg: &mut Svg,
    frame: &DataArea,
    contours: &Contours,
    places: &mut LabelRoom,
) {
    if !contours.labels {
        return;
    }
    let size = NOTE_SIZE - 2.0;
    for &level in &contours.levels {
        let lines = contours.grid.level_lines(level);
        let runs = lines.iter().flat_map(|line| frame.runs(line));
        let inside =
            runs.map(|run| run.into_iter().filter(|p| frame.area.contains(*p)).collect::<Path>());
        let Some(line) = inside.max_by_key(Vec::len).filter(|line| line.len() > 8) else {
            continue;
        };
        let label = short(level);
        let width = text::width(&label, size, false);
        let spots: Vec<(f64, f64, f64)> = [50, 35, 65, 22, 78, 12, 88]
            .into_iter()
            .filter_map(|percent| {
                let middle = line.len() * percent / 100;
                let (a, b) = (
                    line.get(middle.saturating_sub(3))?,
                    line.get((middle + 3).min(line.len() - 1))?,
                );
                let angle = (b.1 - a.1).atan2(b.0 - a.0).to_degrees();
                // Read from left to right, whichever way the line happens to run.
                let angle = if angle > 90.0 {
                    angle - 180.0
                } else if angle <= -90.0 {
                    angle + 180.0
                } else {
                    angle
                };
                line.get(middle).map(|p| (p.0, p.1, angle))
            })
            .collect();
        let boxes: Vec<Rect> = spots
            .iter()
            .map(|&(x, y, angle)| {
                let (sin, cos) = angle.to_radians().sin_cos();
                let (w, h) =
                    (width * cos.abs() + size * sin.abs(), width * sin.abs() + size * cos.abs());
                Rect { x: x - w / 2.0, y: y - h / 2.0, width: w, height: h }.grown(3.0)
            })
            .collect();
        if let Some((index, true)) = places.take(&boxes, &frame.area) {
            let (x, y, rotate) = spots[index];
            let (sin, cos) = rotate.to_radians().sin_cos();
            // The baseline lies below the middle of the digits, along the turned vertical.
            let drop = 0.36 * size;
            let label = Label::new(x - drop * sin, y + drop * cos, &label, size);
            svg.text(&Label {
                anchor: Anchor::Middle,
                colour: contours.colour.darker(0.35),
                rotate,
                halo: true,
                ..label
            });
        }
    }
}
