//! Figure 7: Observation 4, the paper's "example of bad problem".
//!
//! Agent 1's zero set is a strip, agent 2's a disc that overlaps it at `w*`. The path of small
//! steps from `w_0` has to cross the strip: agent 1 leaves at `w_t`, and agent 2 alone leads on to
//! `w_R`, where `F_1 = 1`. ADA-GD keeps agent 1 out of the strip and slides along it, to `w'`,
//! where the gradients are parallel and no step helps.
//! Reference: arXiv 2311.16459, Observation 4 and Figure 7.

use super::Drawing;
use super::landscape::{DrawnRun, paths, set_name, stops};
use super::trace::{Setting, Trace, named, trace};
use fedstay::problem::{Instance, Observation4, Problem};
use fedstay::{AgentId, Seed, StopReason};
use fedstay_draw::picture::landscape::{Landscape, subscript};
use fedstay_draw::plot::{
    Colour, Contours, Dash, Figure, Fill, Layer, Marker, Note, Point, Points, Region, Style,
};
use serde_json::json;

/// Averaging and ADA-GD, with the problem's own step size.
fn runs() -> anyhow::Result<(Instance, Trace, Trace)> {
    let problem = Problem::Observation4(Observation4::default());
    let instance = problem.build(Seed(0))?;
    let averaging = trace(problem.name(), &instance, Setting::averaging(&instance))?;
    let ada_gd = trace(problem.name(), &instance, Setting::ada_gd(&instance))?;
    Ok((instance, averaging, ada_gd))
}

/// A shared optimum: the midpoint of the points with no loss at all on the line from `from` along
/// agent 2's negative gradient.
fn optimum(instance: &Instance, from: Point) -> anyhow::Result<Point> {
    let mut g = [0.0; 2];
    instance.oracles[1].loss_and_gradient(&[from.0, from.1], &mut g);
    let length = g[0].hypot(g[1]);
    let place = |step: u32| {
        let t = 0.001 * f64::from(step) / length;
        (from.0 - t * g[0], from.1 - t * g[1])
    };
    let both = |step: &u32| {
        let (x, y) = place(*step);
        instance.oracles.iter().all(|oracle| oracle.loss(&[x, y]) == 0.0)
    };
    let steps: Vec<u32> = (0..10_000).filter(both).collect();
    match (steps.first(), steps.last()) {
        (Some(first), Some(last)) => Ok(place((first + last) / 2)),
        _ => anyhow::bail!("no shared optimum between {from:?} and agent 2's set"),
    }
}

/// The cosine of the angle between the agents' gradients.
fn cosine(instance: &Instance, (x, y): Point) -> f64 {
    let (mut a, mut b) = ([0.0; 2], [0.0; 2]);
    instance.oracles[0].loss_and_gradient(&[x, y], &mut a);
    instance.oracles[1].loss_and_gradient(&[x, y], &mut b);
    (a[0] * b[0] + a[1] * b[1]) / (a[0].hypot(a[1]) * b[0].hypot(b[1]))
}

/// An agent's zero set, ε-level and 1-level.
fn levels(land: &Landscape<'_>, agent: usize) -> [Layer; 3] {
    let (style, sub, grid) = (Style::agent(agent), subscript(agent), land.loss(agent));
    let line = |name: String, level: f64, dash: Dash, width: f64| Contours {
        dash,
        width,
        labels: false,
        ..Contours::new(name, grid.clone(), vec![level], style)
    };
    [
        Region {
            fill: Fill::tint(style.colour, 0.35),
            outline: None,
            ..Region::new(format!("F{sub} = 0"), grid.clone(), 0.0, style)
        }
        .into(),
        line(format!("F{sub} = ε"), land.instance.epsilon, Dash::Dashed, 1.6).into(),
        line(format!("F{sub} = 1"), 1.0, Dash::Solid, 1.6).into(),
    ]
}

