//! What a training run measured: accuracies over the rounds, and who left when.

use fedstay::StopReason;
use fedstay::record::{RoundLine, Spread, Summary};
use fedstay_draw::plot::Point;
use serde_json::{Value, json};

/// How good the weights that were sent out in a round are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) round: u32,
    /// Accuracy over all agents, including those that left.
    pub(super) agents: Spread,
    /// Accuracy on the population, where there is one.
    pub(super) population: Option<f64>,
}

impl Sample {
    /// The mean over all agents: what the paper's figures show.
    pub(super) fn average(&self) -> Option<f64> {
        Some(self.agents.mean)
    }

    /// The population's accuracy.
    pub(super) fn population(&self) -> Option<f64> {
        self.population
    }
}

/// What one run measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MeasuredRun {
    pub(super) seed: u64,
    /// How many agents took part.
    pub(super) agents: usize,
    /// The rounds in which accuracy was measured, in order.
    pub(super) curve: Vec<Sample>,
    /// The delivered model, under the round after the last.
    pub(super) end: Sample,
    /// The rounds in which agents left, one entry per agent.
    pub(super) left: Vec<u32>,
    /// How many rounds were run.
    pub(super) rounds: u32,
    /// Why it ended.
    pub(super) stop: StopReason,
}

impl MeasuredRun {
    /// Builds it from the measured rounds and the summary.
    pub(super) fn new(lines: &[RoundLine], summary: &Summary) -> Self {
        const OF: &str = "accuracy";
        let sample = |line: &RoundLine| {
            let assessment = line.assessment.as_ref()?;
            Some(Sample {
                round: line.round,
                agents: *assessment.spread()?.get(OF)?,
                population: assessment.population.as_ref().and_then(|score| score.of(OF)),
            })
        };
        Self {
            seed: summary.seed,
            agents: summary.count(),
            curve: lines.iter().filter_map(sample).collect(),
            end: Sample {
                round: summary.rounds + 1,
                agents: summary.score.get(OF).copied().unwrap_or(Spread::UNKNOWN),
                population: summary.population.as_ref().and_then(|score| score.of(OF)),
            },
            left: summary.left.iter().map(|left| left.round).collect(),
            rounds: summary.rounds,
            stop: summary.stop,
        }
    }

    /// The best average accuracy while everybody was in: the peak up to the round in which the
    /// first agent left, at whose weights it left. `None` if nobody left.
    pub(super) fn before(&self) -> Option<Sample> {
        let first = *self.left.first()?;
        let complete = self.curve.iter().filter(|sample| sample.round <= first);
        complete.copied().max_by(|a, b| a.agents.mean.total_cmp(&b.agents.mean))
    }

    /// The curve: the rounds that were measured. The delivered model belongs to none of them.
    pub(super) fn points(&self, of: fn(&Sample) -> Option<f64>) -> Vec<Point> {
        let point = |sample: &Sample| Some((f64::from(sample.round), of(sample)?));
        self.curve.iter().filter_map(point).collect()
    }

    /// The curve's value at a round, interpolated between the measured rounds; after the last of
    /// them, its value.
    pub(super) fn at(&self, round: u32, of: fn(&Sample) -> Option<f64>) -> Option<f64> {
        let points = self.points(of);
        let x = f64::from(round);
        let last = points.len().checked_sub(1)?;
        let after = points.iter().position(|point| point.0 >= x).unwrap_or(last);
        let x = x.min(points[last].0);
        let ((x1, y1), (x0, y0)) = (points[after], points[after.saturating_sub(1)]);
        let share = if x1 > x0 { (x - x0) / (x1 - x0) } else { 1.0 };
        Some(y0 + share * (y1 - y0))
    }

