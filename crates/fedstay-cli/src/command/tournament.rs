//! `fedstay tournament`: every rule against every behaviour.

use super::{Source, Threads, Usage};
use crate::tournament;
use crate::tournament::{Bout, Outcome, Standings};
use anyhow::{Context, Result};
use fedstay::Behaviour;
use fedstay_draw::picture;
use fedstay_sim::experiment::{DEFAULT, Experiment, differences, read_table, under};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use toml::{Table, Value};

/// What every run is, but for rule, behaviour and seed: the default experiment made smaller, because
/// there are hundreds of runs, with agents that have a few images of every digit.
const SMALLER: &str = include_str!("../../../../experiments/tournament.toml");

const RULES: &str = "fedavg,fedavg+early-stop,fedavg+keep-best,fedavg+guard,minibatch-sgd,ada-gd,\
                     ada-gd+halve,retain,retain+horizon,mw-fed,maxfl,q-fedavg,afl,fedmgda-plus,\
                     fedfv,pcgrad";

/// A population of several kinds, for the behaviour `mixed`.
const MIXED: &str = "[{ kind = \"threshold\", share = 0.5 }, { kind = \"foresight\", share = 0.2 }, \
                     { kind = \"utility\", share = 0.1 }, { kind = \"lying\", share = 0.1 }, \
                     { kind = \"shirking\", share = 0.1 }]";

const EXAMPLES: &str = "\
Examples:
  fedstay tournament                                   all rules, all behaviours, three seeds: minutes
  fedstay tournament --rules fedavg,retain --behaviours threshold,foresight --seeds 0
  fedstay tournament experiment.toml --out results     your own federation
  fedstay tournament --set epsilon=0.1                 keys go to every run

Without a file, every run is `fedstay run`'s default experiment made smaller (16 hidden units, 250
rounds) and milder (q = 0.9, epsilon = 0.2); the first line of the output says so.

Every finished run is kept in tournament.csv at once: interrupt it, and the same command goes on.
The table: departures; verdict; rounds; accuracy of the delivered model, mean over agents and worst;
welfare, the sum over agents of value minus cost (see docs/tournament.md); the share of agents that
end with a better model than they would have made alone. All are means over the seeds.";

/// Rules against behaviours.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Tournament {
    #[command(flatten)]
    source: Source,
    /// The rules, separated by commas
    #[arg(long, default_value = RULES, value_delimiter = ',')]
    rules: Vec<String>,
    /// The behaviours, separated by commas; all of them if not given
    #[arg(long, value_delimiter = ',')]
    behaviours: Vec<String>,
    /// The seeds, separated by commas
    #[arg(long, default_value = "0,1,2", value_delimiter = ',')]
    seeds: Vec<u64>,
    /// The folder for table and picture
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
    /// Print the outcomes of all runs as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: Threads,
}

impl Tournament {
    pub(super) fn run(self) -> Result<()> {
        self.threads.start()?;
        let bouts = self.bouts()?;
        std::fs::create_dir_all(&self.out)
            .with_context(|| format!("cannot make {}", self.out.display()))?;
        let path = self.out.join("tournament.csv");
        let standings = Standings::open(&path).map_err(Usage)?;
        let missing: Vec<&Bout> = bouts.iter().filter(|bout| !standings.has(bout)).collect();
        let bar = progress(bouts.len(), missing.len());
        let standings = Mutex::new(standings);
        let alone = tournament::alone(&missing)?;
        missing.par_iter().try_for_each(|bout| -> Result<()> {
            let outcome = tournament::play(bout, alone.get(&bout.seed))?;
            bar.inc(1);
            let mut standings = standings.lock().unwrap_or_else(|broken| broken.into_inner());
            standings.add(outcome).with_context(|| format!("cannot write {}", path.display()))
        })?;
        bar.finish_and_clear();
        let standings = standings.into_inner().unwrap_or_else(|broken| broken.into_inner());
        let outcomes = standings.of(&bouts);
        standings.finish(&outcomes)?;
        self.print(&outcomes, &path)
    }

