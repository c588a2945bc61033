//! `fedstay run`: one experiment, followed and kept.

use super::{INTERRUPTED, Source, Threads, Usage};
use crate::progress::Progress;
use crate::table;
use anyhow::{Context, Result};
use fedstay::Book;
use fedstay::record::{Counterfactual, Summary};
use fedstay_draw::picture::{self, Subject};
use fedstay_draw::words;
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::{Asked, Folder, FolderError, Parting, TensorBoard, Trial, read_rounds};
use fedstay_sim::text::printable;
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  fedstay run                                                    retain on real digits
  fedstay run --set rule.kind=fedavg                             the same, and everybody leaves
  fedstay run --set problem.kind=observation-3 --set rule.kind=fedavg
  fedstay run experiments/fig5a.toml --set seed=3 --out runs/fig5a-3
  fedstay run --resume runs/fig5a-3                              continue after a crash
  fedstay run --set problem.kind=red-blue --json | jq .verdict
  fedstay run --set rule.kind=fedavg --counterfactual --story    what departures cost, and whom
  fedstay run --out runs/a --tensorboard boards/a                scalars for TensorBoard as well

Without --out the run is kept in a new folder under runs/; with --json alone nothing is written.";

/// Run an experiment.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    source: Source,
    /// Keep the run in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue a run that was cut off, with the --story and --counterfactual it was begun with
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "set", "out"])]
    resume: Option<PathBuf>,
    /// Run again with nobody leaving, and say what the departures cost
    #[arg(long)]
    counterfactual: bool,
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
    pub(super) fn run(self) -> Result<()> {
        self.threads.start()?;
        let (mut trial, mut folder) = self.open()?;
        let mut progress = Progress::new(&trial);
        let mut parting = Parting::default();
        let mut board = self.board(&trial)?;
        // The folder comes first: what it keeps does not depend on anything else.
        let books: &mut [&mut dyn Book] =
            &mut [&mut folder, &mut progress, &mut parting, &mut board];
        let mut summary = trial.run(books)?.context(INTERRUPTED)?;
        progress.finish();
        let asked = folder.as_ref().map_or(self.asked(), Folder::asked);
        if asked.counterfactual {
            summary.counterfactual = Some(counterfactual(trial.experiment().clone())?);
        }
        if asked.story {
            trial.compare_with_alone(&mut summary, &parting, None)?;
        }
        let mut pictures = Vec::new();
        if let Some(folder) = &mut folder {
            pictures = draw(folder.path(), &summary)?;
            trial.close(folder, &summary)?;
        }
        self.print(&summary, asked, folder.as_ref().map(Folder::path), &pictures)
    }

    fn board(&self, trial: &Trial) -> Result<Option<TensorBoard>> {
        let Some(path) = &self.tensorboard else { return Ok(None) };
        let (agents, next) = (trial.header().agents.len(), trial.server().round() + 1);
        let board = TensorBoard::create(path, agents, next);
        Ok(Some(board.map_err(|error| Usage(format!("--tensorboard {error}")))?))
    }

    /// What is asked for beyond the experiment that changes the summary. The folder remembers it
    /// for `--resume`.
    fn asked(&self) -> Asked {
        Asked { story: self.story, counterfactual: self.counterfactual }
    }

    fn open(&self) -> Result<(Trial, Option<Folder>)> {
        let told = |error: FolderError| Usage(error.to_string());
        if let Some(path) = &self.resume {
            let (mut folder, trial) = Trial::resume_in(path).map_err(told)?;
            folder.ask(self.asked());
            return Ok((trial, Some(folder)));
        }
        let trial = Trial::new(self.source.experiment()?)?;
        let folder = match &self.out {
            Some(path) => trial.keep_in(path, self.asked()),
            None if self.json => return Ok((trial, None)),
            None => in_unused_folder(&trial, self.asked()),
        };
        Ok((trial, Some(folder.map_err(told)?)))
    }

    fn print(
        &self,
        summary: &Summary,
        asked: Asked,
        folder: Option<&Path>,
        pictures: &[PathBuf],
    ) -> Result<()> {
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string_pretty(summary)?)?;
            return Ok(());
        }
        write!(out, "{}", printable(&table::summary(summary)))?;
        if asked.story {
            write!(out, "\n{}", printable(&words::story(summary)))?;
        }
        if let Some(folder) = folder {
            writeln!(out, "\nkept in {}", folder.display())?;
        }
        for picture in pictures {
            writeln!(out, "picture {}", picture.display())?;
        }
        Ok(())
    }
}

/// Draws a run that is just finishing, and writes its report.
pub(super) fn draw(folder: &Path, summary: &Summary) -> Result<Vec<PathBuf>> {
    let recorded = read_rounds(&folder.join("rounds.jsonl")).map_err(anyhow::Error::msg)?;
    let subject = Subject::ending(folder, recorded, summary.clone());
    let mut files = picture::run::write(&subject).context("the run is kept; its picture failed")?;
    let page = picture::report::write(&subject).context("the run is kept; its report failed")?;
    files.push(page);
    Ok(files)
}

/// The outcome of an experiment if nobody had left.
pub(super) fn counterfactual(experiment: Experiment) -> Result<Counterfactual> {
    let trial = Trial::nobody_leaves(experiment)?;
    let mut progress = Progress::named(&trial, "nobody leaves");
    let found = trial.counterfactual(&mut [&mut progress])?;
    progress.finish();
    found.context(INTERRUPTED)
}

/// `runs/digits-ada-gd-s0`, or the next free number, even where another process is looking for one
/// at the same time.
fn in_unused_folder(trial: &Trial, asked: Asked) -> Result<Folder, FolderError> {
    let experiment = trial.experiment();
    let name = format!("{}-{}-s{}", experiment.on(), experiment.rule_label(), experiment.seed);
    let mut path = Path::new("runs").join(&name);
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
