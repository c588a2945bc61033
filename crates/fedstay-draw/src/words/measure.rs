//! Measures in words: which one is told of several runs, and its values in a sentence.

use fedstay::record::{Spread, Summary};
use fedstay::{Interval, Measure, Measures, Score};

/// The first measure of the first of these runs that all of them have, else the loss: what differs from
/// run to run is not compared.
pub fn common<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone) -> Measure {
    let first = summaries.clone().next().into_iter().flat_map(|first| &first.measures);
    let mut shared = first.filter(|measure| {
        summaries.clone().all(|summary| summary.score.get(&measure.name).is_some())
    });
    shared.next().cloned().unwrap_or(Measure::LOSS)
}

/// The worst of what is spread over the agents.
pub fn worst(measure: &Measure, over: &Spread) -> f64 {
    measure.worse(over.min, over.max)
}

/// The first of these measures that a score has, with its value.
pub(super) fn first<'a>(score: &Score, measures: &'a [Measure]) -> Option<(&'a Measure, f64)> {
    measures.iter().find_map(|measure| Some((measure, score.of(&measure.name)?)))
}

/// A value in a sentence: `46.1%`, as an accuracy needs no name, or `balanced accuracy 41.0%`.
pub(crate) fn clause(measure: &Measure, value: f64) -> String {
    match *measure == Measure::ACCURACY {
        true => measure.shown(value),
        false => format!("{} {}", measure.label, measure.shown(value)),
    }
}

/// What a column is called that says how good a model is for an agent where nobody trained.
pub const HELD_BACK: &str = "on its own held-back rows";

/// The first of these measures that has an interval, with it: what is told of held-back rows.
pub fn first_held_back<'a>(
    known: &Measures<Interval>,
    measures: &'a [Measure],
) -> Option<(&'a Measure, Interval)> {
    measures.iter().find_map(|measure| Some((measure, *known.get(&measure.name)?)))
}

/// A value with its interval: `0.7130 [0.6524, 0.7711]`.
pub fn within(measure: &Measure, interval: Interval) -> String {
    let Interval { value, low, high } = interval;
    format!("{} [{}, {}]", measure.shown(value), measure.shown(low), measure.shown(high))
}

/// How the headline is spread over the agents on their own held-back rows, as `AUROC min 0.6524  mean
/// 0.7130  max 0.7711`; `None` where nobody has such rows.
pub fn held_back(summary: &Summary) -> Option<String> {
    let over = summary.held_back.as_ref()?;
    let known = |measure: &&Measure| over.get(&measure.name).is_some();
    let measure = summary.measures.iter().find(known).cloned().unwrap_or(Measure::LOSS);
    let Spread { min, mean, max } = *over.get(&measure.name)?;
    let [min, mean, max] = [min, mean, max].map(|value| measure.shown(value));
    Some(format!("{} min {min}  mean {mean}  max {max}", measure.label))
}

/// How each measure besides the loss is spread, as `Accuracy: mean 90.0%, worst agent 80.0%.`, and what
/// it is on the population.
pub fn besides(summary: &Summary) -> Vec<String> {
    let mut told = Vec::new();
    for (measure, over) in summary.measured_besides() {
        let (mean, worst) = (measure.shown(over.mean), measure.shown(worst(measure, over)));
        let label = super::format::capital(&measure.label);
        told.push(format!("{label}: mean {mean}, worst agent {worst}."));
    }
    let population = summary.population.as_ref();
    let known: Vec<String> = summary
        .measures
        .iter()
        .filter_map(|measure| Some(clause(measure, population?.of(&measure.name)?)))
        .collect();
    if !known.is_empty() {
        told.push(format!("On the population: {}.", known.join(", ")));
    }
    if let Some(held_back) = held_back(summary) {
        told.push(format!("On the agents’ own held-back rows: {held_back}."));
    }
    told
}
