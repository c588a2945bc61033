//! How good weights are for each agent on rows of its own that nobody trained on.
//!
//! Where the data say who owns a test row, these are an owner's own test rows; where rows are dealt
//! out, the test rows are everybody's, and no agent has any of its own.

use super::{Simulator, rows};
use crate::experiment::SpecError;
use crate::measure::Draws;
use crate::model::{Loaded, Reads, Said, Workspace};
use fedstay::record::{Estimate, HeldBack};
use fedstay::{AgentId, Score};
use rayon::prelude::*;

/// How good a model is for an agent: on the rows that it sees, and on rows that nobody trained on.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// On its own rows, with what is known of unseen ones.
    pub score: Score,
    /// On its own held-back rows, where there are some, with intervals.
    pub held_back: Option<Estimate>,
}

impl Simulator {
    /// What weights say of every agent's own held-back rows, classes with all their probabilities;
    /// `None` for an agent that has no such rows. One entry per agent.
    ///
    /// # Errors
    /// When the weights do not fit this model.
    pub fn said_held_back(&self, weights: &[f64]) -> Result<Vec<Option<Said>>, SpecError> {
        let weights = self.network.load(weights)?;
        let said = |agent| self.workspaces.with(|work| self.said_of(agent, &weights, work));
        let said = (0..self.roster.len()).into_par_iter().map(said);
        Ok(said.collect::<Result<_, _>>()?)
    }

    /// The same for some agents, with their own vector of weights for each.
    ///
    /// # Errors
    /// When a vector does not fit this model.
    pub fn said_held_back_each(
        &self,
        weights: &[(AgentId, &[f64])],
    ) -> Result<Vec<Option<Said>>, SpecError> {
        let said = |(agent, weights): &(AgentId, &[f64])| {
            let weights = self.network.load(weights)?;
            self.workspaces.with(|work| self.said_of(agent.0 as usize, &weights, work))
        };
        Ok(weights.par_iter().map(said).collect::<Result<_, crate::model::Error>>()?)
    }

    /// Which rows of an agent are drawn for its intervals.
    pub fn draws(&self, agent: AgentId) -> Draws {
        Draws { seed: self.seed, agent: agent.0 }
    }

    /// What weights say of an agent's own held-back rows.
    pub(super) fn said_of(
        &self,
        agent: usize,
        weights: &Loaded,
        work: &mut Workspace,
    ) -> Result<Option<Said>, crate::model::Error> {
        let Some(range) = self.population.held_back(agent) else { return Ok(None) };
        let rows = rows(self.population.data(), range)?;
        let (_, said) = self.network.listen(weights, &rows, Reads::Probabilities, work)?;
        Ok(Some(said))
    }

    /// The loss and the measures that are asked for, of what was said of an agent's rows.
    pub(super) fn estimate(&self, agent: usize, said: &Said) -> Estimate {
        self.training.measure.estimate(said, self.draws(AgentId(agent as u64)))
    }

