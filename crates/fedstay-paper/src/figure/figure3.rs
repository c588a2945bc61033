//! Figure 3: what averaging delivers when agents demand less. Average accuracy (a), population
//! accuracy (b) and the spread over the agents at K = 100 (c), over ε; the appendix has them for
//! every q.
//!
//! Drawn from the store of `fedstay sweep experiments/fig3.toml`. Reference: arXiv 2311.16459,
//! Figure 3 and its full versions in the appendix. The paper prints no numbers for it; it says that
//! accuracy falls as ε grows and that the spread grows with heterogeneity.

use super::swept::{Curve, Swept, plan, setting};
use super::training::Asked;
use super::{Drawing, setting as words};
use anyhow::Result;
use fedstay_draw::plot::{Colour, Dash, Figure, Marker, Panel, Style};
use fedstay_draw::words::percent;
use fedstay_sim::data::Cifar10;
use fedstay_sim::sweep::{Frame, Plan, usual_store};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The sweep.
pub(super) const TEXT: &str = include_str!("../../../../experiments/fig3.toml");

/// The small versions, on the paper's data and on those that every program has.
const QUICK: (&str, &str) =
    ("fig3-quick.toml", include_str!("../../../../experiments/fig3-quick.toml"));
const DIGITS: (&str, &str) =
    ("fig3-digits.toml", include_str!("../../../../experiments/fig3-digits.toml"));

const Q: &str = "partition.q";
const K: &str = "local.steps";
const SPREAD: &str = "accuracy.spread";
const HEIGHT: f64 = 250.0;

/// The result of a run that is drawn.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Average,
    Population,
    Spread,
}

impl Part {
    fn label(self) -> &'static str {
        match self {
            Self::Average => "average accuracy, %",
            Self::Population => "population accuracy, %",
            Self::Spread => "accuracy of an agent, %",
        }
    }

    fn result(self) -> &'static str {
        match self {
            Self::Population => "population.accuracy",
            _ => "accuracy.mean",
        }
    }
}

/// The three panels of the paper's body.
pub(super) fn make(asked: &Asked) -> Result<Drawing> {
    let swept = open(asked)?;
    let q = typical(&swept, Q, 0.9);
    let steps = largest(&swept, K);
    let panels = [
        ("(a) average accuracy", Part::Average),
        ("(b) population accuracy", Part::Population),
        ("(c) worst to best agent", Part::Spread),
    ];
    let mut figure = Figure {
        subtitle: format!("Averaging, q = {q} as described; (c): K = {steps}."),
        caption: caption(&swept, asked),
        ..Figure::new(Falls::of(&swept.frame, Part::Average.result()).title())
    };
    let (mut numbers, mut top) = (Vec::new(), 0.0);
    for (title, part) in panels {
        let (panel, curves, highest) = panel(title, &swept, &q, part);
        top = f64::max(top, highest);
        figure = figure.with(panel);
        numbers.push(json!({ "panel": title, "q": q, "curves": curves }));
    }
    one_scale(&mut figure, top);
    drawing("figure-3", figure, &swept, asked, numbers)
}

/// Average accuracy for every q.
pub(super) fn average(asked: &Asked) -> Result<Drawing> {
    full(asked, "figure-10", Part::Average)
}

/// Population accuracy for every q.
pub(super) fn population(asked: &Asked) -> Result<Drawing> {
    full(asked, "figure-11", Part::Population)
}

/// The spread over the agents for every q.
pub(super) fn spread(asked: &Asked) -> Result<Drawing> {
    full(asked, "figure-12", Part::Spread)
}

fn open(asked: &Asked) -> Result<Swept> {
    let (name, text) = source(asked);
    Swept::open(asked, name, text)
}

/// The sweep behind the figure: its file in `experiments/`, and the text of it.
fn source(asked: &Asked) -> (&'static str, &'static str) {
    match asked.quick {
        false => ("fig3.toml", TEXT),
        true if on_digits(asked) => DIGITS,
        true => QUICK,
    }
}

