//! For problems with two weights: the trajectory of a run on a map of the losses.

use super::delivered::with_end;
use super::landscape::{Landscape, MOST_AGENTS};
use crate::plot::{Colour, Figure, Line, Marker, Points, Style};
use fedstay::problem::Instance;
use fedstay::record::{Summary, called};
use fedstay::{AgentId, Seed};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Recorded;

/// The named problem of a configuration.
pub(super) fn instance(config: &str) -> Option<Instance> {
    let experiment = Experiment::parse(config, &[]).ok()?;
    experiment.problem()?.build(Seed(experiment.seed)).ok()
}

/// The map; `None` unless the run has two weights and a named problem.
pub(super) fn figure(
    recorded: &Recorded,
    summary: Option<&Summary>,
    config: &str,
) -> Option<Figure> {
    let points = |line: &fedstay::record::RoundLine| match line.weights.as_deref() {
        Some([x, y]) if x.is_finite() && y.is_finite() => Some((*x, *y)),
        _ => None,
    };
    let path: Vec<(f64, f64)> = recorded.rounds.iter().filter_map(points).collect();
    let start = *path.first()?;
    let delivered = match summary.and_then(|summary| summary.weights.as_deref()) {
        Some([x, y]) if x.is_finite() && y.is_finite() => Some((*x, *y)),
        _ => None,
    };
    let mut instance = instance(config).filter(|instance| instance.dimension() == 2)?;
    instance.epsilon = recorded.header.agents.first()?.epsilon;
    let way: Vec<(f64, f64)> = path.iter().copied().chain(delivered).collect();
    let land = Landscape::around(&instance, &way, 240)?;
    let corner = [land.x.1, land.y.1];
    let all = instance.oracles.len();
    let drawn = instance.oracles.iter().take(MOST_AGENTS);
    let highest = drawn.map(|oracle| oracle.loss(&corner)).fold(0.5, f64::max);
    let levels: Vec<f64> =
        [0.2, 0.4, 0.6, 0.8].map(|share| (share * highest * 10.0).round() / 10.0).to_vec();
    let mut panel = land.panel("The way the model took, on a map of the losses");
    // The agents of a run are called what they are called in its other pictures.
    let called = |agent: usize| match recorded.header.agents.get(agent) {
        Some(agent) => agent.called(),
        None => called(AgentId(agent as u64), None),
    };
    panel.layers = land.content_named(&levels, |agent| format!("{} is content", called(agent)));
    let style = Style::of(&recorded.header.rule);
    let name = recorded.header.rule.clone();
    let left: Vec<(f64, f64)> =
        recorded.rounds.iter().filter(|line| !line.left.is_empty()).filter_map(points).collect();
    let line = Line::new(name, super::thinned(&path), style);
    panel = panel.with(Line { arrows: true, ..line });
    panel = panel.with(Points::new("start", vec![start], Marker::Ring, Colour::INK));
    if !left.is_empty() {
        panel = panel.with(Points::new("an agent leaves", left, Marker::Cross, Colour::INK));
    }
    if let Some(end) = delivered {
        panel = with_end(panel, path.last().copied(), end, Colour::INK);
    }
    let caption = match all > MOST_AGENTS {
        true => format!("Of {all} agents, the losses of the first {MOST_AGENTS} are drawn."),
        false => String::new(),
    };
    Some(Figure { columns: 1, width: 720.0, caption, ..Figure::new("") }.with(panel))
}
