//! `fedstay ls`: the runs in a folder, one line each.

use crate::summary::tone;
use anyhow::Result;
use fedstay::ledger::Ledger;
use fedstay::record::{AsJson, Header, Spread, Summary};
use fedstay::{AgentId, Measure, Score};
use fedstay_draw::words::{self, Files, Next, Standing, Traces, count, leavers, mean_loss};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::{changed_since, read_header, read_rounds};
use fedstay_sim::text::one_line;
use fedstay_terminal::{Cell, Column, Screen, Table, Usage};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const EXAMPLES: &str = "\
Examples:
  # every run in runs/
  fedstay ls
  fedstay ls studies/one --json
  # the best first
  fedstay ls --sort worst";

/// List runs: verdict, who left, how good the model is
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Ls {
    /// A folder with runs in it
    #[arg(default_value = "runs", value_name = "DIR")]
    folder: PathBuf,
    /// What to sort by
    #[arg(long, value_name = "COLUMN", default_value = "name")]
    sort: By,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// The folder's name
    Name,
    /// How many left, the fewest first
    Left,
    /// The worst agent's accuracy or loss, the best first
    Worst,
}

/// A run's folder and what can be read of it.
struct Found {
    name: String,
    /// The summary with the rule's label, or how far a run without one has come.
    state: Result<(String, Box<Summary>), Unfinished>,
    /// Its files that are no longer what the run wrote.
    changed: Vec<&'static str>,
}

/// What is known of a run without a summary.
struct Unfinished {
    standing: Standing,
    /// What it is, where its first line can be read.
    header: Option<Header>,
    rounds: usize,
    left: usize,
    why: Option<String>,
    next: Option<Next>,
}

/// The most runs that are told what to do next.
const MOST_NEXT: usize = 5;

impl Ls {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        let mut found = find(&self.folder)?;
        if found.is_empty() {
            let folder = self.folder.display();
            return Err(Usage(format!(
                "{folder} has no runs; `fedstay run` writes them to runs/ unless --out says otherwise"
            ))
            .into());
        }
        let worst = |run: &Found| match run.state.as_ref() {
            Ok((_, summary)) => {
                let (measure, over) = summary.headline();
                measure.badness(words::worst(measure, over))
            }
            Err(_) => f64::INFINITY,
        };
        match self.sort {
            By::Name => {}
            By::Left => found.sort_by_key(|run| {
                run.state.as_ref().map_or(usize::MAX, |(_, summary)| summary.leavers())
            }),
            By::Worst => found.sort_by(|a, b| worst(a).total_cmp(&worst(b))),
        }
        if self.json {
            let runs: Vec<Value> = found.iter().map(Found::json).collect();
            return screen.print(&format!("{}\n", serde_json::to_string_pretty(&runs)?));
        }
        screen.print(&screen.table(&table(&found)))?;
        for Found { name, changed, .. } in &found {
            if let Some(changed) = words::changed(changed) {
                screen.say(&format!("\nWARNING  {name}: {changed}"))?;
            }
        }
        let open = || found.iter().filter_map(|run| Some((run, run.state.as_ref().err()?)));
        let told = open().filter(|(_, state)| !state.standing.is_live() || state.rounds == 0);
        for (Found { name, .. }, state) in told.clone().take(MOST_NEXT) {
            let why = state.why.as_ref().map_or(String::new(), |why| format!(" ({why})"));
            let said = format!("{name}: {}{why}", state.standing.text());
            screen.mention(&format!("\n{}", screen.prose(&said)))?;
            // A command is never broken over two lines.
            if let Some(Next { say, command }) = &state.next {
                screen.mention(&format!("{say}: {}", one_line(command)))?;
            }
        }
        match told.count().saturating_sub(MOST_NEXT) {
            0 => Ok(()),
            more => screen.mention(&format!("… and {} more", count(more, "run"))),
        }
    }
}

