//! What happened so far in one run, kept in columns: five bytes per agent and round, nine where
//! agents decide on a model of their own.

use crate::worth::Balance;
use fedstay::AgentId;
use fedstay::forecast::{Forecast, Trail};
use fedstay::ledger::{AgentEntry, Ledger};
use fedstay::record::{Header, RoundLine, Spread};
use fedstay::{Measure, Measures};
use fedstay_draw::words::State;
use fedstay_sim::measure::describe;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// The most agents × rounds that are kept: 64 million take 320 MB.
const MOST_CELLS: usize = 64_000_000;
/// The most departures, faults or unreadable lines that are listed; more are only counted.
pub(crate) const MOST_LISTED: usize = 1000;

/// Where a loss comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LossSource {
    /// The agent reported it.
    Reported,
    /// The agent reported a lower bound.
    AtLeast,
    /// The simulator measured it.
    Measured,
}

/// What is known of one agent so far.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) id: AgentId,
    /// Its display name, if it has one.
    pub(crate) name: Option<String>,
    /// Its target loss; `None` where the header does not have it.
    pub(crate) epsilon: Option<f64>,
    /// Its last known loss, where that comes from, and its round.
    pub(crate) loss: Option<(f64, LossSource, u32)>,
    /// What was last measured of it besides the loss.
    pub(crate) measures: Measures,
    /// Its state in the last round.
    pub(crate) state: State,
    /// Its last exact losses.
    trail: Trail,
}

impl Agent {
    fn new(id: AgentId, epsilon: f64) -> Self {
        Self {
            id,
            name: None,
            epsilon: Some(epsilon).filter(|epsilon| epsilon.is_finite()),
            loss: None,
            measures: Measures::default(),
            state: State::Absent,
            trail: Trail::default(),
        }
    }

    /// Takes note of a loss. A bound that is below the last exact loss says less than that does.
    fn learn(&mut self, round: u32, loss: f64, source: LossSource) {
        match (source, self.trail.last()) {
            (LossSource::AtLeast, Some((_, exact))) if loss <= exact => return,
            (LossSource::AtLeast, _) => {}
            _ => self.trail.learn(round, loss),
        }
        self.loss = Some((loss, source, round));
    }

    /// When its loss is predicted to reach its target loss, if it is still in.
    pub(crate) fn forecast(&self) -> Option<Forecast> {
        let epsilon = self.epsilon.filter(|_| self.state != State::Left)?;
        self.trail.forecast(epsilon)
    }

    /// How far its last known loss is above its target loss: at least that far where the loss is a bound.
    pub(crate) fn margin(&self) -> Option<f64> {
        Some(self.loss?.0 - self.epsilon?)
    }
}

/// An agent that left, by its place among the agents.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LeftAgent {
    agent: usize,
    round: u32,
}

/// One number per round.
pub(crate) type Track = Vec<f32>;

/// The numbers of every round about one measure.
#[derive(Debug)]
pub(crate) struct MeasureTracks {
    pub(crate) measure: Measure,
    pub(crate) mean: Track,
    pub(crate) worst: Track,
    pub(crate) population: Track,
}

impl MeasureTracks {
    /// Tracks that know nothing about the rounds so far.
    fn new(measure: Measure, rounds: usize) -> Self {
        let unknown = || vec![f32::NAN; rounds];
        Self { measure, mean: unknown(), worst: unknown(), population: unknown() }
    }
}

/// The numbers of every round that belong to no single agent.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    /// What is measured besides the loss.
    pub(crate) measured: Vec<MeasureTracks>,
    /// The mean loss over all agents, in rounds in which it was measured.
    pub(crate) measured_mean: Track,
    pub(crate) measured_worst: Track,
    /// The mean loss over the agents that reported an exact one.
    pub(crate) told_mean: Track,
    pub(crate) told_worst: Track,
    pub(crate) step_size: Track,
    pub(crate) step_norm: Track,
    pub(crate) case: Track,
    pub(crate) still_in: Track,
    pub(crate) in_d: Track,
    /// How many agents the received model satisfies, where every one of them is known.
    pub(crate) content: Track,
}

