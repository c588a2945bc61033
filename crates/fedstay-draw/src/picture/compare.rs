//! Several rules on the same federation: how good the model is for everybody over the rounds, and
//! how good the delivered one is for the worst agent.

use super::bars::{PERCENT, delivered_bars};
use super::delivered::with_end;
use super::{PictureError, thinned, write_figure};
use crate::plot::{Bars, Figure, Line, Marker, Panel, Point, Points, Style};
use crate::words::{HELD_BACK, at_start, clause, common, emptiness, worst};
use fedstay::Measure;
use fedstay::record::{RoundLine, Spread, Summary, as_written, briefly};
use fedstay::verdict::Verdict;
use fedstay_sim::run::Recorded;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// One of several runs.
#[derive(Debug, Clone)]
pub struct Compared {
    /// Its name in the legend and under the bars.
    pub label: String,
    /// The rule with what was added to it, by which its line gets its look.
    pub rule: String,
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
            first.summary.count()
        ),
        None => String::new(),
    };
    let figure = Figure {
        subtitle,
        caption: caption(compared),
        ..Figure::new("The same federation under several rules")
    };
    figure.with(curves(compared)).with(ends(compared))
}

/// What the runs have in common: target loss, step size, seed, how the data were dealt out.
fn caption(compared: &[Compared]) -> String {
    let Some(first) = compared.first() else { return String::new() };
    let same = |of: &dyn Fn(&Compared) -> Option<f64>| {
        let value = of(first)?;
        compared.iter().all(|run| of(run) == Some(value)).then_some(value)
    };
    let epsilon = |run: &Compared| {
        let mut all = run.recorded.header.agents.iter().map(|agent| agent.epsilon);
        let first = all.next()?;
        all.all(|epsilon| epsilon == first).then_some(first)
    };
    let step = |run: &Compared| run.recorded.rounds.first().map(|line| line.step_size);
    let mut parts = vec![match same(&epsilon) {
        Some(epsilon) => format!("ε = {}", as_written(epsilon)),
        None => "agents differ in ε".to_owned(),
    }];
    parts.extend(same(&step).map(|step| format!("η = {step}")));
    parts.push(match same(&|run| Some(run.summary.seed as f64)) {
        Some(seed) => format!("seed {seed}"),
        None => "several seeds".to_owned(),
    });
    let note = first
        .summary
        .notes
        .first()
        .filter(|note| compared.iter().all(|run| run.summary.notes.first() == Some(*note)));
    parts.extend(note.cloned());
    format!("{}.", parts.join("; "))
}

/// What is drawn over the rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Curve {
    /// The mean of a measure, or of the loss, over all agents.
    Measured(Measure),
    /// The mean loss over the agents that reported, where nobody measures the others.
    Reported,
}

impl Curve {
    /// The best measure that all runs have: curves of different things are not compared.
    fn of(compared: &[Compared]) -> Self {
        let each = |measure: &&Measure| {
            let has = |line: &RoundLine| measured(line, measure).is_some();
            compared.iter().all(|run| run.recorded.rounds.iter().any(has))
        };
        let first = compared.first().map_or(&[][..], |run| &run.recorded.header.measures);
        let loss = [Measure::LOSS];
        let found = first.iter().chain(&loss).find(each).cloned();
        found.map_or(Self::Reported, Self::Measured)
    }

    /// What it measures.
    fn measure(&self) -> Measure {
        match self {
            Self::Measured(measure) => measure.clone(),
            Self::Reported => Measure::LOSS,
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Measured(measure) => {
                format!("Mean {} over all agents, leavers included", measure.label)
            }
            Self::Reported => "Mean loss over those who reported".to_owned(),
        }
    }

    fn value(&self, line: &RoundLine) -> Option<f64> {
        match self {
            Self::Measured(measure) => Some(measure.scale() * measured(line, measure)?),
            // A mean of lower bounds would look like a loss without being one.
            Self::Reported => line.mean_loss().filter(|_| line.at_least.is_empty()),
        }
    }

    /// The value for the delivered model, which a policy may have chosen from the past.
    fn end(&self, summary: &Summary) -> Option<f64> {
        let measure = self.measure();
        Some(measure.scale() * summary.score.get(&measure.name)?.mean)
    }
}

/// The mean of a measure over the agents, if it was measured in a round.
fn measured(line: &RoundLine, measure: &Measure) -> Option<f64> {
    Some(line.assessment.as_ref()?.spread()?.get(&measure.name)?.mean)
}

fn curves(compared: &[Compared]) -> Panel {
    let curve = Curve::of(compared);
    let (title, measure) = (curve.title(), curve.measure());
    let rules: Vec<&str> = compared.iter().map(|run| run.rule.as_str()).collect();
    let styles = Style::assign(&rules);
    let mut panel =
        Panel { weight: 1.5, height: Some(360.0), ..Panel::new(title, "round", measure.axis()) };
    // The same scale as the bars beside it.
    panel.y_range = measure.is_share().then_some(PERCENT);
    // Policies share averaging's path until they depart from it. Averaging is drawn over them, and
    // they are wider, so that both are seen.
    let mut order: Vec<(&Compared, &Style)> = compared.iter().zip(&styles).collect();
    let alone = |run: &Compared| run.summary.policy == "none" && run.summary.behaviour != "never";
    order.sort_by_key(|(run, _)| alone(run));
    // The marks come last: above all lines, and behind them in the legend.
    let (mut delivered, mut crosses) = (Vec::new(), Vec::new());
    for (run, style) in order {
        let value = |line: &RoundLine| Some((f64::from(line.round), curve.value(line)?));
        let points: Vec<(f64, f64)> = run.recorded.rounds.iter().filter_map(value).collect();
        let last = points.last().copied();
        let line = Line::new(run.label.clone(), thinned(&points), *style);
        // Markers, so that lines are told apart in grey print as well.
        let width = if alone(run) { 2.2 } else { 4.2 };
        panel = panel.with(Line { width, markers: true, ..line });
        crosses.extend(departures(run, &points, *style));
        let end = curve.end(&run.summary).map(|end| (f64::from(run.summary.rounds), end));
        delivered.extend(end.map(|end| (last, end, style.colour)));
    }
    let with_end = |panel, (last, end, colour)| with_end(panel, last, end, colour);
    let panel = delivered.into_iter().fold(panel, with_end);
    crosses.into_iter().fold(panel, |panel: Panel, points: Points| panel.with(points))
}

