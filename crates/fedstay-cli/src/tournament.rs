//! A tournament's runs and its table.
//!
//! Welfare is the sum over the agents of what they have at the end less what it cost them. What an
//! agent has is the delivered model, or, if it left, the one it left with: worth 1 at or under its
//! precision, falling to 0 at twice that. One that left by foresight has made its model good enough
//! by its own steps since, and counts 1. Every round in which it worked costs 0.001.

use crate::spreadsheet::cell;
use crate::table;
use anyhow::{Context, Result};
use fedstay::record::{AgentSummary, Score, Summary};
use fedstay_draw::picture::tournament as picture;
use fedstay_draw::words::{better_than_alone, percent, whole_percent};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::{Parting, Trial, write_whole};
use fedstay_sim::simulator::Simulator;
use fedstay_sim::sweep::RESULTS;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What a round of work costs an agent.
const COST: f64 = 0.001;

const COLUMNS: [&str; 14] = [
    "rule",
    "behaviour",
    "seed",
    "setting",
    "left",
    "returns",
    "verdict",
    "stop",
    "rounds",
    "accuracy_mean",
    "accuracy_worst",
    "welfare",
    "better_than_alone",
    "flagged",
];

/// One run there is to be.
#[derive(Debug, Clone)]
pub(crate) struct Bout {
    pub(crate) rule: String,
    pub(crate) behaviour: String,
    pub(crate) seed: u64,
    /// A name for everything the experiment says, so that results of another one are not mistaken
    /// for this one's.
    setting: String,
    experiment: Experiment,
}

impl Bout {
    pub(crate) fn new(
        rule: &str,
        behaviour: &str,
        seed: u64,
        experiment: Experiment,
    ) -> Result<Self> {
        let text = format!("results {RESULTS} {}", experiment.to_toml()?);
        let setting = format!("{:016x}", fedstay::fingerprint(text));
        Ok(Self { rule: rule.into(), behaviour: behaviour.into(), seed, setting, experiment })
    }
}

/// What came of one run: a line of `tournament.csv`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Outcome {
    pub(crate) rule: String,
    pub(crate) behaviour: String,
    pub(crate) seed: u64,
    pub(crate) setting: String,
    pub(crate) left: usize,
    pub(crate) returns: usize,
    pub(crate) verdict: String,
    pub(crate) stop: String,
    pub(crate) rounds: u32,
    pub(crate) accuracy_mean: f64,
    pub(crate) accuracy_worst: f64,
    pub(crate) welfare: f64,
    pub(crate) better_than_alone: f64,
    pub(crate) flagged: usize,
}

/// What every agent makes alone, by seed: the same for all rules and behaviours.
pub(crate) fn alone(bouts: &[&Bout]) -> Result<BTreeMap<u64, Vec<Score>>> {
    let mut first: BTreeMap<u64, &Experiment> = BTreeMap::new();
    for bout in bouts {
        first.entry(bout.seed).or_insert(&bout.experiment);
    }
    let scores = |(seed, experiment): (&u64, &&Experiment)| {
        let simulator = Simulator::new(experiment)?;
        let scores = simulator.scores_alone(experiment.step_size, experiment.rounds)?;
        Ok((*seed, scores))
    };
    first.par_iter().map(scores).collect()
}

/// Plays one run. One that diverges is an outcome too; any other failure is none, and is not kept.
pub(crate) fn play(bout: &Bout, alone: Option<&Vec<Score>>) -> Result<Outcome> {
    let Bout { rule, behaviour, seed, setting, .. } = bout.clone();
    let failed = Outcome {
        rule,
        behaviour,
        seed,
        setting,
        left: 0,
        returns: 0,
        verdict: "failed".into(),
        stop: "failed".into(),
        rounds: 0,
        accuracy_mean: 0.0,
        accuracy_worst: 0.0,
        welfare: 0.0,
        better_than_alone: 0.0,
        flagged: 0,
    };
    match judged(bout, alone.map(Vec::as_slice)) {
        Ok((summary, idle)) => Ok(outcome(&summary, &idle, failed)),
        Err(error) if error.downcast_ref().is_some_and(fedstay::Error::is_divergence) => Ok(failed),
        Err(error) => {
            let Bout { rule, behaviour, seed, .. } = bout;
            Err(error.context(format!("{rule} against {behaviour}, seed {seed}")))
        }
    }
}

