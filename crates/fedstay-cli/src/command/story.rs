//! `fedstay story`: what became of every agent of a run, in plain words.

use super::INTERRUPTED;
use anyhow::{Context, Result};
use fedstay_draw::picture::Subject;
use fedstay_draw::words::{changed, harm, story, title};
use fedstay_sim::run::{DepartureWeights, Trial, changed_since};
use fedstay_terminal::{Progress, Screen, Threads};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  # when each agent was first about to leave, how long it waited, what it gained
  fedstay story runs/digits-fedavg-s0
  # the same as data
  fedstay story runs/digits-fedavg-s0 --json

The run is computed again from its config.toml (same configuration and seed, same run), once with the agents \
as they are, once with nobody leaving, and once with every agent alone. A run whose agents are in Python is \
told as its summary.json has it: nobody here can ask its agents again.";

/// What became of every agent of a run.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Story {
    /// The folder of a run
    folder: PathBuf,
    /// Print the summary, with the stories, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: Threads,
}

impl Story {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        self.threads.start()?;
        if let Some(told) = changed(&changed_since(&self.folder)).filter(|_| !self.json) {
            screen.say(&format!("WARNING  {}: {told}\n", self.folder.display()))?;
        }
        if let Some(subject) = self.recorded() {
            return self.tell_recorded(&subject, screen);
        }
        let experiment = super::recorded_experiment(&self.folder)?;
        let mut trial = Trial::new(experiment.clone())?;
        let mut progress = Progress::named(&trial, "as it was", screen);
        let mut parting = DepartureWeights::default();
        let mut summary = trial.run(&mut [&mut progress, &mut parting])?.context(INTERRUPTED)?;
        progress.finish();
        trial.compare_with_alone(&mut summary, &parting)?;
        summary.counterfactual = Some(super::run::counterfactual(experiment, screen)?);
        if self.json {
            return screen.print(&format!("{}\n", serde_json::to_string_pretty(&summary)?));
        }
        screen.say(&format!("{}\n", title(trial.header())))?;
        screen.say(story(&summary).trim_end())?;
        harm(&summary).map_or(Ok(()), |harm| screen.say(&format!("\n{harm}")))
    }

    /// A run that is over and cannot be computed again, because its agents are in Python.
    fn recorded(&self) -> Option<Subject> {
        let config = std::fs::read_to_string(self.folder.join("config.toml")).ok()?;
        super::made_in_python(&config)?;
        Subject::read(&self.folder).ok().filter(|subject| subject.summary.is_some())
    }

    fn tell_recorded(&self, subject: &Subject, screen: &Screen) -> Result<()> {
        let Some(summary) = &subject.summary else { return Ok(()) };
        if self.json {
            return screen.print(&format!("{}\n", serde_json::to_string_pretty(summary)?));
        }
        screen.say(&format!("{}\n", title(&subject.recorded.header)))?;
        screen.say(story(summary).trim_end())?;
        screen.say(
            "\nAs it was recorded: what everybody would have made alone, or with nobody leaving, only its \
             agents could say, and they are in Python.",
        )
    }
}
