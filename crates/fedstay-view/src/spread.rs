//! How a result is spread over the agents and what departures cost those who stay, for the page: the figures of
//! the summary, as the terminal and the report have them.

use crate::delivered::measures;
use fedstay::fairness::Fairness;
use fedstay::record::{Extra, Summary};
use fedstay::{Measure, Score};
use serde::Serialize;
use serde_json::Value;

/// What the page is told.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct SpreadCard {
    fairness: Option<Fairness>,
    /// What `fairness` is about.
    of: Option<Measure>,
    population: Option<Score>,
    /// What was measured besides the loss.
    measures: Vec<Measure>,
    alone: Option<BetterThanAlone>,
    extra: Option<ExtraWork>,
}

/// How many agents end with a better model than they would have made alone, of those of whom both are known.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct BetterThanAlone {
    better: usize,
    of: usize,
}

/// What those who stayed did and sent beyond what they would have.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ExtraWork {
    stayers: u32,
    rounds: i64,
    bytes: i64,
}

/// The figures that a summary has; `None` if it has none of them.
pub(crate) fn told(summary: &Value) -> Option<SpreadCard> {
    // Older summaries, and those of other engines, lack fields: one that cannot be read costs no other.
    let whole = asks_more(summary).then(|| read::<Summary>(summary)).flatten();
    let alone = whole.as_ref().and_then(Summary::against_alone);
    let alone = alone.map(|(better, of)| BetterThanAlone { better, of });
    let extra = whole.and_then(|whole| whole.extra_work());
    let (measures, fairness) = (measures(summary), read::<Fairness>(&summary["fairness"]));
    let of = fairness.as_ref().map(|fairness| {
        let known = measures.iter().find(|measure| measure.name == fairness.of);
        known.cloned().unwrap_or(Measure::LOSS)
    });
    let found = SpreadCard {
        fairness,
        of,
        measures,
        population: read(&summary["population"]),
        alone,
        extra: extra.map(|Extra { stayers, rounds, bytes }| ExtraWork { stayers, rounds, bytes }),
    };
    let known = found.fairness.is_some()
        || found.population.is_some()
        || found.alone.is_some()
        || found.extra.is_some();
    known.then_some(found)
}

/// Whether a summary tells what would have been without departures, or what agents would have made alone.
fn asks_more(summary: &Value) -> bool {
    let agents = summary["agents"].as_array().map_or(&[][..], Vec::as_slice);
    !summary["counterfactual"].is_null() || agents.iter().any(|agent| !agent["alone"].is_null())
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_summary_without_figures_tells_none_and_a_broken_one_costs_no_other() {
        assert_eq!(told(&json!({ "agents": [] })), None);
        assert_eq!(told(&Value::Null), None);
        let mut summary = json!({
            "fairness": { "of": "loss", "median": 0.5, "worst_decile": 0.75, "jain": 1.0, "gini": 0.25 },
            "population": { "loss": "low" },
            "counterfactual": 7,
        });
        let found = told(&summary).unwrap();
        let fairness = found.fairness.as_ref().unwrap();
        assert_eq!((&*fairness.of, fairness.median, fairness.gini), ("loss", 0.5, 0.25));
        assert_eq!((found.population, found.alone, found.extra), (None, None, None));
        summary["population"] = json!({ "loss": 0.125, "accuracy": 0.5 });
        summary["fairness"]["jain"] = json!(null);
        let found = told(&summary).unwrap();
        assert_eq!(found.fairness, None);
        assert_eq!(found.population, Some(Score::new(0.125).with("accuracy", 0.5)));
    }
}
