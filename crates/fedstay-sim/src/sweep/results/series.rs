//! What is kept of a run's rounds: one point for every round in which everybody was measured.
//!
//! A point holds only numbers that are exact in that round. The losses of other rounds are partly
//! lower bounds; they are not kept here (`fedstay sweep extract` makes the run's whole folder).

use crate::experiment::Experiment;
use fedstay::record::{RoundLine, Spread};
use serde::{Deserialize, Serialize};

/// The points kept of a run on a named problem, on which everybody is measured in every round.
const POINTS: u32 = 200;

/// How good the weights that were sent out in a round are. NaN where there is no such number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The round, from 1.
    pub round: u32,
    /// How many agents were still in after it.
    pub present: u32,
    /// Accuracy over all agents, those who left included: mean, worst, best.
    pub accuracy: [f64; 3],
    /// Accuracy on the population.
    pub population_accuracy: f64,
    /// Loss over all agents: mean, smallest, largest.
    pub loss: [f64; 3],
    /// Loss on the population.
    pub population_loss: f64,
}

/// The points of a run, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series(pub Vec<Point>);

const NUMBERS: usize = 8;
const POINT_BYTES: usize = 8 + 8 * NUMBERS;

impl Series {
    /// Point after point: two `u32` and eight `f64`, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() * POINT_BYTES);
        for point in &self.0 {
            bytes.extend(point.round.to_le_bytes());
            bytes.extend(point.present.to_le_bytes());
            let [a, b, c] = point.accuracy;
            let [d, e, f] = point.loss;
            for number in [a, b, c, point.population_accuracy, d, e, f, point.population_loss] {
                bytes.extend(number.to_le_bytes());
            }
        }
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) wrote; `None` for bytes of another length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if !bytes.len().is_multiple_of(POINT_BYTES) {
            return None;
        }
        let point = |bytes: &[u8]| {
            let whole = |at: usize| Some(u32::from_le_bytes(bytes[at..at + 4].try_into().ok()?));
            let number = |index: usize| {
                let at = 8 + 8 * index;
                Some(f64::from_le_bytes(bytes[at..at + 8].try_into().ok()?))
            };
            Some(Point {
                round: whole(0)?,
                present: whole(4)?,
                accuracy: [number(0)?, number(1)?, number(2)?],
                population_accuracy: number(3)?,
                loss: [number(4)?, number(5)?, number(6)?],
                population_loss: number(7)?,
            })
        };
        bytes.chunks_exact(POINT_BYTES).map(point).collect::<Option<_>>().map(Self)
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
        let spread =
            |over: Option<Spread>| over.map_or([f64::NAN; 3], |of| [of.mean, of.min, of.max]);
        let Some(assessment) = &line.assessment else { return };
        if !(line.round - 1).is_multiple_of(self.every) {
            return;
        }
        let population = assessment.population;
        self.series.0.push(Point {
            round: line.round,
            present: self.present,
            accuracy: spread(assessment.accuracies()),
            loss: spread(assessment.losses()),
            population_accuracy: population.and_then(|score| score.accuracy).unwrap_or(f64::NAN),
            population_loss: population.map_or(f64::NAN, |score| score.loss),
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
        let point = Point {
            round: 70,
            present: 9,
            accuracy: [0.5, 0.25, 0.75],
            population_accuracy: f64::NAN,
            loss: [1.0, 0.5, f64::MAX],
            population_loss: -0.0,
        };
        let bytes = Series(vec![point; 3]).to_bytes();
        let back = Series::from_bytes(&bytes).unwrap();
        assert_eq!(back.to_bytes(), bytes);
        assert_eq!((back.0[2].round, back.0[2].loss), (70, point.loss));
        assert_eq!(Series::from_bytes(&bytes[1..]), None);
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
        assert_eq!(points[2].loss[2], 0.9, "over everybody, not over those who reported");
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