/// What a summary says, over an outcome that names the run.
fn outcome(summary: &Summary, idle: &[u32], named: Outcome) -> Outcome {
    let agents = summary.agents.len().max(1) as f64;
    let better = summary.agents.iter().filter(|agent| better_than_alone(agent) == Some(true));
    let welfare = summary.agents.iter().zip(idle).map(|(agent, idle)| value(agent, *idle));
    Outcome {
        left: summary.leavers(),
        returns: summary.returned.len(),
        verdict: summary.verdict.name().into(),
        stop: summary.stop.name().into(),
        rounds: summary.rounds,
        accuracy_mean: summary.accuracy.map_or(0.0, |accuracy| accuracy.mean),
        accuracy_worst: summary.accuracy.map_or(0.0, |accuracy| accuracy.min),
        welfare: welfare.sum(),
        better_than_alone: better.count() as f64 / agents,
        flagged: summary.flagged.len(),
        ..named
    }
}

fn judged(bout: &Bout, alone: Option<&[Score]>) -> Result<(Summary, Vec<u32>)> {
    let mut trial = Trial::new(bout.experiment.clone())?;
    let mut parting = Parting::default();
    let mut summary = trial.run(&mut [&mut parting])?.context("interrupted")?;
    trial.compare_with_alone(&mut summary, &parting, alone)?;
    let idle = trial.simulator().map(Simulator::idle_rounds).unwrap_or_default();
    Ok((summary, idle))
}

/// What an agent has at the end, less what it cost it.
fn value(agent: &AgentSummary, idle: u32) -> f64 {
    let loss = agent.ends_with.map_or(agent.loss, |score| score.loss);
    let foresaw = agent.entry.left.is_some() && agent.behaviour.as_deref() == Some("foresight");
    let worth = if foresaw { 1.0 } else { (2.0 - loss / agent.epsilon).clamp(0.0, 1.0) };
    worth - COST * f64::from(agent.entry.reports.saturating_sub(idle))
}

/// The file of finished runs.
pub(crate) struct Standings {
    path: PathBuf,
    file: File,
    done: Vec<Outcome>,
}

impl Standings {
    /// Takes up what an earlier tournament left, even one that was cut off in the middle of a line.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let named = |error: std::io::Error| format!("{}: {error}", path.display());
        let header = format!("{}\n", COLUMNS.join(","));
        let mut done = Vec::new();
        if path.exists() {
            let text = std::fs::read_to_string(path).map_err(named)?;
            if !text.starts_with(&header) {
                return Err(format!(
                    "{}: this is not the table of a tournament; choose another --out",
                    path.display()
                ));
            }
            done = text.lines().skip(1).filter_map(parse).collect();
        }
        // Whole lines only, so that what follows begins on its own.
        let text: String = done.iter().map(line).collect();
        write_whole(path, format!("{header}{text}").as_bytes()).map_err(named)?;
        let file = OpenOptions::new().append(true).open(path).map_err(named)?;
        Ok(Self { path: path.to_owned(), file, done })
    }

    fn find(&self, bout: &Bout) -> Option<&Outcome> {
        self.done.iter().find(|outcome| {
            (&outcome.rule, &outcome.behaviour, &outcome.setting)
                == (&bout.rule, &bout.behaviour, &bout.setting)
        })
    }

    pub(crate) fn has(&self, bout: &Bout) -> bool {
        self.find(bout).is_some()
    }

    /// Keeps a finished run, at once.
    pub(crate) fn add(&mut self, outcome: Outcome) -> std::io::Result<()> {
        self.file.write_all(line(&outcome).as_bytes())?;
        self.done.push(outcome);
        Ok(())
    }

    /// The outcomes of these runs, in their order.
    pub(crate) fn of(&self, bouts: &[Bout]) -> Vec<Outcome> {
        bouts.iter().filter_map(|bout| self.find(bout).cloned()).collect()
    }

    /// Writes the file anew in the order of the table: the same bytes, whoever finished first. Runs
    /// of other settings stay, behind.
    pub(crate) fn finish(&self, outcomes: &[Outcome]) -> Result<()> {
        let others = self.done.iter().filter(|outcome| !outcomes.contains(outcome));
        let text: String = outcomes.iter().chain(others).map(line).collect();
        write_whole(&self.path, format!("{}\n{text}", COLUMNS.join(",")).as_bytes())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn line(outcome: &Outcome) -> String {
    let Outcome { seed, left, returns, rounds, .. } = outcome;
    let [rule, behaviour] = [cell(&outcome.rule), cell(&outcome.behaviour)];
    let [setting, verdict, stop] =
        [&outcome.setting, &outcome.verdict, &outcome.stop].map(|t| cell(t));
    format!(
        "{rule},{behaviour},{seed},{setting},{left},{returns},{verdict},{stop},{rounds},{},{},{},{},{}\n",
        outcome.accuracy_mean,
        outcome.accuracy_worst,
        outcome.welfare,
        outcome.better_than_alone,
        outcome.flagged
    )
}

fn parse(line: &str) -> Option<Outcome> {
    let cells: Vec<&str> = line.split(',').collect();
    let [rule, behaviour, seed, setting, left, returns, verdict, stop, rounds, rest @ ..] =
        cells.as_slice()
    else {
        return None;
    };
    let [accuracy_mean, accuracy_worst, welfare, better_than_alone, flagged] = rest else {
        return None;
    };
    Some(Outcome {
        rule: (*rule).into(),
        behaviour: (*behaviour).into(),
        seed: seed.parse().ok()?,
        setting: (*setting).into(),
        left: left.parse().ok()?,
        returns: returns.parse().ok()?,
        verdict: (*verdict).into(),
        stop: (*stop).into(),
        rounds: rounds.parse().ok()?,
        accuracy_mean: accuracy_mean.parse().ok()?,
        accuracy_worst: accuracy_worst.parse().ok()?,
        welfare: welfare.parse().ok()?,
        better_than_alone: better_than_alone.parse().ok()?,
        flagged: flagged.parse().ok()?,
    })
}

/// A rule against a behaviour, over the seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Averaged {
    /// The rule.
    pub rule: String,
    /// The behaviour.
    pub behaviour: String,
    /// How many agents left.
    pub left: f64,
    /// How often somebody came back.
    pub returns: f64,
    /// The verdicts: one, or how many of each.
    pub verdict: String,
    /// The rounds.
    pub rounds: f64,
    /// The delivered model's accuracy, mean over the agents.
    pub accuracy_mean: f64,
    /// That of the worst agent.
    pub accuracy_worst: f64,
    /// The sum of value less cost.
    pub welfare: f64,
    /// The share of agents that end with a better model than alone.
    pub better_than_alone: f64,
}

