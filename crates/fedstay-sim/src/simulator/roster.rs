//! Everybody who takes part, and what is known about those that were asked.
//!
//! An agent that was never asked is as its experiment says: its number, how it behaves and what it
//! wants. So it costs a few bytes, and only those that were asked cost what they remember.

use super::desk::Sent;
use crate::experiment::SpecError;
use crate::is_default;
use crate::model::Order;
use fedstay::record::called;
use fedstay::{AgentId, Behaviour, Error, Participant, ParticipantState, Seed, SeenModels, packed};
use serde::{Deserialize, Serialize};

/// What an agent is between two rounds.
pub(super) struct Agent {
    pub(super) participant: Participant,
    /// Its rows, hardest first, so that decisions are reached early.
    pub(super) order: Order,
    /// What it remembers of the models it received, if it forges what it sends.
    pub(super) seen: SeenModels,
    /// The loss it last told.
    pub(super) told: Option<f64>,
    /// The slope's length in the last round: a guess at how exact the loss will have to be.
    pub(super) last_norm: f64,
    /// What it last computed, if it may repeat that.
    pub(super) kept: Option<Sent>,
}

impl Agent {
    fn new(index: usize, epsilon: f64, behaviour: Behaviour) -> Self {
        Self {
            participant: Participant::new(AgentId(index as u64), epsilon, behaviour),
            order: Order::default(),
            seen: SeenModels::default(),
            told: None,
            last_norm: 0.0,
            kept: None,
        }
    }

    /// What must survive a restart. The order of the rows and the last norm only affect how soon an
    /// answer is found, never the answer. What it told matters only if others look at it.
    fn save(&self, compared: bool) -> AgentState {
        let widened = |values: &Vec<f32>| values.iter().copied().map(f64::from).collect();
        let kept = self.kept.as_ref();
        AgentState {
            participant: self.participant.save(),
            seen: self.seen.clone(),
            told: self.told.filter(|_| compared),
            direction: kept.map_or(Vec::new(), |(direction, _)| widened(direction)),
            gradient: kept.and_then(|(_, of)| of.as_ref()).map_or(Vec::new(), widened),
        }
    }

    fn restore(&mut self, state: AgentState, parameters: usize) -> Result<(), Error> {
        let id = called(self.participant.id, None);
        self.participant.restore(state.participant)?;
        let narrowed = |values: Vec<f64>| -> Result<Option<Vec<f32>>, Error> {
            match values.len() {
                0 => Ok(None),
                given if given == parameters => {
                    Ok(Some(values.into_iter().map(|value| value as f32).collect()))
                }
                _ => {
                    let why = format!("{id}: its last direction is not one of this model");
                    Err(Error::BadState { why })
                }
            }
        };
        if !state.seen.fits(parameters) {
            let why = format!("{id}: it saw models of another size");
            return Err(Error::BadState { why });
        }
        (self.seen, self.told) = (state.seen, state.told);
        let gradient = narrowed(state.gradient)?;
        self.kept = narrowed(state.direction)?.map(|direction| (direction, gradient));
        Ok(())
    }
}

/// What must survive a restart of an agent. Its vectors are empty unless they may be repeated.
#[derive(Serialize, Deserialize)]
struct AgentState {
    #[serde(flatten)]
    participant: ParticipantState,
    #[serde(default, skip_serializing_if = "is_default")]
    seen: SeenModels,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<f64>,
    #[serde(default, with = "packed", skip_serializing_if = "Vec::is_empty")]
    direction: Vec<f64>,
    #[serde(default, with = "packed", skip_serializing_if = "Vec::is_empty")]
    gradient: Vec<f64>,
}

/// The agents that were asked so far, by number; all others are as the experiment says.
#[derive(Serialize, Deserialize)]
pub(super) struct RosterState {
    /// How many agents there are.
    of: usize,
    agents: Vec<(usize, AgentState)>,
}

/// How agents behave: all alike, or each like one of a few.
enum Behaviours {
    Same(Behaviour),
    Mixed { kinds: Vec<Behaviour>, each: Vec<u16> },
}

/// What agents want: all the same, or each its own.
enum TargetLosses {
    One(f64),
    Each(Vec<f64>),
}

