//! Several rules on the same federation: how good the model is for everybody over the rounds, and
//! for whom it is at the end.

use super::{thinned, write as write_figure};
use crate::command::compare::Compared;
use crate::draw::{
    BarSeries, Bars, Colour, Figure, Fill, Guide, Line, Panel, Pattern, Points, Style,
};
use anyhow::Result;
use fedstay::record::{RoundLine, Spread};
use fedstay::verdict::Verdict;
use std::path::{Path, PathBuf};

/// Draws `compare.svg` and `compare.png`.
///
/// # Errors
/// When the folder cannot be written to.
pub fn write(compared: &[Compared], folder: &Path) -> Result<Vec<PathBuf>> {
    write_figure(&figure(compared), folder, "compare")
}

/// The picture.
pub fn figure(compared: &[Compared]) -> Figure {
    let subtitle = match compared.first() {
        Some(first) => format!(
            "{}, {} agents; an agent leaves for good once its loss is at most its ε",
            first.summary.on,
            first.summary.agents.len()
        ),
        None => String::new(),
    };
    let figure = Figure { subtitle, ..Figure::new("The same federation under several rules") };
    figure.with(curves(compared)).with(ends(compared))
}

/// What there is to draw over the rounds: accuracy where there is one, else the mean loss.
fn curve(run: &Compared) -> Vec<(f64, f64)> {
    let accuracy = |line: &RoundLine| {
        let assessment = line.assessment.as_ref()?;
        Spread::of(assessment.accuracy.iter().copied())
            .map(|spread| (f64::from(line.round), spread.mean))
    };
    let mut points: Vec<(f64, f64)> = run.rounds.iter().filter_map(accuracy).collect();
    if points.is_empty() {
        let loss = |line: &RoundLine| Some((f64::from(line.round), line.mean_loss()?));
        return run.rounds.iter().filter_map(loss).collect();
    }
    // The model that is delivered, which a policy may have chosen from the past.
    if let Some(last) = run.summary.accuracy {
        points.push((f64::from(run.summary.rounds), last.mean));
    }
    points
}

fn curves(compared: &[Compared]) -> Panel {
    let accuracy =
        compared.iter().any(|run| run.rounds.iter().any(|line| line.assessment.is_some()));
    let (title, label) = match accuracy {
        true => ("Mean accuracy over all agents, leavers included", "accuracy"),
        false => ("Mean loss of the agents still in", "loss"),
    };
    let labels: Vec<&str> = compared.iter().map(|run| run.label.as_str()).collect();
    let styles = Style::assign(&labels);
    let mut panel = Panel { weight: 1.5, height: Some(360.0), ..Panel::new(title, "round", label) };
    // Policies share averaging's path until they part from it, so averaging is drawn over them.
    let mut order: Vec<(&Compared, &Style)> = compared.iter().zip(&styles).collect();
    order.sort_by_key(|(run, _)| run.summary.policy == "none" && run.summary.behaviour != "never");
    for (run, style) in order {
        let points = thinned(&curve(run));
        let end = points.last().copied();
        panel = panel.with(Line { width: 2.2, ..Line::new(run.label.clone(), points, *style) });
        if let Some(end) = end {
            panel = panel.with(Points::new("", vec![end], style.marker, style.colour));
        }
    }
    if let Some((run, style)) =
        compared.iter().zip(&styles).find(|(run, _)| !run.summary.left.is_empty())
    {
        let mut rounds: Vec<u32> = run.summary.left.iter().map(|left| left.round).collect();
        rounds.dedup();
        for round in rounds.iter().take(30) {
            let guide = Guide::vertical(f64::from(*round), "");
            panel = panel.with(Guide {
                name: format!("an agent leaves {}", run.label),
                colour: style.colour,
                ..guide
            });
        }
    }
    panel
}

fn ends(compared: &[Compared]) -> Panel {
    let accuracy = compared.iter().all(|run| run.summary.accuracy.is_some());
    let spread = |run: &Compared| match run.summary.accuracy {
        Some(spread) if accuracy => (spread.mean, spread.min),
        _ => (run.summary.loss.mean, run.summary.loss.max),
    };
    let label = if accuracy { "accuracy, %" } else { "loss" };
    // Whole percents, two digits of a loss: more would not fit over a bar.
    let shown = |value: f64| match accuracy {
        true => (100.0 * value).round(),
        false => (100.0 * value).round() / 100.0,
    };
    let means = compared.iter().map(|run| shown(spread(run).0)).collect();
    let worsts = compared.iter().map(|run| shown(spread(run).1)).collect();
    let hatched = Fill {
        pattern: Pattern::Hatch,
        ink: Colour::ORANGE.darker(0.2),
        ..Fill::tint(Colour::ORANGE, 0.35)
    };
    let worst =
        BarSeries { fill: hatched, ..BarSeries::new("worst agent", worsts, Colour::ORANGE) };
    Panel {
        weight: 1.25,
        x_categories: compared.iter().map(|run| run.label.replace('+', " +")).collect(),
        height: Some(360.0),
        ..Panel::new("The model delivered at the end", "", label)
    }
    .with(Bars {
        show_values: true,
        ..Bars::new(vec![BarSeries::new("mean over agents", means, Colour::BLUE), worst])
    })
}

/// What the comparison shows, in words.
pub fn sentences(compared: &[Compared]) -> Vec<String> {
    let worst = |run: &Compared| match run.summary.accuracy {
        Some(accuracy) => format!("{:.1}% accuracy for the worst agent", 100.0 * accuracy.min),
        None => format!("a loss of {:.3} for the worst agent", run.summary.loss.max),
    };
    let score = |run: &&Compared| match run.summary.accuracy {
        Some(accuracy) => accuracy.min,
        None => -run.summary.loss.max,
    };
    let harmed: Vec<&Compared> =
        compared.iter().filter(|run| run.summary.verdict == Verdict::Harmful).collect();
    let kept: Vec<&Compared> = compared
        .iter()
        .filter(|run| run.summary.verdict == Verdict::Retained)
        .filter(|run| run.summary.behaviour != "never")
        .collect();
    let mut sentences = Vec::new();
    if let Some(run) = harmed.first() {
        let (left, all) = (run.summary.leavers(), run.summary.agents.len());
        let worst = worst(run);
        sentences
            .push(format!("{}: {left} of {all} agents left, which ends in {worst}.", run.label));
    }
    if let Some(run) = kept.iter().max_by(|a, b| score(a).total_cmp(&score(b))) {
        sentences.push(format!("{}: nobody left, and it ends in {}.", run.label, worst(run)));
    }
    sentences
}
