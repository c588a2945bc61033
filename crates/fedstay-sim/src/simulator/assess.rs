//! How good weights are: for the agents that are measured, on the population, and what agents make
//! alone.

use super::agent::LoneAgent;
use super::population::AgentRows;
use super::unseen::Unseen;
use super::{Made, Simulator, Worked, rows};
use crate::experiment::SpecError;
use crate::measure::Listed;
use crate::model::{Evaluation, Loaded, RowTargets, Rows, Said, Workspace};
use fedstay::record::{Constant, MOST_LISTED};
use fedstay::{AgentAssessment, AgentId, Assessment, Measure, Score};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

impl Simulator {
    /// The number of agents that are measured.
    pub(super) fn measured(&self) -> usize {
        self.sample.as_ref().map_or(self.roster.len(), Vec::len)
    }

    /// How good weights are for the agents that are measured, and on the population.
    pub(super) fn assess_loaded(
        &self,
        weights: &Loaded,
    ) -> Result<Assessment, crate::model::Error> {
        let assess = |places: Range<usize>| {
            let scores = self.evaluate_neighbours(weights, places.clone())?;
            let assessed = places.zip(scores).map(|(place, mut score)| {
                let index = self.measured_agent(place);
                if self.decides_held_back() {
                    let decided = |work: &mut _| self.as_decided(index, weights, &mut score, work);
                    self.workspaces.with(decided)?;
                }
                Ok(AgentAssessment {
                    id: AgentId(index as u64),
                    epsilon: self.roster.epsilon(index),
                    behaviour: Some(Cow::Borrowed(self.roster.behaviour(index).name())),
                    score,
                    as_of: None,
                    held_back: None,
                })
            });
            assessed.collect()
        };
        let groups = self.neighbours().into_par_iter().map(assess);
        let groups: Vec<Vec<AgentAssessment>> =
            groups.collect::<Result<_, crate::model::Error>>()?;
        let agents = groups.into_iter().flatten().collect();
        Ok(Assessment { agents, population: self.score_population(weights)?, constant: None })
    }

    /// The agent in this place among those that are measured.
    pub(super) fn measured_agent(&self, place: usize) -> usize {
        self.sample.as_ref().map_or(place, |sample| sample[place])
    }

    /// Where the rows lie that the agent in this place sees now, if they lie somewhere.
    fn measured_span(&self, place: usize) -> Option<Range<usize>> {
        let index = self.measured_agent(place);
        let seen = self.training.stream.seen(self.population.count(index), self.round);
        self.population.span(index, seen)
    }

    /// The places of the agents that are measured, in groups whose rows lie side by side and
    /// together fill many tiles.
    fn neighbours(&self) -> Vec<Range<usize>> {
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut lying = None;
        for place in 0..self.measured() {
            let span = self.measured_span(place);
            lying = match (lying, span, groups.last_mut()) {
                (Some(all), Some(own), Some(group)) if joins(&all, &own) => {
                    group.end = place + 1;
                    Some(all.start..own.end)
                }
                (_, span, _) => {
                    groups.push(place..place + 1);
                    span
                }
            };
        }
        groups
    }

    /// Evaluates a group of [`neighbours`](Self::neighbours): they share tiles, and the results are
    /// those of each by itself.
    fn evaluate_neighbours(
        &self,
        weights: &Loaded,
        places: Range<usize>,
    ) -> Result<Vec<Score>, crate::model::Error> {
        let (network, asked) = (&self.network, &self.training.measure);
        if places.len() > 1 {
            let spans: Option<Vec<Range<usize>>> =
                places.clone().map(|place| self.measured_span(place)).collect();
            if let Some([first, .., last]) = spans.as_deref() {
                let rows = rows(self.population.data(), first.start..last.end)?;
                let sizes: Vec<usize> = spans.iter().flatten().map(Range::len).collect();
                let each = |work: &mut Workspace| {
                    asked.evaluate_each(network, weights, &rows, &sizes, work)
                };
                return self.workspaces.with(each);
            }
        }
        let alone = |place| {
            let held = self.seen(self.measured_agent(place), self.round);
            let rows = held.view()?;
            self.workspaces.with(|work| asked.evaluate(network, weights, &rows, work))
        };
        places.map(alone).collect()
    }