/// The runs directly inside a folder, by name; the folder itself, if it is a run.
fn find(folder: &Path) -> Result<Vec<Found>> {
    let is_run = |path: &Path| path.join("rounds.jsonl").is_file();
    let named = |error: std::io::Error| Usage(format!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(named)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_run(path))
        .collect();
    if is_run(folder) {
        paths.push(folder.to_owned());
    }
    paths.sort();
    Ok(paths.iter().map(|path| Found::read(path)).collect())
}

impl Found {
    fn read(path: &Path) -> Self {
        let name = path
            .file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        let summary = std::fs::read(path.join("summary.json")).ok();
        let summary = summary.map(|bytes| Summary::from_json(&bytes).map(Box::new));
        let state = match summary {
            Some(Ok(summary)) => {
                // What was added to the rule is in the header; the summary has the rule alone.
                let header = read_header(&path.join("rounds.jsonl"));
                Ok((header.map_or_else(|_| summary.rule.clone(), |header| header.rule), summary))
            }
            other => {
                let damaged = other.and_then(Result::err);
                Err(Unfinished::read(path, damaged.map(|error| format!("summary.json: {error}"))))
            }
        };
        Self { name, state, changed: changed_since(path) }
    }

    fn json(&self) -> Value {
        match &self.state {
            Ok((rule, summary)) => beside(
                &summary.score,
                json!({
                    "name": self.name,
                    "verdict": summary.verdict.name(),
                    "rule": rule,
                    "on": summary.on,
                    "seed": summary.seed,
                    "rounds": summary.rounds,
                    "stop": summary.stop.name(),
                    "agents": summary.count(),
                    "left": summary.leavers(),
                    "content": summary.satisfied(),
                    "population": summary.population,
                    "changed": self.changed,
                }),
            ),
            Err(Unfinished { standing, header, rounds, left, why, next }) => {
                json!({
                    "name": self.name,
                    "verdict": null,
                    "status": standing.name(),
                    "rule": header.as_ref().map(|header| &header.rule),
                    "on": header.as_ref().map(|header| &header.on),
                    "seed": header.as_ref().map(|header| header.seed),
                    "rounds": rounds,
                    "left": left,
                    "unreadable": why,
                    "next": next.as_ref().map(|next| &next.command),
                })
            }
        }
    }
}

/// An object with a score's parts among its own.
fn beside(score: &Score<Spread>, mut object: Value) -> Value {
    if let (Value::Object(object), Ok(Value::Object(parts))) =
        (&mut object, serde_json::to_value(score))
    {
        object.extend(parts);
    }
    object
}

impl Unfinished {
    /// What the folder of a run shows that has no summary, or one that is damaged.
    fn read(path: &Path, damaged: Option<String>) -> Self {
        let file = path.join("rounds.jsonl");
        let written = std::fs::metadata(&file).and_then(|there| there.modified()).ok();
        let quiet = written.and_then(|when| SystemTime::now().duration_since(when).ok());
        let quiet = quiet.unwrap_or_default();
        let config = std::fs::read_to_string(path.join("config.toml")).ok();
        let experiment = config.is_some_and(|text| Experiment::parse(&text, &[]).is_ok());
        let files = Files { checkpoint: path.join("checkpoint").is_file(), experiment };
        let next = |standing: Standing| standing.next(&path.to_string_lossy(), files);
        let recorded = match read_rounds(&file) {
            Ok(recorded) => recorded,
            Err(why) => {
                // A first line that somebody is writing has no end yet.
                let ended = std::fs::read(&file).is_ok_and(|bytes| bytes.contains(&b'\n'));
                let header = ended.then_some(false);
                let standing = Standing::of(&Traces { header, quiet, ..Traces::default() });
                let why = (standing == Standing::Unreadable).then_some(why);
                let next = next(standing);
                return Self { standing, header: None, rounds: 0, left: 0, why, next };
            }
        };
        let rounds = &recorded.rounds;
        let losses = rounds.first().and_then(mean_loss).zip(rounds.last().and_then(mean_loss));
        let traces = Traces { header: Some(true), rounds: !rounds.is_empty(), losses, quiet };
        let standing = Standing::of(&traces);
        let mut ledger = Ledger::default();
        rounds.iter().for_each(|line| ledger.add(line));
        let gone: BTreeSet<AgentId> = ledger.left().iter().map(|left| left.agent).collect();
        let next = next(standing);
        let (rounds, left) = (rounds.len(), gone.len());
        Self { standing, header: Some(recorded.header), rounds, left, why: damaged, next }
    }
}

