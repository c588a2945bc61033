//! Observation 1: whatever satisfies agent 1 satisfies agent 2.
//!
//! Agent 1's ε-sub-level set lies inside agent 2's, so agent 2 is the first to leave, and what then
//! satisfies agent 1 satisfies both: departures are benign. On the first axis the gradients are
//! parallel, so a rule that wants to keep agent 2 cannot help agent 1: ADA-GD stalls there.
//! Reference: arXiv 2311.16459, Observation 1.

use super::Drawing;
use super::landscape::{DrawnRun, paths, set_name, stops};
use super::trace::{Setting, Trace, named, trace};
use fedstay::problem::{Instance, Observation1, Problem};
use fedstay::verdict::Verdict;
use fedstay::{Seed, StopReason};
use fedstay_draw::picture::landscape::Landscape;
use fedstay_draw::plot::{Arrows, Figure, Layer, Note, Point};
use serde_json::json;

/// Where the runs begin; the first is the problem's own start, on the axis.
const STARTS: [[f64; 2]; 3] = [[1.0, 0.0], [0.5, 3.2], [1.5, -2.4]];

/// The spacing of the arrows.
const SPACING: f64 = 0.75;

/// The direction of the mean loss's negative gradient on a lattice. Its length falls to a tenth
/// within the panel, so arrows of that length would be dots.
fn flow(land: &Landscape<'_>) -> Vec<(Point, Point)> {
    let count = |range: (f64, f64)| ((range.1 - range.0) / SPACING).floor() as i32;
    let at = |range: (f64, f64), index: i32| range.0 + SPACING * (f64::from(index) + 0.5);
    let mut arrows = Vec::new();
    for i in 0..count(land.x) {
        for j in 0..count(land.y) {
            let w = [at(land.x, i), at(land.y, j)];
            let (mut sum, mut g) = ((0.0, 0.0), [0.0; 2]);
            for oracle in &land.instance.oracles {
                oracle.loss_and_gradient(&w, &mut g);
                sum = (sum.0 - g[0], sum.1 - g[1]);
            }
            let length = sum.0.hypot(sum.1);
            arrows.push(((w[0], w[1]), (sum.0 / length, sum.1 / length)));
        }
    }
    arrows
}

/// Averaging and ADA-GD from every start.
fn runs() -> anyhow::Result<(Instance, Vec<[Trace; 2]>)> {
    let own = Problem::Observation1(Observation1::default()).build(Seed(0))?;
    let mut runs = Vec::new();
    for start in STARTS {
        let problem = Problem::Observation1(Observation1 { start: Some(start.to_vec()) });
        let instance = problem.build(Seed(0))?;
        let run = |setting| trace(problem.name(), &instance, setting);
        runs.push([run(Setting::averaging(&instance))?, run(Setting::ada_gd(&instance))?]);
    }
    Ok((own, runs))
}

