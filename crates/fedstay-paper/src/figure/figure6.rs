//! Figure 6: Observations 2 and 3 with their bad regions.
//!
//! A start is *bad* if from there every first-order rule ends outside `S* = S_1* ∩ S_2*`, whatever
//! its step sizes. Outside both sets the two gradients of these problems span the plane, so some
//! step leads into `S*`; inside `S*` all is well. Where only one agent is content it leaves at
//! once, and the other's gradient has one direction only, so the rest of the run stays on a line:
//! the start is bad if and only if this line misses `S*`.
//!
//! **Observation 2**, `F_1 = |w_2|` and `F_2 = |w_1 − w_2|`:
//!
//! - agent 2 is content, agent 1 moves along `w_1 = c`. The line meets `S*` iff some `|w_2| ≤ ε` has
//!   `|c − w_2| ≤ ε`, that is iff `|c| ≤ 2ε`. Bad: `F_2 ≤ ε` and `|w_1| > 2ε`.
//! - agent 1 is content, agent 2 moves along `w_1 + w_2 = c`, the points `(c − t, t)`. The line meets
//!   `S*` iff some `|t| ≤ ε` has `|c − 2t| ≤ ε`, iff `|c| ≤ 3ε`. Bad: `F_1 ≤ ε` and `|w_1 + w_2| > 3ε`.
//!
//! **Observation 3**, `F_1 = max(w_2, 0)` and `F_2 = max(w_1 − w_2 + α, 0)`, the same with half-spaces:
//!
//! - `w_1 = c` meets `S*` iff some `w_2 ≤ ε` has `c − w_2 + α ≤ ε`. Bad: `F_2 ≤ ε` and `w_1 + α > 2ε`.
//! - `(c − t, t)` meets it iff some `t ≤ ε` has `c − 2t + α ≤ ε`. Bad: `F_1 ≤ ε` and `w_1 + w_2 + α > 3ε`.
//!
//! None of these points is in `S*` itself: by the triangle inequality `|w_1| > 2ε` and `F_2 ≤ ε` give
//! `F_1 > ε`, and so on. The test below walks the lines instead of trusting the algebra.
//! Reference: arXiv 2311.16459, Definition 1, Observations 2 and 3, Figure 6.

use super::Drawing;
use super::landscape::{DrawnRun, paths, set_name, stops};
use super::trace::{Setting, Trace, named, trace};
use fedstay::Seed;
use fedstay::problem::{Instance, Observation2, Observation3, Problem};
use fedstay_draw::picture::landscape::Landscape;
use fedstay_draw::plot::{Colour, Figure, Marker, Note, Panel, Point, Points, Region};
use serde_json::json;

/// Where both losses of Observation 2 are zero.
const OPTIMUM_2: Point = (0.0, 0.0);

/// How far a point is from the bad region of Observation 2: at most 0 inside it.
fn bad_2(epsilon: f64, f: [f64; 2], (x, y): Point) -> f64 {
    let second_left = (f[1] - epsilon).max(2.0 * epsilon - x.abs());
    let first_left = (f[0] - epsilon).max(3.0 * epsilon - (x + y).abs());
    second_left.min(first_left)
}

/// How far a point is from the bad region of Observation 3: at most 0 inside it.
fn bad_3(epsilon: f64, alpha: f64, f: [f64; 2], (x, y): Point) -> f64 {
    let second_left = (f[1] - epsilon).max(2.0 * epsilon - (x + alpha));
    let first_left = (f[0] - epsilon).max(3.0 * epsilon - (x + y + alpha));
    second_left.min(first_left)
}

fn losses(instance: &Instance, x: f64, y: f64) -> [f64; 2] {
    [instance.oracles[0].loss(&[x, y]), instance.oracles[1].loss(&[x, y])]
}

/// Averaging and ADA-GD on one problem, both with the step size of ADA-GD's theorem.
struct Pair {
    instance: Instance,
    step_size: f64,
    averaging: Trace,
    ada_gd: Trace,
}

