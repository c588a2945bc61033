//! `fedstay run`: one experiment, followed and kept.

use super::{INTERRUPTED, rows_line};
use crate::summary;
use anyhow::{Context, Result};
use fedstay::record::{Counterfactual, Header, Summary, Without};
use fedstay::{AgentId, Book};
use fedstay_draw::picture::{self, Subject};
use fedstay_draw::words;
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::{
    Asked, DepartureWeights, Folder, FolderError, TensorBoard, Trial, Who, read_rounds,
};
use fedstay_sim::text::{for_shell, one_line};
use fedstay_terminal::{Guarded, Interrupt, Progress, Screen, Threads, Usage};
use std::path::{Path, PathBuf};
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  # retain on real digits; then averaging, under which everybody leaves
  fedstay run
  fedstay run --set rule.kind=fedavg
  # an example of the paper
  fedstay run --set problem.kind=observation-3 --set rule.kind=fedavg
  # a file, with a key changed, in a folder of your choice
  fedstay run experiments/fig5a.toml --set seed=3 --out runs/fig5a-3
  # continue after a crash
  fedstay run --resume runs/fig5a-3
  # what departures cost, and whom
  fedstay run --set rule.kind=fedavg --counterfactual --story
  # what it would cost the others if one agent had never taken part
  fedstay run --set rule.kind=fedavg --without each
  # for other programs
  fedstay run --set problem.kind=red-blue --json | jq .verdict
  fedstay run --out runs/a --tensorboard boards/a

Without --out the run is written to a new folder under runs/; with --json alone nothing is written.";

/// Run an experiment.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    source: Guarded,
    /// Keep the run in this folder
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue a run that was cut off, with the --story, --counterfactual and --without it was begun
    /// with
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "set", "out"])]
    resume: Option<PathBuf>,
    /// Check the experiment and print it with every key, as a file; run nothing
    #[arg(long, conflicts_with = "resume")]
    dry_run: bool,
    /// Run again with nobody leaving, and say what the departures cost
    #[arg(long)]
    counterfactual: bool,
    /// Run again without an agent (`each`: one after the other), and say what that costs the others
    #[arg(long, value_name = "each|AGENT")]
    without: Option<Who>,
    /// Tell every agent's story: when it was first about to leave, how long it waited, what it
    /// gained over training alone
    #[arg(long)]
    story: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// Also write TensorBoard event files into this folder
    #[arg(long, value_name = "DIR")]
    tensorboard: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
}

impl Run {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        self.threads.start()?;
        if self.dry_run {
            let trial = Trial::new(self.source.source().experiment()?)?;
            return screen.print(&resolved(&trial)?);
        }
        let begun = Instant::now();
        let (mut trial, mut folder) = self.open()?;
        if let Some(line) = rows_line(trial.header()).filter(|_| !self.json) {
            screen.say(&line)?;
        }
        let mixed = folder.as_ref().and_then(Folder::warning);
        if let Some(told) = mixed.filter(|_| !self.json) {
            screen.say(&format!("WARNING  {told}"))?;
        }
        screen.detail(&trial.experiment().to_toml()?);
        let mut progress = Progress::new(&trial, screen);
        let mut parting = DepartureWeights::default();
        let mut board = self.board(&trial)?;
        let mut interrupt = Interrupt::watch(match &folder {
            Some(folder) => {
                format!(
                    "continue with: fedstay run --resume {}",
                    for_shell(&folder.path().display().to_string())
                )
            }
            None => "nothing was written".to_owned(),
        });
        // The folder comes first: what it keeps does not depend on anything else.
        let books: &mut [&mut dyn Book] =
            &mut [&mut folder, &mut progress, &mut parting, &mut board, &mut interrupt];
        let mut summary = trial.run(books)?.context(INTERRUPTED)?;
        progress.finish();
        let (took, rounds) = (begun.elapsed().as_secs_f64(), words::count(summary.rounds, "round"));
        screen.detail(&format!("{rounds} in {}", words::duration(took)));
        let asked = folder.as_ref().map_or(self.asked(), Folder::asked);
        if asked.counterfactual {
            summary.counterfactual = Some(counterfactual(trial.experiment().clone(), screen)?);
        }
        if let Some(who) = asked.without {
            summary.without = without(trial.experiment(), who, &summary, screen)?;
        }
        if asked.story {
            trial.compare_with_alone(&mut summary, &parting)?;
        }
        let mut pictures = Vec::new();
        if let Some(folder) = &mut folder {
            pictures = draw(folder.path(), &summary)?;
            trial.close(folder, &summary)?;
        }
        let folder = folder.as_ref().map(Folder::path);
        self.print(trial.header(), &summary, asked, folder, &pictures, screen)
    }

    fn board(&self, trial: &Trial) -> Result<Option<TensorBoard>> {
        let Some(path) = &self.tensorboard else { return Ok(None) };
        let (agents, next) = (trial.header().count(), trial.server().round() + 1);
        let board = TensorBoard::create(path, agents, next);
        Ok(Some(board.map_err(|error| Usage(format!("--tensorboard {error}")))?))
    }

    /// What is asked for beyond the experiment that changes the summary. The folder remembers it
    /// for `--resume`.
    fn asked(&self) -> Asked {
        Asked { story: self.story, counterfactual: self.counterfactual, without: self.without }
    }

    fn open(&self) -> Result<(Trial, Option<Folder>)> {
        let told = |error: FolderError| Usage(error.to_string());
        if let Some(path) = &self.resume {
            let (mut folder, trial) = Trial::resume_in(path).map_err(told)?;
            folder.ask(self.asked());
            return Ok((trial, Some(folder)));
        }
        let trial = Trial::new(self.source.source().experiment()?)?;
        let agents = trial.header().count();
        if let Some(Who::Agent(agent)) = self.without.filter(|who| !who.is_among(agents)) {
            let told = format!("--without {agent}: there are {agents} agents, numbered from 0");
            return Err(Usage(told).into());
        }
        let folder = match &self.out {
            Some(path) => trial.keep_in(path, self.asked()),
            None if self.json => return Ok((trial, None)),
            None => in_unused_folder(&trial, &self.name(&trial), self.asked()),
        };
        Ok((trial, Some(folder.map_err(told)?)))
    }

    /// What the run's folder is called: what it trains on or its file, its rule, what was set, its
    /// seed, as in `digits-fedavg-epsilon0.2-s0`.
    fn name(&self, trial: &Trial) -> String {
        let experiment = trial.experiment();
        let file = self.source.source.file.as_deref();
        let stem = file.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
        // A run's own configuration is called alike everywhere.
        let stem = stem.filter(|stem| stem != "config");
        let mut name = stem.unwrap_or_else(|| experiment.on().to_owned());
        name.push_str(&format!("-{}", experiment.rule_label()));
        for pair in &self.source.source.set {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (key.trim(), value.trim());
            if !(NAMED.contains(&key) || key == "seed") {
                name.push_str(&format!("-{}{value}", key.rsplit('.').next().unwrap_or(key)));
            }
        }
        let plain = |sign: char| match sign.is_ascii_alphanumeric() || "._+-".contains(sign) {
            true => sign,
            false => '_',
        };
        let name: String = name.chars().take(LONGEST_NAME).map(plain).collect();
        format!("{name}-s{}", experiment.seed)
    }

    fn print(
        &self,
        header: &Header,
        summary: &Summary,
        asked: Asked,
        folder: Option<&Path>,
        pictures: &[PathBuf],
        screen: &Screen,
    ) -> Result<()> {
        if self.json {
            return screen.print(&format!("{}\n", serde_json::to_string_pretty(summary)?));
        }
        screen.print(&summary::summary(header, summary, screen))?;
        if asked.story {
            screen.say(&format!("\n{}", words::story(summary).trim_end()))?;
        }
        if let Some(folder) = folder {
            screen.mention("")?;
            screen.written(folder)?;
        }
        pictures.iter().try_for_each(|picture| screen.written(picture))
    }
}

