//! `fedstay plan`: would a consortium hold, who would leave, at what price, who gains, what keeps them?

mod asked;
mod csv;
mod shown;

use anyhow::{Context, Result};
use fedstay_draw::picture;
use fedstay_draw::words::plan as words;
use fedstay_sim::plan::{self, PlanAnswer, Question};
use fedstay_sim::run::write_whole;
use fedstay_terminal::{Interrupt, PlanProgress, Screen, Threads};
use serde::Serialize;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  # one table with a column that says who holds a row
  fedstay plan hospitals.csv --owner site --label died
  # a number instead of classes; more seeds; ways of your own
  fedstay plan schools.csv --owner school --label score --task number --seeds 10
  fedstay plan h.csv --owner site --label died --rules fedavg+preview,retain
  # from an experiment's file, with a key changed; for other programs
  fedstay plan experiment.toml --set model.kind=mlp
  fedstay plan hospitals.csv --owner site --label died --json | jq .recommend
  # the same question again: what was computed is kept in the folder
  fedstay plan plan/plan.toml

Members leave for good once the model is good enough for them. A plan trains each member alone, all \
together, and under every way of keeping them; judges all of it on rows that nobody trained on; and \
says what to do. It may say: do not federate.";

/// Ask whether a consortium would hold, who gains, and what keeps its members.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanCommand {
    /// Tables of rows (CSV), or one experiment's file (TOML)
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The column that says who holds a row
    #[arg(long, value_name = "COLUMN")]
    owner: Option<String>,
    /// The column to predict
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,
    /// What is predicted: classes, or a number
    #[arg(long, value_name = "classes|number")]
    task: Option<String>,
    /// How many times rows are held back and everything is run [default: 5]
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// The loss at which a member has its target [default: "1.0 * alone", what it reaches by itself]
    #[arg(long)]
    epsilon: Option<String>,
    /// The ways to try beside averaging, separated by commas
    #[arg(long, value_delimiter = ',')]
    rules: Option<Vec<String>>,
    /// Set a key of the experiment: `--set model.kind=mlp`
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The folder for the page, the tables and the runs
    #[arg(short, long, value_name = "DIR", default_value = "plan")]
    out: PathBuf,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: Threads,
}

impl PlanCommand {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        self.threads.start()?;
        let question = self.question()?.settled()?;
        let text = question.to_toml()?;
        let progress = PlanProgress::new(screen);
        Interrupt::watch("nothing is lost: the same command continues".to_owned());
        let answer = plan::answer(&question, Some(&self.out), &progress);
        progress.finish();
        let answer = answer?;
        let told = Told::new(&answer);
        let json = serde_json::to_string_pretty(&told)?;
        let write = |name: &str, text: &str| -> Result<PathBuf> {
            let path = self.out.join(name);
            write_whole(&path, text.as_bytes()).with_context(|| path.display().to_string())?;
            Ok(path)
        };
        write("plan.toml", &text)?;
        write("plan.json", &format!("{json}\n"))?;
        write("members.csv", &csv::members(&answer.found)?)?;
        write("ways.csv", &csv::ways(&answer.found)?)?;
        let page = picture::plan::write(&answer, &text, &self.out)?;
        match self.json {
            true => screen.print(&format!("{json}\n")),
            false => self.print(&answer, &page, screen),
        }
    }

    fn print(&self, answer: &PlanAnswer, page: &Path, screen: &Screen) -> Result<()> {
        shown::print(answer, screen)?;
        screen.mention("")?;
        screen.written(page)?;
        screen.mention(&format!(
            "beside it: plan.toml (ask again), plan.json, members.csv and ways.csv; in {}",
            self.out.display()
        ))
    }

    fn question(&self) -> Result<Question> {
        asked::question(self)
    }
}

/// The answer with the recommendation in words: `plan.json`.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    answer: serde_json::Value,
}

impl Told {
    fn new(answer: &PlanAnswer) -> Self {
        let mut value = serde_json::to_value(answer).unwrap_or_default();
        let spoken = answer.spoken();
        let words = words::advice(&spoken.found, &spoken.recommend);
        value["recommend"]["words"] = words.into();
        Self { answer: value }
    }
}