/// Everybody who takes part.
pub(super) struct Roster {
    behaviours: Behaviours,
    targets: TargetLosses,
    asked: Vec<Option<Box<Agent>>>,
    /// Those that have left, in order.
    gone: Vec<usize>,
}

impl Roster {
    /// This number of agents, who want nothing yet.
    pub(super) fn new(count: usize, behaviour: &Behaviour, seed: Seed) -> Result<Self, SpecError> {
        behaviour.check()?;
        let behaviours = match behaviour {
            Behaviour::Mixed(mixed) => Behaviours::Mixed {
                kinds: mixed.of.iter().map(|part| part.behaviour.clone()).collect(),
                each: mixed.parts(count, seed)?,
            },
            same => Behaviours::Same(same.clone()),
        };
        let asked = (0..count).map(|_| None).collect();
        Ok(Self { behaviours, targets: TargetLosses::One(0.0), asked, gone: Vec::new() })
    }

    /// How many agents there are.
    pub(super) fn len(&self) -> usize {
        self.asked.len()
    }

    /// Those that were asked so far, in order.
    pub(super) fn asked(&self) -> impl Iterator<Item = usize> {
        let asked = self.asked.iter().enumerate();
        asked.filter(|(_, agent)| agent.is_some()).map(|(index, _)| index)
    }

    /// Those that have left, in order.
    pub(super) fn gone(&self) -> &[usize] {
        &self.gone
    }

    /// Sets one target loss for all, or one for each.
    pub(super) fn set_targets(&mut self, each: Vec<f64>) {
        let first = each.first().copied().unwrap_or(0.0);
        self.targets = match each.iter().all(|epsilon| *epsilon == first) {
            true => TargetLosses::One(first),
            false => TargetLosses::Each(each),
        };
        for index in 0..self.asked.len() {
            let epsilon = self.epsilon(index);
            if let Some(agent) = &mut self.asked[index] {
                agent.participant.epsilon = epsilon;
            }
        }
    }

    /// An agent's target loss.
    pub(super) fn epsilon(&self, index: usize) -> f64 {
        match &self.targets {
            TargetLosses::One(epsilon) => *epsilon,
            TargetLosses::Each(each) => each[index],
        }
    }

    /// How an agent behaves, with what it remembers.
    pub(super) fn behaviour(&self, index: usize) -> &Behaviour {
        match (&self.asked[index], &self.behaviours) {
            (Some(agent), _) => agent.participant.behaviour(),
            (None, Behaviours::Same(same)) => same,
            (None, Behaviours::Mixed { kinds, each }) => &kinds[usize::from(each[index])],
        }
    }

    /// Whether an agent is taking part.
    pub(super) fn is_in(&self, index: usize) -> bool {
        self.asked[index].as_ref().is_none_or(|agent| agent.participant.is_in())
    }

    /// Whether an agent that has left looks at the model by itself.
    pub(super) fn looks(&self, index: usize) -> bool {
        self.asked[index].as_ref().is_some_and(|agent| agent.participant.looks())
    }

    /// The agent with this rank among those that are in, from 0.
    pub(super) fn present(&self, rank: usize) -> usize {
        // Before the i-th that has left there are as many that are in as its number exceeds i.
        let (mut low, mut high) = (0, self.gone.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.gone[middle] - middle <= rank { low = middle + 1 } else { high = middle }
        }
        rank + low
    }

    /// Whether some kind of agent is so.
    fn any(&self, is_so: impl Fn(&Behaviour) -> bool) -> bool {
        match &self.behaviours {
            Behaviours::Same(same) => is_so(same),
            Behaviours::Mixed { kinds, .. } => kinds.iter().any(is_so),
        }
    }

    /// Whether some agent looks at what the others told.
    pub(super) fn somebody_compares(&self) -> bool {
        self.any(|behaviour| behaviour.compares())
    }

    /// How many agents may keep vectors as long as the model.
    pub(super) fn keepers(&self) -> usize {
        let keeps = |behaviour: &Behaviour| behaviour.repeats() || behaviour.forges();
        match &self.behaviours {
            Behaviours::Same(same) => {
                if keeps(same) {
                    self.len()
                } else {
                    0
                }
            }
            Behaviours::Mixed { kinds, each } => {
                each.iter().filter(|kind| keeps(&kinds[usize::from(**kind)])).count()
            }
        }
    }