impl Pair {
    fn new(problem: &Problem) -> anyhow::Result<Self> {
        let instance = problem.build(Seed(0))?;
        let step_size = instance.theorem_step(instance.delta).unwrap_or(instance.step_size);
        let run = |setting| trace(problem.name(), &instance, Setting { step_size, ..setting });
        let averaging = run(Setting::averaging(&instance))?;
        let ada_gd = run(Setting::ada_gd(&instance))?;
        Ok(Self { instance, step_size, averaging, ada_gd })
    }

    fn runs(&self, nudges: [(f64, f64); 2]) -> [DrawnRun<'_>; 2] {
        [
            DrawnRun { name: "FedAvg", trace: &self.averaging, nudge: nudges[0] },
            DrawnRun { name: "ADA-GD", trace: &self.ada_gd, nudge: nudges[1] },
        ]
    }
}

fn observation_2(pair: &Pair) -> anyhow::Result<Panel> {
    let (instance, epsilon) = (&pair.instance, pair.instance.epsilon);
    let land = Landscape { instance, x: (-0.55, 1.65), y: (-0.45, 1.5), samples: 260 };
    let bad = land.grid(|x, y| bad_2(epsilon, losses(instance, x, y), (x, y)));
    let mut panel = land.panel("(a) Observation 2: a bad start");
    panel.layers = land.content(&[0.4, 0.8, 1.2]);
    panel = panel.with(Region::dotted("bad region", bad, 0.0, Colour(0x55, 0x55, 0x55)));
    panel.layers.extend(paths(&land, &pair.runs([(-4.5, 0.0), (4.5, 0.0)])));
    let first = pair.averaging.departure(1)?;
    let last = pair.averaging.departure(0)?;
    let (end, stop) = (pair.averaging.end(), pair.ada_gd.end());
    Ok(panel
        .with(stops("ADA-GD stops", "ADA-GD", vec![stop]))
        .with(Points::new("shared optimum w*", vec![OPTIMUM_2], Marker::Star, Colour::INK))
        .with(set_name(0, (1.53, 0.0), "S₁*"))
        .with(set_name(1, (1.42, 1.42), "S₂*"))
        .with(Note::new(
            first.at,
            format!("w₀: {} leaves at once", named(first.agent)),
            (-55.0, 45.0),
        ))
        .with(Note::new(
            stop,
            format!("ADA-GD:\nF = {:.2}", pair.ada_gd.summary.score.loss.mean),
            (16.0, 50.0),
        ))
        .with(Note::new(
            end,
            format!(
                "{} leaves too:\nF = {:.2}",
                named(last.agent),
                pair.averaging.summary.score.loss.mean
            ),
            (-30.0, -58.0),
        )))
}

fn observation_3(pair: &Pair, alpha: f64) -> anyhow::Result<Panel> {
    let (instance, epsilon) = (&pair.instance, pair.instance.epsilon);
    let land = Landscape { instance, x: (-1.4, 2.25), y: (-0.65, 1.55), samples: 300 };
    let bad = land.grid(|x, y| bad_3(epsilon, alpha, losses(instance, x, y), (x, y)));
    let stayed = pair.ada_gd.left.is_empty();
    let turns = if stayed { ": ADA-GD turns in time" } else { "" };
    let mut panel = land.panel(&format!("(b) Observation 3, α = {alpha}{turns}"));
    panel.layers = land.content(&[0.5, 1.0, 1.5, 2.0, 2.5]);
    panel = panel.with(Region::dotted("bad region", bad, 0.0, Colour(0x55, 0x55, 0x55)));
    panel.layers.extend(paths(&land, &pair.runs([(0.0, 4.5), (0.0, -4.5)])));
    let first = pair.averaging.departure(1)?;
    let last = pair.averaging.departure(0)?;
    let stop = pair.ada_gd.end();
    Ok(panel
        .with(stops("ADA-GD stops", "ADA-GD", vec![stop]))
        .with(set_name(0, (2.08, 0.0), "S₁*"))
        .with(set_name(1, (-1.15, 0.9), "S₂*"))
        .with(Note::new(
            first.at,
            format!("{} leaves\nin round {}", named(first.agent), first.round),
            (-45.0, 30.0),
        ))
        .with(Note::new(
            last.at,
            format!(
                "{} leaves in round {}:\nF = {:.2}",
                named(last.agent),
                last.round,
                pair.averaging.summary.score.loss.mean
            ),
            (55.0, -38.0),
        ))
        .with(Note::new(
            stop,
            format!(
                "all stayed:\nF₁ = {:.2}, F₂ = {:.2}",
                pair.ada_gd.loss(0),
                pair.ada_gd.loss(1)
            ),
            (-38.0, -70.0),
        )))
}