/// Whether a small version is made of digits: when they are asked for, or CIFAR-10 is not there and not asked for.
fn on_digits(asked: &Asked) -> bool {
    let told = |wanted: &str| asked.set.iter().rev().find(|(key, _)| key == wanted);
    match told("data.kind") {
        Some((_, kind)) => kind.trim_matches(['"', '\'']) == "digits",
        None => told("data.path").is_none() && !Cifar10::default().is_there(),
    }
}

/// What has to be computed for a small version, and where it is kept unless somebody says so.
pub(super) fn quick(asked: &Asked) -> Result<(Plan, PathBuf)> {
    let (name, text) = source(asked);
    Ok((plan(asked, text)?, usual_store(Path::new(name))))
}

/// What is small about a small version, in the words of a caption.
fn smallness(asked: &Asked) -> String {
    let data = match on_digits(asked) {
        true if Cifar10::default().is_there() => " The built-in digits instead of CIFAR-10.",
        true => {
            " The built-in digits instead of CIFAR-10, which is not on this machine (`fedstay data \
             fetch cifar10`)."
        }
        false => "",
    };
    format!(
        " A small version, for a quick look: the whole one has CIFAR-10, 2000 images per agent, K up \
         to 100, four q, 300 rounds and ten seeds.{data}"
    )
}

/// What the appendix's version shows.
fn full_title(swept: &Swept, part: Part) -> String {
    let falls = match part {
        // Only the largest K is drawn.
        Part::Spread => Falls::of(&swept.frame.with(&setting(K, &largest(swept, K))), SPREAD),
        _ => Falls::of(&swept.frame, part.result()),
    };
    let (Some((small, large)), all @ 1..) = (&falls.ends, falls.cells.len()) else {
        return format!("Averaging for every q: {}", part.label());
    };
    let ends = format!("from ε = {small} to {large}");
    match part {
        Part::Average => {
            format!("Average accuracy falls in {} of {all} cells {ends}", falls.fell())
        }
        Part::Population => {
            format!("Population accuracy falls in {} of {all} cells {ends}", falls.fell())
        }
        Part::Spread => {
            let apart = falls.cells.iter().filter(|(change, _)| *change > 0.0).count();
            format!("The worst and the best agent move apart in {apart} of {all} cells {ends}")
        }
    }
}

/// The appendix's version: one panel for each q, all on one scale.
fn full(asked: &Asked, name: &str, part: Part) -> Result<Drawing> {
    let swept = open(asked)?;
    let steps = largest(&swept, K);
    let subtitle = match part {
        Part::Spread => format!("Averaging with K = {steps} local steps, one panel for each q."),
        _ => "Averaging, one panel for each q, one curve for each K.".to_owned(),
    };
    let mut figure = Figure {
        subtitle,
        caption: caption(&swept, asked),
        columns: 2,
        ..Figure::new(full_title(&swept, part))
    };
    let mut numbers = Vec::new();
    let mut top = 0.0;
    for q in swept.values(Q) {
        let (panel, curves, highest) = panel(&format!("q = {q}"), &swept, &q, part);
        top = f64::max(top, highest);
        figure = figure.with(panel);
        numbers.push(json!({ "q": q, "curves": curves }));
    }
    one_scale(&mut figure, top);
    drawing(name, figure, &swept, asked, numbers)
}

/// A scale on which all panels can be compared: from nothing to a round number above the highest value, with room
/// for a marker at either end.
fn one_scale(figure: &mut Figure, top: f64) {
    let high = ((top / 10.0).ceil() * 10.0).clamp(10.0, 100.0);
    let air = 0.03 * high;
    figure.panels.iter_mut().for_each(|panel| panel.y_range = Some((-air, high + air)));
}

/// How far the runs of the `index`-th of `count` curves are drawn beside their value of ε.
fn aside(swept: &Swept, index: usize, count: usize) -> f64 {
    let (low, high) = swept.range("epsilon").unwrap_or_default();
    (index as f64 - (count - 1) as f64 / 2.0) * 0.015 * (high - low)
}

