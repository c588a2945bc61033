//! One run: every agent's loss against its target loss, who was about to leave and who left, and
//! how good the model was for everybody.

use super::bars::PERCENT;
use super::chart::{ChartCurve, MEASURED, STEPS};
use super::delivered::with_end;
use super::{LossOf, PictureError, Subject, thinned, write_figure};
use crate::plot::{
    Category, Cells, Colour, Dash, Figure, Fill, Guide, Line, Marker, Panel, Pattern, Points,
    Scale, Style,
};
use crate::words::{State, capital, sentence, title};
use fedstay::record::{Spread, Summary, as_written};
use fedstay::{Measure, Score};
use fedstay_sim::run::Recorded;
use std::path::PathBuf;

/// How many agents are drawn one by one; with more, the picture says how many are left out.
const AGENTS: usize = 40;
/// Up to here every agent has a look of its own and a name.
const NAMED: usize = 12;
/// The most columns of the strip of states; longer runs are thinned.
const COLUMNS: usize = 500;

/// Draws `run.svg` and `run.png` into the folder of a run.
///
/// # Errors
/// When the picture cannot be written.
pub fn write(subject: &Subject) -> Result<Vec<PathBuf>, PictureError> {
    let Subject { recorded, summary, folder, .. } = subject;
    let drawing = figure(recorded, summary.as_ref(), subject.loss_of());
    write_figure(&drawing, folder, "run")
}

/// The picture. Once there is a summary it ends in the delivered model.
pub fn figure(recorded: &Recorded, summary: Option<&Summary>, on: LossOf) -> Figure {
    let mut figure = Figure { columns: 1, ..Figure::new(title(&recorded.header)) };
    figure.caption = caption(recorded, summary);
    let panels = [
        losses(recorded, summary, on),
        Some(strip(recorded)),
        overall(recorded, summary),
        steps(recorded),
    ];
    // All panels have the same rounds below each other.
    let last = recorded.rounds.last().map_or(1, |line| line.round);
    let last = last.max(summary.map_or(1, |summary| summary.rounds)).max(2);
    let x_range = Some((0.5, f64::from(last) + 0.5));
    let panels = panels.into_iter().flatten().map(|panel| Panel { x_range, ..panel });
    figure.panels.extend(panels);
    figure
}

/// What it was made with, and what is left out.
fn caption(recorded: &Recorded, summary: Option<&Summary>) -> String {
    let header = &recorded.header;
    let mut parts = Vec::new();
    if let Some(line) = recorded.rounds.first() {
        parts.push(format!("η = {} at the start, seed {}.", line.step_size, header.seed));
    }
    let notes = summary.map_or(&[][..], |summary| &summary.notes);
    parts.extend(notes.iter().take(1).map(|note| sentence(note)));
    if header.count() > AGENTS {
        let drawn = header.agents.len().min(AGENTS);
        parts.push(format!("The first {drawn} of {} agents are drawn.", header.count()));
    }
    if header.agents.len() > NAMED {
        parts.push("Every thin line is one agent.".to_owned());
    }
    parts.join(" ")
}

/// Looks that no agent has, for what is not an agent. They differ in grey and in dash.
fn look(colour: Colour, dash: Dash) -> Style {
    Style { colour, dash, marker: Marker::Disc }
}

