//! `fedstay compare`: the same federation under several rules.

use super::INTERRUPTED;
use crate::summary::tone;
use anyhow::{Context, Result};
use fedstay::record::{RoundLine, Spread, Summary};
use fedstay::{Measure, Score};
use fedstay_draw::picture::{self, Compared};
use fedstay_draw::words::{count, harm, leavers, moments, worst};
use fedstay_sim::experiment::{DEFAULT, Experiment, SpecError, read_table, under};
use fedstay_sim::run::{Recorded, Trial};
use fedstay_sim::simulator::Simulator;
use fedstay_sim::simulator::baseline::BaselineScores;
use fedstay_sim::sweep::AloneScores;
use fedstay_terminal::{Cell, Column, Guarded, Progress, Screen, Table, Threads};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The ceiling, averaging with what reviewers would try first, ADA-GD with its control, and what this
/// project adds: retain, and averaging under preview.
const DEFAULT_RULES: &str = "fedavg+never,fedavg,fedavg+early-stop,fedavg+keep-best,\
                             ada-gd+no-projection,ada-gd,ada-gd+halve,retain,fedavg+preview";

/// Every agent trains alone once for all rules. With more agents than this, that would take longer than
/// most comparisons, so it has to be asked for, with `compare_alone`.
const MOST_ALONE: usize = 1_000;

const EXAMPLES: &str = "\
Examples:
  # real digits, nine rules, a picture
  fedstay compare
  # two rules, another seed
  fedstay compare --rules fedavg,ada-gd+halve --set seed=1
  # an example of the paper; a federation of your own
  fedstay compare --set problem.kind=observation-3
  fedstay compare experiment.toml --rules fedavg,retain --json
  # what the departures cost, rule by rule
  fedstay compare --counterfactual

A rule may carry what to change about it: +halve and +no-projection (ada-gd), +early-stop, +keep-best, \
+guard and +preview (the server's policy), +never (agents that never leave: the ceiling), or another \
behaviour, as in retain+foresight (see `fedstay list behaviours`).";

/// Run the same federation under several rules.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Compare {
    #[command(flatten)]
    source: Guarded,
    /// The rules, separated by commas; nine by default, the ceiling and the controls among them
    #[arg(long, default_value = DEFAULT_RULES, hide_default_value = true, value_delimiter = ',')]
    rules: Vec<String>,
    /// The folder for the picture
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
    /// Where somebody left, run again with nobody leaving, and say what the departures cost
    #[arg(long)]
    counterfactual: bool,
    /// Print the summaries as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: Threads,
}

