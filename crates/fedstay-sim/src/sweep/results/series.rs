//! What is kept of a run's rounds: one point for every round in which everybody was measured.
//!
//! A point holds only numbers that are exact in that round. The losses of other rounds are partly
//! lower bounds; they are not kept here (`fedstay sweep extract` makes the run's whole folder).

use crate::experiment::Experiment;
use fedstay::record::{RoundLine, Spread};
use fedstay::{Measure, MeasureName, Score};
use serde_json::Value;

/// The points kept of a run on a named problem, on which everybody is measured in every round.
const POINTS: u32 = 200;

/// How good the weights that were sent out in a round are.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The round, from 1.
    pub round: u32,
    /// How many agents were still in after it.
    pub present: u32,
    /// The score over all agents, those who left included, if anybody was measured.
    pub over: Option<Score<Spread>>,
    /// The score on the population, if there is one.
    pub population: Option<Score>,
}

/// The points of a run, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series(pub Vec<Point>);

/// What a point has of every measure and of the loss: mean, smallest and largest over the agents, and
/// the population's.
const NUMBERS: usize = 4;

impl Point {
    /// What it has of a measure or of the loss; NaN where there is no such number.
    pub(super) fn numbers(&self, name: &str) -> [f64; NUMBERS] {
        let over = self.over.as_ref().and_then(|score| score.get(name)).copied();
        let Spread { min, mean, max } = over.unwrap_or(Spread::UNKNOWN);
        let population = self.population.as_ref().and_then(|score| score.of(name));
        [mean, min, max, population.unwrap_or(f64::NAN)]
    }

    /// A point from what [`numbers`](Self::numbers) gave of some measures and, last, of the loss.
    fn of(round: u32, present: u32, names: &[MeasureName], numbers: &[[f64; NUMBERS]]) -> Self {
        let known = |values: &[f64]| values.iter().any(|value| !value.is_nan());
        let (loss, measures) = numbers.split_last().unwrap_or((&[f64::NAN; NUMBERS], &[]));
        let spread = |[mean, min, max, _]: [f64; NUMBERS]| Spread { min, mean, max };
        let (mut over, mut population) = (Score::new(spread(*loss)), Score::new(loss[3]));
        for (name, own) in names.iter().zip(measures) {
            over = over.with(name.clone(), known(&own[..3]).then(|| spread(*own)));
            population = population.with(name.clone(), Some(own[3]).filter(|one| !one.is_nan()));
        }
        let is_over = known(&loss[..3]) || !over.measures.is_empty();
        let is_population = known(&loss[3..]) || !population.measures.is_empty();
        Self {
            round,
            present,
            over: Some(over).filter(|_| is_over),
            population: Some(population).filter(|_| is_population),
        }
    }
}

impl Series {
    /// The measures that some point has: the usual ones, then others.
    pub fn measures(&self) -> Vec<MeasureName> {
        let mut names: Vec<MeasureName> = vec![Measure::ACCURACY.name];
        for point in &self.0 {
            let over = point.over.iter().flat_map(|score| score.measures.named().map(|one| one.0));
            let population = point.population.iter();
            let population = population.flat_map(|score| score.measures.named().map(|one| one.0));
            for name in over.chain(population) {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        names
    }

    /// Point after point: two `u32`, then four `f64` of every measure and of the loss, little-endian.
    /// Where there are others than accuracy, their names come first: a zero, which no round is, and
    /// the length of their list as `u32`, and the list as JSON.
    pub fn to_bytes(&self) -> Vec<u8> {
        let names = self.measures();
        let mut bytes = Vec::new();
        if names.len() > 1 {
            let list = Value::from(names.iter().map(|name| &**name).collect::<Vec<_>>());
            let list = list.to_string();
            bytes.extend(0_u32.to_le_bytes());
            bytes.extend((list.len() as u32).to_le_bytes());
            bytes.extend(list.as_bytes());
        }
        for point in &self.0 {
            bytes.extend(point.round.to_le_bytes());
            bytes.extend(point.present.to_le_bytes());
            for name in names.iter().chain([&Measure::LOSS.name]) {
                for number in point.numbers(name) {
                    bytes.extend(number.to_le_bytes());
                }
            }
        }
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) wrote; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let whole = |bytes: &[u8], at: usize| {
            Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
        };
        let (names, points) = match whole(bytes, 0) {
            Some(0) => {
                let (list, points) = bytes.get(8..)?.split_at_checked(whole(bytes, 4)? as usize)?;
                (serde_json::from_slice::<Vec<MeasureName>>(list).ok()?, points)
            }
            _ => (vec![Measure::ACCURACY.name], bytes),
        };
        let size = 8 + 8 * NUMBERS * (names.len() + 1);
        if !points.len().is_multiple_of(size) {
            return None;
        }
        let point = |bytes: &[u8]| {
            let number = |bytes: &[u8]| Some(f64::from_le_bytes(bytes.try_into().ok()?));
            let numbers: Option<Vec<f64>> = bytes[8..].chunks_exact(8).map(number).collect();
            let (numbers, _) = numbers.as_deref()?.as_chunks::<NUMBERS>();
            Some(Point::of(whole(bytes, 0)?, whole(bytes, 4)?, &names, numbers))
        };
        points.chunks_exact(size).map(point).collect::<Option<_>>().map(Self)
    }
}

/// Watches a run and keeps its series.
#[derive(Debug, Clone)]
pub(in crate::sweep) struct Recorder {
    series: Series,
    present: u32,
    /// Every how many rounds a point is kept; of data sets, which are measured seldom, all are.
    every: u32,
}

impl Recorder {
    pub(in crate::sweep) fn new(experiment: &Experiment, agents: usize) -> Self {
        let every = match experiment.problem() {
            Some(_) => experiment.rounds.div_ceil(POINTS).max(1),
            None => 1,
        };
        Self { series: Series::default(), present: agents as u32, every }
    }