/// Makes the figure.
pub(super) fn make() -> anyhow::Result<Drawing> {
    let (instance, averaging, ada_gd) = runs()?;
    let best = optimum(&instance, ada_gd.end())?;
    let parallel = cosine(&instance, ada_gd.end());
    // One sample per pixel: where a clipped loss begins there is nothing to interpolate.
    let land = Landscape { instance: &instance, x: (-2.6, 6.6), y: (-1.7, 8.9), samples: 620 };
    let mut panel = land.panel("");
    panel.layers.extend(levels(&land, 0));
    panel.layers.extend(levels(&land, 1));
    panel.layers.extend(paths(
        &land,
        &[
            DrawnRun { name: "FedAvg", trace: &averaging, nudge: (3.0, 2.0) },
            DrawnRun { name: "ADA-GD", trace: &ada_gd, nudge: (-3.0, -2.0) },
        ],
    ));
    let (first, last) = (averaging.departure(0)?, averaging.departure(1)?);
    panel = panel
        .with(stops("ADA-GD stalls", "ADA-GD", vec![ada_gd.end()]))
        .with(Points::new("shared optimum w*", vec![best], Marker::Star, Colour::INK))
        .with(set_name(0, (0.0, 8.4), "F₁ = 0"))
        .with(set_name(1, (4.2, 0.8), "F₂ = 0"))
        .with(Note::new(averaging.start(), "w₀", (-14.0, 0.0)))
        .with(Note::new(
            first.at,
            format!("wₜ: {} leaves\nin round {}", named(first.agent), first.round),
            (150.0, 40.0),
        ))
        .with(Note::new(
            last.at,
            format!(
                "wᵣ: {} leaves in round {},\nF₁ = {:.2} for good",
                named(last.agent),
                last.round,
                averaging.loss(0)
            ),
            (60.0, 60.0),
        ))
        .with(Note::new(best, "w*", (16.0, -18.0)))
        .with(Note::new(
            ada_gd.end(),
            format!("w′: gradients\nare parallel,\nF₂ = {:.2}", ada_gd.loss(1)),
            (-25.0, 35.0),
        ));
    let figure = Figure {
        width: 680.0,
        caption: format!(
            "Filled: no loss; dashed: the ε-level, ε = {}; solid: the 1-level. Small steps \
             (η = {}) reach agent 2's set only across agent 1's strip. There FedAvg loses \
             agent 1 and ends with F₁ = {:.2}; ADA-GD keeps it and stalls.",
            instance.epsilon,
            instance.step_size,
            averaging.loss(0)
        ),
        ..Figure::new(title(&averaging, &ada_gd))
    }
    .with(panel);
    let notes = vec![
        format!(
            "FedAvg: agent 1 leaves in round {} at wₜ = ({:.2}, {:.2}); agent 2 alone leads on to wᵣ = ({:.2}, \
             {:.2}), where F₁ = {:.3} ({}).",
            first.round,
            first.at.0,
            first.at.1,
            last.at.0,
            last.at.1,
            averaging.loss(0),
            averaging.summary.verdict.name()
        ),
        format!(
            "ADA-GD loses nobody, slides along the strip and ends {} after {} rounds at w' = ({:.2}, {:.2}) with \
             F₁ = {:.3} and F₂ = {:.3}; the gradients' cosine there is {parallel:.6}.",
            ada_gd.stop.name(),
            ada_gd.summary.rounds,
            ada_gd.end().0,
            ada_gd.end().1,
            ada_gd.loss(0),
            ada_gd.loss(1)
        ),
        format!("Both losses are zero at w* = ({:.2}, {:.2}).", best.0, best.1),
    ];
    let numbers = json!({
        "fedavg": averaging.numbers(),
        "ada-gd": ada_gd.numbers(),
        "optimum": [best.0, best.1],
        "cosine_where_ada_gd_ends": parallel,
    });
    Ok(Drawing { name: "figure-7".into(), figure, notes, numbers })
}

/// What became of agent 1 under averaging, and how ADA-GD ended.
fn title(averaging: &Trace, ada_gd: &Trace) -> String {
    let spoilt = averaging.left.iter().any(|left| left.agent == AgentId(0))
        && averaging.loss(0) > averaging.summary.agents[0].epsilon;
    let first = if spoilt { "loses agent 1 for good" } else { "does agent 1 no harm" };
    let last = match (ada_gd.left.is_empty(), ada_gd.stop) {
        (false, _) => "loses somebody too",
        (true, StopReason::Stalled) => "stalls",
        (true, _) => "loses nobody",
    };
    format!("Small steps on a bad problem: averaging {first}, ADA-GD {last}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::verdict::Verdict;

    #[test]
    fn the_numbers_are_the_papers() {
        let (instance, averaging, ada_gd) = runs().unwrap();
        assert_eq!(averaging.summary.verdict, Verdict::Harmful);
        assert_eq!(averaging.left[0].agent.0, 0);
        assert!((averaging.loss(0) - 1.0).abs() <= 0.05, "{}", averaging.loss(0));
        assert_eq!(
            (ada_gd.stop, ada_gd.summary.verdict),
            (StopReason::Stalled, Verdict::Unsatisfied)
        );
        assert!((cosine(&instance, ada_gd.end()).abs() - 1.0).abs() < 1e-9);
        let best = optimum(&instance, ada_gd.end()).unwrap();
        assert!(instance.oracles.iter().all(|oracle| oracle.loss(&[best.0, best.1]) == 0.0));
        assert!(!ada_gd.summary.everybody_content);
    }
}
