//! What a question leaves open is settled by the data, and then stands in `plan.toml`: what is learned and
//! measured, and a step size at which gradient descent cannot overshoot.

use super::error::QuestionError;
use super::question::Question;
use crate::data::Output;
use crate::experiment::SpecError;
use crate::experiment::table::{look_up, put};
use crate::model::{Rows, RowsData};
use crate::simulator::Simulator;
use crate::simulator::population::Population;
use toml::Value;

/// The largest step size that is chosen, and the rounds that go with it.
const LARGEST: f64 = 0.5;
const ROUNDS: f64 = 200.0;
/// The share of every owner's rows that is held back: enough to judge by, and most are left to train on.
const HELD_BACK: f64 = 0.3;
/// The most rounds, however small the step size.
const MOST_ROUNDS: f64 = 1_000.0;

impl Question {
    /// The same with everything settled that it leaves open.
    ///
    /// # Errors
    /// When the data cannot be read, nobody says who owns a row, or no row is held back.
    pub fn settled(mut self) -> Result<Self, QuestionError> {
        self.default("decides_on_rows", Value::from("held-back"))?;
        self.default("epsilon", Value::from("1.0 * alone"))?;
        let kind = look_up(&Value::Table(self.table.clone()), "data.kind").cloned();
        if kind.is_some_and(|kind| {
            ["table", "csv", "clinics"].iter().any(|own| kind.as_str() == Some(own))
        }) {
            self.default("data.test_share", Value::from(HELD_BACK))?;
        }
        let experiment = self.experiment("fedavg", self.seeds[0])?;
        let Some(training) = experiment.training() else {
            return Err(SpecError::NoTraining.into());
        };
        if !training.partition.is_given() {
            return Err(QuestionError::NoOwners);
        }
        let output = training.data.load()?.data.targets.output();
        let (model, measures): (_, &[&str]) = match output {
            Output::Classes(..=2) => ("logistic-regression", &["auroc", "accuracy", "brier"]),
            Output::Classes(_) => ("softmax-regression", &["accuracy", "balanced", "log-loss"]),
            Output::Number => ("linear-regression", &["rmse", "mae", "r2"]),
        };
        if !self.table.contains_key("model") {
            self.default("model.kind", Value::from(model))?;
        }
        let measures = measures.iter().map(|name| Value::from(*name)).collect();
        self.default("measure", Value::Array(measures))?;
        let mut population = Simulator::deal(&self.experiment("fedavg", self.seeds[0])?)?;
        let judged = |population: &Population| {
            (0..population.agents()).all(|agent| population.held_back(agent).is_some())
        };
        if population.holds_back() && !judged(&population) {
            // Who has so few rows that none can be held back cannot be told anything.
            self.default("partition.small", Value::from("leave-out"))?;
            population = Simulator::deal(&self.experiment("fedavg", self.seeds[0])?)?;
        }
        if !population.holds_back() {
            return Err(QuestionError::NothingHeldBack);
        }
        let step_size = step_size(&population, output)?;
        self.default("step_size", Value::from(step_size))?;
        let set = look_up(&Value::Table(self.table.clone()), "step_size").and_then(as_number);
        let rounds = (ROUNDS * LARGEST / set.unwrap_or(step_size)).clamp(ROUNDS, MOST_ROUNDS);
        self.default("rounds", Value::Integer(rounds as i64))?;
        let rounds = self.table.get("rounds").and_then(Value::as_integer).unwrap_or(1);
        // Models are judged when a run is over.
        self.default("eval_every", Value::Integer(rounds))?;
        Ok(self)
    }

    /// Sets a key that the file leaves out.
    fn default(&mut self, key: &str, value: Value) -> Result<(), QuestionError> {
        if look_up(&Value::Table(self.table.clone()), key).is_none() {
            put(&mut self.table, key, value)?;
        }
        Ok(())
    }
}

fn as_number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// One over the largest curvature of any owner's loss, and no more than is usual; one digit of it. The mean of
/// functions with that curvature has no larger one, so averaging their gradients cannot overshoot either.
fn step_size(population: &Population, output: Output) -> Result<f64, QuestionError> {
    // By how much the second derivative of a row's loss may exceed the square of its length.
    let factor = match output {
        Output::Classes(..=2) => 0.25,
        Output::Classes(_) => 0.5,
        Output::Number => 2.0,
    };
    let mut largest: f64 = 0.0;
    for agent in 0..population.agents() {
        let rows = population.agent(agent);
        largest = largest.max(spread(&rows.view().map_err(SpecError::from)?));
    }
    let exact = LARGEST.min(1.0 / (factor * largest).max(1e-9));
    let digit = 10_f64.powf(exact.log10().floor());
    Ok(((exact / digit).floor() * digit).max(f64::MIN_POSITIVE))
}

/// The largest eigenvalue of the mean of x·xᵀ over rows, each with a one for the bias: twenty rounds of the power
/// method, and a tenth more for what these may miss.
fn spread(rows: &Rows<'_>) -> f64 {
    const TURNS: u32 = 20;
    let RowsData::Floats { features, .. } = rows.data() else { return f64::INFINITY };
    let mut row = vec![0_f32; features];
    // Not at right angles to anything that rows are likely to have in common.
    let mut vector: Vec<f64> = (0..=features).map(|at| 1.0 + 0.01 * (at % 7) as f64).collect();
    let mut value = 0.0;
    for _ in 0..TURNS {
        let length = vector.iter().map(|part| part * part).sum::<f64>().sqrt();
        vector.iter_mut().for_each(|part| *part /= length);
        let mut next = vec![0.0; vector.len()];
        for index in 0..rows.len() {
            rows.data().fill(index, 0, &mut row);
            let own = row.iter().zip(&vector).map(|(x, part)| f64::from(*x) * part).sum::<f64>();
            let own = own + vector[features];
            next.iter_mut().zip(&row).for_each(|(sum, x)| *sum += own * f64::from(*x));
            next[features] += own;
        }
        next.iter_mut().for_each(|part| *part /= rows.len() as f64);
        value = next.iter().zip(&vector).map(|(next, part)| next * part).sum();
        vector = next;
    }
    1.1 * value
}