    pub(in crate::sweep) fn add(&mut self, line: &RoundLine) {
        self.present -= (line.left.len() as u32).min(self.present);
        self.present += line.returned.len() as u32;
        let Some(assessment) = &line.assessment else { return };
        if !(line.round - 1).is_multiple_of(self.every) {
            return;
        }
        self.series.0.push(Point {
            round: line.round,
            present: self.present,
            over: assessment.spread(),
            population: assessment.population.clone(),
        });
    }

    pub(in crate::sweep) fn finish(self) -> Series {
        self.series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_survives_its_bytes() {
        let spread = |mean, min, max| Spread { min, mean, max };
        let over = Score::new(spread(1.0, 0.5, f64::MAX)).with("accuracy", spread(0.5, 0.25, 0.75));
        let point = Point {
            round: 70,
            present: 9,
            over: Some(over.clone()),
            population: Some(Score::new(-0.0)),
        };
        let plain = Series(vec![point.clone(); 3]);
        let bytes = plain.to_bytes();
        // The form of all stores before there were other measures.
        let mut form = [70_u32, 9].map(u32::to_le_bytes).concat();
        let numbers = [0.5, 0.25, 0.75, f64::NAN, 1.0, 0.5, f64::MAX, -0.0_f64];
        form.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        assert_eq!(bytes, form.repeat(3));
        assert_eq!(Series::from_bytes(&bytes), Some(plain));
        let more = over.with("balanced", spread(0.25, 0.0, 0.5));
        let other =
            Point { over: None, population: Some(Score::new(1.0).with("brier", 0.5)), ..point };
        let series = Series(vec![Point { over: Some(more), ..other.clone() }, other]);
        let bytes = series.to_bytes();
        assert_eq!(Series::from_bytes(&bytes), Some(series));
        assert_eq!(Series::from_bytes(&bytes[1..]), None);
        assert_eq!(Series::from_bytes(&bytes[..bytes.len() - 8]), None);
        assert_eq!(Series::from_bytes(&[]), Some(Series::default()));
    }

    #[test]
    fn who_comes_back_is_in_again() {
        let experiment = Experiment::parse("rounds = 3\n[problem]\nkind = \"huber\"", &[]).unwrap();
        let mut recorder = Recorder::new(&experiment, 3);
        for (round, left, returned) in [(1, "[]", "[]"), (2, "[0, 1]", "[]"), (3, "[]", "[1]")] {
            let line = format!(
                r#"{{"round": {round}, "agents": [2], "loss": [1.0], "left": {left},
                    "returned": {returned}, "case": null, "stop": null,
                    "assessment": {{"loss": [0.1, 0.2, 0.9], "population": null}}}}"#
            );
            recorder.add(&serde_json::from_str(&line).unwrap());
        }
        let points = recorder.finish().0;
        let present: Vec<u32> = points.iter().map(|point| point.present).collect();
        assert_eq!(present, [3, 1, 2]);
        assert_eq!(
            points[2].over.as_ref().unwrap().loss.max,
            0.9,
            "over everybody, not over those who reported"
        );
    }

    #[test]
    fn a_long_run_on_a_named_problem_keeps_a_few_hundred_points() {
        let experiment = Experiment::parse("rounds = 5000\n[problem]\nkind = \"huber\"", &[]);
        let mut recorder = Recorder::new(&experiment.unwrap(), 1);
        for round in 1..=5000 {
            let line = format!(
                r#"{{"round": {round}, "agents": [], "loss": [], "case": null, "stop": null,
                    "assessment": {{"loss": [1.0], "population": null}}}}"#
            );
            recorder.add(&serde_json::from_str(&line).unwrap());
        }
        assert_eq!(recorder.finish().0.len(), POINTS as usize);
    }
}
