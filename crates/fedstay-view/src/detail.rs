//! What the page is told about one run, except its series.

use crate::configured::ConfiguredAgents;
use crate::delivered::{Delivered, DeliveredTo, measures, to_agents};
use crate::history::{Agent, History, LossSource};
use crate::listing::Listing;
use crate::run::Run;
use crate::settings;
use crate::spread;
use crate::words;
use crate::worth;
use fedstay::forecast::Forecast;
use fedstay::ledger::AgentEntry;
use fedstay::record::{called, called_briefly};
use fedstay::{AgentId, Measure};
use fedstay_draw::words::{State, departure};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most rows of the table of agents.
const MOST_ROWS: usize = 500;

/// One agent: what is known of it now, and what the ledger counted about it.
#[derive(Debug, Serialize)]
struct AgentRow<'a> {
    id: AgentId,
    /// What it is called in a sentence, and under a heading that says that it is an agent.
    called: String,
    brief: String,
    epsilon: Option<f64>,
    /// Its last known loss, how far that is above its target loss, where it comes from, and its round.
    loss: Option<f64>,
    margin: Option<f64>,
    source: Option<LossSource>,
    loss_round: Option<u32>,
    /// What was last measured of it besides the loss, by name.
    measures: BTreeMap<&'a str, f64>,
    /// The number of its state in the last round.
    state: u8,
    /// When its loss is predicted to reach its target loss, and that in words.
    forecast: Option<Forecast>,
    departure: Option<String>,
    /// How it behaves and which classes it holds, where the configuration says so.
    behaviour: Option<&'a str>,
    classes: Option<&'a str>,
    /// What is counted about it, under the names of `summary.json`.
    #[serde(flatten)]
    entry: AgentEntry,
    /// How good the delivered model is for it, once there is one.
    delivered: Option<&'a DeliveredTo>,
}