/// What happened so far.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) header: Header,
    /// What is counted about the run and about each agent, as in its summary.
    pub(crate) ledger: Ledger,
    pub(crate) agents: Vec<Agent>,
    index: HashMap<AgentId, usize>,
    /// The numbers of the rounds that were read.
    pub(crate) rounds: Vec<u32>,
    /// Whether agents decide on another model than the server's: their own, after their local steps,
    /// or a preview. They then report the loss of that model, while the loss of the server's is what
    /// is measured.
    pub(crate) own: bool,
    /// The loss an agent compares with its ε in each of them; NaN where it is not known exactly.
    pub(crate) losses: Vec<Track>,
    /// The measured losses of the model each agent received, where it decides on another; else
    /// empty.
    pub(crate) received: Vec<Track>,
    pub(crate) states: Vec<Vec<State>>,
    pub(crate) tracks: Tracks,
    pub(crate) last: Option<RoundLine>,
    /// What agents gave and got so far, in runs that book it.
    pub(crate) balance: Balance,
    /// The weights of every round, where there are two.
    pub(crate) path: Vec<(f64, f64)>,
    /// Whether rounds were left out because there are too many.
    pub(crate) cut: bool,
}

impl History {
    pub(crate) fn new(header: Header, own: bool) -> Self {
        let mut history = Self {
            own,
            ledger: Ledger::default(),
            agents: Vec::new(),
            index: HashMap::new(),
            rounds: Vec::new(),
            losses: Vec::new(),
            received: Vec::new(),
            states: Vec::new(),
            tracks: Tracks::default(),
            last: None,
            balance: Balance::default(),
            path: Vec::new(),
            cut: false,
            header,
        };
        for measure in history.header.measures.clone() {
            history.tracks.measured.push(MeasureTracks::new(measure, 0));
        }
        for agent in history.header.agents.clone() {
            let place = history.agent(agent.id, agent.epsilon);
            history.agents[place].name = agent.name.map(|name| name.chars().take(80).collect());
        }
        history
    }

    /// How many agents take part. Those that the header counts and does not list appear when a line
    /// names them.
    pub(crate) fn everybody(&self) -> usize {
        self.agents.len().max(self.header.count())
    }

    /// The index of an agent; one that the header does not name is added.
    fn agent(&mut self, id: AgentId, epsilon: f64) -> usize {
        if let Some(index) = self.index.get(&id) {
            return *index;
        }
        let index = self.agents.len();
        self.agents.push(Agent::new(id, epsilon));
        self.losses.push(vec![f32::NAN; self.rounds.len()]);
        if self.own {
            self.received.push(vec![f32::NAN; self.rounds.len()]);
        }
        self.states.push(vec![State::Absent; self.rounds.len()]);
        self.index.insert(id, index);
        index
    }

    /// What is counted about an agent.
    pub(crate) fn entry(&self, id: AgentId) -> AgentEntry {
        self.ledger.agent(id).cloned().unwrap_or_default()
    }

    /// The departures, in order.
    pub(crate) fn left(&self) -> Vec<LeftAgent> {
        let left = self.ledger.left().iter();
        left.map(|left| LeftAgent { agent: self.index[&left.agent], round: left.round }).collect()
    }

    /// Adds a round.
    ///
    /// # Errors
    /// When the line cannot be the next of this run.
    pub(crate) fn add(&mut self, line: RoundLine) -> Result<(), String> {
        line.check()?;
        let last = self.rounds.last().copied().unwrap_or(0);
        if line.round <= last {
            return Err(format!("round {} after round {last}", line.round));
        }
        let named = || {
            let faults = line.faults.iter().map(|(id, _)| id);
            let flags = line.flags.iter().map(|flag| &flag.agent);
            let lists = line.agents.iter().chain(&line.d).chain(&line.left).chain(&line.returned);
            lists.chain(faults).chain(flags)
        };
        let new: HashSet<AgentId> =
            named().filter(|id| !self.index.contains_key(id)).copied().collect();
        if (self.agents.len() + new.len()) * (self.rounds.len() + 1) > MOST_CELLS {
            self.cut = true;
            return Ok(());
        }
        for id in named() {
            self.agent(*id, f64::NAN);
        }
        self.rounds.push(line.round);
        self.ledger.add(&line);
        self.note_losses(&line);
        self.note_states(&line);
        self.note_tracks(&line);
        self.balance.add(&line);
        if let Some([x, y]) = line.weights.as_deref() {
            self.path.push((*x, *y));
        }
        self.last = Some(line);
        Ok(())
    }