/// Every agent's losses, where they are known exactly; `None` where nobody reports any.
fn losses(recorded: &Recorded, summary: Option<&Summary>, on: LossOf) -> Option<Panel> {
    let title = match on {
        LossOf::Server => "Each agent's loss at the model it received",
        LossOf::Own => {
            "Each agent's loss at its own model, which it compares with ε; thin: at the one it received"
        }
        LossOf::Shown => "Each agent's loss at what it was shown; thin: at the server's model",
    };
    let mut panel = Panel { height: Some(280.0), ..Panel::new(title, "round", "loss") };
    let (mut entries, mut departures, mut told) = (Vec::new(), Vec::new(), false);
    let agents = &recorded.header.agents;
    for (index, agent) in agents.iter().take(AGENTS).enumerate() {
        let trace = trace(recorded, index, on);
        told |= !trace.points.is_empty() || !trace.received.is_empty();
        entries.extend(trace.enters);
        departures.extend(trace.leaves.iter().map(|round| (*round, agent.epsilon)));
        let named = agents.len() <= NAMED;
        let name = if named { agent.called() } else { String::new() };
        // More looks than one can tell apart would be looks that repeat.
        let many = look(Colour::GREY, Dash::Solid);
        let style = if named { Style::agent(index) } else { many };
        if !trace.received.is_empty() {
            let thin = Line::new("", thinned(&trace.received), style);
            panel = panel.with(Line { width: 0.7, ..thin });
        }
        let width = if named { 2.2 } else { 0.8 };
        panel = panel.with(Line { width, ..Line::new(name, thinned(&trace.points), style) });
        let of = |summary: &Summary| summary.agents.iter().find(|one| one.id == agent.id).cloned();
        if let Some(end) = summary.and_then(of).filter(|end| end.score.loss.is_finite()) {
            let rounds = summary.map_or(0, |summary| summary.rounds);
            let last = trace.points.last().copied().filter(|_| named);
            panel = with_end(panel, last, (f64::from(rounds), end.score.loss), style.colour);
        }
    }
    let mut epsilons: Vec<f64> = agents.iter().map(|agent| agent.epsilon).collect();
    epsilons.retain(|epsilon| epsilon.is_finite());
    epsilons.sort_by(f64::total_cmp);
    epsilons.dedup();
    for epsilon in epsilons.iter().take(4) {
        panel = panel.with(Guide::horizontal(*epsilon, format!("ε = {}", as_written(*epsilon))));
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

/// One agent's path through a run.
struct LossTrace {
    /// The exact losses it compares with its ε: reported, or measured while it was in.
    points: Vec<(f64, f64)>,
    /// The measured losses of the model it received, where that is not the one it decides on.
    received: Vec<(f64, f64)>,
    /// The round in which it was first about to leave.
    enters: Option<(f64, f64)>,
    /// The rounds in which it left; one may come back.
    leaves: Vec<f64>,
}

fn trace(recorded: &Recorded, index: usize, on: LossOf) -> LossTrace {
    let id = recorded.header.agents[index].id;
    let mut trace =
        LossTrace { points: Vec::new(), received: Vec::new(), enters: None, leaves: Vec::new() };
    let (mut out, mut there) = (false, false);
    for line in &recorded.rounds {
        let round = f64::from(line.round);
        // Before it joins, a measured loss is of a model that it never received.
        there |= !line.absent.contains(&id);
        if !there {
            continue;
        }
        if line.left.contains(&id) {
            trace.leaves.push(round);
            out = true;
        }
        out &= !line.returned.contains(&id);
        let measured =
            line.assessment.as_ref().and_then(|all| all.of(index, id).map(|score| score.loss));
        let measured = measured.filter(|loss| loss.is_finite());
        let measured = match on {
            LossOf::Server => measured,
            LossOf::Own | LossOf::Shown => {
                // A loss of another model, so another line, which continues after the agent left.
                trace.received.extend(measured.map(|loss| (round, loss)));
                None
            }
        };
        if out {
            continue;
        }
        // A lower bound is not a loss: drawn, it would look like one that jumps.
        let exact = !line.at_least.contains(&id);
        let reported = line.agents.iter().position(|other| *other == id).filter(|_| exact);
        let reported = reported.and_then(|position| line.loss[position]);
        if let Some(loss) = reported.or(measured).filter(|loss| loss.is_finite()) {
            trace.points.push((round, loss));
        }
        if trace.enters.is_none() && line.d.contains(&id) {
            trace.enters = trace.points.last().map(|(_, loss)| (round, *loss));
        }
    }
    trace
}

/// The states of the strip, where several rounds are one column the largest counts. Light, middle and hatched
/// remain apart in grey print.
fn categories() -> Vec<Category> {
    let hatched = Fill {
        ink: Colour(0xa0, 0xa0, 0xa0),
        pattern: Pattern::Hatch,
        ..Fill::tint(Colour(0xee, 0xee, 0xee), 1.0)
    };
    let fills = [
        (State::Absent, Fill::tint(Colour::GREY, 0.0)),
        (State::Free, Fill::tint(Colour::SKY, 0.4)),
        (State::InD, Fill::tint(Colour::BLUE, 1.0)),
        (State::Left, hatched),
        (State::Fault, Fill::tint(Colour::VERMILLION, 1.0)),
    ];
    fills.map(|(state, fill)| Category { name: state.brief().to_owned(), fill }).to_vec()
}

fn strip(recorded: &Recorded) -> Panel {
    let every = recorded.rounds.len().div_ceil(COLUMNS).max(1);
    let agents: Vec<_> = recorded.header.agents.iter().take(AGENTS).collect();
    let absent = |line: &fedstay::record::RoundLine| {
        agents.iter().any(|agent| line.absent.contains(&agent.id))
    };
    // A state that nobody is ever in has no place in the legend.
    let first = usize::from(!recorded.rounds.iter().any(absent));
    let rows = agents
        .iter()
        .map(|agent| {
            let mut out = false;
            let state = |line: &fedstay::record::RoundLine| {
                out = (out || line.left.contains(&agent.id)) && !line.returned.contains(&agent.id);
                match () {
                    () if line.faults.iter().any(|(id, _)| *id == agent.id) => 4,
                    () if out => 3,
                    () if line.d.contains(&agent.id) => 2,
                    () if line.absent.contains(&agent.id) => 0,
                    () => 1,
                }
            };
            let states: Vec<usize> =
                recorded.rounds.iter().map(state).map(|state| state - first).collect();
            // A thinned column shows the worst of its rounds.
            states.chunks(every).map(|states| states.iter().copied().max().unwrap_or(0)).collect()
        })
        .collect();
    let mut categories = categories().split_off(first);
    if recorded.rounds.iter().all(|line| line.faults.is_empty()) {
        categories.pop();
    }
    Panel {
        y_categories: agents.iter().map(|agent| agent.called_briefly()).collect(),
        grid: false,
        height: Some((14.0 * agents.len() as f64).clamp(60.0, 300.0)),
        ..Panel::new("Who is free, who is about to leave, who has left", "round", "agent")
    }
    .with(Cells { step: every as f64, ..Cells::new(rows, categories, 1.0) })
}

/// A curve over the rounds that were measured, and its value under the delivered model.
struct Track {
    curve: ChartCurve,
    points: Vec<(f64, f64)>,
    end: Option<f64>,
}

/// A round that was measured: its number, the scores over all agents, and the population's.
type Measured<'a> = (f64, Option<Score<Spread>>, Option<&'a Score>);

/// How good the model is for everybody, in the rounds that were measured: by the first measure that the
/// run has, else by the loss.
fn overall(recorded: &Recorded, summary: Option<&Summary>) -> Option<Panel> {
    let rounds = recorded.rounds.iter();
    let measured: Vec<Measured<'_>> = rounds
        .filter_map(|line| {
            let all = line.assessment.as_ref()?;
            Some((f64::from(line.round), all.spread(), all.population.as_ref()))
        })
        .collect();
    let has = |measure: &&Measure| {
        let name = &measure.name;
        measured.iter().any(|(_, over, population)| {
            over.as_ref().is_some_and(|score| score.get(name).is_some())
                || population.is_some_and(|score| score.get(name).is_some())
        })
    };
    let measure = recorded.header.measures.iter().find(has).cloned().unwrap_or(Measure::LOSS);
    let (name, scale) = (&measure.name, measure.scale());
    let track = |curve, values: Vec<(f64, Option<f64>)>, end: Option<f64>| Track {
        curve,
        points: values.into_iter().filter_map(|(x, y)| Some((x, scale * y?))).collect(),
        end: end.map(|value| scale * value).filter(|value| value.is_finite()),
    };
    let over_agents = |pick: &dyn Fn(&Spread) -> f64| -> Vec<(f64, Option<f64>)> {
        let one = |over: &Option<Score<Spread>>| over.as_ref()?.get(name).map(pick);
        measured.iter().map(|(round, over, _)| (*round, one(over))).collect()
    };
    let end = summary.and_then(|summary| summary.score.get(name));
    let worst = |over: &Spread| measure.worse(over.min, over.max);
    let mean = |over: &Spread| over.mean;
    let mut tracks = vec![
        track(MEASURED[0], over_agents(&mean), end.map(mean)),
        track(MEASURED[1], over_agents(&worst), end.map(worst)),
    ];
    if measure != Measure::LOSS {
        let one = |population: &Option<&Score>| population.and_then(|score| score.of(name));
        let points = measured.iter().map(|(round, _, population)| (*round, one(population)));
        let end = summary.and_then(|summary| summary.population.as_ref()?.of(name));
        tracks.push(track(MEASURED[2], points.collect(), end));
    }
    let who = match summary.is_some_and(|summary| summary.unmeasured > 0) {
        true => "the agents that were measured",
        false => "all agents, those who left included",
    };
    let title = format!("{} over {who}", capital(&measure.label));
    let y_range = measure.is_share().then_some(PERCENT);
    let panel = Panel { y_range, ..Panel::new(title, "round", measure.axis()) };
    let mut panel = Panel { height: Some(220.0), ..panel };
    let drawn: Vec<Track> = tracks.into_iter().filter(|track| !track.points.is_empty()).collect();
    if drawn.is_empty() {
        return None;
    }
    for Track { curve, points, end } in drawn {
        let (name, style) = (curve.called(&measure), curve.print);
        let last = points.last().copied();
        panel = panel.with(Line { width: 2.2, ..Line::new(name, thinned(&points), style) });
        if let (Some(end), Some(summary)) = (end, summary) {
            panel = with_end(panel, last, (f64::from(summary.rounds), end), style.colour);
        }
    }
    for line in recorded.rounds.iter().filter(|line| !line.left.is_empty()).take(40) {
        let guide = Guide::vertical(f64::from(line.round), "");
        panel = panel.with(Guide { name: "an agent leaves".to_owned(), width: 1.0, ..guide });
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
        let [step, eta] = STEPS;
        panel.with(Line::new(eta.name, thinned(&size), eta.print)).with(Line::new(
            step.name,
            thinned(&length),
            step.print,
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::super::delivered::tests::ends;
    use super::super::played::play;
    use super::*;
    use crate::plot::Layer;

    #[test]
    fn the_last_value_plotted_is_the_delivered_models() {
        let digits = "rounds = 60\nstep_size = 0.3\nepsilon = 1.5\neval_every = 7\n\
                      [rule]\nkind = \"fedavg\"\n[data]\nper_agent = 40\n";
        let problem = "[rule]\nkind = \"fedavg\"\n[problem]\nkind = \"observation-3\"\n";
        for text in [digits, problem] {
            let (recorded, summary) = play(text);
            assert!(
                !summary.left.is_empty(),
                "the last report and the delivered model must differ"
            );
            let figure = figure(&recorded, Some(&summary), LossOf::Server);
            let losses: Vec<f64> = summary.agents.iter().map(|agent| agent.score.loss).collect();
            assert_eq!(ends(&figure.panels[0]), losses);
            let (measure, over) = summary.headline();
            let overall = [over.mean, measure.worse(over.min, over.max)];
            assert_eq!(ends(&figure.panels[2])[..2], overall.map(|value| measure.scale() * value));
        }
        let (recorded, _) = play(problem);
        let running = figure(&recorded, None, LossOf::Server);
        assert!(running.panels.iter().all(|panel| ends(panel).is_empty()), "nothing delivered yet");
    }

    #[test]
    fn no_line_begins_before_its_agent_has_come() {
        let (recorded, _) = play(
            "rounds = 20\nstep_size = 0.05\nepsilon = 0.01\nagents = 4\neval_every = 2\n\
             [rule]\nkind = \"fedavg\"\n[data]\nper_agent = 20\n\
             [schedule]\nkind = \"arrive\"\nat = [9, 14]\n",
        );
        for on in [LossOf::Server, LossOf::Own] {
            let first = |index: usize| {
                let LossTrace { points, received, .. } = trace(&recorded, index, on);
                let rounds = points.iter().chain(&received).map(|(round, _)| *round);
                rounds.fold(f64::INFINITY, f64::min)
            };
            // The one that comes in round 9 may be known from the next one on, in which all are measured.
            for (agent, came) in [(0, 1.0), (1, 1.0), (2, 9.0), (3, 14.0)] {
                let first = first(agent);
                assert!((came..=came + 1.0).contains(&first), "agent {agent}: {first}");
            }
        }
        let Layer::Cells(cells) = &strip(&recorded).layers[0] else { panic!("cells") };
        let states =
            |agent: usize| cells.rows[agent].iter().map(|s| cells.categories[*s].name.as_str());
        assert!(states(0).all(|state| state == "free"));
        assert_eq!(states(3).filter(|state| *state == "absent").count(), 13);
        let (usual, _) = play("rounds = 3\n[rule]\nkind = \"fedavg\"\n[data]\nper_agent = 20\n");
        let Layer::Cells(cells) = &strip(&usual).layers[0] else { panic!("cells") };
        assert!(cells.categories.iter().all(|category| category.name != "absent"));
    }

    #[test]
    fn agents_that_decide_on_their_own_model_have_two_lines() {
        let (recorded, _) = play(
            "rounds = 40\nstep_size = 0.3\nepsilon = 1.5\neval_every = 5\ndecides_on = \"own\"\n\
             [rule]\nkind = \"fedavg\"\n[data]\nper_agent = 40\n[local]\nsteps = 5\n",
        );
        for index in 0..recorded.header.agents.len() {
            let trace = trace(&recorded, index, LossOf::Own);
            let measured: Vec<f64> = recorded
                .rounds
                .iter()
                .filter_map(|line| Some(line.assessment.as_ref()?.score.loss[index]))
                .collect();
            let received: Vec<f64> = trace.received.iter().map(|(_, loss)| *loss).collect();
            assert_eq!(received, measured);
            assert!(trace.points.iter().all(|(_, loss)| !measured.contains(loss)), "agent {index}");
        }
        let panel = losses(&recorded, None, LossOf::Own).unwrap();
        let thin = |layer: &&Layer| matches!(layer, Layer::Line(line) if line.width < 1.0);
        assert_eq!(panel.layers.iter().filter(thin).count(), recorded.header.agents.len());
    }
}
