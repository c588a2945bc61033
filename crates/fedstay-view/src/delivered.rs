//! What a finished run delivered, from its summary.
//!
//! No round has the delivered model: it was sent to nobody, and a policy may have chosen it from
//! the past. So once there is a summary, everything that says how a run ended takes it from here.
//! Summaries are read leniently: older ones lack fields, and other engines write them too.

use fedstay::{Better, Interval, Measure};
use fedstay_draw::words::Counts;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How good the delivered model is, under the names of the tracks of the rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Delivered {
    loss_mean: Option<f64>,
    loss_worst: Option<f64>,
    #[serde(flatten)]
    measured: BTreeMap<String, Option<f64>>,
    #[serde(flatten)]
    pub(crate) counts: Counts,
}

impl Delivered {
    pub(crate) fn of(summary: &Value) -> Self {
        let agents = list(&summary["agents"]);
        let left: BTreeSet<u64> =
            list(&summary["left"]).iter().filter_map(|left| left["agent"].as_u64()).collect();
        let judged: Vec<Option<bool>> = agents.iter().map(content).collect();
        let counted = judged.iter().filter(|content| **content == Some(true)).count();
        let whole = |name: &str| summary[name].as_u64().unwrap_or(0) as usize;
        Self {
            loss_mean: summary["loss"]["mean"].as_f64(),
            loss_worst: summary["loss"]["max"].as_f64(),
            measured: measures(summary).iter().flat_map(|of| measured(of, summary)).collect(),
            counts: Counts {
                // Older summaries do not count them.
                content: summary["content"].as_u64().map_or(counted, |content| content as usize),
                agents: agents.len() + whole("unlisted"),
                left: left.len(),
                at_start: list(&summary["content_at_start"]).len(),
                unmeasured: whole("unmeasured"),
                empty: serde_json::from_value(summary["empty"].clone()).ok(),
                failed_left: failed_left(agents, &judged, &left),
                failed: judged.iter().filter(|content| **content == Some(false)).count(),
                unasked: agents.iter().filter(|agent| !agent["loss_of_round"].is_null()).count(),
            },
        }
    }
}

/// The name of a track that says something about a measure: `accuracy_mean`.
pub(crate) fn track_of(measure: &str, part: &str) -> String {
    format!("{measure}_{part}")
}

/// What was measured besides the loss, the headline first: what a summary names, or the usual.
pub(crate) fn measures(summary: &Value) -> Vec<Measure> {
    let named = serde_json::from_value(summary["measures"].clone());
    named.unwrap_or_else(|_| Measure::usual())
}

/// What a summary says of a measure, under the names of its tracks.
fn measured(of: &Measure, summary: &Value) -> [(String, Option<f64>); 3] {
    let (name, over) = (&*of.name, &summary[&*of.name]);
    let worst = match of.better {
        Better::Higher => "min",
        Better::Lower => "max",
    };
    [
        (track_of(name, "mean"), over["mean"].as_f64()),
        (track_of(name, "worst"), over[worst].as_f64()),
        (track_of(name, "population"), summary["population"][name].as_f64()),
    ]
}

/// How many of the agents that the model fails have left.
fn failed_left(agents: &[Value], judged: &[Option<bool>], left: &BTreeSet<u64>) -> usize {
    let failed = agents.iter().zip(judged).filter(|(_, content)| **content == Some(false));
    failed.filter(|(agent, _)| agent["id"].as_u64().is_some_and(|id| left.contains(&id))).count()
}

/// One agent under the delivered model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct DeliveredTo {
    loss: Option<f64>,
    /// The round of its last known loss, for an agent that could not be asked about the model.
    loss_of_round: Option<u64>,
    /// What else was measured, by name.
    measures: BTreeMap<String, Option<f64>>,
    /// The headline of its own held-back rows, where it has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_back: Option<OnHeldBack>,
    /// Whether it is content; `None` where that is not known.
    content: Option<bool>,
    behaviour: Option<String>,
}