    fn note_losses(&mut self, line: &RoundLine) {
        for column in self.losses.iter_mut().chain(&mut self.received) {
            column.push(f32::NAN);
        }
        let row = self.rounds.len() - 1;
        let bounds: HashSet<AgentId> = line.at_least.iter().copied().collect();
        for (id, loss) in line.agents.iter().zip(&line.loss) {
            let place = self.index[id];
            let Some(loss) = loss.filter(|loss| loss.is_finite()) else { continue };
            if bounds.contains(id) {
                self.agents[place].learn(line.round, loss, LossSource::AtLeast);
            } else {
                self.agents[place].learn(line.round, loss, LossSource::Reported);
                self.losses[place][row] = loss as f32;
            }
        }
        let Some(assessment) = &line.assessment else { return };
        let measured: Vec<AgentId> = match assessment.agents.is_empty() {
            true => self.header.agents.iter().map(|agent| agent.id).collect(),
            false => assessment.agents.clone(),
        };
        for (name, column) in assessment.score.measures.named() {
            for (id, value) in measured.iter().zip(column).filter(|(_, value)| value.is_finite()) {
                if let Some(place) = self.index.get(id) {
                    self.agents[*place].measures.set(name.clone(), *value);
                }
            }
        }
        for (id, loss) in measured.iter().zip(&assessment.score.loss) {
            let Some(place) = self.index.get(id).copied() else { continue };
            if let Some(received) = self.received.get_mut(place) {
                received[row] = *loss as f32;
            } else if loss.is_finite() && self.losses[place][row].is_nan() {
                self.agents[place].learn(line.round, *loss, LossSource::Measured);
                self.losses[place][row] = *loss as f32;
            }
        }
    }

    fn note_states(&mut self, line: &RoundLine) {
        for agent in &mut self.agents {
            agent.state = State::Absent;
        }
        let mut mark = |id: &AgentId, state: State| self.agents[self.index[id]].state = state;
        line.agents.iter().for_each(|id| mark(id, State::Free));
        line.d.iter().for_each(|id| mark(id, State::InD));
        line.faults.iter().for_each(|(id, _)| mark(id, State::Fault));
        for (agent, column) in self.agents.iter_mut().zip(&mut self.states) {
            if self.ledger.agent(agent.id).is_some_and(|entry| entry.left.is_some()) {
                agent.state = State::Left;
            }
            column.push(agent.state);
        }
    }

    fn note_tracks(&mut self, line: &RoundLine) {
        let known = |values: &[f64]| Spread::of(values.iter().copied().filter(|v| v.is_finite()));
        let looked = line.assessment.as_ref();
        let over = looked.and_then(|looked| looked.over.clone());
        let spread = |name: &str| {
            let column = looked.and_then(|looked| looked.score.get(name));
            column.and_then(|column| known(column)).or_else(|| over.as_ref()?.get(name).copied())
        };
        let measured = spread(&Measure::LOSS.name);
        // A mean over lower bounds would look like a loss without being one.
        let exact: Vec<f64> = match line.at_least.is_empty() {
            true => line.loss.iter().flatten().copied().collect(),
            false => Vec::new(),
        };
        let told = known(&exact);
        let number = |value: Option<f64>| value.map_or(f32::NAN, |value| value as f32);
        let population = looked.and_then(|looked| looked.population.as_ref());
        // What the header does not name is measured by agents that decide so themselves.
        let columns = looked.into_iter().flat_map(|looked| looked.score.measures.iter());
        for (name, _) in columns {
            if self.tracks.measured.iter().all(|tracks| tracks.measure.name != name) {
                let before = self.rounds.len() - 1;
                self.tracks.measured.push(MeasureTracks::new(describe(name), before));
            }
        }
        for MeasureTracks { measure, mean, worst, population: everybody } in
            &mut self.tracks.measured
        {
            let over = spread(&measure.name);
            mean.push(number(over.map(|over| over.mean)));
            worst.push(number(over.map(|over| measure.worse(over.min, over.max))));
            everybody.push(number(population.and_then(|score| score.of(&measure.name))));
        }
        let gone = self.agents.iter().filter(|agent| agent.state == State::Left).count();
        let content = self.content(line).map(|content| content as f64);
        let everybody = self.everybody();
        let tracks = &mut self.tracks;
        tracks.measured_mean.push(number(measured.map(|spread| spread.mean)));
        tracks.measured_worst.push(number(measured.map(|spread| spread.max)));
        tracks.told_mean.push(number(told.map(|spread| spread.mean)));
        tracks.told_worst.push(number(told.map(|spread| spread.max)));
        tracks.step_size.push(line.step_size as f32);
        tracks.step_norm.push(line.step_norm as f32);
        tracks.case.push(number(line.case.map(f64::from)));
        tracks.still_in.push((everybody - gone) as f32);
        tracks.in_d.push(line.d.len() as f32);
        tracks.content.push(number(content));
    }

