//! The loss of any weights on rows that nobody trains on.

use super::{Simulator, failed, rows};
use crate::data::Dataset;
use crate::model::{Network, Workspace};
use fedstay::Error;
use fedstay::worth::Judge;
use std::ops::Range;
use std::sync::Arc;

/// Judges models by the rows that stand for the population: those of devices that do not take part or,
/// where all do, the test rows.
pub struct UnseenRows {
    network: Network,
    data: Arc<Dataset>,
    rows: Range<usize>,
    work: Workspace,
}

impl Simulator {
    /// A judge of models; `None` where no rows are kept from training.
    pub fn judge(&self) -> Option<UnseenRows> {
        let rows = self.population.population()?;
        let (network, data) = (self.network.clone(), Arc::clone(self.population.data()));
        Some(UnseenRows { network, data, rows, work: Workspace::default() })
    }
}

impl Judge for UnseenRows {
    fn loss(&mut self, weights: &[f64]) -> Result<f64, Error> {
        let weights = self.network.load(weights).map_err(failed(0))?;
        let rows = rows(&self.data, self.rows.clone()).map_err(failed(0))?;
        let score = self.network.evaluate(&weights, &rows, None, &mut self.work);
        Ok(score.map_err(failed(0))?.loss)
    }
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;
    use crate::run::Trial;
    use fedstay::record::Summary;

    fn play(set: &[(&str, String)]) -> Summary {
        let text = include_str!("../../../../experiments/worth.toml");
        let set: Vec<(String, String)> =
            set.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let experiment = Experiment::parse(text, &set).unwrap();
        Trial::new(experiment).unwrap().run(&mut []).unwrap().unwrap()
    }

    /// An agent that never works sends nothing: it gives nothing, and since it sends no gradient either,
    /// nobody knows from whom it got what it got.
    #[test]
    fn a_free_rider_gives_nothing_and_what_it_gets_is_unexplained() {
        let methods = r#"["help", "loo", "cgsv", "reputation"]"#.to_owned();
        let summary = play(&[("rounds", "20".to_owned()), ("worth.methods", methods)]);
        let worth = |agent: usize| summary.agents[agent].worth.unwrap();
        let rider = worth(9);
        assert_eq!((rider.given, rider.got, rider.own), (Some(0.0), Some(0.0), Some(0.0)));
        assert_eq!((rider.cgsv, rider.reputation, rider.shapley), (Some(0.0), Some(0.0), None));
        assert!(rider.unexplained.unwrap() > 0.1, "its loss fell all the same: {rider:?}");
        for agent in 0..9 {
            let own = worth(agent);
            assert!(own.own.unwrap() > 0.0 && own.loo.is_some(), "{own:?}");
            // Beside what it got and made itself, hardly anything is missing.
            assert!(own.unexplained.unwrap().abs() < 0.1 * own.own.unwrap(), "{own:?}");
        }
    }
}