impl Compare {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        self.threads.start()?;
        let source = self.source.source();
        let (text, set) = source.read(DEFAULT)?;
        let mut experiments = Vec::new();
        for label in &self.rules {
            let table = read_table(&text).map_err(|error| source.locate(error))?;
            let table = under(table, label.trim())?;
            let text = toml::to_string(&table)?;
            let mut experiment =
                Experiment::parse(&text, &set).map_err(|error| source.locate(error))?;
            let agents = experiment.training().map_or(0, |training| training.agents);
            experiment.compare_alone |= agents <= MOST_ALONE;
            experiments.push((label.trim().to_owned(), experiment));
        }
        let alone = AloneScores::default();
        let rounds = experiments.first().map_or(0, |(_, experiment)| experiment.rounds);
        let (mut compared, mut baselines) = (Vec::new(), None);
        for (label, experiment) in experiments {
            let mut trial = Trial::new(experiment.clone())?;
            alone.tell(&mut trial)?;
            if baselines.is_none() {
                baselines = Some(trial.simulator().map_or(Ok(Vec::new()), of_owners)?);
            }
            let mut progress = Progress::named(&trial, &label, screen);
            let mut rounds: Vec<RoundLine> = Vec::new();
            let summary = trial.run(&mut [&mut progress, &mut rounds])?;
            let mut summary = summary.context(INTERRUPTED)?;
            progress.finish();
            if self.counterfactual && !summary.left.is_empty() {
                summary.counterfactual = Some(super::run::counterfactual(experiment, screen)?);
            }
            let header = trial.header().clone();
            let recorded = Recorded { header, rounds, unreadable: Vec::new() };
            compared.push(Compared { rule: label.clone(), label, recorded, summary });
        }
        self.print(&compared, &baselines.unwrap_or_default(), rounds, screen)
    }

    fn print(
        &self,
        compared: &[Compared],
        baselines: &[BaselineScores],
        rounds: u32,
        screen: &Screen,
    ) -> Result<()> {
        if self.json {
            let summaries: Vec<&Summary> = compared.iter().map(|run| &run.summary).collect();
            return screen.print(&format!("{}\n", serde_json::to_string_pretty(&summaries)?));
        }
        if let Some(Compared { summary, .. }) = compared.first() {
            let agents = count(summary.count(), "agent");
            screen.say(&format!(
                "{}, {agents}, seed {}: each leaves for good once the model is good enough for it\n",
                summary.on, summary.seed
            ))?;
            summary.notes.iter().try_for_each(|note| screen.say(&format!("{note}\n")))?;
        }
        screen.print(&screen.table(&comparison(compared, baselines)))?;
        if let Some(measure) = measured_on_held_back(compared) {
            screen.say(&format!(
                "\nMean and worst: {} on members' own held-back rows.",
                measure.label
            ))?;
        }
        if !baselines.is_empty() {
            screen.say(&format!("\n{BASELINES}"))?;
        }
        if let Some(meaning) = alone(compared, rounds) {
            screen.say(&format!("\n{meaning}"))?;
        }
        let mut told = BTreeSet::new();
        for Compared { label, summary, .. } in compared {
            for warning in summary.warnings.iter().filter(|warning| told.insert(warning.as_str())) {
                screen.say(&format!("\nWARNING  {label}: {warning}"))?;
            }
        }
        let files = picture::compare::write(compared, &self.out)?;
        for sentence in picture::compare::sentences(compared) {
            screen.say(&format!("\n{sentence}"))?;
        }
        for run in compared {
            if let Some(harm) = harm(&run.summary) {
                screen.say(&format!("\n{}. {harm}", run.label))?;
            }
        }
        screen.mention("")?;
        files.iter().try_for_each(|file| screen.written(file))
    }
}

/// What the rows are that no rule made.
const BASELINES: &str = "Baselines: `constant` tells everybody the base rates, or the mean; `alone` is \
    the best model of each member's own rows, its outside option; `pooled` is the best one of all \
    members' rows in one place. Rows that are held back are a member's own, and nobody trained on \
    them.";

/// The baselines of a real federation: where the data say who holds a row.
fn of_owners(simulator: &Simulator) -> Result<Vec<BaselineScores>, SpecError> {
    match simulator.population().name(0) {
        Some(_) => simulator.baselines().scored(),
        None => Ok(Vec::new()),
    }
}

/// What the column "better than alone" counts, if it is there.
fn alone(compared: &[Compared], rounds: u32) -> Option<String> {
    let mut judged = compared.iter().flat_map(|run| &run.summary.agents);
    let (agent, alone) = judged.find_map(|agent| Some((agent, agent.alone.as_ref()?)))?;
    let on = match (alone.of(&Measure::UNSEEN.name), &agent.held_back) {
        (Some(_), Some(_)) => "accuracy on their own held-back rows",
        (Some(_), None) => "accuracy on unseen rows of their own mix of classes",
        (None, Some(_)) => "the loss on their own held-back rows",
        (None, None) => "the loss on their own data",
    };
    let rounds = count(rounds, "round");
    Some(format!(
        "Better than alone: members whose model in the end (the one they left with, if they left) beats \
         the one that {rounds} of the same work without the others would have made, by {on}."
    ))
}

/// The headline, where it is known on held-back rows of every run's agents.
fn measured_on_held_back(compared: &[Compared]) -> Option<&Measure> {
    let mut headlines = compared.iter().map(|run| run.summary.headline().0);
    let measure = headlines.find(|measure| **measure != Measure::LOSS)?;
    compared.iter().all(|run| run.summary.on_held_back(measure).is_some()).then_some(measure)
}