/// Whom both rules lost, on all problems together.
fn title(pairs: [&Pair; 2]) -> String {
    let agents: usize = pairs.iter().map(|pair| pair.instance.oracles.len()).sum();
    let lost =
        |of: fn(&Pair) -> &Trace| -> usize { pairs.iter().map(|pair| of(pair).left.len()).sum() };
    let (averaging, ada_gd) = (lost(|pair| &pair.averaging), lost(|pair| &pair.ada_gd));
    format!("Of {agents} agents averaging loses {averaging}, ADA-GD {ada_gd}")
}

/// Makes the figure.
pub(super) fn make() -> anyhow::Result<Drawing> {
    let shifted = Observation3 { alpha: 1.0, start: None };
    let alpha = shifted.alpha;
    let second = Pair::new(&Problem::Observation2(Observation2::default()))?;
    let third = Pair::new(&Problem::Observation3(shifted))?;
    let leaves = third.averaging.departure(1)?;
    let s = leaves.at.0 - leaves.at.1 + alpha;
    let figure = Figure {
        caption: format!(
            "Level lines of both losses and where the agents are content, ε = {}. In the dotted \
             region one agent leaves at once and the line on which the other moves on misses the \
             overlap. F is the mean loss. Both rules take steps η = δ/L = {:.3}; coinciding paths \
             are drawn side by side.",
            third.instance.epsilon, third.step_size
        ),
        ..Figure::new(title([&second, &third]))
    }
    .with(observation_2(&second)?)
    .with(observation_3(&third, alpha)?);
    let notes = vec![
        format!(
            "Observation 2: from ({}, {}) agent 2 leaves at once under either rule; FedAvg ends with a mean \
             loss of {:.3} ({}), ADA-GD with {:.3} ({}).",
            second.averaging.start().0,
            second.averaging.start().1,
            second.averaging.summary.score.loss.mean,
            second.averaging.summary.verdict.name(),
            second.ada_gd.summary.score.loss.mean,
            second.ada_gd.summary.verdict.name(),
        ),
        format!(
            "Observation 3, α = {alpha}: FedAvg loses agent 2 in round {} at s = w₁ − w₂ + α = {s:.3} and ends \
             with a mean loss of {:.3} = (1 + s)/2 ({}).",
            leaves.round,
            third.averaging.summary.score.loss.mean,
            third.averaging.summary.verdict.name(),
        ),
        format!(
            "ADA-GD loses nobody there and stops after {} rounds with F₁ = {:.3} and F₂ = {:.3} (ε + 2δ = {:.2}).",
            third.ada_gd.summary.rounds,
            third.ada_gd.loss(0),
            third.ada_gd.loss(1),
            third.instance.epsilon + 2.0 * third.instance.delta,
        ),
    ];
    let numbers = json!({
        "observation-2": {
            "fedavg": second.averaging.numbers(),
            "ada-gd": second.ada_gd.numbers(),
        },
        "observation-3": {
            "alpha": alpha,
            "s": s,
            "fedavg": third.averaging.numbers(),
            "ada-gd": third.ada_gd.numbers(),
        },
    });
    Ok(Drawing { name: "figure-6".into(), figure, notes, numbers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::StopReason;
    use fedstay::verdict::Verdict;

    /// Whether some first-order rule gets from `w` into S*, by walking.
    fn reaches(instance: &Instance, w: [f64; 2]) -> bool {
        let epsilon = instance.epsilon;
        let content = |w: &[f64; 2]| losses(instance, w[0], w[1]).map(|loss| loss <= epsilon);
        let rest = match content(&w) {
            // In S*; or nobody is content, and the two gradients span the plane.
            [true, true] | [false, false] => return true,
            [true, false] => 1,
            [false, true] => 0,
        };
        let mut g = [0.0; 2];
        instance.oracles[rest].loss_and_gradient(&w, &mut g);
        // Backwards too: a rule may take any multiple of the gradient.
        (-4000..=4000).any(|step| {
            let t = 0.002 * f64::from(step);
            content(&[w[0] - t * g[0], w[1] - t * g[1]]) == [true, true]
        })
    }

    fn check(instance: &Instance, bad: impl Fn([f64; 2], (f64, f64)) -> f64) {
        let (mut bads, mut goods) = (0, 0);
        for i in -60..=60 {
            for j in -60..=60 {
                // Off the borders: there the steps of the walk are too coarse to tell.
                let w = [0.0311 * f64::from(i) + 0.0007, 0.0293 * f64::from(j) + 0.0011];
                let value = bad(losses(instance, w[0], w[1]), (w[0], w[1]));
                if value.abs() > 0.003 {
                    assert_eq!(value < 0.0, !reaches(instance, w), "{w:?}: {value}");
                    bads += u32::from(value < 0.0);
                    goods += u32::from(value > 0.0);
                }
            }
        }
        assert!(bads > 500 && goods > 500, "{bads} bad, {goods} good");
    }

    #[test]
    fn the_bad_region_of_observation_2_is_where_the_line_misses() {
        let instance = Problem::Observation2(Observation2::default()).build(Seed(0)).unwrap();
        check(&instance, |f, w| bad_2(instance.epsilon, f, w));
    }

    #[test]
    fn the_bad_region_of_observation_3_is_where_the_line_misses() {
        for alpha in [0.0, 1.0] {
            let problem = Problem::Observation3(Observation3 { alpha, start: None });
            let instance = problem.build(Seed(0)).unwrap();
            check(&instance, |f, w| bad_3(instance.epsilon, alpha, f, w));
        }
    }

    #[test]
    fn the_numbers_are_the_papers() {
        let second = Pair::new(&Problem::Observation2(Observation2::default())).unwrap();
        assert_eq!(losses(&second.instance, OPTIMUM_2.0, OPTIMUM_2.1), [0.0, 0.0]);
        for run in [&second.averaging, &second.ada_gd] {
            assert!(run.summary.score.loss.mean >= 0.5 - 1e-12);
            assert_eq!(run.summary.verdict, Verdict::Harmful);
        }
        let problem = Observation3::default();
        let alpha = problem.alpha;
        let third = Pair::new(&Problem::Observation3(problem)).unwrap();
        let leaves = &third.averaging.left[0];
        let s = leaves.at.0 - leaves.at.1 + alpha;
        assert_eq!(leaves.agent.0, 1);
        assert!((third.averaging.summary.score.loss.mean - (1.0 + s) / 2.0).abs() < 1e-9);
        assert_eq!(third.averaging.summary.verdict, Verdict::Harmful);
        let kept = &third.ada_gd;
        assert_eq!((kept.summary.verdict, kept.stop), (Verdict::Unsatisfied, StopReason::Settled));
        let bound = third.instance.epsilon + 2.0 * third.instance.delta + 1e-12;
        assert!(kept.summary.score.loss.max <= bound);
        // The departure is in the bad region, while ADA-GD never enters it.
        let bad = |(x, y)| {
            bad_3(third.instance.epsilon, alpha, losses(&third.instance, x, y), (x, y)) <= 0.0
        };
        assert!(bad(leaves.at) && !kept.path.iter().any(|point| bad(*point)));
    }
}
