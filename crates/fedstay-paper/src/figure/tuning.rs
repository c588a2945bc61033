//! Figure 9, tuning the step size: final average accuracy over a grid of η, for each heterogeneity q and
//! number of local steps K, with ε = 0 so that nobody leaves.
//!
//! Reference: arXiv 2311.16459, Figure 9, appendix, "Fine-tuning the step-size η". The paper prints neither
//! its grid nor the best values.

use super::swept::Swept;
use super::training::{Arm, Asked, run};
use super::{Drawing, setting};
use anyhow::{Context, Result};
use fedstay_draw::picture::PERCENT;
use fedstay_draw::plot::{Colour, Figure, Line, Marker, Panel, Point, Points, Scale, Style};
use fedstay_draw::words::list;
use fedstay_sim::experiment::Experiment;
use fedstay_sim::sweep::stats::Mean;
use serde_json::{Value, json};

/// The experiment.
pub(super) const TEXT: &str = include_str!("../../../../experiments/tuning.toml");

/// The sweep behind the step sizes of Figure 3, for `--from`: the same grid and more.
pub(super) const SWEEP: &str = include_str!("../../../../experiments/tuning-sweep.toml");

const HETEROGENEITY: [f64; 3] = [0.5, 0.7, 0.9];
const LOCAL_STEPS: [usize; 3] = [1, 5, 20];
/// The number of local steps that `--full` adds: the paper's Figure 3c has it.
const MANY_LOCAL_STEPS: usize = 100;
const STEP_SIZES: [f64; 6] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4];

/// One curve: a q and a K, with the accuracy at every η, averaged over the seeds; `None` where a
/// run left the floating-point range.
#[derive(Debug, Clone)]
struct TuningCurve {
    q: f64,
    steps: usize,
    accuracy: Vec<(f64, Option<f64>)>,
}

impl TuningCurve {
    fn points(&self) -> Vec<Point> {
        self.accuracy.iter().filter_map(|(eta, accuracy)| Some((*eta, (*accuracy)?))).collect()
    }

    /// The best step size; of equals, the smallest.
    fn best(&self) -> Option<Point> {
        let better = |best: Point, next: Point| if next.1 > best.1 { next } else { best };
        self.points().into_iter().reduce(better)
    }
}

/// The experiment of one run.
fn experiment(q: f64, steps: usize, eta: f64, seed: u64, asked: &Asked) -> Result<Experiment> {
    Arm::main("", "fedavg")
        .with("partition.q", q)
        .with("local.steps", steps)
        .with("step_size", eta)
        .experiment(TEXT, asked, seed)
}

fn curves(asked: &Asked, seeds: &[u64]) -> Result<Vec<TuningCurve>> {
    let mut steps = LOCAL_STEPS.to_vec();
    if asked.full {
        steps.push(MANY_LOCAL_STEPS);
    }
    let all = HETEROGENEITY.len() * steps.len() * STEP_SIZES.len() * seeds.len();
    let mut number = 0;
    let mut curves = Vec::new();
    for q in HETEROGENEITY {
        for &steps in &steps {
            let mut accuracy = Vec::new();
            for eta in STEP_SIZES {
                let mut ends = Vec::new();
                for &seed in seeds {
                    number += 1;
                    let bar = format!("{number}/{all} q = {q}, K = {steps}, η = {eta},");
                    let run = run(experiment(q, steps, eta, seed, asked)?, &bar, asked.quiet)?;
                    ends.push(run.ok().map(|run| run.end.agents.mean));
                }
                let sum: Option<f64> = ends.iter().copied().sum();
                accuracy.push((eta, sum.map(|sum| sum / seeds.len() as f64)));
            }
            curves.push(TuningCurve { q, steps, accuracy });
        }
    }
    Ok(curves)
}

/// The same curves from a sweep's store.
fn swept_curves(swept: &Swept) -> Vec<TuningCurve> {
    let mut curves = Vec::new();
    for (cell, frame) in swept.frame.by(&["partition.q".to_owned(), "local.steps".to_owned()]) {
        let (Some(q), Some(steps)) = (cell[0].1.as_f64(), cell[1].1.as_u64()) else { continue };
        let at = |eta: &Value| {
            let cell = frame.with(&super::swept::setting("step_size", eta));
            // A step size at which one seed diverges cannot be chosen.
            let ends: Option<Vec<f64>> =
                cell.records.iter().map(|record| record.result("accuracy.mean")).collect();
            let mean = ends.and_then(|ends| Mean::of(&ends)).map(|mean| mean.mean);
            Some((eta.as_f64()?, mean))
        };
        let accuracy = frame.values("step_size").iter().filter_map(at).collect();
        curves.push(TuningCurve { q, steps: steps as usize, accuracy });
    }
    curves
}