/// A panel, the numbers behind it, and the highest value that it shows.
fn panel(title: &str, swept: &Swept, q: &Value, part: Part) -> (Panel, Vec<Value>, f64) {
    let mut panel = Panel {
        height: Some(HEIGHT),
        x_range: swept.range("epsilon"),
        ..Panel::new(title, "target loss ε", part.label())
    };
    let frame = swept.frame.with(&setting(Q, q));
    let (mut numbers, mut top) = (Vec::new(), 0.0);
    if part == Part::Spread {
        let frame = frame.with(&setting(K, &largest(swept, K)));
        // No look of a K: a marker means one thing in all panels.
        let looks = [
            ("best agent", "accuracy.max", Colour::GREY, Dash::Dashed, Marker::Star),
            ("mean over agents", "accuracy.mean", Colour::INK, Dash::Solid, Marker::Ring),
            ("worst agent", "accuracy.min", Colour::GREY, Dash::DashDot, Marker::TriangleDown),
        ];
        for (index, (name, result, colour, dash, marker)) in looks.into_iter().enumerate() {
            let aside = aside(swept, index, looks.len());
            let curve = Curve::new(&frame, "epsilon", result);
            top = f64::max(top, curve.top());
            panel = curve.draw(panel, name, Style { colour, dash, marker }, aside);
            numbers.push(json!({ "name": name, "points": curve.numbers() }));
        }
        return (panel, numbers, top);
    }
    let steps = swept.values(K);
    for (index, k) in steps.iter().enumerate() {
        let aside = aside(swept, index, steps.len());
        let curve = Curve::new(&frame.with(&setting(K, k)), "epsilon", part.result());
        top = f64::max(top, curve.top());
        panel = curve.draw(panel, &format!("K = {k}"), Style::value(index), aside);
        numbers.push(json!({ "K": k, "points": curve.numbers() }));
    }
    (panel, numbers, top)
}

/// The value of a setting nearest to what the paper's body shows.
fn typical(swept: &Swept, key: &str, wanted: f64) -> Value {
    let off = |value: &Value| (value.as_f64().unwrap_or(f64::INFINITY) - wanted).abs();
    let values = swept.values(key);
    values.into_iter().min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(Value::Null)
}

fn largest(swept: &Swept, key: &str) -> Value {
    swept.values(key).pop().unwrap_or(Value::Null)
}

fn caption(swept: &Swept, asked: &Asked) -> String {
    let dealt = "one class per device, q as described";
    let training = swept.experiment.training();
    let local = training.map(|training| words::steps(&training.local)).unwrap_or_default();
    let sizes = |frame: &Frame| {
        let sizes = frame.values("step_size");
        let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        sizes.join(" or ")
    };
    let each = |k: &Value| format!("{} for K = {k}", sizes(&swept.frame.with(&setting(K, k))));
    // Said once where all have the same.
    let etas = match swept.frame.values("step_size").len() {
        1 => sizes(&swept.frame),
        _ => fedstay_draw::words::list(&swept.frame.values(K).iter().map(each).collect::<Vec<_>>()),
    };
    let small = if asked.quick { smallness(asked) } else { String::new() };
    format!(
        "{} K local {local}, η = {etas}. {} {}{small}",
        words::federation_dealt(&swept.experiment, dealt),
        words::decision(&swept.experiment),
        swept.about(),
    )
}

fn drawing(
    name: &str,
    figure: Figure,
    swept: &Swept,
    asked: &Asked,
    panels: Vec<Value>,
) -> Result<Drawing> {
    let mut notes = notes(swept);
    // Beside the whole one, which took hours, not instead of it.
    let name = if asked.quick { format!("{name}-quick") } else { name.to_owned() };
    if asked.quick {
        notes.push(smallness(asked).trim().to_owned());
    }
    Ok(Drawing {
        name,
        figure,
        notes,
        numbers: json!({
            "experiment": swept.experiment,
            "runs": swept.frame.records.len(),
            "planned": swept.planned,
            "point_columns": ["epsilon", "mean", "half of the 95% interval", "runs"],
            "panels": panels,
        }),
    })
}

