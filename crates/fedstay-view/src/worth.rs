//! What every agent gave and got, for the page: of a run that is over by its summary, of one under way by what its
//! rounds have said so far.

use fedstay::AgentId;
use fedstay::record::{Header, RoundLine, called, called_briefly};
use fedstay::worth::{AgentWorth, Method, WorthSummary};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most agents whose matrix is sent: more cannot be read.
const MOST_IN_MATRIX: usize = 100;

/// What is summed over the rounds of a run that is under way.
#[derive(Debug, Default)]
pub(crate) struct Balance {
    sums: BTreeMap<AgentId, AgentWorth>,
}

impl Balance {
    pub(crate) fn add(&mut self, line: &RoundLine) {
        let Some(worth) = &line.worth else { return };
        for (place, agent) in worth.agents.iter().enumerate() {
            let sum = self.sums.entry(*agent).or_default();
            for (total, values) in [
                (&mut sum.given, &worth.given),
                (&mut sum.got, &worth.got),
                (&mut sum.loo, &worth.loo),
                (&mut sum.shapley, &worth.shapley),
                (&mut sum.gtg, &worth.gtg),
            ] {
                let value = values.get(place).filter(|value| value.is_finite());
                *total = value.map_or(*total, |value| Some(total.unwrap_or(0.0) + value));
            }
        }
    }
}

/// Who it is about.
#[derive(Debug, Clone, Serialize)]
struct CalledAgent {
    id: AgentId,
    /// What it is called in a sentence, and under a heading that says that it is an agent.
    called: String,
    brief: String,
}

impl CalledAgent {
    fn new(id: AgentId, header: &Header) -> Self {
        let name = header.name(id);
        Self { id, called: called(id, name), brief: called_briefly(id, name) }
    }
}

/// What one agent gave and got.
#[derive(Debug, Serialize)]
struct MemberWorth {
    #[serde(flatten)]
    who: CalledAgent,
    #[serde(flatten)]
    worth: AgentWorth,
}

/// What the page is told.
#[derive(Debug, Default, Serialize)]
pub(crate) struct WorthCard {
    /// Whether it is the sum so far, of the agents that reported.
    live: bool,
    each: Vec<MemberWorth>,
    /// Who is in the matrix: all, or those that exchanged most.
    agents: Vec<CalledAgent>,
    /// By how much each of them (a row) was helped by each (a column); empty while a run is under way.
    help: Vec<Vec<f64>>,
    /// Whether a group would gain by leaving together, in words.
    core: Option<String>,
}

/// What the page is told, if the run keeps this book.
pub(crate) fn told(
    summary: Option<&Value>,
    balance: &Balance,
    header: &Header,
) -> Option<WorthCard> {
    let member =
        |id: AgentId, worth: AgentWorth| MemberWorth { who: CalledAgent::new(id, header), worth };
    let Some(summary) = summary else {
        let each = balance.sums.iter().map(|(id, worth)| member(*id, *worth));
        let told = WorthCard { live: true, each: each.collect(), ..WorthCard::default() };
        return (!told.each.is_empty()).then_some(told);
    };
    let whole: WorthSummary = serde_json::from_value(summary["worth"].clone()).ok()?;
    let agents = summary["agents"].as_array()?.iter();
    let each = agents.filter_map(|agent| {
        let id = serde_json::from_value(agent["id"].clone()).ok()?;
        let worth = serde_json::from_value(agent["worth"].clone()).ok()?;
        Some(member(id, worth))
    });
    let core = whole.core.as_ref().map(|core| core_words(core, header));
    let (agents, help) = match whole.methods.contains(&Method::Help) {
        true => largest(&whole),
        false => Default::default(),
    };
    let agents = agents.into_iter().map(|id| CalledAgent::new(id, header)).collect();
    Some(WorthCard { live: false, each: each.collect(), agents, help, core })
}

/// The matrix, or the part of it with the agents that exchanged most.
fn largest(whole: &WorthSummary) -> (Vec<AgentId>, Vec<Vec<f64>>) {
    let square = whole.help.len() == whole.agents.len()
        && whole.help.iter().all(|row| row.len() == whole.agents.len());
    if !square {
        return Default::default();
    }
    let mut places: Vec<usize> = (0..whole.agents.len()).collect();
    if places.len() > MOST_IN_MATRIX {
        let exchanged = |place: usize| -> f64 {
            let with =
                |other: usize| whole.help[place][other].abs() + whole.help[other][place].abs();
            (0..whole.agents.len()).filter(|other| *other != place).map(with).sum()
        };
        let sizes: Vec<f64> = places.iter().map(|place| exchanged(*place)).collect();
        places.sort_by(|a, b| sizes[*b].total_cmp(&sizes[*a]));
        places.truncate(MOST_IN_MATRIX);
        places.sort_unstable();
    }
    let row = |helped: &usize| places.iter().map(|by| whole.help[*helped][*by]).collect();
    let help = places.iter().map(row).collect();
    (places.iter().map(|place| whole.agents[*place]).collect(), help)
}

fn core_words(core: &fedstay::worth::Core, header: &Header) -> String {
    let group: Vec<String> = core.group.iter().map(|id| called(*id, header.name(*id))).collect();
    match core.excess > 0.0 {
        true => format!(
            "However everything is divided, some group would do better by itself, by at least {:.3}; the one \
             that complains most has {}.",
            core.excess,
            fedstay_draw::words::list(&group)
        ),
        false => {
            "No group would do better by itself, if everything is divided by the least core.".into()
        }
    }
}