fn comparison(compared: &[Compared], baselines: &[BaselineScores]) -> Table {
    let headlines = compared.iter().map(|run| run.summary.headline().0);
    let measure = headlines.clone().find(|measure| **measure != Measure::LOSS);
    let population = compared.iter().any(|run| run.summary.population.is_some());
    let alone = compared.iter().any(|run| run.summary.better_than_alone.is_some());
    let mut columns = vec![
        Column::kept("rule"),
        Column::kept("left"),
        Column::kept("verdict"),
        Column::dispensable("who left when", 8),
        Column::dispensable("content", 3),
        Column::dispensable("stopped", 6),
        Column::dispensable("rounds", 2),
        // Beside something else, losses are what can be spared.
        Column::dispensable("mean loss", if measure.is_some() { 5 } else { 3 }),
        Column::dispensable("worst loss", if measure.is_some() { 7 } else { 1 }),
    ];
    if measure.is_some() {
        columns.extend([Column::dispensable("mean", 1), Column::kept("worst")]);
    }
    if population {
        columns.push(Column::dispensable("population", 4));
    }
    // Where mean and worst are of held-back rows already, a column of them would say it twice.
    let on_held_back = measured_on_held_back(compared).is_some();
    let held_back = !on_held_back && compared.iter().any(|run| run.summary.held_back.is_some());
    if held_back {
        columns.push(Column::kept("held back"));
    }
    if alone {
        columns.push(Column::kept("better than alone"));
    }
    let otherwise = Measure::LOSS;
    let by = measure.unwrap_or(&otherwise);
    let mut table = Table::new(columns);
    for Compared { label, summary, .. } in compared {
        let agents = summary.known();
        let mut row = vec![
            Cell::from(label.clone()),
            leavers(summary).into(),
            Cell::toned(summary.verdict.name(), tone(summary)),
            moments(summary).into(),
            format!("{} of {agents}", summary.satisfied()).into(),
            summary.stop.name().into(),
            summary.rounds.to_string().into(),
            format!("{:.3}", summary.score.loss.mean).into(),
            format!("{:.3}", summary.score.loss.max).into(),
        ];
        if let Some(measure) = measure {
            let over = match on_held_back {
                true => summary.on_held_back(measure),
                false => summary.score.get(&measure.name),
            };
            row.push(measure.or_dash(over.map(|over| over.mean)).into());
            row.push(measure.or_dash(over.map(|over| worst(measure, over))).into());
        }
        if population {
            let score = summary.population.as_ref();
            let value = measure.and_then(|measure| Some(measure.shown(score?.of(&measure.name)?)));
            row.push(value.unwrap_or_else(|| "–".to_owned()).into());
        }
        if held_back {
            let over = summary.held_back.as_ref().and_then(|score| score.get(&by.name));
            row.push(by.or_dash(over.map(|over| over.mean)).into());
        }
        if alone {
            let told = |(better, of)| format!("{better} of {of}");
            row.push(summary.against_alone().map_or(String::new(), told).into());
        }
        table.row(row);
    }
    for baseline in baselines {
        let own = Score::over(baseline.of.iter().map(|made| &made.score));
        let kept: Vec<Score> =
            baseline.of.iter().filter_map(|made| Some(made.held_back.as_ref()?.score())).collect();
        let kept = Score::over(kept.iter());
        let nothing = || Cell::from("–");
        let mut row: Vec<Cell> = vec![baseline.name.into()];
        row.extend((0..6).map(|_| nothing()));
        let loss = |of: fn(&Spread) -> f64| {
            own.as_ref().map_or(nothing(), |own| format!("{:.3}", of(&own.loss)).into())
        };
        row.extend([loss(|over| over.mean), loss(|over| over.max)]);
        if let Some(measure) = measure {
            let judged = if on_held_back { &kept } else { &own };
            let over = judged.as_ref().and_then(|judged| judged.get(&measure.name));
            row.push(measure.or_dash(over.map(|over| over.mean)).into());
            row.push(measure.or_dash(over.map(|over| worst(measure, over))).into());
        }
        if population {
            row.push(nothing());
        }
        if held_back {
            let over = kept.as_ref().and_then(|kept| kept.get(&by.name));
            row.push(by.or_dash(over.map(|over| over.mean)).into());
        }
        if alone {
            row.push(nothing());
        }
        table.row(row);
    }
    table
}