/// A measure of an agent's own held-back rows, with its interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct OnHeldBack {
    measure: Measure,
    #[serde(flatten)]
    interval: Interval,
}

/// The first of these measures that is known of an agent's own held-back rows.
fn on_held_back(agent: &Value, measures: &[Measure]) -> Option<OnHeldBack> {
    let known = &agent["held_back"]["measures"];
    measures.iter().find_map(|measure| {
        let interval = serde_json::from_value(known[&*measure.name].clone()).ok()?;
        Some(OnHeldBack { measure: measure.clone(), interval })
    })
}

/// Every agent of a summary, by its id.
pub(crate) fn to_agents(summary: &Value) -> HashMap<u64, DeliveredTo> {
    let agents = list(&summary["agents"]).iter();
    let measures = measures(summary);
    let one = |agent: &Value| {
        let behaviour = agent["behaviour"].as_str().or(summary["behaviour"].as_str());
        let told = DeliveredTo {
            loss: agent["loss"].as_f64(),
            loss_of_round: agent["loss_of_round"].as_u64(),
            measures: measures
                .iter()
                .map(|of| (of.name.to_string(), agent[&*of.name].as_f64()))
                .collect(),
            held_back: on_held_back(agent, &measures),
            content: content(agent),
            behaviour: behaviour.map(|name| name.chars().take(80).collect()),
        };
        Some((agent["id"].as_u64()?, told))
    };
    agents.filter_map(one).collect()
}

/// Whether an agent is content; `None` if it could not be asked or its target loss is not known.
fn content(agent: &Value) -> Option<bool> {
    let asked = agent["loss_of_round"].is_null();
    let (loss, epsilon) = (agent["loss"].as_f64()?, agent["epsilon"].as_f64()?);
    asked.then_some(loss <= epsilon)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_old_summary_without_a_count_is_counted() {
        let mut summary = json!({ "agents": [
            { "id": 0, "epsilon": 0.5, "loss": 0.5 },
            { "id": 1, "epsilon": 0.5, "loss": 0.6 },
            { "id": 2, "epsilon": 0.5, "loss": 0.1, "loss_of_round": 3 },
            { "id": 3, "epsilon": null, "loss": 0.1 },
        ], "left": [{ "agent": 1, "round": 2 }, { "agent": 1, "round": 5 }], "loss": { "max": 0.6 } });
        let told = Delivered::of(&summary);
        let (content, failed, failed_left) = (1, 1, 1);
        let wanted = Counts {
            agents: 4,
            left: 1,
            content,
            failed,
            failed_left,
            unasked: 1,
            ..Counts::default()
        };
        assert_eq!((told.counts, told.loss_worst), (wanted, Some(0.6)));
        summary["content"] = json!(2);
        assert_eq!(Delivered::of(&summary).counts.content, 2);
        let nothing = Delivered::of(&json!(null));
        assert_eq!(nothing.counts, Counts::default());
        assert_eq!(nothing.measured.get("accuracy_mean"), Some(&None));
    }

    #[test]
    fn what_a_summary_measured_has_the_names_of_the_tracks() {
        let brier =
            json!({ "name": "brier", "label": "Brier score", "better": "lower", "unit": "number" });
        let spread = json!({ "min": 0.125, "mean": 0.25, "max": 0.5 });
        let summary = json!({ "measures": [brier], "brier": spread, "accuracy": null,
            "agents": [{ "id": 3, "loss": 1.0, "brier": 0.5 }], "population": { "brier": 0.75 } });
        let told = Delivered::of(&summary);
        let values: Vec<Option<f64>> = told.measured.values().copied().collect();
        assert_eq!(values, [Some(0.25), Some(0.75), Some(0.5)], "mean, population, worst");
        assert_eq!(to_agents(&summary)[&3].measures["brier"], Some(0.5));
    }
}
