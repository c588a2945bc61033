//! Figure 1: red and blue, two devices whose classifiers need each other's data.
//!
//! (a) and (b) show each device's points with its own max-margin separator. With `z = y·x` (a point
//! times its label) a separator through the origin with normal `w` has the margin
//! `min ⟨w, z⟩/‖w‖`, and the best normal is the point of least length in the convex hull of the
//! `z`: in the plane it lies on a segment between two of them, so trying every pair is exact.
//!
//! (c) shows both devices with the separators three runs end with: averaging when nobody ever
//! leaves, averaging when red leaves because it is content, and ADA-GD.
//! Reference: arXiv 2311.16459, Figure 1.

use super::Drawing;
use super::trace::{Setting, Trace, trace};
use fedstay::Seed;
use fedstay::behaviour::{Behaviour, Never};
use fedstay::problem::{Device, Oracle, Problem, RedBlue};
use fedstay_draw::plot::{Colour, Dash, Figure, Line, Marker, Panel, Point, Style};
use fedstay_draw::words::whole_percent;
use serde_json::json;

/// How far the panels reach from the origin; the separators reach almost as far.
const REACH: f64 = 1.22;
/// From the middle of a mark to its end.
const ARM: f64 = 0.05;
/// The radius of the ring around a point that is classified wrongly.
const RING: f64 = 0.085;

/// The devices' styles. They are named after their colours, so these are not the palette's; every
/// reader can tell them apart because one is much darker and the other warmer.
const RED: Style =
    Style { colour: Colour(0xc4, 0x16, 0x2a), dash: Dash::Solid, marker: Marker::Disc };
const BLUE: Style =
    Style { colour: Colour(0x1d, 0x3f, 0xb0), dash: Dash::Solid, marker: Marker::Disc };

/// The normal of the max-margin separator through the origin.
fn max_margin(device: &Device) -> Point {
    let z: Vec<Point> =
        device.points.iter().zip(&device.labels).map(|(x, y)| (y * x[0], y * x[1])).collect();
    let margin = |w: Point| {
        z.iter().map(|z| w.0 * z.0 + w.1 * z.1).fold(f64::INFINITY, f64::min) / w.0.hypot(w.1)
    };
    let nearest = |(a, b): (&Point, &Point)| {
        let d = (b.0 - a.0, b.1 - a.1);
        let square = d.0 * d.0 + d.1 * d.1;
        let t = if square > 0.0 { -(a.0 * d.0 + a.1 * d.1) / square } else { 0.0 };
        let t = t.clamp(0.0, 1.0);
        (a.0 + t * d.0, a.1 + t * d.1)
    };
    let pairs = z.iter().flat_map(|a| z.iter().map(move |b| (a, b)));
    pairs
        .map(nearest)
        .filter(|w| w.0.hypot(w.1) > 1e-12)
        .max_by(|a, b| margin(*a).total_cmp(&margin(*b)))
        .unwrap_or((f64::NAN, f64::NAN))
}

/// The share of a device's points that a separator gets wrong.
fn error(device: &Device, normal: Point) -> f64 {
    1.0 - device.accuracy(&[normal.0, normal.1]).unwrap_or(f64::NAN)
}

/// A device's points as plus and minus signs, on a white rim that sets them off from the lines.
fn signs(device: &Device, style: Style) -> [Line; 2] {
    const GAP: Point = (f64::NAN, f64::NAN);
    let mut strokes = Vec::new();
    for ([x, y], label) in device.points.iter().zip(&device.labels) {
        strokes.extend([(x - ARM, *y), (x + ARM, *y), GAP]);
        if *label > 0.0 {
            strokes.extend([(*x, y - ARM), (*x, y + ARM), GAP]);
        }
    }
    let white = Style { colour: Colour::WHITE, ..style };
    [
        Line { width: 6.0, ..Line::new("", strokes.clone(), white) },
        Line { width: 2.6, ..Line::new("", strokes, style) },
    ]
}

/// The points with `⟨w, x⟩ = 0`, as far as the panel shows them.
fn separator(name: &str, normal: Point, style: Style) -> Line {
    let length = normal.0.hypot(normal.1);
    let end = (-normal.1 / length * 0.97 * REACH, normal.0 / length * 0.97 * REACH);
    Line { width: 2.6, ..Line::new(name, vec![(-end.0, -end.1), end], style) }
}

