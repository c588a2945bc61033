//! The page that every figure with training curves shares: average and population accuracy in the
//! paper's form, the controls, and how good the delivered models are for whom.

use super::measured::{MeasuredRun, Sample};
use super::setting;
use super::training::Done;
use fedstay_draw::picture::{PERCENT, delivered_bars, with_end};
use fedstay_draw::plot::{Bars, Colour, Figure, Guide, Line, Marker, Panel, Point, Points, Style};

/// The height of the axes in pixels.
const HEIGHT: f64 = 270.0;
/// The most points a curve is drawn with.
const POINTS: usize = 300;
/// The most rounds in which departures are marked.
const GUIDES: usize = 40;

/// An arm's runs with its style.
type Styled<'a> = (&'a Done, Style);
/// Which value of a sample is drawn.
type Of = fn(&Sample) -> Option<f64>;

/// The whole page.
pub(super) fn figure(title: &str, done: &[Done]) -> Figure {
    let styled: Vec<Styled<'_>> = done.iter().zip(styles(done)).collect();
    let Some(Done { experiment, .. }) = done.first() else { return Figure::new(title) };
    Figure {
        subtitle: setting::federation(experiment),
        caption: caption(done),
        columns: 2,
        ..Figure::new(title)
    }
    .with(curves("(a) average accuracy, leavers included", &styled, Sample::average))
    .with(curves("(b) population accuracy", &styled, Sample::population))
    .with(controls(&styled))
    .with(ends(&styled))
}

/// Every arm in its rule's style; a rule that appears again, with other settings, in one that no
/// other rule has.
fn styles(done: &[Done]) -> Vec<Style> {
    Style::repeated(&done.iter().map(|done| done.arm.label).collect::<Vec<_>>())
}

/// Axes that all panels share: the same rounds, the same per cents.
fn axes(title: &str, last: u32) -> Panel {
    Panel {
        height: Some(HEIGHT),
        x_range: Some((0.0, f64::from(last))),
        y_range: Some(PERCENT),
        ..Panel::new(title, "round", "accuracy, %")
    }
}

/// A run's curve in per cent.
fn curve(run: &MeasuredRun, of: Of) -> Vec<Point> {
    let points = run.points(of);
    thinned(points.into_iter().map(|(round, share)| (round, 100.0 * share)).collect())
}

/// The delivered model behind the end of a curve.
fn delivered(panel: Panel, run: &MeasuredRun, of: Of, style: Style) -> Panel {
    let Some(share) = of(&run.end) else { return panel };
    let end = (f64::from(run.rounds), 100.0 * share);
    with_end(panel, curve(run, of).pop(), end, style.colour)
}