impl<'a> AgentRow<'a> {
    fn new(
        (place, agent): (usize, &'a Agent),
        (history, cast): (&History, &'a ConfiguredAgents),
        delivered: Option<&'a DeliveredTo>,
    ) -> Self {
        let loss = agent.loss.filter(|(loss, ..)| loss.is_finite());
        let now = history.rounds.last().copied().unwrap_or(0);
        let forecast = agent.forecast().filter(|told| told.latest > now);
        Self {
            id: agent.id,
            called: called(agent.id, agent.name.as_deref()),
            brief: called_briefly(agent.id, agent.name.as_deref()),
            epsilon: agent.epsilon,
            loss: loss.map(|(loss, ..)| loss),
            margin: loss.and(agent.margin()),
            source: loss.map(|(_, source, _)| source),
            loss_round: loss.map(|(.., round)| round),
            measures: agent.measures.iter().map(|(name, value)| (name, *value)).collect(),
            state: agent.state as u8,
            departure: forecast.map(|told| departure(&told, now, history.header.rounds)),
            forecast,
            behaviour: cast.behaviour(place),
            classes: cast.classes(place),
            entry: history.entry(agent.id),
            delivered,
        }
    }
}

/// What the page reads in a summary itself. The rest of it, a matrix of all agents for instance, may be long. That
/// files changed since comes before its own warnings.
fn told_of(summary: &Value, changed: &[&str]) -> Value {
    let read = ["rounds", "warnings", "misses", "weights"];
    let mut told: Value =
        read.iter().map(|key| ((*key).to_owned(), summary[*key].clone())).collect();
    if let Some(changed) = fedstay_draw::words::changed(changed) {
        let own = summary["warnings"].as_array().into_iter().flatten().cloned();
        told["warnings"] = std::iter::once(json!(changed)).chain(own).collect();
    }
    told
}

/// What is measured besides the loss: by the summary or, before there is one, by the rounds.
fn measures_of(run: &Run) -> Vec<Measure> {
    let seen = |history: &History| -> Vec<Measure> {
        history.tracks.measured.iter().map(|tracks| tracks.measure.clone()).collect()
    };
    let told = run.summary.as_ref().map(measures);
    told.or_else(|| run.history.as_ref().map(seen)).unwrap_or_else(Measure::usual)
}

/// How many agents left, of how many: by the summary or, before there is one, by the rounds.
fn left_of(summary: Option<&Value>, run: &Run) -> (usize, usize) {
    let counts = summary.map(|summary| Delivered::of(summary).counts);
    let seen = |history: &History| {
        let left = history.agents.iter().filter(|agent| agent.state == State::Left).count();
        (left, history.everybody())
    };
    let told = counts.map(|counts| (counts.left, counts.agents));
    told.or_else(|| run.history.as_ref().map(seen)).unwrap_or_default()
}

/// Everything about a run except its series.
pub(crate) fn detail(listing: &Listing, run: &Run) -> Value {
    let (summary, last) =
        (run.summary.as_ref(), run.history.as_ref().and_then(|h| h.last.as_ref()));
    let mut told = json!({
        "listing": listing,
        "version": run.version,
        "revision": run.revision,
        "status": run.status(),
        "summary": summary.map(|summary| told_of(summary, &run.changed)),
        "delivered": summary.map(Delivered::of),
        "spread": summary.and_then(spread::told),
        "words": summary.map_or_else(|| words::of_standing(run.status()), words::of_summary),
        "counters": words::counters(summary.is_some()),
        "keeping": words::keeping(summary, last.and_then(|line| line.kept), left_of(summary, run)),
        "config": run.config,
        "settings": run.config.as_deref().map(settings::read),
        "harm": summary.and_then(words::harm),
        "privacy": summary.and_then(words::privacy),
        "trouble": run.trouble().take(50).collect::<Vec<_>>(),
        "troubles": run.troubles + run.trouble().filter(|trouble| trouble.line.is_none()).count(),
        "theory": run.theory.told(),
        "states": words::states(),
        "measures": measures_of(run),
        "rounds": 0,
        "agents": [],
    });
    let Some(history) = &run.history else { return told };
    told["worth"] = json!(worth::told(summary, &history.balance, &history.header));
    if summary.is_none() {
        told["words"] = json!(words::of_history(history, run.status()));
    }
    let delivered = summary.map(to_agents).unwrap_or_default();
    let agents: Vec<AgentRow<'_>> = history
        .agents
        .iter()
        .enumerate()
        .take(MOST_ROWS)
        .map(|agent| AgentRow::new(agent, (history, &run.cast), delivered.get(&agent.1.id.0)))
        .collect();
    let count = |wanted: State| history.agents.iter().filter(|agent| agent.state == wanted).count();
    told["agents"] = json!(agents);
    told["agents_all"] = json!(history.agents.len());
    told["counts"] = json!({
        "left": count(State::Left), "in_d": count(State::InD), "fault": count(State::Fault),
        "absent": count(State::Absent), "free": count(State::Free),
    });
    told["left"] = json!(history.left());
    told["rounds"] = json!(history.rounds.len());
    told["round"] = json!(history.rounds.last());
    told["cut"] = json!(history.cut);
    told["own"] = json!(history.own);
    told["previews"] = json!(history.header.previews);
    told["sketch"] = json!(history.header.sketch);
    // The folder of a sweep's run is made when somebody looks, so its times say nothing.
    let times = run.times(history.header.rounds).filter(|_| !history.header.sketch);
    told["times"] = json!(times);
    told["map"] = json!(
        run.theory.problem().is_some_and(|instance| instance.dimension() == 2)
            && !history.path.is_empty()
    );
    let landed = last.and_then(|line| line.landed);
    told["landing"] = json!(words::landing(summary, landed));
    told["last"] = json!({
        "case": last.and_then(|line| line.case),
        "misses": history.ledger.misses(),
        "stop": last.and_then(|line| line.stop), "rank": last.and_then(|line| line.rank),
        "step_size": last.map(|line| line.step_size), "step_norm": last.map(|line| line.step_norm),
    });
    told
}
