//! Whether it shows that a model was trained on an agent's rows: the simplest attack on membership.
//!
//! Rows that a model was trained on tend to have smaller losses. The area under the curve is the
//! probability that a row of the agent's has a smaller loss than a row that nobody trained on, drawn
//! with the agent's own mix of classes: ½ where nothing shows, 1 where every row gives itself away.
//!
//! Reference: Yeom, Giacomelli, Fredrikson, Jha, *Privacy Risk in Machine Learning: Analyzing the
//! Connection to Overfitting*, CSF 2018.

use super::{Simulator, rows};
use crate::experiment::SpecError;
use crate::model::{Rows, Workspace};

impl Simulator {
    /// How well an agent's rows can be told from unseen ones by their losses under `weights`; `None`
    /// where no rows of its classes are kept for testing.
    ///
    /// # Errors
    /// When the weights do not fit this model.
    pub fn membership(&self, agent: usize, weights: &[f64]) -> Result<Option<f64>, SpecError> {
        let weights = self.network.load(weights)?;
        let mut work = Workspace::default();
        let data = self.population.data();
        let mut loss = |row: &Rows<'_>| -> Result<f64, crate::model::Error> {
            Ok(self.network.evaluate(&weights, row, None, &mut work)?.loss)
        };
        let (count, test) = (self.population.count(agent), self.population.test());
        let own = (0..count).map(|row| loss(&self.population.some(agent, row..row + 1).view()?));
        let own: Vec<f64> = own.collect::<Result<_, _>>()?;
        let others = test.clone().map(|row| loss(&rows(data, row..row + 1)?));
        let others: Vec<f64> = others.collect::<Result<_, _>>()?;
        let held = self.population.kinds_of(agent);
        let kept = data.targets.counts(test.clone());
        let weight = |row: usize| {
            let kind = data.targets.kind(row);
            held[kind] as f64 / kept[kind] as f64
        };
        let weights: Vec<f64> = test.clone().map(weight).collect();
        Ok(area(&own, &others, &weights))
    }
}

/// The share of pairs in which a member's loss is the smaller one; ties count half.
fn area(members: &[f64], others: &[f64], weights: &[f64]) -> Option<f64> {
    let all = members.len() as f64 * weights.iter().sum::<f64>();
    let mut won = 0.0;
    for member in members {
        for (other, weight) in others.iter().zip(weights) {
            won += weight
                * if member < other { 1.0 } else { 0.5 * f64::from(u8::from(member == other)) };
        }
    }
    (all > 0.0).then(|| won / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_the_share_of_pairs() {
        assert_eq!(area(&[0.1, 0.2], &[0.3, 0.4], &[1.0, 1.0]), Some(1.0));
        assert_eq!(area(&[0.3, 0.4], &[0.1, 0.2], &[1.0, 1.0]), Some(0.0));
        assert_eq!(area(&[0.1, 0.3], &[0.1, 0.2], &[1.0, 1.0]), Some((0.5 + 1.0) / 4.0));
        assert_eq!(area(&[0.1, 0.3], &[0.1, 0.2], &[0.0, 2.0]), Some(0.5));
        assert_eq!(area(&[0.1], &[], &[]), None);
    }
}