/// What the picture shows of them.
pub(crate) fn drawn(lines: &[Averaged]) -> Vec<picture::Bout> {
    let bout = |line: &Averaged| picture::Bout {
        rule: line.rule.clone(),
        behaviour: line.behaviour.clone(),
        result: (line.verdict != "failed").then_some((line.accuracy_worst, line.left)),
    };
    lines.iter().map(bout).collect()
}

/// The means over the seeds, in the order of the outcomes.
pub(crate) fn averaged(outcomes: &[Outcome]) -> Vec<Averaged> {
    let mut groups: Vec<Vec<&Outcome>> = Vec::new();
    for outcome in outcomes {
        let same = |group: &&mut Vec<&Outcome>| {
            group.first().is_some_and(|first| {
                (&first.rule, &first.behaviour) == (&outcome.rule, &outcome.behaviour)
            })
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(outcome),
            None => groups.push(vec![outcome]),
        }
    }
    groups.iter().map(|group| average(group)).collect()
}

fn average(group: &[&Outcome]) -> Averaged {
    let mean = |of: &dyn Fn(&Outcome) -> f64| {
        group.iter().map(|outcome| of(outcome)).sum::<f64>() / group.len() as f64
    };
    let mut verdicts: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in group {
        *verdicts.entry(&outcome.verdict).or_default() += 1;
    }
    let verdict = match verdicts.len() {
        1 => group[0].verdict.clone(),
        _ => verdicts.iter().map(|(name, n)| format!("{n} {name}")).collect::<Vec<_>>().join(", "),
    };
    Averaged {
        rule: group[0].rule.clone(),
        behaviour: group[0].behaviour.clone(),
        left: mean(&|outcome| outcome.left as f64),
        returns: mean(&|outcome| outcome.returns as f64),
        verdict,
        rounds: mean(&|outcome| f64::from(outcome.rounds)),
        accuracy_mean: mean(&|outcome| outcome.accuracy_mean),
        accuracy_worst: mean(&|outcome| outcome.accuracy_worst),
        welfare: mean(&|outcome| outcome.welfare),
        better_than_alone: mean(&|outcome| outcome.better_than_alone),
    }
}

const HEADINGS: [&str; 9] = [
    "behaviour",
    "rule",
    "left",
    "verdict",
    "rounds",
    "accuracy",
    "worst",
    "welfare",
    "better than alone",
];

fn cells(line: &Averaged) -> Vec<String> {
    let back = match line.returns {
        0.0 => String::new(),
        returns => format!(" ({returns:.1} returns)"),
    };
    vec![
        line.behaviour.clone(),
        line.rule.clone(),
        format!("{:.1}{back}", line.left),
        line.verdict.clone(),
        format!("{:.0}", line.rounds),
        percent(line.accuracy_mean),
        percent(line.accuracy_worst),
        format!("{:.2}", line.welfare),
        whole_percent(line.better_than_alone),
    ]
}