    /// How many agents are at their target loss with the model that was sent out; `None` unless that
    /// is known of each, whether it is still in or has left.
    fn content(&self, line: &RoundLine) -> Option<usize> {
        let measured = line.assessment.as_ref().map_or(&[][..], |looked| &looked.score.loss);
        let at_target =
            |id: &AgentId, loss: f64| Some(loss <= self.agents[self.index[id]].epsilon?);
        let named = line.assessment.as_ref().is_some_and(|looked| !looked.agents.is_empty());
        let all = measured.len() == self.agents.len() && self.header.unlisted == 0 && !named;
        let each: Option<Vec<bool>> = if all {
            let all = self.header.agents.iter().zip(measured);
            all.map(|(agent, loss)| at_target(&agent.id, *loss)).collect()
        } else if self.own
            || !line.at_least.is_empty()
            || line.agents.len() < self.agents.len()
            || self.header.unlisted > 0
        {
            // Agents that decide on another model report that one's loss.
            None
        } else {
            let told = line.agents.iter().zip(&line.loss);
            told.map(|(id, loss)| at_target(id, (*loss)?)).collect()
        };
        each.filter(|all| !all.is_empty()).map(|all| all.into_iter().filter(|one| *one).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        let header = r#"{"schema":"fedstay.rounds/1","version":"0","rule":"fedavg","on":"x","seed":0,
            "rounds":9,"agents":[{"id":3,"epsilon":0.5},{"id":7,"epsilon":null}]}"#;
        History::new(serde_json::from_str(header).unwrap(), false)
    }