    /// The same for the summary: with the others that are to be listed, who are not measured.
    pub(super) fn assess_listed(
        &self,
        weights: &Loaded,
    ) -> Result<Assessment, crate::model::Error> {
        let mut assessment = self.assess_loaded(weights)?;
        let constant = self.constant();
        assessment.constant = constant.map(|constant| self.constant_as_decided(constant));
        if self.population.holds_back() {
            assessment.agents.par_iter_mut().try_for_each(|agent| {
                agent.held_back = self.on_held_back(agent.id.0 as usize, weights)?;
                Ok(())
            })?;
        }
        let Some(sample) = &self.sample else { return Ok(assessment) };
        let others = |index: &usize| sample.binary_search(index).is_err();
        let others: Vec<usize> = match self.roster.len() <= MOST_LISTED {
            true => (0..self.roster.len()).filter(others).collect(),
            false => self.roster.asked().filter(others).collect(),
        };
        assessment.agents.extend(others.into_iter().map(|index| AgentAssessment {
            id: AgentId(index as u64),
            epsilon: self.roster.epsilon(index),
            behaviour: Some(Cow::Borrowed(self.roster.behaviour(index).name())),
            score: Score::new(f64::NAN),
            as_of: None,
            held_back: None,
        }));
        assessment.agents.sort_by_key(|agent| agent.id);
        Ok(assessment)
    }

    /// How good the best constant prediction is for the agents that are measured: the shares that the
    /// classes have among all their rows, or the mean of their numbers. `None` if nobody is measured.
    fn constant(&self) -> Option<Constant> {
        let targets = &self.population.data().targets;
        let kinds = targets.kinds();
        if targets.classes().is_none() {
            let of =
                |place: usize| moments(self.seen(self.measured_agent(place), self.round).targets());
            return mean_over(&Vec::from_iter((0..self.measured()).map(of)));
        }
        let count = |place: usize| {
            let seen = self.seen(self.measured_agent(place), self.round);
            seen.targets().counts(kinds).into_iter().map(|count| count as u32).collect()
        };
        let counts: Vec<Vec<u32>> = (0..self.measured()).into_par_iter().map(count).collect();
        constant_over(&counts)
    }

    /// The population's score, in pieces of one agent's size so that threads share the work.
    fn score_population(&self, weights: &Loaded) -> Result<Option<Score>, crate::model::Error> {
        let Some(range) = self.population.population() else { return Ok(None) };
        let piece = self.population.per_agent().clamp(256, 4096);
        let pieces: Vec<Range<usize>> = (range.start..range.end)
            .step_by(piece)
            .map(|from| from..range.end.min(from + piece))
            .collect();
        let asked = &self.training.measure;
        let evaluate = |range: Range<usize>| {
            let rows = rows(self.population.data(), range)?;
            self.workspaces.with(|work| asked.listen(&self.network, weights, &rows, work))
        };
        let found: Vec<(Evaluation, Option<Said>)> =
            pieces.into_par_iter().map(evaluate).collect::<Result<_, _>>()?;
        let (pieces, said): (Vec<Evaluation>, Vec<Option<Said>>) = found.into_iter().unzip();
        let samples: usize = pieces.iter().map(|piece| piece.samples).sum();
        let correct: Option<usize> = pieces.iter().map(|piece| piece.correct).sum();
        let loss: f64 = pieces.iter().map(|piece| piece.loss * piece.samples as f64).sum();
        let said: Option<Vec<Said>> = said.into_iter().collect();
        let whole = Evaluation { loss: loss / samples as f64, correct, samples };
        Ok(Some(asked.score(&whole, said.and_then(Said::together).as_ref())))
    }

    /// The loss every agent reaches by training alone, with the same local work and rounds.
    ///
    /// # Errors
    /// When training leaves the floating-point range.
    pub fn alone(&self, step_size: f64, rounds: u32) -> Result<Vec<f64>, SpecError> {
        let made = self
            .made_alone(step_size, rounds, |who, model, work| self.score_own(who, model, work))?;
        Ok(made.iter().map(|score| score.loss).collect())
    }

    /// What is found of the model that every agent trains alone, with the same local work and rounds.
    fn made_alone<T: Send>(
        &self,
        step_size: f64,
        rounds: u32,
        find: impl Fn((usize, u32), &Loaded, &mut Workspace) -> Result<T, crate::model::Error> + Sync,
    ) -> Result<Vec<T>, SpecError> {
        let start = self.initial_weights();
        let Self { network, seed, stands, .. } = self;
        let local = &self.training.local;
        (0..self.roster.len())
            .into_par_iter()
            .map(|index| {
                let agent = index as u64;
                self.workspaces.with(|work| {
                    let start = network.load(&start)?;
                    let (seed, stands) = (*seed, *stands);
                    let lone = LoneAgent { network, local, seed, agent, stands, step_size };
                    let rows = |round: u32, train: &mut dyn FnMut(&Rows<'_>) -> Worked| {
                        train(&self.seen(index, round).view()?)
                    };
                    let model = lone.train(start, rounds, &rows, work)?;
                    find((index, rounds), &model, work)
                })
            })
            .collect::<Result<_, crate::model::Error>>()
            .map_err(SpecError::from)
    }

