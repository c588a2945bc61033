//! The rows by whose loss agents decide: those they train on, or those they hold back.
//!
//! An agent that asks whether a model is good enough for it asks about patients it will see, not about
//! those the model was fitted to. With `decides_on_rows = "held-back"` its loss is measured on its own test rows,
//! wherever it decides or is judged by its decision: in the round, ahead of it, at the end. Gradients stay those of
//! its training rows, since nobody may train on what it judges by. So a report's loss and gradient are of different
//! rows: the loss is what decides, and what follows from the gradient is an estimate. Reports say so by
//! calling the loss sampled, with a standard error of 0.

use super::population::AgentRows;
use super::{Simulator, Worked};
use crate::data::DataError;
use crate::experiment::SpecError;
use crate::model::{Error, Loaded, Workspace};
use crate::training::DecidesOnRows;
use fedstay::record::{Constant, called};
use fedstay::{AgentId, Score};
use rayon::prelude::*;

impl Simulator {
    /// Whether agents decide by rows that they hold back.
    pub(super) fn decides_held_back(&self) -> bool {
        self.training.decides_on_rows == DecidesOnRows::HeldBack
    }

    /// The rows that an agent holds back to decide by, if it does.
    pub(super) fn decides_by(&self, agent: usize) -> Option<AgentRows<'_>> {
        self.decides_held_back().then(|| self.population.kept_back(agent)).flatten()
    }

    /// Refuses agents that are to decide by rows that they do not have.
    pub(super) fn check_held_back(&self) -> Result<(), DataError> {
        if !self.decides_held_back() {
            return Ok(());
        }
        let without = |agent: &usize| self.population.held_back(*agent).is_none();
        let agents = self.population.agents();
        let without: Vec<usize> = (0..agents).filter(without).collect();
        let Some(first) = without.first() else { return Ok(()) };
        let why = if without.len() == agents {
            "nobody has rows of its own that are held back: that takes rows with owners (data.owner) and a \
             share of them to hold back (data.test_share above 0); or set it to \"training\""
                .to_owned()
        } else {
            let name = called(AgentId(*first as u64), self.population.name(*first));
            let others = match without.len() {
                1 => String::new(),
                several => format!(", and so {} more", several - 1),
            };
            format!(
                "{name} has no rows that are held back{others}: hold back a larger share \
                 (data.test_share), leave it out, or set this to \"training\""
            )
        };
        Err(DataError::setting("decides_on_rows", why))
    }

    /// Puts the loss that an agent decides by in the place of that on its training rows.
    pub(super) fn as_decided(
        &self,
        agent: usize,
        weights: &Loaded,
        score: &mut Score,
        work: &mut Workspace,
    ) -> Worked {
        if let Some(rows) = self.decides_by(agent) {
            score.loss = self.network.evaluate(weights, &rows.view()?, None, work)?.loss;
        }
        Ok(())
    }

    /// The loss by which an agent decides about weights in a round.
    fn decided_loss(
        &self,
        (agent, round): (usize, u32),
        weights: &Loaded,
        work: &mut Workspace,
    ) -> Result<f64, Error> {
        let rows = self.decides_by(agent).unwrap_or_else(|| self.seen(agent, round));
        Ok(self.network.evaluate(weights, &rows.view()?, None, work)?.loss)
    }

    /// The losses by which agents decide about weights in a round: a vector of weights for each.
    pub(super) fn decided_losses(
        &self,
        weights: &[&[f64]],
        round: u32,
    ) -> Result<Vec<f64>, SpecError> {
        let loss = |(agent, weights): (usize, &&[f64])| {
            let weights = self.network.load(weights)?;
            self.workspaces.with(|work| self.decided_loss((agent, round), &weights, work))
        };
        let losses = weights.par_iter().enumerate().map(loss);
        Ok(losses.collect::<Result<_, Error>>()?)
    }

    /// The best constant prediction as agents decide about it: on average over those that are measured.
    pub(super) fn constant_as_decided(&self, mut constant: Constant) -> Constant {
        if !self.decides_held_back() {
            return constant;
        }
        let weights = self.network.load(&self.baselines().constant().weights);
        let Ok(weights) = weights else { return constant };
        let loss = |place: usize| {
            let who = (self.measured_agent(place), self.round);
            self.workspaces.with(|work| self.decided_loss(who, &weights, work))
        };
        let losses = (0..self.measured()).into_par_iter().map(loss);
        if let Ok(losses) = losses.collect::<Result<Vec<f64>, Error>>() {
            constant.0.loss = losses.iter().sum::<f64>() / losses.len().max(1) as f64;
        }
        constant
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::run::Trial;
    use crate::simulator::baseline::tests::table;
    use fedstay::record::{RoundLine, Summary};

    /// An experiment on a table of owners, under these keys.
    fn experiment(text: &str, set: &[(&str, &str)]) -> (tempfile::TempDir, Experiment) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table.csv");
        std::fs::write(&path, text).unwrap();
        let path = format!("{:?}", path.to_str().unwrap());
        let table = [("data.kind", "csv"), ("data.path", &path), ("data.label", "y")];
        let model = [("data.owner", "owner"), ("model.kind", "logistic-regression")];
        let set = table.iter().chain(&model).chain(set);
        let set: Vec<(String, String)> =
            set.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        (dir, Experiment::parse("", &set).unwrap())
    }

    fn play(text: &str, set: &[(&str, &str)]) -> (Trial, Vec<RoundLine>, Summary) {
        let (_dir, experiment) = experiment(text, set);
        let (mut trial, mut rounds) = (Trial::new(experiment).unwrap(), Vec::new());
        let summary = trial.run(&mut [&mut rounds]).unwrap().unwrap();
        (trial, rounds, summary)
    }

    const HELD_BACK: (&str, &str) = ("decides_on_rows", "held-back");

    #[test]
    fn losses_are_of_rows_that_are_held_back_from_the_first_round_to_the_last() {
        let set = [HELD_BACK, ("rounds", "5"), ("rule.kind", "retain"), ("epsilon", "0.01")];
        let (trial, rounds, summary) = play(&table(&[60, 45], false, 21), &set);
        let simulator = trial.simulator().unwrap();
        let losses = |weights: &[f64]| simulator.decided_losses(&[weights, weights], 1).unwrap();
        let told: Vec<f64> = rounds[0].loss.iter().copied().map(Option::unwrap).collect();
        assert_eq!(told, losses(&simulator.initial_weights()));
        let ends: Vec<f64> = summary.agents.iter().map(|agent| agent.score.loss).collect();
        assert_eq!(ends, losses(trial.server().delivered()));
        for agent in &summary.agents {
            assert_eq!(agent.held_back.as_ref().unwrap().loss, agent.score.loss);
        }
        assert!(
            summary.notes.iter().any(|note| note.contains("an estimate")),
            "{:?}",
            summary.notes
        );
        // Another loss than that on the rows they train on.
        let training = [("decides_on_rows", "training"), set[1], set[2], set[3]];
        let (_, others, _) = play(&table(&[60, 45], false, 21), &training);
        assert_ne!(others[0].loss, rounds[0].loss);
    }

    /// What departs is judged by these rows as well: everybody who left was content on them.
    #[test]
    fn members_leave_once_content_on_rows_that_are_held_back() {
        let set = [HELD_BACK, ("rounds", "60"), ("rule.kind", "fedavg"), ("epsilon", "0.5")];
        let text = table(&[80, 60, 70], false, 22);
        let (_, _, summary) = play(&text, &[&set[..], &[("step_size", "1.0")]].concat());
        assert!(!summary.left.is_empty());
        let shirking = [("behaviour.kind", "foresight"), ("step_size", "1.0")];
        let (_, _, ahead) = play(&text, &[&set[..], &shirking].concat());
        assert!(ahead.left[0].round <= summary.left[0].round, "an own step hardly does harm");
        let summed = summary.agents.iter().filter(|agent| agent.is_content()).count();
        assert_eq!(summed as u32, summary.content);
    }

    /// For convex losses and whole gradients nothing is certified any more.
    #[test]
    fn nothing_is_certified_by_gradients_of_other_rows() {
        for policy in ["[]", "['preview']"] {
            let set = [HELD_BACK, ("rounds", "80"), ("epsilon", "0.6"), ("policy", policy)];
            let rule = [("rule.kind", "retain"), ("rule.smoothness", "5.0"), ("step_size", "0.5")];
            let rule = if policy == "[]" { &rule[..] } else { &[("rule.kind", "fedavg")] };
            let (trial, _, summary) =
                play(&table(&[80, 60], false, 23), &[&set[..], rule].concat());
            assert!(!trial.experiment().is_convex());
            assert_ne!(summary.guarantee, Some(fedstay::record::Guarantee::Certified));
            assert_ne!(summary.landed, Some(fedstay::rule::Landing::Certified));
        }
    }

    #[test]
    fn who_has_no_such_rows_is_told_what_to_set() {
        let text = table(&[40, 3], false, 24);
        let said = |set: &[(&str, &str)]| {
            let (_dir, experiment) = experiment(&text, set);
            Simulator::new(&experiment).err().map(|error| error.to_string())
        };
        let told = said(&[HELD_BACK, ("data.test_share", "0.1")]).unwrap();
        assert!(told.contains("decides_on_rows") && told.contains("o001"), "{told}");
        let told = said(&[HELD_BACK, ("data.test_share", "0.0")]).unwrap();
        assert!(told.contains("data.test_share above 0"), "{told}");
        assert_eq!(said(&[("data.test_share", "0.1")]), None);
        let digits = Experiment::parse("decides_on_rows = \"held-back\"", &[]).unwrap();
        let told = Simulator::new(&digits).err().unwrap().to_string();
        assert!(told.contains("data.owner"), "{told}");
        let checks = "decides_on_rows = \"held-back\"\ncheck_reports = true";
        let told = Experiment::parse(checks, &[]).unwrap_err().to_string();
        assert!(told.contains("check_reports"), "{told}");
    }

    /// Target losses by a baseline are multiples of its loss where the agent decides.
    #[test]
    fn target_losses_by_a_baseline_are_of_the_rows_that_decide() {
        let text = table(&[60, 50, 70], false, 25);
        for rows in ["training", "held-back"] {
            for (by, factor) in [("alone", 1.0), ("pooled", 1.05), ("local", 1.1)] {
                let epsilon = format!("{factor} * {by}");
                let set = [("decides_on_rows", rows), ("epsilon", &epsilon), ("rounds", "20")];
                let (_dir, experiment) = experiment(&text, &set);
                let simulator = Simulator::new(&experiment).unwrap();
                let baselines = simulator.baselines();
                let losses = match by {
                    "alone" => {
                        let alone = baselines.alone().unwrap();
                        let weights: Vec<&[f64]> =
                            alone.iter().map(|own| &own.weights[..]).collect();
                        simulator.decided_losses(&weights, 20).unwrap()
                    }
                    "pooled" => {
                        let pooled = baselines.pooled().unwrap();
                        simulator.decided_losses(&[&pooled.weights[..]; 3], 20).unwrap()
                    }
                    _ => simulator.alone(experiment.step_size, 20).unwrap(),
                };
                for (agent, loss) in losses.iter().enumerate() {
                    assert_eq!(simulator.roster.epsilon(agent), factor * loss, "{by}, {rows}");
                }
            }
        }
    }

    #[test]
    fn owners_have_target_losses_by_name() {
        let text = table(&[30, 20, 25], false, 26);
        let set = [("epsilon", "{ o001 = 0.3, '*' = 0.4 }")];
        let (_dir, named) = experiment(&text, &set);
        let simulator = Simulator::new(&named).unwrap();
        let targets: Vec<f64> = (0..3).map(|agent| simulator.roster.epsilon(agent)).collect();
        assert_eq!(targets, [0.4, 0.3, 0.4]);
        let (_dir, wrong) = experiment(&text, &[("epsilon", "{ o007 = 0.3 }")]);
        let told = Simulator::new(&wrong).err().unwrap().to_string();
        assert!(told.contains("`o007`") && told.contains("`o000`"), "{told}");
    }
}
