//! What the page is told about one run, except its series.

use crate::cast::Cast;
use crate::delivered::{Delivered, DeliveredTo, to_agents};
use crate::history::{Agent, History, Source};
use crate::library::Listing;
use crate::run::Run;
use crate::settings;
use crate::spread;
use crate::words;
use crate::worth;
use fedstay::AgentId;
use fedstay::ledger::AgentEntry;
use fedstay_draw::words::State;
use serde::Serialize;
use serde_json::{Value, json};

/// The most rows of the table of agents.
const MOST_ROWS: usize = 500;

/// One agent: what is known of it now, and what the ledger counted about it.
#[derive(Debug, Serialize)]
struct AgentRow<'a> {
    id: AgentId,
    name: Option<&'a str>,
    epsilon: Option<f64>,
    /// Its last known loss, and where that comes from.
    loss: Option<f64>,
    /// Its last measured accuracy.
    accuracy: Option<f64>,
    source: Option<Source>,
    /// The number of its state in the last round.
    state: u8,
    /// The round in which it leaves if its loss keeps its pace, and that pace.
    predicted: Option<u32>,
    pace: Option<f64>,
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
        (history, cast): (&History, &'a Cast),
        delivered: Option<&'a DeliveredTo>,
    ) -> Self {
        let loss = agent.loss.filter(|(loss, ..)| loss.is_finite());
        Self {
            id: agent.id,
            name: agent.name.as_deref(),
            epsilon: agent.epsilon,
            loss: loss.map(|(loss, ..)| loss),
            accuracy: agent.accuracy,
            source: loss.map(|(_, source, _)| source),
            state: agent.state as u8,
            predicted: agent.predicted(),
            pace: agent.pace(),
            behaviour: cast.behaviour(place),
            classes: cast.classes(place),
            entry: history.entry(agent.id),
            delivered,
        }
    }
}

/// What the page reads in a summary itself. The rest of it, a matrix of all agents for instance, may be long.
fn told_of(summary: &Value) -> Value {
    let read = ["rounds", "warnings", "misses", "weights"];
    read.iter().map(|key| ((*key).to_owned(), summary[*key].clone())).collect()
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
        "summary": summary.map(told_of),
        "delivered": summary.map(Delivered::of),
        "spread": summary.and_then(spread::told),
        "words": summary.map(words::of_summary),
        "counters": words::counters(summary.is_some()),
        "keeping": words::keeping(summary, last.and_then(|line| line.kept)),
        "config": run.config,
        "settings": run.config.as_deref().map(settings::read),
        "harm": summary.and_then(words::harm),
        "privacy": summary.and_then(words::privacy),
        "trouble": run.trouble().take(50).collect::<Vec<_>>(),
        "troubles": run.troubles + run.trouble().filter(|trouble| trouble.line.is_none()).count(),
        "theory": run.theory.told(),
        "states": words::states(),
        "rounds": 0,
        "agents": [],
    });
    let Some(history) = &run.history else { return told };
    told["worth"] = json!(worth::told(summary, &history.balance));
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
