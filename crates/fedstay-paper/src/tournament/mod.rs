//! `fedstay tournament`: every rule against every behaviour. A sweep, with a table and a picture.

mod outcome;
mod picture;
mod plan;
mod standings;

use anyhow::{Context, Result};
use fedstay_draw::words::count;
use fedstay_sim::experiment::{DEFAULT, Experiment, SpecError, differences};
use fedstay_sim::run::write_whole;
use fedstay_sim::sweep::{Frame, Options, Plan, Store};
use fedstay_terminal::{Guarded, Screen, Threads, Usage, compute};
use outcome::{HEADER, Outcome};
use std::path::{Path, PathBuf};
use toml::Value;

const EXAMPLES: &str = "\
Examples:
  # all rules, all behaviours, three seeds: minutes
  fedstay tournament
  # some of them
  fedstay tournament --rules fedavg,retain --behaviours foresight --seeds 0
  # your own federation
  fedstay tournament experiment.toml --out results
  # keys go to every run
  fedstay tournament --set epsilon=0.1

Without a file it is experiments/tournament.toml: `fedstay run`'s default experiment made smaller (16 hidden \
units, 250 rounds) and milder (q = 0.9, epsilon = 0.2); the first line of the output says so. A file may be \
an experiment, or a sweep with a [grid] of label, behaviour.kind and seed.

A tournament is a sweep, written to DIR/tournament.sqlite: interrupt it, and the same command continues; \
`fedstay sweep query|export|extract` and `fedstay view` take the sweep's file with --store.

The table: departures; verdict; rounds; accuracy of the delivered model: mean over agents, worst agent, rows \
that nobody trained on; welfare, the sum over agents of value minus cost, and with the server's (see \
docs/tournament.md); the share of agents that end with a better \
model than they would have made alone. All are means over the seeds.";

/// Rules against behaviours.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Tournament {
    #[command(flatten)]
    source: Guarded,
    /// The rules, separated by commas, with what is changed about them: `fedavg+guard`; the list of
    /// experiments/tournament.toml if not given
    #[arg(long, value_delimiter = ',')]
    rules: Vec<String>,
    /// The behaviours, separated by commas; all of them if not given
    #[arg(long, value_delimiter = ',')]
    behaviours: Vec<String>,
    /// When agents can be reached, separated by commas; all schedules if neither these nor behaviours
    /// are given, else `always`
    #[arg(long, value_delimiter = ',')]
    schedules: Vec<String>,
    /// The seeds, separated by commas; 0,1,2 if not given
    #[arg(long, value_delimiter = ',')]
    seeds: Vec<u64>,
    /// The folder for store, table and picture
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
    /// Print the outcomes of all runs as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: Threads,
}

impl Tournament {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// With a message for the person at the terminal.
    pub fn run(self, screen: &Screen) -> Result<()> {
        let options = Options { threads: self.threads.count()?, share: true, full_losses: false };
        let plan = self.plan(&self.asked()?)?;
        std::fs::create_dir_all(&self.out)
            .with_context(|| format!("cannot make {}", self.out.display()))?;
        let table = self.out.join("tournament.csv");
        check_ours(&table)?;
        let store = self.out.join("tournament.sqlite");
        compute(&plan, &store, &options, screen)?;
        let frame = Frame::of_plan(&plan, &Store::read(&store)?)?;
        let outcomes: Vec<Outcome> = frame.records.iter().map(Outcome::of).collect();
        write_whole(&table, &outcome::csv_bytes(&outcomes)?)
            .with_context(|| format!("cannot write {}", table.display()))?;
        match self.json {
            true => screen.print(&format!("{}\n", serde_json::to_string_pretty(&outcomes)?)),
            false => self.print(&plan, &outcomes, &table, screen),
        }
    }

    /// The axes that were asked for, as keys to set.
    fn asked(&self) -> Result<Vec<(String, String)>> {
        let names = |names: &[String]| -> Vec<Value> {
            names.iter().map(|name| Value::from(name.trim())).collect()
        };
        let seed = |seed: &u64| {
            let value = i64::try_from(*seed).map(Value::from);
            value.map_err(|_| Usage(format!("--seeds {seed}: give a number below 2^63")))
        };
        let schedules = match (self.schedules.is_empty(), self.behaviours.is_empty()) {
            // A file's own schedule is not replaced unasked.
            (true, false) if self.source.source().file.is_none() => vec!["always".to_owned()],
            _ => self.schedules.clone(),
        };
        let seeds: Vec<Value> = self.seeds.iter().map(seed).collect::<Result<_, _>>()?;
        let axes = [
            ("label", names(&self.rules)),
            ("behaviour.kind", names(&self.behaviours)),
            ("schedule.kind", names(&schedules)),
            ("seed", seeds),
        ];
        let asked = axes.into_iter().filter(|(_, values)| !values.is_empty());
        Ok(asked
            .map(|(axis, values)| (axis.to_owned(), Value::Array(values).to_string()))
            .collect())
    }