    fn line(text: &str) -> RoundLine {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn states_departures_and_faults() {
        let mut history = history();
        let lines = [
            r#"{"round":1,"agents":[3,7],"loss":[1.0,null],"case":null,"step_size":0.1,"step_norm":null}"#,
            r#"{"round":2,"agents":[3],"loss":[0.8],"d":[3],"case":1,"left":[],"faults":[[7,"gone"]],"step_size":0.1,"step_norm":1}"#,
            r#"{"round":4,"agents":[9],"loss":[0.8],"at_least":[9],"left":[3],"case":1,"step_size":0.1,"step_norm":1}"#,
        ];
        for text in lines {
            history.add(line(text)).unwrap();
        }
        assert_eq!(history.rounds, [1, 2, 4]);
        assert_eq!(history.states[0], [State::Free, State::InD, State::Left]);
        assert_eq!(history.states[1], [State::Free, State::Fault, State::Absent]);
        assert_eq!(history.states[2], [State::Absent, State::Absent, State::Free], "came later");
        let first = history.entry(AgentId(3));
        assert_eq!((first.first_in_d, first.left, first.reports), (Some(2), Some(4), 2));
        assert_eq!(history.entry(AgentId(7)).fault.as_deref(), Some("gone"));
        assert_eq!(history.agents[2].loss, Some((0.8, LossSource::AtLeast, 4)));
        assert!(history.losses[2][2].is_nan(), "a bound is not drawn");
        assert_eq!(history.tracks.still_in, [2.0, 2.0, 2.0]);
    }

    #[test]
    fn content_is_counted_where_everybody_is_known() {
        let header = r#"{"schema":"fedstay.rounds/1","version":"0","rule":"fedavg","on":"x","seed":0,
            "rounds":9,"agents":[{"id":3,"epsilon":0.5},{"id":7,"epsilon":0.2}]}"#;
        let mut history = History::new(serde_json::from_str(header).unwrap(), false);
        let lines = [
            // Both tell their losses; one is at its target.
            r#"{"round":1,"agents":[3,7],"loss":[0.5,0.3],"case":null,"step_size":0.1,"step_norm":1}"#,
            // A bound is not a loss.
            r#"{"round":2,"agents":[3,7],"loss":[0.4,0.3],"at_least":[7],"case":null,"step_size":0.1,"step_norm":1}"#,
            // Nobody knows how the model is for the one that left.
            r#"{"round":3,"agents":[7],"loss":[0.1],"left":[3],"case":null,"step_size":0.1,"step_norm":1}"#,
            // Unless it is measured.
            r#"{"round":4,"agents":[7],"loss":[0.1],"case":null,"step_size":0.1,"step_norm":1,
                "assessment":{"loss":[0.9,0.1],"accuracy":[0.2,0.8],"population":null}}"#,
        ];
        for text in lines {
            history.add(line(text)).unwrap();
        }
        let known = history.tracks.content.iter().map(|count| (!count.is_nan()).then_some(*count));
        assert_eq!(known.collect::<Vec<_>>(), [Some(1.0), None, None, Some(1.0)]);
        assert_eq!(history.agents[0].measures.get("accuracy"), Some(&0.2));
        history.own = true;
        history.add(line(&lines[0].replace("\"round\":1", "\"round\":5"))).unwrap();
        assert!(history.tracks.content[4].is_nan(), "reports are of another model");
    }

    #[test]
    fn own_and_received_losses_are_two_series_and_one_source_of_predictions() {
        let mut history = history();
        (history.own, history.received) = (true, vec![Track::new(); 2]);
        for round in 1..=30u32 {
            // Its own model comes nearer to ε by 0.01 per round; the one it receives is far worse,
            // and is measured every fifth round.
            let own = 0.905 - 0.01 * f64::from(round);
            let measured = if round.is_multiple_of(5) {
                r#","assessment":{"loss":[1.8,1.9],"population":null}"#
            } else {
                ""
            };
            history
                .add(line(&format!(
                    r#"{{"round":{round},"agents":[3],"loss":[{own}],"step_size":0.1,"step_norm":1{measured}}}"#
                )))
                .unwrap();
        }
        assert!(history.losses[0].iter().all(|loss| *loss < 0.9), "one line, without teeth");
        assert!(history.losses[1].iter().all(|loss| loss.is_nan()), "it reported nothing");
        let received: Vec<f32> =
            history.received[0].iter().copied().filter(|loss| !loss.is_nan()).collect();
        assert_eq!(received, [1.8; 6]);
        // At 0.605 after round 30, and ε is 0.5, which it reaches in round 41.
        let forecast = history.agents[0].forecast().unwrap();
        let range = forecast.soonest..=forecast.latest;
        assert!(range.contains(&41), "from its own losses alone: {forecast:?}");
    }

    #[test]
    fn lines_that_do_not_fit_are_refused() {
        let mut history = history();
        let good = r#"{"round":2,"agents":[3],"loss":[1.0],"step_size":0.1,"step_norm":1}"#;
        history.add(line(good)).unwrap();
        assert_eq!(history.add(line(good)).unwrap_err(), "round 2 after round 2");
        let short = r#"{"round":3,"agents":[3,7],"loss":[1.0],"step_size":0.1,"step_norm":1}"#;
        assert!(history.add(line(short)).unwrap_err().contains("2 agents but 1 losses"));
    }

    #[test]
    fn a_bound_does_not_replace_a_loss_that_says_more() {
        let mut agent = Agent::new(AgentId(0), 0.1);
        agent.learn(340, 0.115, LossSource::AtLeast);
        assert_eq!(agent.loss, Some((0.115, LossSource::AtLeast, 340)), "nothing else is known");
        agent.learn(345, 0.57, LossSource::Reported);
        agent.learn(346, 0.115, LossSource::AtLeast);
        assert_eq!(agent.loss, Some((0.57, LossSource::Reported, 345)));
        assert!((agent.margin().unwrap() - 0.47).abs() < 1e-12, "and not 0.015");
        // A loss that rose above what it was is known to be at least that.
        agent.learn(347, 0.6, LossSource::AtLeast);
        assert_eq!(agent.loss, Some((0.6, LossSource::AtLeast, 347)));
    }

    #[test]
    fn an_agent_that_left_is_not_predicted_to_leave() {
        let mut agent = Agent::new(AgentId(0), 0.1);
        (1..=12)
            .for_each(|round| agent.learn(round, 0.9_f64.powi(round as i32), LossSource::Measured));
        assert!(agent.forecast().is_some());
        agent.state = State::Left;
        assert_eq!(agent.forecast(), None);
    }
}
