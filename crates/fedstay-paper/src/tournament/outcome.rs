//! What came of one run of a tournament: a line of `tournament.csv`.
//!
//! Welfare is the sum over the agents of what they have at the end less what it cost them. What an
//! agent has is the delivered model, or, if it left, the one it left with: worth 1 at or under its
//! target loss, falling to 0 at twice that. One that left by foresight has made its model good enough
//! by its own steps since, and counts 1. Every round in which it worked costs 0.001.
//!
//! The server wants one model for everybody: what it has is the delivered model on rows that nobody
//! trained on, worth 1 at or under the agents' mean target loss and 0 from twice that on, as often as
//! there are agents. `welfare_all` is the agents' welfare and the server's.

use anyhow::Result;
use fedstay::Measure;
use fedstay::record::{AgentSummary, Summary};
use fedstay_sim::sweep::{self, Record};
use fedstay_terminal::cell;
use serde::Serialize;

/// What a round of work costs an agent.
const COST: f64 = 0.001;

/// The first line of `tournament.csv`.
pub(super) const HEADER: &str = "rule,behaviour,seed,setting,left,returns,verdict,stop,rounds,\
                                 accuracy_mean,accuracy_worst,accuracy_population,welfare,welfare_all,\
                                 better_than_alone,flagged";

/// What came of one run. Of one that diverged there is nothing but its name and why.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Outcome {
    pub(super) rule: String,
    /// The behaviour and, where agents are not always there, the schedule.
    pub(super) behaviour: String,
    pub(super) seed: u64,
    /// The run's key in the store.
    pub(super) setting: String,
    pub(super) left: usize,
    pub(super) returns: usize,
    pub(super) verdict: String,
    pub(super) stop: String,
    pub(super) rounds: u32,
    pub(super) accuracy_mean: f64,
    pub(super) accuracy_worst: f64,
    /// On rows that nobody trained on.
    pub(super) accuracy_population: f64,
    pub(super) welfare: f64,
    /// The same with the server's.
    pub(super) welfare_all: f64,
    pub(super) better_than_alone: f64,
    pub(super) flagged: usize,
    /// Why it diverged.
    #[serde(skip)]
    pub(super) diverged: Option<String>,
}

impl Outcome {
    /// What a stored run came to.
    pub(super) fn of(record: &Record) -> Self {
        let text = |key: &str| record.setting(key).and_then(|value| value.as_str());
        let named = Self {
            rule: text("label").unwrap_or_default().to_owned(),
            behaviour: match (text("behaviour.kind"), text("schedule.kind")) {
                (Some(behaviour), Some(schedule)) if schedule != "always" => {
                    format!("{behaviour}, {schedule}")
                }
                (behaviour, _) => behaviour.unwrap_or_default().to_owned(),
            },
            seed: record.setting("seed").and_then(|seed| seed.as_u64()).unwrap_or_default(),
            setting: record.run.key.clone(),
            ..Self::default()
        };
        match &record.run.outcome {
            sweep::Outcome::Finished(summary) => named.with(summary),
            sweep::Outcome::Diverged(why) => Self {
                verdict: "failed".into(),
                stop: "failed".into(),
                diverged: Some(why.clone()),
                ..named
            },
        }
    }

    /// The same run with what its summary says.
    fn with(self, summary: &Summary) -> Self {
        let agents = summary.agents.len().max(1) as f64;
        let welfare: f64 = summary.agents.iter().map(value).sum();
        let name = &Measure::ACCURACY.name;
        let accuracy = summary.score.measures.get(name);
        let population = summary.population.as_ref().and_then(|score| score.of(name));
        let better = summary.against_alone().map_or(0, |(better, _)| better);
        Self {
            left: summary.leavers(),
            returns: summary.returned.len(),
            verdict: summary.verdict.name().into(),
            stop: summary.stop.name().into(),
            rounds: summary.rounds,
            accuracy_mean: accuracy.map_or(0.0, |accuracy| accuracy.mean),
            accuracy_worst: accuracy.map_or(0.0, |accuracy| accuracy.min),
            accuracy_population: population.unwrap_or(0.0),
            welfare,
            welfare_all: welfare + server_value(summary),
            better_than_alone: better as f64 / agents,
            flagged: summary.flagged.len(),
            ..self
        }
    }

    fn cells(&self) -> [String; 16] {
        let cells = self.all_cells();
        if self.diverged.is_none() {
            return cells;
        }
        // A zero would be read as a result.
        let known = ["rule", "behaviour", "seed", "setting", "verdict", "stop"];
        let mut names = HEADER.split(',');
        cells.map(|cell| {
            let known = names.next().is_some_and(|name| known.contains(&name));
            if known { cell } else { String::new() }
        })
    }

    fn all_cells(&self) -> [String; 16] {
        [
            cell(&self.rule).into_owned(),
            cell(&self.behaviour).into_owned(),
            self.seed.to_string(),
            self.setting.clone(),
            self.left.to_string(),
            self.returns.to_string(),
            self.verdict.clone(),
            self.stop.clone(),
            self.rounds.to_string(),
            self.accuracy_mean.to_string(),
            self.accuracy_worst.to_string(),
            self.accuracy_population.to_string(),
            self.welfare.to_string(),
            self.welfare_all.to_string(),
            self.better_than_alone.to_string(),
            self.flagged.to_string(),
        ]
    }
}