    /// The runs, with these axes.
    fn plan(&self, axes: &[(String, String)]) -> Result<Plan> {
        let source = self.source.source();
        let (text, mut set) = source.read(plan::TOURNAMENT)?;
        set.extend_from_slice(axes);
        let folder = source.file.as_deref().and_then(Path::parent);
        plan::plan(&text, folder.unwrap_or(Path::new(".")), &set).map_err(|error| {
            match error.downcast::<SpecError>() {
                Ok(error) => source.locate(error).into(),
                Err(error) => error,
            }
        })
    }

    /// In what the runs differ from the default experiment, which `run` and `compare` use.
    fn differs(&self) -> Result<String> {
        // Rule, behaviour and seed are the tournament's own.
        let axes = [("label", "retain"), ("behaviour.kind", "threshold"), ("seed", "0")];
        let plan = self.plan(&axes.map(|(axis, value)| (axis.to_owned(), value.to_owned())))?;
        let told = differences(&plan.runs[0].experiment, &Experiment::parse(DEFAULT, &[])?)?;
        Ok(match told.is_empty() {
            true => "Every run is the default experiment, under another rule or behaviour.".into(),
            false => format!(
                "Every run is the default experiment (in brackets) but for {}.",
                told.join(", ")
            ),
        })
    }

    fn print(
        &self,
        plan: &Plan,
        outcomes: &[Outcome],
        table: &Path,
        screen: &Screen,
    ) -> Result<()> {
        let lines = standings::averaged(outcomes);
        // A file's own filters may leave out the run that is held against the default.
        if let Ok(differs) = self.differs() {
            screen.say(&format!("{differs}\n"))?;
        }
        screen.print(&screen.table(&standings::table(&lines)))?;
        for sentence in standings::sentences(&lines) {
            screen.say(&format!("\n{sentence}"))?;
        }
        for sentence in twins(plan).into_iter().chain(diverged(outcomes)) {
            screen.say(&format!("\n{sentence}"))?;
        }
        let markdown = self.out.join("tournament.md");
        write_whole(&markdown, standings::markdown(&lines).as_bytes())?;
        screen.mention("")?;
        screen.written(table)?;
        screen.written(&markdown)?;
        let pictures = picture::write(&standings::drawn(&lines), &self.out)?;
        pictures.iter().try_for_each(|file| screen.written(file))
    }
}

/// A table that is something else is not overwritten.
fn check_ours(path: &Path) -> Result<(), Usage> {
    let named = |error: std::io::Error| Usage(format!("{}: {error}", path.display()));
    if path.exists() && !std::fs::read_to_string(path).map_err(named)?.starts_with(HEADER) {
        return Err(Usage(format!(
            "{}: this is not the table of a tournament; choose another --out",
            path.display()
        )));
    }
    Ok(())
}

/// Rules of the list that have no run of their own, because another one says the same.
fn twins(plan: &Plan) -> Vec<String> {
    let axis = plan.axes.iter().find(|axis| axis.key == "label");
    let labels = axis.into_iter().flat_map(|axis| &axis.values).filter_map(Value::as_str);
    let ran = |label: &&str| {
        plan.runs.iter().any(|run| run.setting("label").is_some_and(|known| known == *label))
    };
    let twins = labels.filter(|label| !ran(label));
    twins.map(|label| format!("{label}: every run of it is that of another rule here")).collect()
}

/// Which rules have runs that diverged, and why the first of them did.
fn diverged(outcomes: &[Outcome]) -> Vec<String> {
    let mut rules: Vec<(&Outcome, &String, usize)> = Vec::new();
    for outcome in outcomes {
        let Some(why) = &outcome.diverged else { continue };
        match rules.iter_mut().find(|(first, ..)| first.rule == outcome.rule) {
            Some((.., times)) => *times += 1,
            None => rules.push((outcome, why, 1)),
        }
    }
    let told = |(Outcome { rule, behaviour, seed, .. }, why, times): (&Outcome, &String, usize)| {
        let runs = count(times, "run");
        format!("{rule}: {runs} diverged; the first ({behaviour}, seed {seed}): {why}")
    };
    rules.into_iter().map(told).collect()
}