    /// Whether nobody ever leaves.
    pub(super) fn nobody_leaves(&self) -> bool {
        !self.any(|behaviour| !matches!(behaviour, Behaviour::Never(_)))
    }

    /// The losses that agents told last and who told them, of those that are in.
    pub(super) fn told(&self) -> impl Iterator<Item = f64> {
        let asked = self.asked.iter().flatten();
        asked.filter(|agent| agent.participant.is_in()).filter_map(|agent| agent.told)
    }

    /// The loss that an agent told last, if it is in.
    pub(super) fn told_by(&self, index: usize) -> Option<f64> {
        let agent = self.asked[index].as_ref().filter(|agent| agent.participant.is_in())?;
        agent.told
    }

    /// Takes an agent out, to be put back.
    pub(super) fn take(&mut self, index: usize) -> Box<Agent> {
        let (epsilon, behaviour) = (self.epsilon(index), self.behaviour(index));
        match &self.asked[index] {
            None => Box::new(Agent::new(index, epsilon, behaviour.clone())),
            Some(_) => self.asked[index].take().expect("it was just seen"),
        }
    }

    /// Puts an agent back, in or out.
    pub(super) fn put(&mut self, index: usize, agent: Box<Agent>) {
        match (agent.participant.is_in(), self.gone.binary_search(&index)) {
            (true, Ok(place)) => {
                self.gone.remove(place);
            }
            (false, Err(place)) => self.gone.insert(place, index),
            _ => {}
        }
        self.asked[index] = Some(agent);
    }

    /// Says who has left, and when. One entry per agent.
    pub(super) fn steer(&mut self, left: &[Option<u32>]) {
        for (index, left) in left.iter().enumerate() {
            if left.is_none() && self.is_in(index) {
                continue;
            }
            let mut agent = self.take(index);
            agent.participant.set_left(*left);
            self.put(index, agent);
        }
    }

    pub(super) fn save(&self) -> RosterState {
        let compared = self.somebody_compares();
        let asked = self.asked.iter().enumerate();
        let agents =
            asked.filter_map(|(index, agent)| Some((index, agent.as_ref()?.save(compared))));
        RosterState { of: self.len(), agents: agents.collect() }
    }

    pub(super) fn restore(&mut self, state: RosterState, parameters: usize) -> Result<(), Error> {
        let (got, expected) = (state.of, self.len());
        if got != expected || state.agents.iter().any(|(index, _)| *index >= expected) {
            let why = format!("it has {got} agents, the experiment {expected}");
            return Err(Error::BadState { why });
        }
        for (index, state) in state.agents {
            let mut agent = self.take(index);
            agent.restore(state, parameters)?;
            self.put(index, agent);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::behaviour::Returning;

    #[test]
    fn ranks_are_those_of_the_agents_that_are_in() {
        let returning = Behaviour::Returning(Returning { rise: 0.5 });
        let mut roster = Roster::new(10, &returning, Seed(0)).unwrap();
        let mut leave = |index: usize, left: Option<u32>| {
            let mut agent = roster.take(index);
            agent.participant.set_left(left);
            roster.put(index, agent);
            let present = 10 - roster.gone().len();
            (0..present).map(|rank| roster.present(rank)).collect::<Vec<_>>()
        };
        assert_eq!(leave(0, Some(1)), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(leave(1, Some(1)), [2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(leave(9, Some(2)), [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(leave(5, Some(2)), [2, 3, 4, 6, 7, 8]);
        assert_eq!(leave(1, None), [1, 2, 3, 4, 6, 7, 8]);
        assert!(roster.looks(0) && !roster.is_in(0) && roster.is_in(1));
        let saved = serde_json::to_value(roster.save()).unwrap();
        assert_eq!(saved["agents"].as_array().unwrap().len(), 4, "only those that were asked");
        let mut again = Roster::new(10, &returning, Seed(0)).unwrap();
        again.restore(serde_json::from_value(saved.clone()).unwrap(), 3).unwrap();
        assert_eq!((again.gone(), again.present(2)), (&[0, 5, 9][..], 3));
        let mut fewer = Roster::new(9, &returning, Seed(0)).unwrap();
        let state = serde_json::from_value(saved).unwrap();
        assert!(fewer.restore(state, 3).unwrap_err().to_string().contains("10 agents"));
    }
}
