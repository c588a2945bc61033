//! Figures drawn from a sweep's store: cells with their means and 95% bands.

use super::table;
use super::training::Asked;
use anyhow::{Context, Result};
use fedstay_draw::plot::{Band, Line, Marker, Panel, Point, Points, Style};
use fedstay_draw::words::list;
use fedstay_sim::experiment::Experiment;
use fedstay_sim::sweep::stats::Mean;
use fedstay_sim::sweep::{Frame, Plan, Store, usual_store};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A sweep, with its finished runs.
pub(super) struct Swept {
    /// The finished runs.
    pub(super) frame: Frame,
    /// The last experiment of the plan, for what all have in common.
    pub(super) experiment: Experiment,
    /// How many runs were planned.
    pub(super) planned: usize,
    plan: Plan,
}

impl Swept {
    /// The sweep that was asked for, or the figure's own: the file `name` in `experiments/`.
    pub(super) fn open(asked: &Asked, name: &str, text: &str) -> Result<Self> {
        let file = asked.from.clone().unwrap_or_else(|| Path::new("experiments").join(name));
        let plan = plan(asked, text)?;
        let frame = match &asked.table {
            Some(table) => table::read(&plan, table)?,
            None => stored(&plan, &file, asked.store.clone())?,
        };
        let planned = plan.runs.len();
        let experiment = plan.runs[planned - 1].experiment.clone();
        Ok(Self { frame, experiment, planned, plan })
    }

    /// The values a setting has in the whole plan, so that styles and axes do not depend on what is
    /// finished.
    pub(super) fn values(&self, key: &str) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::new();
        for run in &self.plan.runs {
            let value = key.split('.').try_fold(&run.config, |value, part| value.get(part));
            if let Some(value) = value.filter(|value| !values.contains(value)) {
                values.push(value.clone());
            }
        }
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        values.sort_by(|a, b| number(a).total_cmp(&number(b)));
        values
    }

    /// The axis of a setting, with a small margin.
    pub(super) fn range(&self, key: &str) -> Option<(f64, f64)> {
        let values: Vec<f64> = self.values(key).iter().filter_map(Value::as_f64).collect();
        let (low, high) = (*values.first()?, *values.last()?);
        let air = 0.05 * (high - low);
        (high > low).then_some((low - air, high + air))
    }

    /// What every caption must say: seeds, rounds, and what is missing.
    pub(super) fn about(&self) -> String {
        let seeds: Vec<String> =
            self.frame.values("seed").iter().map(ToString::to_string).collect();
        let done = self.frame.records.len();
        let missing = match self.planned - done {
            0 => String::new(),
            missing => format!(" {missing} of {} runs are not computed yet.", self.planned),
        };
        let diverged = self.frame.records.iter().filter(|r| r.run.summary().is_none()).count();
        let diverged = match diverged {
            0 => String::new(),
            count => format!(" {count} runs left the floating-point range and are left out."),
        };
        let rounds = self.experiment.rounds;
        let means = match seeds.as_slice() {
            [seed] => format!("Seed {seed} after {rounds} rounds; one seed has no bands."),
            seeds if seeds.len() <= FEW => format!(
                "Means over seeds {} after {rounds} rounds; small dots, beside their ε: the single seeds.",
                several(seeds)
            ),
            seeds => format!(
                "Means over seeds {} after {rounds} rounds with 95% bands (Student's t); \
                 small dots, beside their ε: the single seeds.",
                several(seeds)
            ),
        };
        format!("{means}{missing}{diverged}")
    }
}

/// The runs of the sweep that was asked for, or of the figure's own.
pub(super) fn plan(asked: &Asked, text: &str) -> Result<Plan> {
    let mut set = asked.set.clone();
    if let Some(seeds) = &asked.seeds {
        set.push(("seed".into(), format!("{seeds:?}")));
    }
    Ok(match &asked.from {
        Some(file) => Plan::read(file, &set)?,
        None => Plan::parse(text, Path::new("experiments"), &set)?,
    })
}

/// Seeds as a person says them: a run of numbers by its ends.
fn several(seeds: &[String]) -> String {
    let numbers: Option<Vec<u64>> = seeds.iter().map(|seed| seed.parse().ok()).collect();
    let whole =
        numbers.filter(|all| all.len() > 3 && all.windows(2).all(|two| two[0] + 1 == two[1]));
    match whole.as_deref() {
        Some([first, .., last]) => format!("{first} to {last}"),
        _ => list(seeds),
    }
}