fn circle((x, y): Point, radius: f64, colour: Colour, width: f64) -> Line {
    let turn = |step: u32| f64::from(step) / 48.0 * std::f64::consts::TAU;
    let points =
        (0..=48).map(|step| (x + radius * turn(step).cos(), y + radius * turn(step).sin()));
    let style = Style { colour, dash: Dash::Solid, marker: Marker::Ring };
    Line { width, ..Line::new("", points.collect(), style) }
}

/// Axes with the unit disc, on which all points lie.
fn panel(title: &str) -> Panel {
    Panel {
        equal_aspect: true,
        grid: false,
        x_range: Some((-REACH, REACH)),
        y_range: Some((-REACH, REACH)),
        ..Panel::new(title, "x₁", "x₂")
    }
    .with(circle((0.0, 0.0), 1.0, Colour(0xcc, 0xcc, 0xcc), 1.2))
}

fn with_signs(mut panel: Panel, device: &Device, style: Style) -> Panel {
    for line in signs(device, style) {
        panel = panel.with(line);
    }
    panel
}

/// The runs of panel (c).
struct Runs {
    together: Trace,
    averaging: Trace,
    ada_gd: Trace,
}

fn runs() -> anyhow::Result<Runs> {
    let problem = Problem::RedBlue(RedBlue::default());
    let instance = problem.build(Seed(0))?;
    let run = |setting| trace(problem.name(), &instance, setting);
    let averaging = Setting::averaging(&instance);
    let never = Behaviour::Never(Never {});
    Ok(Runs {
        together: run(Setting { behaviour: never, rounds: 2_000, ..averaging.clone() })?,
        averaging: run(averaging)?,
        ada_gd: run(Setting::ada_gd(&instance))?,
    })
}

/// An agent's share of wrong predictions at the end of a run, and the mean over the agents.
fn errors(run: &Trace) -> ([f64; 2], f64) {
    let of =
        |agent: usize| 1.0 - run.summary.agents[agent].score.of("accuracy").unwrap_or(f64::NAN);
    ([of(0), of(1)], (of(0) + of(1)) / 2.0)
}

fn combined(devices: &[Device; 2], runs: &Runs) -> Panel {
    let [red, blue] = devices;
    let all = [
        ("never", "nobody leaves", &runs.together),
        ("FedAvg", "FedAvg, red left", &runs.averaging),
        ("ADA-GD", "ADA-GD", &runs.ada_gd),
    ];
    let mut panel = panel("(c) both, after three runs");
    for (rule, name, run) in all {
        let ([on_red, _], mean) = errors(run);
        let name = if mean == 0.0 {
            format!("{name}: no errors")
        } else {
            format!(
                "{name}: {} wrong on red, {} on average",
                whole_percent(on_red),
                whole_percent(mean)
            )
        };
        panel = panel.with(separator(&name, run.end(), Style::of(rule)));
    }
    panel = with_signs(panel, red, RED);
    panel = with_signs(panel, blue, BLUE);
    let w = runs.averaging.end();
    for (x, y) in red.points.iter().zip(&red.labels).chain(blue.points.iter().zip(&blue.labels)) {
        if y * (w.0 * x[0] + w.1 * x[1]) <= 0.0 {
            panel = panel.with(circle((x[0], x[1]), RING, Colour::INK, 1.4));
        }
    }
    panel
}

/// What red's departure did, where together they have a separator that is right.
fn title(on_red: f64, together: f64) -> String {
    match (on_red > together, together == 0.0) {
        (false, _) => "Red leaves, and is served no worse".to_owned(),
        (true, true) => format!(
            "Together all is right; once red has left, {} of its points are wrong",
            whole_percent(on_red)
        ),
        (true, false) => format!(
            "Together {} is wrong; once red has left, {} of its points are",
            whole_percent(together),
            whole_percent(on_red)
        ),
    }
}

