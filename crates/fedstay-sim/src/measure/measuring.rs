//! The measures that a run asks for.

use super::{Draws, Listed, NAMES, intervals};
use crate::model::{Error, Evaluation, Loaded, Network, Reads, Rows, Said, Workspace};
use fedstay::record::Estimate;
use fedstay::{Measure, Measures, Score};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The measures that a run asks for, the headline first; nothing but the loss if there are none.
#[derive(Debug, Clone)]
pub struct Measuring(Vec<&'static Listed>);

impl Default for Measuring {
    fn default() -> Self {
        Self(vec![&super::LIST[0]])
    }
}

impl PartialEq for Measuring {
    fn eq(&self, other: &Self) -> bool {
        self.names().eq(other.names())
    }
}

impl Serialize for Measuring {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

impl<'de> Deserialize<'de> for Measuring {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut asked: Vec<&'static Listed> = Vec::new();
        for name in Vec::<String>::deserialize(deserializer)? {
            let listed = Listed::find(&name).ok_or_else(|| {
                let all = NAMES.join(", ");
                D::Error::custom(format!("`{name}` is not a measure; there are {all}"))
            })?;
            if asked.iter().any(|known| known.name() == name) {
                return Err(D::Error::custom(format!("the measure `{name}` is named twice")));
            }
            asked.push(listed);
        }
        Ok(Self(asked))
    }
}

impl Measuring {
    /// Nothing but the loss.
    pub(crate) fn nothing() -> Self {
        Self(Vec::new())
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|listed| listed.name())
    }

    /// What they are.
    pub fn measures(&self) -> Vec<Measure> {
        self.0.iter().map(|listed| listed.measure.clone()).collect()
    }

    /// Whether they follow from the count of correct predictions, which every evaluation has.
    fn are_counted(&self) -> bool {
        self.names().all(|name| name == Measure::ACCURACY.name)
    }

    /// What has to be known of what the model says of each row, if anything.
    fn reads(&self) -> Option<Reads> {
        let reads = self.0.iter().map(|listed| listed.reads).max()?;
        (!self.are_counted()).then_some(reads)
    }

    /// Each of them with what is known of it.
    pub fn listed(&self) -> &[&'static Listed] {
        &self.0
    }

    /// The loss and the measures of what a model said of some rows, each with its interval.
    pub fn estimate(&self, said: &Said, draws: Draws) -> Estimate {
        let mut measures = Measures::default();
        for (listed, interval) in self.0.iter().zip(intervals(&self.0, said, draws)) {
            if let Some(interval) = interval {
                measures.set(listed.measure.name.clone(), interval);
            }
        }
        Estimate { loss: said.loss(), measures }
    }

    /// The score of an evaluation, with what was said of its rows.
    pub(crate) fn score(&self, evaluation: &Evaluation, said: Option<&Said>) -> Score {
        let mut score = Score::new(evaluation.loss);
        for listed in &self.0 {
            let value = match said {
                Some(said) => listed.of(said),
                None => evaluation.accuracy(),
            };
            score = score.with(listed.measure.name.clone(), value);
        }
        score
    }

    /// Evaluates a model on rows.
    ///
    /// # Errors
    /// As [`Network::evaluate`].
    pub(crate) fn evaluate(
        &self,
        network: &Network,
        weights: &Loaded,
        rows: &Rows<'_>,
        work: &mut Workspace,
    ) -> Result<Score, Error> {
        let (evaluation, said) = self.listen(network, weights, rows, work)?;
        Ok(self.score(&evaluation, said.as_ref()))
    }

    /// Evaluates a model on rows, and takes down what it says of them, if that has to be known.
    ///
    /// # Errors
    /// As [`Network::evaluate`].
    pub(crate) fn listen(
        &self,
        network: &Network,
        weights: &Loaded,
        rows: &Rows<'_>,
        work: &mut Workspace,
    ) -> Result<(Evaluation, Option<Said>), Error> {
        let Some(reads) = self.reads() else {
            return Ok((network.evaluate(weights, rows, None, work)?, None));
        };
        let (evaluation, said) = network.listen(weights, rows, reads, work)?;
        Ok((evaluation, Some(said)))
    }

    /// Evaluates a model on groups of rows that lie side by side, of these lengths.
    ///
    /// # Errors
    /// As [`Network::evaluate_each`].
    pub(crate) fn evaluate_each(
        &self,
        network: &Network,
        weights: &Loaded,
        rows: &Rows<'_>,
        groups: &[usize],
        work: &mut Workspace,
    ) -> Result<Vec<Score>, Error> {
        let (each, said) = match self.reads() {
            None => (network.evaluate_each(weights, rows, groups, work)?, None),
            Some(reads) => {
                let (each, said) = network.listen_to_each(weights, rows, groups, reads, work)?;
                (each, Some(said))
            }
        };
        let mut from = 0;
        let score = |evaluation: &Evaluation| {
            let rows = from..from + evaluation.samples;
            from = rows.end;
            let said = said.as_ref().map(|said| said.part(rows));
            self.score(evaluation, said.as_ref())
        };
        Ok(each.iter().map(score).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_and_unknown_ones_refused() {
        let read = |text: &str| serde_json::from_str::<Measuring>(text);
        let both = read(r#"["balanced", "accuracy"]"#).unwrap();
        assert_eq!(serde_json::to_string(&both).unwrap(), r#"["balanced","accuracy"]"#);
        assert_eq!(both.measures()[0].name, "balanced", "the headline is the first");
        assert_eq!(read(r#"["accuracy"]"#).unwrap(), Measuring::default());
        assert!(read("[]").unwrap().measures().is_empty());
        let unknown = read(r#"["f2"]"#).unwrap_err().to_string();
        assert!(
            unknown.contains("`f2` is not a measure; there are accuracy, balanced"),
            "{unknown}"
        );
        assert!(read(r#"["balanced", "balanced"]"#).unwrap_err().to_string().contains("twice"));
    }
}
