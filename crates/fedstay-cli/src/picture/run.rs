//! One run: every agent's loss against its precision, who was held and who left, and how good the
//! model was for everybody.

use super::{thinned, write as write_figure};
use crate::draw::{
    Category, Cells, Colour, Figure, Fill, Guide, Line, Marker, Panel, Points, Scale, Style,
};
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
    let panels = [losses(recorded), Some(strip(recorded)), accuracy(recorded), steps(recorded)];
    figure.panels.extend(panels.into_iter().flatten());
    figure
}

/// Every agent's losses, where they are known exactly; `None` where nobody tells any.
fn losses(recorded: &Recorded) -> Option<Panel> {
    let mut panel = Panel {
        height: Some(280.0),
        ..Panel::new("Each agent's loss at the model it received", "round", "loss")
    };
    let (mut entries, mut departures, mut told) = (Vec::new(), Vec::new(), false);
    let agents = &recorded.header.agents;
    for (index, agent) in agents.iter().take(AGENTS).enumerate() {
        let way = way(recorded, index);
        told |= !way.points.is_empty();
        entries.extend(way.enters);
        departures.extend(way.leaves.iter().map(|round| (*round, agent.epsilon)));
        let named = agents.len() <= 12;
        let name = if named { format!("agent {}", agent.id) } else { String::new() };
        panel = panel.with(Line::new(name, thinned(&way.points), Style::agent(index)));
    }
    let mut epsilons: Vec<f64> = agents.iter().map(|agent| agent.epsilon).collect();
    epsilons.retain(|epsilon| epsilon.is_finite());
    epsilons.sort_by(f64::total_cmp);
    epsilons.dedup();
    for epsilon in epsilons.iter().take(4) {
        panel = panel.with(Guide::horizontal(*epsilon, format!("ε = {epsilon}")));
    }
    if !entries.is_empty() {
        let ring = Points::new("enters D", entries, Marker::Ring, Colour::INK);
        panel = panel.with(Points { size: 4.0, ..ring });
    }
    if !departures.is_empty() {
        panel = panel.with(Points::new("leaves", departures, Marker::Cross, Colour::INK));
    }
    told.then_some(panel)
}

/// One agent's way through a run.
struct Way {
    /// Its exact losses: reported, or measured while it was in.
    points: Vec<(f64, f64)>,
    /// Where it was first predicted to leave.
    enters: Option<(f64, f64)>,
    /// The rounds in which it left; one may come back.
    leaves: Vec<f64>,
}

fn way(recorded: &Recorded, index: usize) -> Way {
    let id = recorded.header.agents[index].id;
    let mut way = Way { points: Vec::new(), enters: None, leaves: Vec::new() };
    let mut out = false;
    for line in &recorded.rounds {
        let round = f64::from(line.round);
        if line.left.contains(&id) {
            way.leaves.push(round);
            out = true;
        }
        out &= !line.returned.contains(&id);
        if out {
            continue;
        }
        // A lower bound is no loss: drawn, it would look like one that jumps.
        let exact = !line.at_least.contains(&id);
        let reported = line.agents.iter().position(|other| *other == id).filter(|_| exact);
        let reported = reported.and_then(|position| line.loss[position]);
        let measured = || line.assessment.as_ref()?.loss.get(index).copied();
        if let Some(loss) = reported.or_else(measured).filter(|loss| loss.is_finite()) {
            way.points.push((round, loss));
        }
        if way.enters.is_none() && line.d.contains(&id) {
            way.enters = way.points.last().map(|(_, loss)| (round, *loss));
        }
    }
    way
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
                    () if line.faults.iter().any(|(id, _)| *id == agent.id) => 3,
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
    let mut categories = Category::retention();
    if recorded.rounds.iter().any(|line| !line.faults.is_empty()) {
        let fill = Fill::tint(Colour::VERMILLION, 1.0);
        categories.push(Category { name: "did not answer".into(), fill });
    }
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
    .with(Cells::new(rows, categories, 1.0))
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

/// The length of the step and the step size, on a log scale.
fn steps(recorded: &Recorded) -> Option<Panel> {
    type Pick = fn(&fedstay::record::RoundLine) -> f64;
    let track = |pick: Pick| -> Vec<(f64, f64)> {
        let points = recorded.rounds.iter().map(|line| (f64::from(line.round), pick(line)));
        points.filter(|(_, value)| value.is_finite() && *value > 0.0).collect()
    };
    let (length, size) = (track(|line| line.step_norm), track(|line| line.step_size));
    let panel = Panel {
        height: Some(150.0),
        y_scale: Scale::Log,
        ..Panel::new("The server's step", "round", "length")
    };
    let any = !length.is_empty() || !size.is_empty();
    any.then(|| {
        panel.with(Line::new("step size η", thinned(&size), Style::of("never"))).with(Line::new(
            "length of the step",
            thinned(&length),
            Style::of("ada-gd"),
        ))
    })
}