/// A cross on the curve in every round in which agents left this run.
fn departures(run: &Compared, curve: &[Point], style: Style) -> Option<Points> {
    let mut rounds: Vec<u32> = run.summary.left.iter().map(|left| left.round).collect();
    rounds.dedup();
    // Where nothing was measured in that round, the last measurement before it.
    let at = |round: &u32| {
        let x = f64::from(*round);
        let (_, y) = curve.iter().rev().find(|point| point.0 <= x).or(curve.first())?;
        Some((x, *y))
    };
    let points: Vec<Point> = rounds.iter().take(60).filter_map(at).collect();
    let crosses = Points::new("an agent leaves", points, Marker::Cross, style.colour.darker(0.25));
    (!crosses.points.is_empty()).then_some(Points { size: 4.5, ..crosses })
}

fn ends(compared: &[Compared]) -> Panel {
    let measure = common(compared.iter().map(|run| &run.summary));
    let spread = |run: &Compared| {
        let over = run.summary.score.get(&measure.name).copied().unwrap_or(Spread::UNKNOWN);
        (over.mean, worst(&measure, &over))
    };
    // Whole percents, two digits of a loss: more would not fit over a bar.
    let shown = |value: f64| match measure.is_share() {
        true => (100.0 * value).round(),
        false => (100.0 * value).round() / 100.0,
    };
    let means = compared.iter().map(|run| shown(spread(run).0)).collect();
    let worsts = compared.iter().map(|run| shown(spread(run).1)).collect();
    Panel {
        weight: 1.25,
        x_categories: compared.iter().map(|run| run.label.replace('+', "\n+")).collect(),
        height: Some(360.0),
        y_range: measure.is_share().then_some(PERCENT),
        ..Panel::new("The model delivered at the end", "", measure.axis())
    }
    .with(Bars { show_values: true, ..Bars::new(delivered_bars(means, worsts)) })
}

/// What the comparison shows, in words.
pub fn sentences(compared: &[Compared]) -> Vec<String> {
    let worst = |run: &Compared| {
        let (measure, over) = run.summary.headline();
        if let Some(over) = run.summary.on_held_back(measure) {
            return format!("{} {HELD_BACK}", clause(measure, worst(measure, over)));
        }
        let value = worst(measure, over);
        match *measure == Measure::LOSS {
            true => format!("a loss of {}", briefly(value)),
            false => format!("{} on its own rows", clause(measure, value)),
        }
    };
    // Of equals the one that satisfies more, then the one that takes fewer rounds.
    let score = |run: &Compared| {
        let (measure, over) = run.summary.headline();
        let over = run.summary.on_held_back(measure).unwrap_or(over);
        let good = -measure.badness(measure.worse(over.min, over.max));
        (good, run.summary.content, Reverse(run.summary.rounds))
    };
    let by_score = |a: &&Compared, b: &&Compared| {
        let (a, b) = (score(a), score(b));
        a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2)))
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
        let (left, all) = (run.summary.leavers(), run.summary.count());
        sentences.push(format!(
            "{}: {left} of {all} left, and the worst agent ends at {}.",
            run.label,
            worst(run)
        ));
    }
    if let Some(run) = kept.into_iter().max_by(by_score) {
        let worst = worst(run);
        sentences.push(format!("{}: all stayed, and the worst agent ends at {worst}.", run.label));
    }
    for run in compared {
        if run.summary.verdict == Verdict::Empty {
            sentences.push(format!("{}: {}.", run.label, emptiness(run.summary.empty)));
        }
        sentences.extend(at_start(&run.summary).map(|who| format!("{}: {who}.", run.label)));
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
            Compared { label: rule.to_owned(), rule: rule.to_owned(), recorded, summary }
        };
        let compared = [play("ada-gd"), play("fedavg")];
        assert_eq!(Curve::of(&compared), Curve::Measured(Measure::LOSS));
        let mut delivered: Vec<f64> =
            compared.iter().map(|run| run.summary.score.loss.mean).collect();
        let mut drawn = ends(&curves(&compared));
        delivered.sort_by(f64::total_cmp);
        drawn.sort_by(f64::total_cmp);
        assert_eq!(drawn, delivered);
    }

    #[test]
    fn of_rules_that_keep_everybody_equally_well_the_one_that_satisfies_more_and_sooner_is_named() {
        let play = |label: &str, content: u32, rounds: u32| {
            let text = "[rule]\nkind = \"ada-gd\"\n[problem]\nkind = \"observation-3\"\n";
            let (recorded, mut summary) = played::play(text);
            (summary.content, summary.rounds) = (content, rounds);
            Compared { label: label.to_owned(), rule: "ada-gd".to_owned(), recorded, summary }
        };
        let told = sentences(&[
            play("few", 0, 9),
            play("soon", 2, 16),
            play("late", 2, 280),
            play("none", 0, 5),
        ]);
        assert!(told[0].starts_with("soon: all stayed, and the worst agent ends at"), "{told:?}");
    }
}