/// The change of a result, such as the average accuracy, from the smallest to the largest ε, paired by seed.
struct Falls {
    /// Those two, if there are any.
    ends: Option<(Value, Value)>,
    /// Every cell's change, and the same in words; the deepest fall first.
    cells: Vec<(f64, String)>,
}

impl Falls {
    fn of(frame: &Frame, result: &str) -> Self {
        let epsilon = frame.values("epsilon");
        let Some((small, large)) = epsilon.first().zip(epsilon.last()) else {
            return Self { ends: None, cells: Vec::new() };
        };
        let mut cells: Vec<(f64, String)> = Vec::new();
        for (cell, part) in frame.by(&[Q.to_owned(), K.to_owned()]) {
            let at = |value: &Value| part.with(&setting("epsilon", value));
            let Some(difference) = at(large).difference(&at(small), result) else {
                continue;
            };
            let (low, high) = difference.mean.interval();
            let name = format!("q = {}, K = {}", cell[0].1, cell[1].1);
            let points = |share: f64| format!("{:.1}", 100.0 * share);
            let interval = match difference.mean.n {
                1 => String::new(),
                _ => format!(" (95%: {} to {})", points(low), points(high)),
            };
            let text = format!("{} points{interval} for {name}", points(difference.mean.mean));
            cells.push((difference.mean.mean, text));
        }
        cells.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { ends: Some((small.clone(), large.clone())), cells }
    }

    fn fell(&self) -> usize {
        self.cells.iter().filter(|(fall, _)| *fall < 0.0).count()
    }

    /// What the sweep shows, for the figure's title.
    fn title(&self) -> String {
        match (self.fell(), self.cells.len()) {
            (_, 0) => "What averaging delivers at several target losses".to_owned(),
            (fell, all) if fell == all => {
                "The sooner agents are content, the worse the model averaging leaves behind"
                    .to_owned()
            }
            (0, _) => "Averaging's model is no worse where agents are content sooner".to_owned(),
            (fell, all) => {
                format!(
                    "Where agents are content sooner, averaging's model is worse in {fell} of {all} cells"
                )
            }
        }
    }
}

/// Notes on the change from the smallest to the largest ε, seed by seed, and on the spread over the
/// agents.
fn notes(swept: &Swept) -> Vec<String> {
    let frame = &swept.frame;
    let falls = Falls::of(frame, Part::Average.result());
    let Some((small, large)) = &falls.ends else { return Vec::new() };
    let (fell, all) = (falls.fell(), falls.cells.len());
    let ends = match (falls.cells.first(), falls.cells.last()) {
        (Some(first), Some(last)) if all > 1 => {
            format!(": most, {}; least, {}", first.1, last.1)
        }
        (Some(first), _) => format!(": {}", first.1),
        _ => String::new(),
    };
    let steps = largest(swept, K);
    let spread = |q: &Value| {
        let cell = frame.with(&setting(Q, q)).with(&setting(K, &steps));
        let mean = cell.with(&setting("epsilon", large)).mean(SPREAD)?.mean;
        Some(format!("{} at q = {q}", percent(mean)))
    };
    let spreads: Vec<String> = frame.values(Q).iter().filter_map(spread).collect();
    vec![
        format!(
            "From ε = {small} to ε = {large} the average accuracy falls in {fell} of {all} cells, paired by \
             seed{ends}."
        ),
        format!(
            "Between the best and the worst agent, K = {steps}, ε = {large}: {}.",
            fedstay_draw::words::list(&spreads)
        ),
        swept.about(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_says_in_how_many_cells_the_model_gets_worse() {
        let title = |falls: &[f64]| {
            let cells = falls.iter().map(|fall| (*fall, String::new())).collect();
            Falls { ends: None, cells }.title()
        };
        assert!(title(&[-0.2, -0.1]).starts_with("The sooner agents are content, the worse"));
        assert!(title(&[-0.2, 0.1]).ends_with("worse in 1 of 2 cells"));
        assert!(title(&[0.0, 0.1]).contains("no worse"));
        assert!(!title(&[]).contains("worse"));
    }
}