/// Makes the figure.
pub(super) fn make() -> anyhow::Result<Drawing> {
    let (instance, runs) = runs()?;
    let land = Landscape { instance: &instance, x: (-7.5, 2.0), y: (-3.6, 4.0), samples: 96 };
    let mut panel = land.panel("");
    panel.layers = land.content(&[0.2, 0.5, 1.0]);
    // The smaller set comes last and stronger, or it would vanish in the larger one.
    panel.layers.rotate_left(2);
    for layer in &mut panel.layers[2..] {
        if let Layer::Region(region) = layer {
            region.fill.opacity = 0.65;
        }
    }
    panel = panel.with(Arrows { length: 20.0, ..Arrows::new("direction of −∇F", flow(&land)) });
    let mut drawn = Vec::new();
    for [averaging, ada_gd] in &runs {
        drawn.push(DrawnRun { name: "FedAvg", trace: averaging, nudge: (0.0, 4.0) });
        drawn.push(DrawnRun { name: "ADA-GD", trace: ada_gd, nudge: (0.0, -4.0) });
    }
    panel.layers.extend(paths(&land, &drawn));
    let ends = runs.iter().map(|[_, ada_gd]| ada_gd.end()).collect();
    panel = panel.with(stops("ADA-GD stalls", "ADA-GD", ends));
    let [averaging, ada_gd] = &runs[0];
    let (first, last) = (averaging.departure(1)?, averaging.departure(0)?);
    panel = panel
        .with(set_name(0, (-7.0, 2.0), "S₁*"))
        .with(set_name(1, (-3.0, 3.5), "S₂*"))
        .with(Note::new(
            first.at,
            format!("{} leaves in round {}", named(first.agent), first.round),
            (-40.0, 40.0),
        ))
        .with(Note::new(
            last.at,
            format!("{} follows\nin round {}:\nboth are content", named(last.agent), last.round),
            (-40.0, 0.0),
        ))
        .with(Note::new(
            ada_gd.end(),
            format!("ADA-GD stalls:\nF₁ = {:.2}, F₂ = {:.2}", ada_gd.loss(0), ada_gd.loss(1)),
            (40.0, -70.0),
        ));
    let benign = runs.iter().filter(|[run, _]| run.summary.verdict == Verdict::Benign).count();
    let stalled = runs.iter().filter(|[_, run]| run.stop == StopReason::Stalled).count();
    let figure = Figure {
        width: 760.0,
        caption: format!(
            "A point satisfies agent 2 whenever it satisfies agent 1 (ε = {}): agent 2 leaves first, and \
             FedAvg goes on until agent 1 is content too. ADA-GD keeps agent 2 in and stalls on the axis, \
             where the gradients are parallel. F is the mean of both losses.",
            instance.epsilon
        ),
        ..Figure::new(title(benign, runs.len()))
    }
    .with(panel);
    let notes = vec![
        format!(
            "FedAvg: agent 2 leaves first, agent 1 follows, and both are content, from {benign} of {} starts.",
            runs.len()
        ),
        format!(
            "From ({}, {}) they leave in rounds {} and {}, and F₁ = {:.3}, F₂ = {:.3} at the end (ε = {}).",
            STARTS[0][0],
            STARTS[0][1],
            first.round,
            last.round,
            averaging.loss(0),
            averaging.loss(1),
            instance.epsilon
        ),
        format!(
            "ADA-GD loses nobody and ends stalled from {stalled} of them; from ({}, {}) it gets to w₁ = {:.2}, \
             with F₁ = {:.3}, F₂ = {:.3}.",
            STARTS[0][0],
            STARTS[0][1],
            ada_gd.end().0,
            ada_gd.loss(0),
            ada_gd.loss(1)
        ),
    ];
    let numbers: Vec<_> = runs
        .iter()
        .map(|[averaging, ada_gd]| {
            json!({ "fedavg": averaging.numbers(), "ada-gd": ada_gd.numbers() })
        })
        .collect();
    let numbers = json!({ "starts": numbers });
    Ok(Drawing { name: "observation-1".into(), figure, notes, numbers })
}

/// What departures did.
fn title(benign: usize, all: usize) -> String {
    match benign == all {
        true => "Observation 1: departures that harm nobody".to_owned(),
        false => {
            format!("Observation 1: departures that harm nobody from {benign} of {all} starts")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averaging_is_benign_and_ada_gd_stalls_from_every_start() {
        let (instance, runs) = runs().unwrap();
        assert_eq!(instance.start, STARTS[0], "the first start is the problem's own");
        for [averaging, ada_gd] in runs {
            assert_eq!(averaging.summary.verdict, Verdict::Benign);
            assert_eq!(averaging.left[0].agent.0, 1);
            assert_eq!(averaging.stop, StopReason::EveryoneLeft);
            assert!(ada_gd.summary.verdict.kept_everybody());
            assert_eq!(ada_gd.stop, StopReason::Stalled);
            assert!(ada_gd.loss(0) > instance.epsilon);
        }
    }
}