    /// How good weights are for an agent on its own held-back rows, with intervals.
    pub(super) fn on_held_back(
        &self,
        agent: usize,
        weights: &Loaded,
    ) -> Result<Option<HeldBack>, crate::model::Error> {
        let said = self.workspaces.with(|work| self.said_of(agent, weights, work))?;
        Ok(said.map(|said| HeldBack::new(said.len(), self.estimate(agent, &said))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::measure::{Listed, interval};
    use crate::model::Workspace;
    use crate::run::Trial;
    use fedstay::record::Summary;

    /// Three sites of 40, 60 and 80 rows. The first feature is the site's number; the second tells the
    /// class, and the number is a multiple of both.
    fn experiment(more: &str, unit: f64) -> (tempfile::TempDir, Experiment) {
        let folder = tempfile::tempdir().unwrap();
        let mut text = "site,level,other,target\n".to_owned();
        let number = more.contains("number");
        for row in 0..180_u32 {
            let site = match row % 9 {
                0 | 1 => 0,
                2..=4 => 1,
                _ => 2,
            };
            let (fever, noise) = (row * 11 % 17, row * 7 % 5);
            let days = unit * f64::from(3 * fever + 5 * noise + site);
            let long = ["short", "long"][usize::from(fever + noise > 10)];
            let target = if number { days.to_string() } else { long.to_owned() };
            text += &format!("s{site},{site},{fever},{target}\n");
        }
        let path = folder.path().join("sites.csv");
        std::fs::write(&path, text).unwrap();
        let text = format!(
            "rounds = 4\nepsilon = 0.01\nseed = 3\n{more}\n[data]\nkind = \"csv\"\npath = {path:?}\n\
             owner = \"site\"\n{}",
            if number { "task = \"number\"\n" } else { "" }
        );
        (folder, Experiment::parse(&text, &[]).unwrap())
    }

    fn summary(experiment: &Experiment) -> Summary {
        Trial::new(experiment.clone()).unwrap().run(&mut []).unwrap().unwrap()
    }

    const CLASSES: &str = "measure = [\"auroc\", \"accuracy\", \"log-loss\"]\ncompare_alone = true\n\
                           model.kind = \"logistic-regression\"";
    const NUMBER: &str = "model.kind = \"linear-regression\"\n#number";

    #[test]
    fn held_back_rows_are_the_owners_own_and_nobody_trains_on_them() {
        let (_folder, experiment) = experiment(CLASSES, 1.0);
        let simulator = Simulator::new(&experiment).unwrap();
        let population = simulator.population();
        let mut row = [0.0; 2];
        let mut site = |row_number: usize| {
            population.data().copy_row(row_number, &mut row);
            row[0]
        };
        for (agent, rows) in [(0, 40), (1, 60), (2, 80)] {
            let own = population.held_back(agent).unwrap();
            let trained = population.place(agent).unwrap();
            assert_eq!(own.len() + trained.len(), rows);
            // A fifth of each class, rounded down.
            assert!((rows / 5 - 1..=rows / 5).contains(&own.len()), "{own:?}");
            let first = site(trained.start);
            assert!(own.chain(trained).all(|row| site(row) == first), "agent {agent}");
        }
        assert_eq!(population.held_back(3), None);
        assert_eq!(population.held_back(2).unwrap().end, population.data().len());
    }

    #[test]
    fn what_is_said_of_held_back_rows_is_what_an_evaluation_finds() {
        let (_folder, experiment) = experiment(CLASSES, 1.0);
        let simulator = Simulator::new(&experiment).unwrap();
        let weights: Vec<f64> =
            (0..simulator.initial_weights().len()).map(|place| 0.3 - 0.2 * place as f64).collect();
        let loaded = simulator.network().load(&weights).unwrap();
        let each: Vec<(AgentId, &[f64])> = (0..3).map(|id| (AgentId(id), &weights[..])).collect();
        let all = simulator.said_held_back(&weights).unwrap();
        assert_eq!(all, simulator.said_held_back_each(&each).unwrap());
        for (agent, said) in all.iter().enumerate() {
            let said = said.as_ref().unwrap();
            let range = simulator.population().held_back(agent).unwrap();
            let rows = rows(simulator.population().data(), range).unwrap();
            let work = &mut Workspace::new();
            let found = simulator.network().evaluate(&loaded, &rows, None, work).unwrap();
            assert_eq!(said.loss(), found.loss);
            let listed = |name| Listed::find(name).unwrap().of(said);
            assert_eq!(listed("accuracy"), found.accuracy());
            assert!((listed("log-loss").unwrap() - found.loss).abs() < 1e-9);
        }
    }

    #[test]
    fn a_summary_tells_every_owner_of_its_held_back_rows_with_intervals() {
        let (_folder, experiment) = experiment(CLASSES, 1.0);
        let told = summary(&experiment);
        assert_eq!(told, summary(&experiment), "the same bits again");
        for (agent, rows) in told.agents.iter().zip([8, 12, 16]) {
            let own = agent.held_back.as_ref().unwrap();
            assert!((rows - 1..=rows).contains(&own.rows), "{own:?}");
            let names: Vec<&str> = own.measures.iter().map(|(name, _)| name).collect();
            assert_eq!(names, ["auroc", "accuracy", "log-loss"], "in the order asked for");
            for (name, found) in own.measures.iter() {
                assert!(
                    found.low <= found.high && found.contains(found.value),
                    "{name}: {found:?}"
                );
            }
            // Nobody left: what they end with is what is delivered.
            let ends = own.ends_with.as_ref().unwrap();
            assert_eq!((ends.loss, &ends.measures), (own.loss, &own.measures));
            let unseen = |score: &Option<Score>| score.as_ref().unwrap().of("unseen");
            let accuracy = |of: &Estimate| of.score().of("accuracy");
            assert_eq!(unseen(&agent.ends_with), accuracy(ends));
            assert_eq!(unseen(&agent.alone), accuracy(own.alone.as_ref().unwrap()));
        }
        let over = told.held_back.unwrap();
        let auroc = over.get("auroc").unwrap();
        assert!(auroc.min <= auroc.mean && auroc.mean <= auroc.max);
    }

    #[test]
    fn intervals_are_those_of_the_public_functions() {
        let (_folder, experiment) = experiment(CLASSES, 1.0);
        let mut trial = Trial::new(experiment).unwrap();
        let told = trial.run(&mut []).unwrap().unwrap();
        let simulator = trial.simulator().unwrap();
        let said = simulator.said_held_back(trial.server().delivered()).unwrap();
        for (agent, said) in told.agents.iter().zip(said) {
            let auroc = Listed::find("auroc").unwrap();
            let found = interval(auroc, &said.unwrap(), simulator.draws(agent.id));
            let own = agent.held_back.as_ref().unwrap();
            assert_eq!(own.measures.get("auroc"), found.as_ref());
        }
    }

    #[test]
    fn errors_of_a_number_are_in_its_own_unit() {
        let of = |unit: f64| {
            let (_folder, experiment) = experiment(NUMBER, unit);
            let told = summary(&experiment);
            assert_eq!(told.headline().0.name, "rmse");
            let found: Vec<_> = told
                .agents
                .iter()
                .map(|agent| *agent.held_back.as_ref().unwrap().measures.get("rmse").unwrap())
                .collect();
            found
        };
        for (days, hours) in of(1.0).iter().zip(of(24.0)) {
            assert!(days.value > 1.0 && days.value < 40.0, "{days:?}");
            assert!((24.0 * days.value - hours.value).abs() < 1e-3 * hours.value, "{days:?}");
            assert!((24.0 * days.low - hours.low).abs() < 1e-3 * hours.low, "{hours:?}");
        }
    }

    #[test]
    fn where_rows_are_dealt_nobody_has_test_rows_of_its_own() {
        let more = format!("{CLASSES}\nagents = 3\npartition.kind = \"iid\"");
        let (_folder, experiment) = experiment(&more, 1.0);
        let told = summary(&experiment);
        assert!(told.held_back.is_none());
        assert!(told.agents.iter().all(|agent| agent.held_back.is_none()));
        let unseen = |score: &Option<Score>| score.as_ref().unwrap().of("unseen").is_some();
        assert!(told.agents.iter().all(|agent| unseen(&agent.alone)), "by its mix of classes");
    }
}