    /// Everything as JSON.
    pub(super) fn numbers(&self) -> Value {
        let before = self.before();
        let curve: Vec<Value> = self
            .curve
            .iter()
            .map(|Sample { round, agents, population }| {
                json!([round, agents.mean, agents.min, agents.max, population])
            })
            .collect();
        json!({
            "seed": self.seed,
            "accuracy_before_first_departure": before.map(|sample| sample.agents.mean),
            "population_before_first_departure": before.and_then(|sample| sample.population),
            "accuracy_at_end": self.end.agents,
            "population_at_end": self.end.population,
            "departures": self.left,
            "agents": self.agents,
            "rounds": self.rounds,
            "stop": self.stop,
            "curve_columns": ["round", "mean", "min", "max", "population"],
            "curve": curve,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn line(round: u32, accuracy: [f64; 2], population: f64) -> RoundLine {
        let line = json!({
            "round": round, "agents": [], "loss": [], "d": [], "case": null, "left": [],
            "step_size": 0.1, "step_norm": 1.0, "stop": null,
            "assessment": {
                "loss": [1.0, 1.0],
                "accuracy": accuracy,
                "population": { "loss": 1.0, "accuracy": population },
            },
        });
        serde_json::from_value(line).unwrap()
    }

    /// A run of two agents of which one leaves in round 7, and that ends in round 12.
    pub(in crate::figure) fn fake() -> MeasuredRun {
        let agent = |id: u64, left: Option<u32>| {
            json!({
                "id": id, "epsilon": 0.2, "loss": 1.0, "accuracy": 0.3, "left": left,
                "rounds_in_d": 0,
            })
        };
        let summary = json!({
            "schema": Summary::SCHEMA, "version": "0", "rule": "fedavg", "policy": "none",
            "behaviour": "threshold", "on": "digits", "seed": 5, "rounds": 12,
            "stop": "round-limit", "verdict": "harmful", "everybody_content": false,
            "left": [{ "agent": 1, "round": 7 }],
            "agents": [agent(0, None), agent(1, Some(7))],
            "loss": { "min": 1.0, "mean": 1.0, "max": 1.0 },
            "accuracy": { "min": 0.2, "mean": 0.3, "max": 0.4 },
            "population": { "loss": 1.0, "accuracy": 0.25 },
            "landed": null, "notes": [], "warnings": [], "weights": null,
            "prediction": { "left": 1, "left_foreseen": 0, "in_d": 0, "in_d_left": 0 },
        });
        let summary: Summary = serde_json::from_value(summary).unwrap();
        let lines = [
            line(1, [0.1, 0.1], 0.1),
            line(5, [0.5, 0.7], 0.55),
            line(7, [0.4, 0.6], 0.45),
            line(10, [0.9, 0.9], 0.35),
        ];
        MeasuredRun::new(&lines, &summary)
    }

    #[test]
    fn the_peak_before_a_departure_is_of_rounds_with_everybody_in() {
        let run = fake();
        // Not round 10, which has the highest accuracy but comes after the departure.
        assert_eq!(run.before().map(|sample| sample.round), Some(5));
        assert_eq!(MeasuredRun { left: Vec::new(), ..run.clone() }.before(), None);
        let numbers = run.numbers();
        assert_eq!(numbers["accuracy_before_first_departure"], 0.6);
        assert_eq!(numbers["population_before_first_departure"], 0.55);
        assert_eq!(numbers["accuracy_at_end"]["mean"], 0.3);
        assert_eq!(numbers["accuracy_at_end"]["min"], 0.2);
        assert_eq!(numbers["departures"], json!([7]));
        assert_eq!(numbers["stop"], "round-limit");
        assert_eq!(numbers["curve"].as_array().unwrap().len(), 4);
        let nobody = MeasuredRun { left: Vec::new(), ..run }.numbers();
        assert!(nobody["accuracy_before_first_departure"].is_null());
    }

    #[test]
    fn a_curve_has_the_measured_rounds_only() {
        let points = fake().points(Sample::population);
        assert_eq!(points, [(1.0, 0.1), (5.0, 0.55), (7.0, 0.45), (10.0, 0.35)]);
        assert_eq!(fake().at(5, Sample::population), Some(0.55));
        assert_eq!(fake().at(6, Sample::population), Some(0.5));
        assert_eq!(fake().at(11, Sample::population), Some(0.35));
        assert_eq!(MeasuredRun { curve: Vec::new(), ..fake() }.at(3, Sample::average), None);
    }
}