/// The table for a terminal.
pub(crate) fn table(lines: &[Averaged]) -> String {
    table::table(&HEADINGS, &lines.iter().map(cells).collect::<Vec<_>>())
}

/// The same for a page.
pub(crate) fn markdown(lines: &[Averaged]) -> String {
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = row(&HEADINGS.map(str::to_owned));
    text.push_str(&row(&HEADINGS.map(|_| "---".to_owned())));
    lines.iter().for_each(|line| text.push_str(&row(&cells(line))));
    text
}

/// Who wins against each behaviour: by departures, worst agent and welfare.
pub(crate) fn sentences(lines: &[Averaged]) -> Vec<String> {
    let mut behaviours: Vec<&str> = Vec::new();
    for line in lines {
        if !behaviours.contains(&line.behaviour.as_str()) {
            behaviours.push(&line.behaviour);
        }
    }
    let sentence = |behaviour: &&str| {
        let of: Vec<&Averaged> =
            lines.iter().filter(|line| line.behaviour == **behaviour).collect();
        let best = |score: &dyn Fn(&Averaged) -> f64| {
            of.iter().copied().max_by(|a, b| score(a).total_cmp(&score(b)))
        };
        let worst = best(&|line| line.accuracy_worst)?;
        let welfare = best(&|line| line.welfare)?;
        let kept: Vec<&str> =
            of.iter().filter(|line| line.left == 0.0).map(|line| line.rule.as_str()).collect();
        let kept = match kept.len() {
            0 => "no rule keeps everybody".to_owned(),
            n if n == of.len() => "every rule keeps everybody".to_owned(),
            _ => format!("everybody stays under {}", kept.join(", ")),
        };
        Some(format!(
            "{behaviour}: {kept}. Best for the worst agent: {} ({:.1}%); most welfare: {} ({:.2}).",
            worst.rule,
            100.0 * worst.accuracy_worst,
            welfare.rule,
            welfare.welfare
        ))
    };
    behaviours.iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_counted_by_agents_and_not_by_words() {
        let set = [
            ("model.kind", "softmax-regression"),
            ("rule.kind", "retain"),
            ("epsilon", "0.4"),
            ("rounds", "150"),
            ("step_size", "0.2"),
            ("behaviour.kind", "mixed"),
            (
                "behaviour.of",
                "[{kind='lying', agents=[3], within=0.2}, {kind='threshold', share=1.0}]",
            ),
        ];
        let set: Vec<_> = set.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let experiment = Experiment::parse("", &set).unwrap();
        let bout = Bout::new("retain", "mixed", 0, experiment).unwrap();
        let played = play(&bout, None).unwrap();
        assert_eq!(played.flagged, 1);
        // However a warning is worded, what counts is the summary's own list.
        let (mut summary, idle) = judged(&bout, None).unwrap();
        summary.warnings = vec!["agent 5 is flagged, in other words".into(); 4];
        assert_eq!(super::outcome(&summary, &idle, played.clone()).flagged, 1);
        summary.flagged.clear();
        assert_eq!(super::outcome(&summary, &idle, played).flagged, 0);
    }

    fn outcome(rule: &str, seed: u64, left: usize, verdict: &str) -> Outcome {
        Outcome {
            rule: rule.into(),
            behaviour: "threshold".into(),
            seed,
            setting: format!("{seed:016x}"),
            left,
            returns: 0,
            verdict: verdict.into(),
            stop: "settled".into(),
            rounds: 100,
            accuracy_mean: 0.1 + 0.2,
            accuracy_worst: 0.5,
            welfare: -1.25,
            better_than_alone: 0.7,
            flagged: 0,
        }
    }

    #[test]
    fn a_line_comes_back_as_it_was() {
        let written = outcome("ada-gd+halve", 7, 3, "harmful");
        assert_eq!(parse(line(&written).trim_end()), Some(written));
        assert_eq!(parse("ada-gd,threshold,0,00"), None);
    }

    #[test]
    fn seeds_are_averaged_and_verdicts_counted() {
        let outcomes = [
            outcome("fedavg", 0, 10, "harmful"),
            outcome("fedavg", 1, 9, "benign"),
            outcome("retain", 0, 0, "retained"),
        ];
        let lines = averaged(&outcomes);
        assert_eq!((lines.len(), lines[0].left), (2, 9.5));
        assert_eq!(lines[0].verdict, "1 benign, 1 harmful");
        assert_eq!(lines[1].verdict, "retained");
        assert!(sentences(&lines)[0].contains("everybody stays under retain"));
        assert_eq!(markdown(&lines).lines().count(), 4);
    }
}