/// The experiment with every key, below what there is to know about it, as comments.
fn resolved(trial: &Trial) -> Result<String> {
    let warnings = trial.warnings().iter().map(|told| format!("WARNING  {told}"));
    let said = rows_line(trial.header()).into_iter().chain(warnings);
    let said: String = said.map(|line| format!("# {}\n", one_line(&line))).collect();
    let gap = if said.is_empty() { "" } else { "\n" };
    Ok(format!("{said}{gap}{}", trial.experiment().to_toml()?))
}

/// Draws a run that is just finishing, and writes its report.
pub(super) fn draw(folder: &Path, summary: &Summary) -> Result<Vec<PathBuf>> {
    let recorded = read_rounds(&folder.join("rounds.jsonl")).map_err(anyhow::Error::msg)?;
    let subject = Subject::ending(folder, recorded, summary.clone());
    // It has no summary yet.
    let kept = |what: &str| {
        format!(
            "the rounds are kept, `fedstay run --resume {}` ends the run; its {what} failed",
            for_shell(&folder.display().to_string())
        )
    };
    let mut files = picture::run::write(&subject).with_context(|| kept("picture"))?;
    let page = picture::report::write(&subject).with_context(|| kept("report"))?;
    files.push(page);
    Ok(files)
}

/// The outcome of an experiment if nobody had left.
pub(super) fn counterfactual(experiment: Experiment, screen: &Screen) -> Result<Counterfactual> {
    let trial = Trial::nobody_leaves(experiment)?;
    let mut progress = Progress::named(&trial, "nobody leaves", screen);
    let found = trial.counterfactual(&mut [&mut progress])?;
    progress.finish();
    found.context(INTERRUPTED)
}

/// What it costs the others if an agent, or one after the other, never takes part.
fn without(
    experiment: &Experiment,
    who: Who,
    summary: &Summary,
    screen: &Screen,
) -> Result<Vec<Without>> {
    let agents: Vec<AgentId> = match who {
        Who::Each => (0..summary.count() as u64).map(AgentId).collect(),
        Who::Agent(agent) => vec![AgentId(agent)],
    };
    let mut found = Vec::with_capacity(agents.len());
    for agent in agents {
        let mut trial = Trial::without(experiment.clone(), agent)?;
        let mut progress =
            Progress::named(&trial, &format!("without {}", summary.called_briefly(agent)), screen);
        let again = trial.run(&mut [&mut progress])?.context(INTERRUPTED)?;
        progress.finish();
        found.push(Without::of(agent, summary, &again));
    }
    Ok(found)
}

/// Keys that the name of a folder tells already, with what is trained and the rule's label.
const NAMED: [&str; 7] = [
    "rule.kind",
    "rule.on_settled",
    "rule.projection",
    "policy.kind",
    "behaviour.kind",
    "data.kind",
    "problem.kind",
];
/// A folder's name is cut to this, before its seed.
const LONGEST_NAME: usize = 80;

/// `runs/NAME`, or the next free number, even where another process is looking for one at the same
/// time.
fn in_unused_folder(trial: &Trial, name: &str, asked: Asked) -> Result<Folder, FolderError> {
    let mut path = Path::new("runs").join(name);
    let mut number = 1u32;
    loop {
        if !path.exists() {
            match trial.keep_in(&path, asked) {
                Err(FolderError::Taken(_)) => {}
                done => return done,
            }
        }
        number += 1;
        path = Path::new("runs").join(format!("{name}-{number}"));
    }
}