/// The finished runs of a plan from its store.
fn stored(plan: &Plan, file: &Path, store: Option<PathBuf>) -> Result<Frame> {
    let path = store.unwrap_or_else(|| usual_store(file));
    let next = || format!("compute it first: `fedstay sweep {}`", file.display());
    let store = Store::read(&path).with_context(next)?;
    let frame = Frame::of_plan(plan, &store)?;
    let none = || format!("{} has none of these runs; {}", path.display(), next());
    anyhow::ensure!(!frame.records.is_empty(), none());
    Ok(frame)
}

/// One setting.
pub(super) fn setting(key: &str, value: &Value) -> Vec<(String, Value)> {
    vec![(key.to_owned(), value.clone())]
}

/// Up to this many runs have no band: an interval of so few is wider than what it is about.
const FEW: usize = 5;
/// Up to this many runs are drawn as dots; more could not be told apart.
const MOST_DOTS: usize = 20;

/// A share along one setting: one mean per value.
pub(super) struct Curve {
    pub(super) points: Vec<(f64, Mean)>,
    /// The single runs behind the means.
    runs: Vec<(f64, Vec<f64>)>,
}

impl Curve {
    /// The mean of `result` at every value of `along` that has runs.
    pub(super) fn new(frame: &Frame, along: &str, result: &str) -> Self {
        let at = |value: &Value| {
            let mean = frame.with(&setting(along, value)).mean(result)?;
            Some((value.as_f64()?, mean))
        };
        let each = |value: &Value| {
            let cell = frame.with(&setting(along, value));
            let runs = cell.records.iter().filter_map(|record| record.result(result));
            Some((value.as_f64()?, runs.collect()))
        };
        let values = frame.values(along);
        Self {
            points: values.iter().filter_map(at).collect(),
            runs: values.iter().filter_map(each).collect(),
        }
    }

    /// Whether no value has more runs than this.
    fn at_most(&self, count: usize) -> bool {
        self.runs.iter().all(|(_, runs)| runs.len() <= count)
    }

    /// The highest value that is drawn, in per cent.
    pub(super) fn top(&self) -> f64 {
        let runs = self.runs.iter().flat_map(|(_, runs)| runs).copied();
        let bands = self.points.iter().map(|(_, mean)| mean.interval().1.min(1.0));
        let bands = bands.filter(|high| high.is_finite() && !self.at_most(FEW));
        100.0 * runs.chain(bands).fold(0.0, f64::max)
    }

    /// Its line and markers under one name, in per cent, with every run as a dot and, where there
    /// are enough runs for one, with the band. The dots are moved by `aside`, so that those of
    /// several curves lie beside each other.
    pub(super) fn draw(&self, mut panel: Panel, name: &str, style: Style, aside: f64) -> Panel {
        let line: Vec<Point> =
            self.points.iter().map(|(x, mean)| (*x, 100.0 * mean.mean)).collect();
        let band: Vec<(f64, f64, f64)> = self
            .points
            .iter()
            .filter(|(_, mean)| mean.n > 1)
            .map(|(x, mean)| {
                let (low, high) = mean.interval();
                // A share is never outside of this range, whatever Student's t says.
                (*x, 100.0 * low.max(0.0), 100.0 * high.min(1.0))
            })
            .collect();
        if !self.at_most(FEW) && band.len() > 1 {
            panel = panel.with(Band::new(name, band, style.colour));
        }
        if self.at_most(MOST_DOTS) {
            let dots = self.runs.iter().filter(|(_, runs)| runs.len() > 1);
            let dots = dots.flat_map(|(x, runs)| runs.iter().map(|run| (*x + aside, 100.0 * run)));
            let dots = Points::new("", dots.collect(), Marker::Disc, style.colour);
            panel = panel.with(Points { size: 2.0, ..dots });
        }
        let marks = Points::new(name, line.clone(), style.marker, style.colour);
        panel.with(Line::new(name, line, style)).with(Points { size: 4.0, ..marks })
    }

    /// Value, mean, half width and number of runs at every point.
    pub(super) fn numbers(&self) -> Value {
        let point = |(x, mean): &(f64, Mean)| {
            let half = Some(mean.half_width).filter(|half| half.is_finite());
            json!([x, mean.mean, half, mean.n])
        };
        self.points.iter().map(point).collect()
    }
}