/// Makes the figure.
pub(super) fn make() -> anyhow::Result<Drawing> {
    let devices = RedBlue::devices();
    let runs = runs()?;
    let own = [max_margin(&devices[0]), max_margin(&devices[1])];
    let alone = |index: usize, title: &str, style: Style| {
        let (name, other) = [("red", "blue"), ("blue", "red")][index];
        let wrong = whole_percent(error(&devices[1 - index], own[index]));
        let name = format!("{name}'s max-margin separator: {wrong} wrong on {other}");
        let line = separator(&name, own[index], Style { dash: Dash::Long, ..style });
        with_signs(panel(title).with(line), &devices[index], style)
    };
    let ([on_red, on_blue], mean) = errors(&runs.averaging);
    let red_leaves = runs.averaging.departure(0)?;
    let figure = Figure {
        subtitle: "Each + and − is one of a device's ten points, with its label.".into(),
        caption: format!(
            "Red leaves averaging in round {}, when it is content. Blue's data then turn the separator, and \
             red's ringed points end on the wrong side.",
            red_leaves.round
        ),
        ..Figure::new(title(on_red, errors(&runs.together).1))
    }
    .with(alone(0, "(a) red", RED))
    .with(alone(1, "(b) blue", BLUE))
    .with(combined(&devices, &runs));
    let notes = vec![
        format!(
            "FedAvg: red leaves in round {}, and the separator ends {} wrong on red and {} on blue, {} on average.",
            red_leaves.round,
            whole_percent(on_red),
            whole_percent(on_blue),
            whole_percent(mean)
        ),
        format!(
            "When nobody ever leaves, {} of the points are wrong; under ADA-GD, which loses nobody, {}.",
            whole_percent(errors(&runs.together).1),
            whole_percent(errors(&runs.ada_gd).1)
        ),
        format!(
            "Red's own max-margin separator is {} wrong on blue, blue's is {} wrong on red.",
            whole_percent(error(&devices[1], own[0])),
            whole_percent(error(&devices[0], own[1]))
        ),
    ];
    let separator = |index: usize| {
        json!({
            "normal": [own[index].0, own[index].1],
            "error_on_red": error(&devices[0], own[index]),
            "error_on_blue": error(&devices[1], own[index]),
        })
    };
    let numbers = json!({
        "agents": { "1": "red", "2": "blue" },
        "max_margin": { "red": separator(0), "blue": separator(1) },
        "never": runs.together.numbers(),
        "fedavg": runs.averaging.numbers(),
        "ada-gd": runs.ada_gd.numbers(),
    });
    Ok(Drawing { name: "figure-1".into(), figure, notes, numbers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::verdict::Verdict;

    #[test]
    fn the_title_says_what_reds_departure_did() {
        assert_eq!(title(0.1, 0.1), "Red leaves, and is served no worse");
        let partly = title(0.2, 0.1);
        assert_eq!(partly, "Together 10% is wrong; once red has left, 20% of its points are");
    }

    #[test]
    fn the_numbers_are_the_papers() {
        let runs = runs().unwrap();
        let ([red, blue], mean) = errors(&runs.averaging);
        assert!((red - 0.2).abs() < 1e-12 && blue == 0.0 && (mean - 0.1).abs() < 1e-12);
        assert_eq!(runs.averaging.summary.verdict, Verdict::Harmful);
        assert_eq!(runs.averaging.left[0].agent.0, 0);
        assert_eq!(errors(&runs.together), ([0.0, 0.0], 0.0));
        assert_eq!(errors(&runs.ada_gd), ([0.0, 0.0], 0.0));
        assert!(runs.ada_gd.summary.verdict.kept_everybody());
    }

    #[test]
    fn no_direction_has_a_larger_margin() {
        for device in RedBlue::devices() {
            let margin = |w: Point| {
                let margins = device.points.iter().zip(&device.labels);
                margins.map(|(x, y)| y * (w.0 * x[0] + w.1 * x[1])).fold(f64::INFINITY, f64::min)
                    / w.0.hypot(w.1)
            };
            let best = margin(max_margin(&device));
            assert!(best > 0.0);
            for step in 0..3600 {
                let angle = f64::from(step) / 3600.0 * std::f64::consts::TAU;
                assert!(margin((angle.cos(), angle.sin())) <= best + 1e-12);
            }
        }
    }
}