    /// The rows that an agent sees in a round.
    pub(super) fn seen(&self, agent: usize, round: u32) -> AgentRows<'_> {
        let seen = self.training.stream.seen(self.population.count(agent), round);
        self.population.some(agent, seen)
    }

    /// How good weights are for one agent, on the rows that it sees in a round.
    fn score_own(
        &self,
        (agent, round): (usize, u32),
        weights: &Loaded,
        work: &mut Workspace,
    ) -> Result<Score, crate::model::Error> {
        let own = self.seen(agent, round);
        let asked = &self.training.measure;
        let mut score = asked.evaluate(&self.network, weights, &own.view()?, work)?;
        self.as_decided(agent, weights, &mut score, work)?;
        Ok(score)
    }

    /// The same, and on unseen rows: on its own, where the data say whose a test row is, or else on
    /// everybody's, weighed by its mix of classes.
    fn score(
        &self,
        who: (usize, u32),
        weights: &Loaded,
        unseen: Option<&Unseen>,
        work: &mut Workspace,
    ) -> Result<Made, crate::model::Error> {
        let (agent, mut score) = (who.0, self.score_own(who, weights, work)?);
        let said = self.said_of(agent, weights, work)?;
        let own = said.as_ref().and_then(|said| Listed::find(&Measure::ACCURACY.name)?.of(said));
        if let Some(own) = own {
            score.measures.set(Measure::UNSEEN.name, own);
        }
        if let Some(unseen) = unseen {
            let class = |range: &Range<usize>| {
                let rows = rows(&unseen.data, range.clone())?;
                Ok(self.network.evaluate(weights, &rows, None, &mut *work)?.accuracy())
            };
            let by_class: Option<Vec<f64>> =
                unseen.classes.iter().map(class).collect::<Result<_, crate::model::Error>>()?;
            if let Some(by_class) = by_class {
                let unseen = unseen.accuracy(agent, &by_class);
                score.measures.set(Measure::UNSEEN.name, unseen);
            }
        }
        Ok(Made { score, held_back: said.map(|said| self.estimate(agent, &said)) })
    }

    /// What stands for the unseen rows of agents that have none of their own.
    fn unseen(&self) -> Option<Unseen> {
        if self.population.holds_back() { None } else { Unseen::new(&self.population) }
    }

    /// How good the model is that every agent trains alone in this many rounds, on unseen rows too.
    ///
    /// # Errors
    /// When training leaves the floating-point range.
    pub fn scores_alone(&self, step_size: f64, rounds: u32) -> Result<Vec<Made>, SpecError> {
        let unseen = self.unseen();
        self.made_alone(step_size, rounds, |who, model, work| {
            self.score(who, model, unseen.as_ref(), work)
        })
    }

    /// How good weights are for some agents, on unseen rows too: their own vector of weights for each.
    ///
    /// # Errors
    /// When a vector does not fit this model.
    pub fn scores(&self, weights: &[(AgentId, &[f64])]) -> Result<Vec<Made>, SpecError> {
        let unseen = self.unseen();
        let score = |(agent, weights): &(AgentId, &[f64])| {
            let (agent, weights) = (agent.0 as usize, self.network.load(weights)?);
            let who = (agent, self.round);
            self.workspaces.with(|work| self.score(who, &weights, unseen.as_ref(), work))
        };
        weights
            .par_iter()
            .map(score)
            .collect::<Result<_, _>>()
            .map_err(|error: crate::model::Error| error.into())
    }
}

/// The best constant prediction for agents with these numbers of rows of each class.
fn constant_over(counts: &[Vec<u32>]) -> Option<Constant> {
    let sum = |counts: &[u32]| counts.iter().map(|count| f64::from(*count)).sum::<f64>();
    let classes = counts.first()?.len();
    let of_class = |class: usize| counts.iter().map(|counts| f64::from(counts[class])).sum();
    let pooled: Vec<f64> = (0..classes).map(of_class).collect();
    let all: f64 = pooled.iter().sum();
    // Of classes as frequent, the first.
    let most = (0..classes).rev().max_by(|a, b| pooled[*a].total_cmp(&pooled[*b]))?;
    let (mut loss, mut accuracy, mut agents) = (0.0, 0.0, 0.0);
    for counts in counts.iter().filter(|counts| sum(counts) > 0.0) {
        let own = sum(counts);
        let held = counts.iter().zip(&pooled).filter(|(count, _)| **count > 0);
        loss +=
            held.map(|(count, pooled)| f64::from(*count) * (all / pooled).ln()).sum::<f64>() / own;
        accuracy += f64::from(counts[most]) / own;
        agents += 1.0;
    }
    let score = Score::new(loss / agents).with(Measure::ACCURACY.name, accuracy / agents);
    (agents > 0.0).then_some(Constant(score))
}