/// The last round of the axis.
fn last(styled: &[Styled<'_>]) -> u32 {
    styled.iter().map(|(done, _)| done.experiment.rounds).max().unwrap_or(1)
}

/// The paper's curves: the first seed strong, with its departures; the other seeds thin.
fn curves(title: &str, styled: &[Styled<'_>], of: Of) -> Panel {
    let last = last(styled);
    let mut panel = axes(title, last);
    let main: Vec<&Styled<'_>> = styled.iter().filter(|(done, _)| done.arm.main).collect();
    for (done, style) in &main {
        panel = departures(panel, done, *style);
    }
    for (done, style) in &main {
        let pale = Style { colour: pale(style.colour), ..*style };
        for run in done.runs.iter().skip(1) {
            let line = Line::new("", curve(run, of), pale);
            panel = panel.with(Line { width: 1.3, ..line });
        }
    }
    for (done, style) in &main {
        panel = done.runs.iter().skip(1).fold(panel, |panel, run| crosses(panel, run, of, *style));
        let points = curve(done.first(), of);
        let line = Line::new(done.arm.name.clone(), points, *style);
        panel = panel.with(Line { markers: true, ..line });
    }
    main.iter().fold(panel, |panel, (done, style)| delivered(panel, done.first(), of, *style))
}

/// The points on the curve where agents left.
fn departed(run: &MeasuredRun, of: Of) -> Vec<Point> {
    let mut rounds = run.left.clone();
    rounds.dedup();
    let at = |round: &u32| Some((f64::from(*round), 100.0 * run.at(*round, of)?));
    rounds.iter().take(GUIDES).filter_map(at).collect()
}

/// A cross on the curve in every round in which an agent left.
fn crosses(panel: Panel, run: &MeasuredRun, of: Of, style: Style) -> Panel {
    let points = departed(run, of);
    if points.is_empty() {
        return panel;
    }
    let crosses = Points::new("an agent leaves", points, Marker::Cross, style.colour.darker(0.25));
    panel.with(Points { size: 3.5, ..crosses })
}

/// A dashed line in every round in which an agent left the first seed's run.
fn departures(mut panel: Panel, done: &Done, style: Style) -> Panel {
    let mut rounds = done.first().left.clone();
    rounds.dedup();
    for round in rounds.into_iter().take(GUIDES) {
        let name = format!("an agent leaves {}, seed {}", done.arm.name, done.first().seed);
        let guide = Guide::vertical(f64::from(round), "");
        panel = panel.with(Guide { name, colour: style.colour, width: 1.0, ..guide });
    }
    panel
}

/// All arms on the first seed. An arm that only chooses another model at the end shares averaging's
/// curve, so it is a wide line below it, and ends at its own model.
fn controls(styled: &[Styled<'_>]) -> Panel {
    let last = last(styled);
    let seed = styled.first().map_or(0, |(done, _)| done.first().seed);
    let mut panel = axes(&format!("(c) average accuracy, seed {seed}"), last);
    let chooses = |done: &Done| done.arm.label.contains("keep-best");
    let mut order: Vec<&Styled<'_>> = styled.iter().collect();
    order.sort_by_key(|(done, _)| !chooses(done));
    for (done, style) in &order {
        let points = curve(done.first(), Sample::average);
        let width = if chooses(done) { 4.5 } else { 2.0 };
        let line = Line::new(done.arm.name.clone(), points, *style);
        panel = panel.with(Line { width, markers: true, ..line });
    }
    for (done, style) in &order {
        panel = crosses(panel, done.first(), Sample::average, *style);
    }
    for (done, style) in order {
        panel = delivered(panel, done.first(), Sample::average, *style);
    }
    panel
}

/// The delivered models: the mean over the agents, and the worst-off agent.
fn ends(styled: &[Styled<'_>]) -> Panel {
    let percent = |share: f64| (100.0 * share).round();
    let ends = || styled.iter().map(|(done, _)| done.first().end.agents);
    let means = ends().map(|spread| percent(spread.mean)).collect();
    let worsts = ends().map(|spread| percent(spread.min)).collect();
    let seed = styled.first().map_or(0, |(done, _)| done.first().seed);
    Panel {
        height: Some(HEIGHT),
        // Two numbers over every name need room.
        weight: f64::max(1.0, 0.15 * styled.len() as f64),
        x_categories: styled.iter().map(|(done, _)| done.arm.name.clone()).collect(),
        y_range: Some(PERCENT),
        ..Panel::new(format!("(d) the model delivered at the end, seed {seed}"), "", "accuracy, %")
    }
    .with(Bars { show_values: true, ..Bars::new(delivered_bars(means, worsts)) })
}

fn caption(done: &[Done]) -> String {
    let Some(first) = done.first() else { return String::new() };
    let first_of = |label: &str| done.iter().find(|done| done.arm.label == label);
    let steps: Vec<String> = ["fedavg", "ada-gd", "retain"]
        .into_iter()
        .filter_map(first_of)
        .map(|done| format!("{}: {}", done.arm.name, setting::step(&done.experiment)))
        .collect();
    let seeds: Vec<String> = first.runs.iter().map(|run| run.seed.to_string()).collect();
    let seeds = match seeds.as_slice() {
        [seed] => format!("Seed {seed}. Upright dashes and crosses: an agent leaves."),
        seeds => format!(
            "Seeds {}: the first strong, with upright dashes in (a) and (b) in the rounds in which an \
             agent leaves it; the others thin, with crosses.",
            seeds.join(", ")
        ),
    };
    let end = "A curve that ends early is a run that was over; dotted: to what it delivered.";
    format!("{} {}. {seeds} {end}", setting::work(&first.experiment), steps.join("; "))
}

/// A colour halfway to white, for other seeds of the same rule.
fn pale(colour: Colour) -> Colour {
    let mix = |part: u8| part / 2 + 127;
    Colour(mix(colour.0), mix(colour.1), mix(colour.2))
}

/// Evenly chosen points, always including the last.
fn thinned(points: Vec<Point>) -> Vec<Point> {
    let every = points.len().div_ceil(POINTS).max(1);
    let end = points.last().copied();
    let mut thinned: Vec<Point> = points.into_iter().step_by(every).collect();
    thinned.extend(end);
    thinned.dedup();
    thinned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::training::{Arm, Asked};

    #[test]
    fn one_rule_at_four_step_sizes_has_four_looks() {
        let done: Vec<Done> = ["a", "b", "c", "d"]
            .into_iter()
            .map(|name| {
                let arm = Arm::main(name, "fedavg");
                let experiment = arm.experiment("", &Asked::default(), 0).unwrap();
                Done { arm, experiment, runs: vec![crate::figure::measured::tests::fake()] }
            })
            .collect();
        let styles = styles(&done);
        for (index, style) in styles.iter().enumerate() {
            assert!(!styles[index + 1..].contains(style), "{style:?}");
        }
    }

    #[test]
    fn thinning_keeps_both_ends() {
        let line = |count: u32| (0..count).map(|x| (f64::from(x), 0.0)).collect::<Vec<_>>();
        assert_eq!(thinned(line(10)), line(10));
        let thin = thinned(line(1001));
        assert!(thin.len() <= POINTS + 1);
        assert_eq!((thin[0].0, thin[thin.len() - 1].0), (0.0, 1000.0));
        assert!(thinned(Vec::new()).is_empty());
    }

    #[test]
    fn crosses_lie_on_their_curve() {
        let run = crate::figure::measured::tests::fake();
        assert_eq!(departed(&run, Sample::population), [(7.0, 45.0)]);
        let twice = MeasuredRun { left: vec![7, 7], ..run };
        assert_eq!(departed(&twice, Sample::population).len(), 1, "one cross for both");
    }
}
