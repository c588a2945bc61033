//! `fedstay check`: how near a problem or a run comes to breaking the theorem's assumptions.

use anyhow::Result;
use fedstay::Seed;
use fedstay::diagnose::{Diagnosis, Findings, RunConstants};
use fedstay_draw::words::{changed, count};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::{Trial, changed_since, read_gram, read_rounds};
use fedstay_terminal::{Progress, Screen, Source, Usage};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  # runs the problem and looks at its gradients
  fedstay check --set problem.kind=observation-1
  fedstay check experiment.toml
  # keeps the Gram matrices of a run, and looks at them
  fedstay run --set record_gram=true --out runs/a
  fedstay check runs/a";

/// How near a problem or a recorded run comes to breaking the theorem's assumptions.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Check {
    #[command(flatten)]
    source: Source,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        let findings = match &self.source.file {
            Some(path) if path.is_dir() => {
                let findings = recorded(path)?;
                if let Some(told) = changed(&changed_since(path)).filter(|_| !self.json) {
                    screen.say(&format!("WARNING  {}: {told}\n", path.display()))?;
                }
                findings
            }
            _ => {
                let mut trial = Trial::new(self.source.experiment()?)?;
                let mut diagnosis = Diagnosis::default();
                let mut progress = Progress::new(&trial, screen);
                trial.run(&mut [&mut diagnosis, &mut progress])?;
                progress.finish();
                diagnosis.findings(known(trial.experiment()))
            }
        };
        match self.json {
            true => screen.print(&format!("{}\n", serde_json::to_string_pretty(&findings)?)),
            false => screen.print(&words(&findings, screen)),
        }
    }
}

fn recorded(folder: &Path) -> Result<Findings> {
    let experiment = super::recorded_experiment(folder)?;
    let lines = read_gram(&folder.join("gram.jsonl")).map_err(|why| {
        Usage(format!("{why}; run it again with --set record_gram=true to keep the Gram matrices"))
    })?;
    let recorded = read_rounds(&folder.join("rounds.jsonl")).map_err(Usage)?;
    let mut diagnosis = Diagnosis::default();
    diagnosis.take_part(&recorded.header);
    for line in lines {
        diagnosis.add(line);
    }
    if let Some(first) = recorded.rounds.first() {
        diagnosis.content_at_start(&first.left);
    }
    Ok(diagnosis.findings(known(&experiment)))
}

fn known(experiment: &Experiment) -> RunConstants {
    let instance = experiment.problem().and_then(|p| p.build(Seed(experiment.seed)).ok());
    RunConstants {
        lipschitz: instance.as_ref().and_then(|instance| instance.lipschitz),
        smoothness: instance.as_ref().and_then(|instance| instance.smoothness),
        step_size: experiment.step_size,
        delta: experiment.rule.slack(),
        halves: experiment.rule.halves(),
    }
}

fn words(findings: &Findings, screen: &Screen) -> String {
    let constant = |known: Option<f64>, seen: f64| match known {
        Some(known) => format!("{known:.4} (known; {seen:.4} was seen)"),
        None => format!("at least {seen:.4} (seen; the true one may be larger)"),
    };
    let (agents, rounds) = (count(findings.agents, "agent"), count(findings.rounds, "round"));
    let mut text = format!("{agents}, {rounds}\n");
    let mut line = |name: &str, value: String| {
        text.push_str(&screen.labelled(&format!("  {name:24} "), &value));
        text.push('\n');
    };
    line("Lipschitz constant L", constant(findings.lipschitz, findings.lipschitz_seen));
    line("smoothness H", constant(findings.smoothness, findings.smoothness_seen));
    line("step size in use", format!("{}", findings.step_size));
    let bound = findings.theorem_step.map_or("unknown".into(), |step| format!("{step:.3e}"));
    line("the theorem's step size", bound);
    let angle = match (findings.smallest_angle, findings.smallest_angle_round) {
        (Some(angle), Some(round)) => format!("{angle:.3}° (round {round}; 90° is best)"),
        _ if findings.agents == 1 => "there is only one agent".to_owned(),
        _ => "not known: no two agents reported in one round".to_owned(),
    };
    line("smallest gradient angle", angle);
    let content = match findings.content_at_start_called.as_slice() {
        [] => "nobody".to_owned(),
        called => called.join(", "),
    };
    line("content with the start", content);
    text.push_str(&format!("\n{}\n", screen.bold("What to change")));
    for advice in &findings.advice {
        text.push_str(&screen.prose(&format!("  - {advice}")));
        text.push('\n');
    }
    text
}