/// What the server has at the end.
fn server_value(summary: &Summary) -> f64 {
    let agents = summary.agents.len() as f64;
    let epsilon: f64 = summary.agents.iter().map(|agent| agent.epsilon).sum::<f64>() / agents;
    let worth = |loss: f64| agents * (2.0 - loss / epsilon).clamp(0.0, 1.0);
    summary.population.as_ref().map_or(0.0, |population| worth(population.loss))
}

/// What an agent has at the end, less what it cost it.
fn value(agent: &AgentSummary) -> f64 {
    let loss = agent.ends_with.as_ref().map_or(agent.score.loss, |score| score.loss);
    let foresaw = agent.entry.left.is_some() && agent.behaviour.as_deref() == Some("foresight");
    let worth = if foresaw { 1.0 } else { (2.0 - loss / agent.epsilon).clamp(0.0, 1.0) };
    worth - COST * f64::from(agent.entry.reports.saturating_sub(agent.idle))
}

/// The bytes of `tournament.csv`.
pub(super) fn csv_bytes(outcomes: &[Outcome]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER.split(','))?;
    for outcome in outcomes {
        writer.write_record(outcome.cells())?;
    }
    Ok(writer.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay_sim::experiment::Experiment;
    use fedstay_sim::run::Trial;

    fn played(set: &[(&str, &str)]) -> Summary {
        let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let experiment = Experiment::parse("compare_alone = true", &set).unwrap();
        Trial::new(experiment).unwrap().run(&mut []).unwrap().unwrap()
    }

    #[test]
    fn flags_are_counted_by_agents_and_not_by_words() {
        let of = "[{kind='lying', agents=[3], within=0.2}, {kind='threshold', share=1.0}]";
        let mut summary = played(&[
            ("model.kind", "softmax-regression"),
            ("rule.kind", "retain"),
            ("epsilon", "0.4"),
            ("rounds", "150"),
            ("step_size", "0.2"),
            ("behaviour.kind", "mixed"),
            ("behaviour.of", of),
        ]);
        assert_eq!(Outcome::default().with(&summary).flagged, 1);
        // However a warning is worded, what counts is the summary's own list.
        summary.warnings = vec!["agent 5 is flagged, in other words".into(); 4];
        assert_eq!(Outcome::default().with(&summary).flagged, 1);
        summary.flagged.clear();
        assert_eq!(Outcome::default().with(&summary).flagged, 0);
    }

    #[test]
    fn welfare_is_what_agents_have_less_what_it_cost_them() {
        let mut agent = played(&[("rounds", "2")]).agents.swap_remove(0);
        let worth = |agent: &AgentSummary| (1e6 * value(agent)).round() / 1e6;
        (agent.epsilon, agent.entry.reports, agent.idle) = (0.2, 100, 0);
        let mut with = |loss: f64| {
            let score = agent.ends_with.as_mut().unwrap();
            score.loss = loss;
            worth(&agent)
        };
        // Full at or under ε, nothing from 2ε on, a straight line between; a round costs 0.001.
        assert_eq!(
            [with(0.1), with(0.2), with(0.3), with(0.4), with(9.0)],
            [0.9, 0.9, 0.4, -0.1, -0.1]
        );
        // One that left with it has as much as one that got it in the end, unless it foresaw the rest.
        agent.entry.left = Some(100);
        assert_eq!(worth(&agent), -0.1);
        agent.behaviour = Some("foresight".into());
        assert_eq!(worth(&agent), 0.9);
        // Rounds without work cost nothing.
        agent.idle = 60;
        assert_eq!(worth(&agent), 0.96);
    }

    #[test]
    fn the_server_has_as_much_as_the_population_is_served() {
        let mut summary = played(&[("rounds", "2"), ("epsilon", "0.2")]);
        let mut with = |loss: f64| {
            summary.population.as_mut().unwrap().loss = loss;
            let outcome = Outcome::default().with(&summary);
            (1e6 * (outcome.welfare_all - outcome.welfare)).round() / 1e6
        };
        assert_eq!(
            [with(0.1), with(0.2), with(0.3), with(0.4), with(2.0)],
            [10.0, 10.0, 5.0, 0.0, 0.0]
        );
    }

    #[test]
    fn a_table_has_one_line_per_run_and_no_formulas() {
        let outcome = Outcome { rule: "=1+1".into(), welfare: -1.25, ..Outcome::default() };
        let text = String::from_utf8(csv_bytes(&[outcome]).unwrap()).unwrap();
        assert_eq!(text, format!("{HEADER}\n'=1+1,,0,,0,0,,,0,0,0,0,-1.25,0,0,0\n"));
        let diverged = Some("overflow".to_owned());
        let failed =
            Outcome { rule: "a".into(), stop: "failed".into(), diverged, ..Outcome::default() };
        let text = String::from_utf8(csv_bytes(&[failed]).unwrap()).unwrap();
        assert_eq!(text, format!("{HEADER}\na,,0,,,,,failed,,,,,,,,\n"));
    }
}