    /// Every run there is to be, in the order of the table.
    fn bouts(&self) -> Result<Vec<Bout>> {
        let (text, set) = self.source.read(SMALLER)?;
        let table = read_table(&text).map_err(|error| self.source.locate(error))?;
        let every = || Behaviour::LIST.iter().map(|entry| entry.name.to_owned()).collect();
        let behaviours: Vec<String> =
            if self.behaviours.is_empty() { every() } else { self.behaviours.clone() };
        let mut bouts = Vec::new();
        for behaviour in &behaviours {
            for rule in &self.rules {
                let mut table = under(table.clone(), rule.trim())?;
                table.insert("behaviour".into(), behaviour_table(behaviour.trim(), &table));
                for seed in &self.seeds {
                    let seed_value = i64::try_from(*seed)
                        .map_err(|_| Usage(format!("--seeds {seed}: give a number below 2^63")))?;
                    table.insert("seed".into(), Value::from(seed_value));
                    let text = toml::to_string(&table)?;
                    let experiment = Experiment::parse(&text, &set)
                        .map_err(|error| self.source.locate(error))?;
                    if experiment.training().is_none() {
                        let why = "a tournament needs data to train on, not a [problem]; use \
                                   `fedstay compare` for named problems";
                        return Err(Usage(why.into()).into());
                    }
                    bouts.push(Bout::new(rule.trim(), behaviour.trim(), *seed, experiment)?);
                }
            }
        }
        Ok(bouts)
    }

    /// In what the runs differ from the default experiment, which `run` and `compare` use.
    fn differs(&self) -> Result<String> {
        let (text, mut set) = self.source.read(SMALLER)?;
        // Rule and behaviour are the tournament's own.
        set.push(("rule.kind".to_owned(), "retain".to_owned()));
        let ours = Experiment::parse(&text, &set)?;
        let told = differences(&ours, &Experiment::parse(DEFAULT, &[])?)?;
        Ok(match told.is_empty() {
            true => "Every run is the default experiment, under another rule or behaviour.".into(),
            false => format!(
                "Every run is the default experiment (in brackets) but for {}.",
                told.join(", ")
            ),
        })
    }

    fn print(&self, outcomes: &[Outcome], path: &std::path::Path) -> Result<()> {
        let mut out = std::io::stdout().lock();
        if self.json {
            return Ok(writeln!(out, "{}", serde_json::to_string_pretty(outcomes)?)?);
        }
        let lines = tournament::averaged(outcomes);
        writeln!(out, "{}\n", self.differs()?)?;
        write!(out, "{}", tournament::table(&lines))?;
        for sentence in tournament::sentences(&lines) {
            writeln!(out, "\n{sentence}")?;
        }
        let mut failed: BTreeMap<&str, usize> = BTreeMap::new();
        for outcome in outcomes.iter().filter(|outcome| outcome.verdict == "failed") {
            *failed.entry(&outcome.rule).or_default() += 1;
        }
        for (rule, times) in failed {
            writeln!(
                out,
                "\n{rule}: {times} runs diverged; `fedstay run` with their keys says why"
            )?;
        }
        let markdown = self.out.join("tournament.md");
        fedstay_sim::run::write_whole(&markdown, tournament::markdown(&lines).as_bytes())?;
        writeln!(out, "\ntable {} and {}", path.display(), markdown.display())?;
        for file in picture::tournament::write(&tournament::drawn(&lines), &self.out)? {
            writeln!(out, "picture {}", file.display())?;
        }
        Ok(())
    }
}

/// A behaviour by its name; what the file says about the same one is kept.
fn behaviour_table(name: &str, table: &Table) -> Value {
    if let Some(given) = table.get("behaviour")
        && given.get("kind").and_then(Value::as_str) == Some(name)
    {
        return given.clone();
    }
    let mut behaviour = Table::from_iter([("kind".to_owned(), Value::from(name))]);
    let parts = toml::from_str::<Table>(&format!("of = {MIXED}"));
    if let ("mixed", Ok(parts)) = (name, parts) {
        behaviour.extend(parts);
    }
    Value::Table(behaviour)
}

fn progress(all: usize, missing: usize) -> ProgressBar {
    let bar = ProgressBar::new(all as u64);
    if let Ok(style) = ProgressStyle::with_template("run {pos}/{len} {bar:32} {eta:>4} left") {
        bar.set_style(style);
    }
    bar.set_position((all - missing) as u64);
    bar.reset_eta();
    bar
}