/// Makes the figure, from runs made now or, where a sweep is named, from its store.
pub(super) fn make(asked: &Asked) -> Result<Drawing> {
    if asked.from.is_some() || asked.store.is_some() || asked.table.is_some() {
        let swept = Swept::open(asked, "tuning-sweep.toml", SWEEP)?;
        let seeds: Vec<u64> = swept.frame.values("seed").iter().filter_map(Value::as_u64).collect();
        let mut drawing = draw(&swept.experiment, &seeds, swept_curves(&swept));
        drawing.figure.caption.push_str(&format!(" {}", swept.about()));
        return Ok(drawing);
    }
    let seeds = asked.seeds(1);
    let first = *seeds.first().context("a figure needs a seed")?;
    let setting = experiment(HETEROGENEITY[2], LOCAL_STEPS[1], STEP_SIZES[3], first, asked)?;
    Ok(draw(&setting, &seeds, curves(asked, &seeds)?))
}

fn draw(setting: &Experiment, seeds: &[u64], curves: Vec<TuningCurve>) -> Drawing {
    let names: Vec<String> = seeds.iter().map(ToString::to_string).collect();
    let local = setting.training().map(|training| setting::steps(&training.local));
    let figure = Figure {
        subtitle: format!("Averaging with {}. {} rounds.", targets(setting), setting.rounds),
        caption: format!(
            "{} K local {}. Stars: the best η of a curve. Where a curve ends early, the weights left the \
             floating-point range. Seeds: {}.",
            setting::federation_dealt(setting, "one class per device, q as described"),
            local.unwrap_or_default(),
            names.join(", ")
        ),
        ..Figure::new("The best step size for each heterogeneity and number of local steps")
    };
    let mut mixtures: Vec<f64> = curves.iter().map(|curve| curve.q).collect();
    mixtures.dedup();
    let columns = if mixtures.len() > 3 { 2 } else { 0 };
    let figure = Figure { columns, ..figure };
    let figure = mixtures.iter().fold(figure, |figure, q| figure.with(panel(*q, &curves)));
    Drawing {
        name: "figure-9".into(),
        figure,
        notes: notes(&mixtures, &curves),
        numbers: json!({
            "experiment": setting,
            "seeds": seeds,
            "curves": curves.iter().map(numbers).collect::<Vec<_>>(),
        }),
    }
}

/// The target losses; at zero nobody leaves.
fn targets(setting: &Experiment) -> String {
    let epsilon = json!(setting.epsilon);
    match epsilon.as_f64() {
        Some(0.0) => "ε = 0: nobody leaves".to_owned(),
        _ => format!("ε = {}", epsilon.to_string().trim_matches('"')),
    }
}

fn panel(q: f64, curves: &[TuningCurve]) -> Panel {
    let sizes = || curves.iter().flat_map(|curve| curve.points().into_iter().map(|(eta, _)| eta));
    let (low, high) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let curves: Vec<&TuningCurve> = curves.iter().filter(|curve| curve.q == q).collect();
    let mut panel = Panel {
        x_scale: Scale::Log,
        // As far as there are data, with room for half a marker.
        x_range: Some((low / 1.1, 1.1 * high)),
        y_range: Some(PERCENT),
        height: Some(260.0),
        ..Panel::new(format!("q = {q}"), "step size η", "average accuracy, %")
    };
    for (index, curve) in curves.iter().enumerate() {
        let style = Style::value(index);
        let (name, points) = (format!("K = {}", curve.steps), percent(curve.points()));
        panel = panel.with(Line::new(name.clone(), points.clone(), style));
        panel = panel
            .with(Points { size: 4.5, ..Points::new(name, points, style.marker, style.colour) });
    }
    let best = percent(curves.iter().filter_map(|curve| curve.best()).collect());
    panel.with(Points { size: 5.0, ..Points::new("best η", best, Marker::Star, Colour::INK) })
}

fn percent(points: Vec<Point>) -> Vec<Point> {
    points.into_iter().map(|(eta, share)| (eta, 100.0 * share)).collect()
}

fn notes(mixtures: &[f64], curves: &[TuningCurve]) -> Vec<String> {
    let per_q = mixtures.iter().map(|q| {
        let best = curves.iter().filter(|curve| curve.q == *q).filter_map(|curve| {
            let (eta, accuracy) = curve.best()?;
            Some(format!("η = {eta} for K = {} ({:.1}%)", curve.steps, 100.0 * accuracy))
        });
        format!("q = {q}: {}", list(&best.collect::<Vec<_>>()))
    });
    vec![
        format!("Best step sizes. {}.", per_q.collect::<Vec<_>>().join("; ")),
        "The paper shows such a figure but prints neither its grid nor the best values, so there is nothing \
         to compare with."
            .to_owned(),
    ]
}

fn numbers(curve: &TuningCurve) -> Value {
    json!({
        "q": curve.q,
        "local_steps": curve.steps,
        "best_step_size": curve.best().map(|best| best.0),
        "accuracy": curve.accuracy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_step_size_is_the_smallest_of_equals_and_never_a_diverged_one() {
        let accuracy = vec![(0.01, Some(0.3)), (0.1, Some(0.5)), (0.3, Some(0.5)), (1.0, None)];
        let curve = TuningCurve { q: 0.9, steps: 5, accuracy };
        assert_eq!(curve.best(), Some((0.1, 0.5)));
        assert_eq!(curve.points().len(), 3);
        assert_eq!(numbers(&curve)["accuracy"][3], json!([1.0, null]));
        assert_eq!(TuningCurve { accuracy: vec![(1.0, None)], ..curve }.best(), None);
    }
}
