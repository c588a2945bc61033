//! One run: every agent's loss against its precision, who was held and who left, and how good the
//! model was for everybody.

use super::{thinned, write as write_figure};
use crate::draw::{Category, Cells, Colour, Figure, Guide, Line, Marker, Panel, Points, Style};
use anyhow::Result;
use fedstay_sim::observe::{Recorded, read_rounds};
use std::path::{Path, PathBuf};

/// Agents that are drawn one by one; with more, the picture says how many are left out.
const AGENTS: usize = 40;
/// Rounds of the retention strip; longer runs are thinned.
const COLUMNS: usize = 500;

/// Draws `run.svg` and `run.png` into the folder of a run.
///
/// # Errors
/// When the rounds cannot be read or the picture cannot be written.
pub fn write(folder: &Path) -> Result<Vec<PathBuf>> {
    let recorded = read_rounds(&folder.join("rounds.jsonl")).map_err(anyhow::Error::msg)?;
    write_figure(&figure(&recorded), folder, "run")
}

/// The picture.
pub fn figure(recorded: &Recorded) -> Figure {
    let header = &recorded.header;
    let title = format!("{} on {}, seed {}", header.rule, header.on, header.seed);
    let mut figure = Figure { columns: 1, ..Figure::new(title) };
    if header.agents.len() > AGENTS {
        figure.caption = format!("The first {AGENTS} of {} agents are drawn.", header.agents.len());
    }
    figure = figure.with(losses(recorded)).with(strip(recorded));
    match accuracy(recorded) {
        Some(panel) => figure.with(panel),
        None => figure,
    }
}

fn losses(recorded: &Recorded) -> Panel {
    let mut panel = Panel {
        height: Some(280.0),
        ..Panel::new("Each agent's loss at the model it received", "round", "loss")
    };
    let mut departures = Vec::new();
    for (index, agent) in recorded.header.agents.iter().take(AGENTS).enumerate() {
        let mut points = Vec::new();
        for line in &recorded.rounds {
            if let Some(position) = line.agents.iter().position(|id| *id == agent.id)
                && let Some(loss) = line.loss[position]
                // A lower bound is no loss: drawn, it would look like one that jumps.
                && !line.at_least.contains(&agent.id)
            {
                points.push((f64::from(line.round), loss));
            }
            if line.left.contains(&agent.id) {
                departures.push((f64::from(line.round), agent.epsilon));
            }
        }
        let name = if recorded.header.agents.len() <= 12 {
            format!("agent {}", agent.id)
        } else {
            String::new()
        };
        panel = panel.with(Line::new(name, thinned(&points), Style::agent(index)));
    }
    let mut epsilons: Vec<f64> = recorded.header.agents.iter().map(|agent| agent.epsilon).collect();
    epsilons.sort_by(f64::total_cmp);
    epsilons.dedup();
    for epsilon in epsilons.iter().take(4) {
        panel = panel.with(Guide::horizontal(*epsilon, format!("ε = {epsilon}")));
    }
    if !departures.is_empty() {
        panel = panel.with(Points::new("leaves", departures, Marker::Cross, Colour::INK));
    }
    panel
}

fn strip(recorded: &Recorded) -> Panel {
    let every = recorded.rounds.len().div_ceil(COLUMNS).max(1);
    let agents: Vec<_> = recorded.header.agents.iter().take(AGENTS).collect();
    let rows = agents
        .iter()
        .map(|agent| {
            let mut out = false;
            let state = |line: &fedstay::record::RoundLine| {
                out = (out || line.left.contains(&agent.id)) && !line.returned.contains(&agent.id);
                match () {
                    () if out => 2,
                    () if line.d.contains(&agent.id) => 1,
                    () => 0,
                }
            };
            let states: Vec<usize> = recorded.rounds.iter().map(state).collect();
            // A thinned column shows the worst of its rounds.
            states.chunks(every).map(|states| states.iter().copied().max().unwrap_or(0)).collect()
        })
        .collect();
    Panel {
        y_categories: agents.iter().map(|agent| agent.id.to_string()).collect(),
        grid: false,
        height: Some((14.0 * agents.len() as f64).clamp(60.0, 300.0)),
        ..Panel::new(
            "Who is free, who is predicted to leave, who has left",
            if every == 1 { "round".to_owned() } else { format!("round / {every}") },
            "agent",
        )
    }
    .with(Cells::new(rows, Category::retention(), 1.0))
}

fn accuracy(recorded: &Recorded) -> Option<Panel> {
    let (mut mean, mut worst, mut population) = (Vec::new(), Vec::new(), Vec::new());
    for line in &recorded.rounds {
        let Some(assessment) = &line.assessment else { continue };
        let round = f64::from(line.round);
        let spread = fedstay::record::Spread::of(assessment.accuracy.iter().copied())?;
        mean.push((round, spread.mean));
        worst.push((round, spread.min));
        if let Some(accuracy) = assessment.population.and_then(|score| score.accuracy) {
            population.push((round, accuracy));
        }
    }
    if mean.is_empty() {
        return None;
    }
    let mut panel = Panel {
        height: Some(220.0),
        y_range: Some((0.0, 1.0)),
        ..Panel::new("Accuracy over all agents, those who left included", "round", "accuracy")
    };
    let names = ["mean over agents", "worst agent", "population"];
    for ((points, name), index) in [mean, worst, population].into_iter().zip(names).zip(0..) {
        if !points.is_empty() {
            panel =
                panel.with(Line { width: 2.2, ..Line::new(name, points, Style::agent(index + 5)) });
        }
    }
    for line in recorded.rounds.iter().filter(|line| !line.left.is_empty()).take(40) {
        panel = panel.with(Guide::vertical(f64::from(line.round), ""));
    }
    Some(panel)
}
