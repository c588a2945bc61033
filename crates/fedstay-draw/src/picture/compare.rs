//! Several rules on the same federation: how good the model is for everybody over the rounds, and
//! how good the delivered one is for the worst agent.

use super::delivered::with_end;
use super::{PictureError, thinned, write_figure};
use crate::plot::{BarSeries, Bars, Colour, Figure, Fill, Guide, Line, Panel, Pattern, Style};
use fedstay::record::{RoundLine, Spread, Summary};
use fedstay::verdict::Verdict;
use fedstay_sim::run::Recorded;
use std::path::{Path, PathBuf};

/// One of several runs.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The rule as the user named it.
    pub label: String,
    /// Its rounds.
    pub recorded: Recorded,
    /// What came of it.
    pub summary: Summary,
}

/// Draws `compare.svg` and `compare.png`.
///
/// # Errors
/// When the folder cannot be written to.
pub fn write(compared: &[Compared], folder: &Path) -> Result<Vec<PathBuf>, PictureError> {
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

/// What is drawn over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Curve {
    /// The mean accuracy over all agents.
    Accuracy,
    /// The mean loss over all agents.
    Loss,
    /// The mean loss over the agents that reported, where nobody measures the others.
    Reported,
}

impl Curve {
    /// The best measure that all runs have: curves of different things are not compared.
    fn of(compared: &[Compared]) -> Self {
        let each = |has: fn(&RoundLine) -> bool| {
            compared.iter().all(|run| run.recorded.rounds.iter().any(has))
        };
        let measured = |line: &RoundLine| line.assessment.is_some();
        let accuracy =
            |line: &RoundLine| line.assessment.as_ref().is_some_and(|all| !all.accuracy.is_empty());
        match () {
            () if each(accuracy) => Self::Accuracy,
            () if each(measured) => Self::Loss,
            () => Self::Reported,
        }
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Accuracy => ("Mean accuracy over all agents, leavers included", "accuracy"),
            Self::Loss => ("Mean loss over all agents, leavers included", "loss"),
            Self::Reported => ("Mean loss over those who reported", "loss"),
        }
    }

    fn value(self, line: &RoundLine) -> Option<f64> {
        let all = line.assessment.as_ref();
        match self {
            Self::Accuracy => Some(Spread::of(all?.accuracy.iter().copied())?.mean),
            Self::Loss => Some(Spread::of(all?.loss.iter().copied())?.mean),
            // A mean of lower bounds would look like a loss without being one.
            Self::Reported => line.mean_loss().filter(|_| line.at_least.is_empty()),
        }
    }

    /// The value for the delivered model, which a policy may have chosen from the past.
    fn end(self, summary: &Summary) -> Option<f64> {
        match self {
            Self::Accuracy => Some(summary.accuracy?.mean),
            Self::Loss | Self::Reported => Some(summary.loss.mean),
        }
    }
}

fn curves(compared: &[Compared]) -> Panel {
    let curve = Curve::of(compared);
    let (title, label) = curve.words();
    let labels: Vec<&str> = compared.iter().map(|run| run.label.as_str()).collect();
    let styles = Style::assign(&labels);
    let mut panel = Panel { weight: 1.5, height: Some(360.0), ..Panel::new(title, "round", label) };
    // Policies share averaging's path until they depart from it, so averaging is drawn over them.
    let mut order: Vec<(&Compared, &Style)> = compared.iter().zip(&styles).collect();
    order.sort_by_key(|(run, _)| run.summary.policy == "none" && run.summary.behaviour != "never");
    for (run, style) in order {
        let value = |line: &RoundLine| Some((f64::from(line.round), curve.value(line)?));
        let points: Vec<(f64, f64)> = run.recorded.rounds.iter().filter_map(value).collect();
        let last = points.last().copied();
        let line = Line::new(run.label.clone(), thinned(&points), *style);
        panel = panel.with(Line { width: 2.2, ..line });
        if let Some(end) = curve.end(&run.summary) {
            panel = with_end(panel, last, (f64::from(run.summary.rounds), end), style.colour);
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
        .filter(|run| run.summary.verdict.kept_everybody())
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
        sentences.push(format!("{}: all stayed, and it ends in {}.", run.label, worst(run)));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::super::delivered::tests::ends;
    use super::super::played;
    use super::*;

    #[test]
    fn every_run_ends_in_what_it_delivered() {
        let play = |rule: &str| {
            let text = format!("[rule]\nkind = \"{rule}\"\n[problem]\nkind = \"observation-3\"\n");
            let (recorded, summary) = played::play(&text);
            Compared { label: rule.to_owned(), recorded, summary }
        };
        let compared = [play("ada-gd"), play("fedavg")];
        assert_eq!(Curve::of(&compared), Curve::Loss);
        let mut delivered: Vec<f64> = compared.iter().map(|run| run.summary.loss.mean).collect();
        let mut drawn = ends(&curves(&compared));
        delivered.sort_by(f64::total_cmp);
        drawn.sort_by(f64::total_cmp);
        assert_eq!(drawn, delivered);
    }
}