/// The runs as a table. Losses and accuracies have columns of their own, those that some run has.
fn table(found: &[Found]) -> Table {
    let over = || found.iter().filter_map(|run| run.state.as_ref().ok());
    // What most runs are told by, and the loss for those that have nothing else.
    let headlines = over().map(|(_, run)| run.headline().0);
    let measure = headlines.clone().find(|measure| **measure != Measure::LOSS);
    let losses = headlines.clone().any(|one| *one == Measure::LOSS);
    let mut columns = vec![
        Column::kept("run"),
        Column::dispensable("rule", 3),
        Column::dispensable("on", 5),
        Column::kept("verdict"),
        Column::kept("left"),
        Column::dispensable("content", 4),
        Column::dispensable("rounds", 2),
    ];
    if let Some(measure) = measure {
        let short = if *measure == Measure::ACCURACY { "acc." } else { &measure.name };
        columns.push(Column::dispensable(format!("mean {short}"), 1));
        columns.push(Column::kept(format!("worst {short}")));
        columns.push(Column::dispensable("population", 6));
    }
    if losses {
        columns.extend([Column::dispensable("mean loss", 1), Column::kept("worst loss")]);
    }
    let mut table = Table::new(columns);
    for Found { name, state, .. } in found {
        let mut row = match state {
            Ok((rule, summary)) => vec![
                Cell::from(name.clone()),
                rule.clone().into(),
                summary.on.clone().into(),
                Cell::toned(summary.verdict.name(), tone(summary)),
                leavers(summary).into(),
                format!("{} of {}", summary.satisfied(), summary.known()).into(),
                summary.rounds.to_string().into(),
            ],
            Err(Unfinished { standing, header, rounds, left, .. }) => {
                let known = |text: fn(&Header) -> &String| {
                    header.as_ref().map_or("–".to_owned(), |header| text(header).clone())
                };
                let gone = match (header, left) {
                    (None, _) => "–".to_owned(),
                    (Some(_), 0) => "nobody".to_owned(),
                    (Some(header), left) => format!("{left} of {}", header.count()),
                };
                vec![
                    Cell::from(name.clone()),
                    known(|header| &header.rule).into(),
                    known(|header| &header.on).into(),
                    Cell::toned(standing.name(), standing.tone()),
                    gone.into(),
                    "–".into(),
                    rounds.to_string().into(),
                ]
            }
        };
        let summary = state.as_ref().ok().map(|(_, summary)| summary);
        // Where there is something else, that is what is told.
        let plain = summary.filter(|summary| *summary.headline().0 == Measure::LOSS);
        let loss = plain.map(|summary| summary.score.loss);
        let number = |loss: Option<f64>| loss.map_or("–".to_owned(), |loss| format!("{loss:.3}"));
        if let Some(measure) = measure {
            let over = summary.and_then(|summary| summary.score.get(&measure.name));
            row.push(measure.or_dash(over.map(|over| over.mean)).into());
            row.push(measure.or_dash(over.map(|over| words::worst(measure, over))).into());
            let population = summary.and_then(|summary| summary.population.as_ref());
            row.push(measure.or_dash(population.and_then(|score| score.of(&measure.name))).into());
        }
        if losses {
            row.push(number(loss.map(|loss| loss.mean)).into());
            row.push(number(loss.map(|loss| loss.max)).into());
        }
        table.row(row);
    }
    table
}