/// How many rows have numbers, their sum and the sum of their squares.
fn moments(targets: RowTargets<'_>) -> [f64; 3] {
    let RowTargets::Numbers(numbers) = targets else { return [0.0; 3] };
    numbers
        .iter()
        .map(|number| f64::from(*number))
        .fold([0.0; 3], |[count, sum, squares], number| {
            [count + 1.0, sum + number, squares + number * number]
        })
}

/// The best constant prediction for agents whose numbers have these [`moments`]: the mean of all.
fn mean_over(agents: &[[f64; 3]]) -> Option<Constant> {
    let total = |part: usize| agents.iter().map(|moments| moments[part]).sum::<f64>();
    let mean = total(1) / total(0);
    let own = agents.iter().filter(|[count, ..]| *count > 0.0);
    let losses: Vec<f64> = own
        .map(|[count, sum, squares]| (squares - 2.0 * mean * sum) / count + mean * mean)
        .collect();
    let loss = losses.iter().sum::<f64>() / losses.len() as f64;
    (!losses.is_empty()).then(|| Constant(Score::new(loss)))
}

/// Whether rows follow a group directly that has less than enough.
fn joins(group: &Range<usize>, rows: &Range<usize>) -> bool {
    const ENOUGH: usize = 1024;
    group.end == rows.start && group.len() < ENOUGH
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Agents of seven rows are measured together; agents that were left out part the groups.
    #[test]
    fn neighbours_are_measured_as_if_each_were_alone() {
        use crate::experiment::Experiment;
        for measured in ["all", "120"] {
            let text = format!(
                "agents = 200\neval_agents = {}\n[data]\nper_agent = 7\n[partition]\nkind = \"iid\"",
                if measured == "all" { "\"all\"" } else { measured }
            );
            let simulator = Simulator::new(&Experiment::parse(&text, &[]).unwrap()).unwrap();
            let weights = simulator.network.load(&simulator.initial_weights()).unwrap();
            let assessment = simulator.assess_loaded(&weights).unwrap();
            let groups = simulator.neighbours();
            assert!(groups.iter().any(|group| group.len() > 1), "{groups:?}");
            assert_eq!(assessment.agents.len(), if measured == "all" { 200 } else { 120 });
            for agent in &assessment.agents {
                let held = simulator.seen(agent.id.0 as usize, simulator.round);
                let rows = held.view().unwrap();
                let work = &mut Workspace::new();
                let alone = simulator.network.evaluate(&weights, &rows, None, work).unwrap();
                let alone = Score::new(alone.loss).with("accuracy", alone.accuracy());
                assert_eq!(agent.score, alone);
            }
        }
    }

    #[test]
    fn the_best_constant_prediction_has_the_shares_of_all_rows() {
        let close = |counts: &[[u32; 3]], loss: f64, accuracy: f64| {
            let counts: Vec<Vec<u32>> = counts.iter().map(|counts| counts.to_vec()).collect();
            let found = constant_over(&counts).unwrap();
            let share = found.0.of("accuracy").unwrap();
            let apart = (found.0.loss - loss).abs().max((share - accuracy).abs());
            assert!(apart < 1e-12, "{found:?} for {loss}, {accuracy}");
        };
        // One class an agent, and the same mix for all: the same shares, so the same loss.
        close(&[[5, 0, 0], [0, 5, 0], [0, 0, 5]], 3f64.ln(), 1.0 / 3.0);
        close(&[[2, 2, 2], [3, 3, 3]], 3f64.ln(), 1.0 / 3.0);
        // Shares ¾ and ¼, and a mean over agents, not over rows.
        let loss =
            (4.0 / 3.0_f64).ln() * 0.5 + 0.5 * (0.5 * (4.0 / 3.0_f64).ln() + 0.5 * 4f64.ln());
        close(&[[4, 0, 0], [2, 2, 0]], loss, 0.75);
        // Rows of one class leave nothing to learn; an agent without rows does not count.
        close(&[[4, 0, 0], [0, 0, 0]], 0.0, 1.0);
        assert_eq!(constant_over(&[]), None);
    }
}
