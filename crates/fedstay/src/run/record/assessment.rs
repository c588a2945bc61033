//! How good the weights of a round are: for every agent, over all of them, and on the population.

use super::{Header, MOST_LISTED, Spread};
use crate::AgentId;
use crate::message::score::{Measure, Score};
use crate::run::Assessment;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// How good the weights of a round are. Columns run over the header's agents, including those that
/// left, or over those that were measured, where these are others.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AssessmentLine {
    /// The agents that were measured, by id, where these are not the header's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentId>,
    /// Every agent's score, in columns; one that means nothing in this run is empty.
    #[serde(flatten)]
    pub score: Score<Vec<f64>>,
    /// The score on data that no participant trained on, where there are any.
    pub population: Option<Score>,
    /// The scores over all agents, if only that was kept, as in a sketch or of very many.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "over")]
    pub over: Option<Score<Spread>>,
}

impl AssessmentLine {
    pub(super) fn new(assessment: &Assessment) -> Self {
        let score = Score::columns(assessment.agents.iter().map(|agent| &agent.score));
        let population = assessment.population.clone();
        match score.loss.len() > MOST_LISTED {
            true => Self { population, over: score.spread(), ..Self::default() },
            false => Self { population, score, ..Self::default() },
        }
    }

    /// Names the agents of the columns, if these are not all that the header lists.
    pub(crate) fn name_agents(&mut self, header: &Header, assessment: &Assessment) {
        let listed = header.agents.iter().map(|agent| agent.id);
        if self.over.is_none() && !listed.eq(assessment.agents.iter().map(|agent| agent.id)) {
            self.agents = assessment.agents.iter().map(|agent| agent.id).collect();
        }
    }

    /// The place of an agent in the columns, given its place in the header.
    fn place(&self, in_header: usize, agent: AgentId) -> Option<usize> {
        match self.agents.is_empty() {
            true => Some(in_header),
            false => self.agents.binary_search(&agent).ok(),
        }
    }

    /// The score of an agent, given its place in the header, if it was measured.
    pub fn of(&self, in_header: usize, agent: AgentId) -> Option<Score> {
        self.score.at(self.place(in_header, agent)?)
    }

    /// How the scores are spread over the agents that were measured, if any were.
    pub fn spread(&self) -> Option<Score<Spread>> {
        self.over.clone().or_else(|| self.score.spread())
    }
}

/// Loss and accuracy alone are written as a pair, as they have been from the first version.
fn over<S: Serializer>(over: &Option<Score<Spread>>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(over) = over else { return serializer.serialize_none() };
    match over.measures.iter().all(|(name, _)| name == Measure::ACCURACY.name) {
        true => {
            let loss = Some(over.loss).filter(|loss| loss.mean.is_finite() || loss.max.is_finite());
            (loss, over.get(&Measure::ACCURACY.name)).serialize(serializer)
        }
        false => over.serialize(serializer),
    }
}

/// Both forms of what is known over all agents.
#[derive(Deserialize)]
#[serde(untagged)]
enum Over {
    Pair(Option<Spread>, Option<Spread>),
    Score(Score<Spread>),
}

impl<'de> Deserialize<'de> for AssessmentLine {
    /// By hand, so that columns of many agents are read without being held twice.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = AssessmentLine;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("how good the weights of a round are")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut file: A) -> Result<Self::Value, A::Error> {
                let mut line = AssessmentLine::default();
                while let Some(field) = file.next_key::<String>()? {
                    match field.as_str() {
                        "agents" => line.agents = file.next_value()?,
                        "population" => line.population = file.next_value()?,
                        "over" => {
                            line.over = file.next_value::<Option<Over>>()?.map(|over| match over {
                                Over::Score(score) => score,
                                Over::Pair(loss, accuracy) => {
                                    Score::new(loss.unwrap_or(Spread::UNKNOWN))
                                        .with(Measure::ACCURACY.name, accuracy)
                                }
                            });
                        }
                        _ => line.score.read(field, &mut file)?,
                    }
                }
                Ok(line)
            }
        }

        from.deserialize_map(Fields)
    }
}

/// How good the best constant prediction is for the agents that were measured, on average: a model
/// that gives everybody the shares which the classes have among all their rows. A model that is no
/// better has learnt nothing from the rows but these shares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Constant(pub Score);

impl Constant {
    /// A gain over the constant prediction of at most this share is rounding.
    const NONE: f64 = 1e-9;
    /// A gain over it of less than this share may be chance.
    const SLIGHT: f64 = 0.02;
    /// A gain over it of less than this share is hardly one.
    const HARDLY: f64 = 0.1;

    /// Whether a model with these means is no better: in loss or in accuracy it gains nothing at all
    /// and in the other hardly anything, or it gains next to nothing in both. One measure alone would
    /// not do, for rows of which nearly all are of one class leave the accuracy no room, and a model
    /// that is too sure of itself may be right often at a large loss.
    pub fn is_as_good_as(&self, means: &Score) -> bool {
        let gain = |share: f64| if share.is_nan() { 0.0 } else { share };
        let by_loss = gain(1.0 - means.loss / self.0.loss);
        let accuracy = |score: &Score| score.of(&Measure::ACCURACY.name);
        let by_accuracy = match (accuracy(means), accuracy(&self.0)) {
            (Some(own), Some(constant)) => gain((own - constant) / (1.0 - constant)),
            _ => by_loss,
        };
        let (less, more) = (by_loss.min(by_accuracy), by_loss.max(by_accuracy));
        less <= Self::NONE && more < Self::HARDLY || more < Self::SLIGHT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_no_better_than_a_constant_one_if_it_gains_next_to_nothing() {
        let score = |loss: f64, accuracy: Option<f64>| Score::new(loss).with("accuracy", accuracy);
        let digits = Constant(score(10f64.ln(), Some(0.101)));
        assert!(digits.is_as_good_as(&score(2.36, Some(0.116))), "untrained");
        assert!(digits.is_as_good_as(&score(f64::INFINITY, Some(0.101))), "diverged");
        assert!(digits.is_as_good_as(&score(f64::NAN, None)), "diverged");
        assert!(
            !digits.is_as_good_as(&score(50.0, Some(0.6))),
            "too sure of itself, but often right"
        );
        assert!(!digits.is_as_good_as(&score(2.25, Some(0.3))), "on its way");
        let rare = Constant(score(0.408, Some(0.858)));
        assert!(rare.is_as_good_as(&score(0.4, Some(0.858))), "it never names the rare class");
        assert!(rare.is_as_good_as(&score(0.404, Some(0.859))), "a row or two by chance");
        assert!(!rare.is_as_good_as(&score(0.33, Some(0.858))), "it ranks well");
        assert!(!rare.is_as_good_as(&score(0.39, Some(0.87))), "a weak signal is one");
        let one_class = Constant(score(0.0, Some(1.0)));
        assert!(
            one_class.is_as_good_as(&score(0.0, Some(1.0)))
                && one_class.is_as_good_as(&score(0.3, Some(1.0)))
        );
    }
    #[test]
    fn a_line_survives_its_file_in_every_form() {
        let column = || Score::new(vec![0.5, 0.25]).with("accuracy", vec![0.75, 1.0]);
        let spread = |max: f64| Spread { min: 0.25, mean: 0.5, max };
        let plain = AssessmentLine { score: column(), ..AssessmentLine::default() };
        let (loss, share) = (spread(2.0), spread(1.0));
        let pair = Score::new(loss).with("accuracy", share);
        let more = pair.clone().with("balanced", share);
        for (line, form) in [
            (plain, r#"{"loss":[0.5,0.25],"accuracy":[0.75,1.0],"population":null}"#),
            (
                AssessmentLine { over: Some(Score::new(loss)), ..AssessmentLine::default() },
                r#"{"loss":[],"accuracy":[],"population":null,"over":[{"min":0.25,"mean":0.5,"max":2.0},null]}"#,
            ),
            (
                AssessmentLine { over: Some(pair), ..AssessmentLine::default() },
                r#"{"loss":[],"accuracy":[],"population":null,"over":[{"min":0.25,"mean":0.5,"max":2.0},{"min":0.25,"mean":0.5,"max":1.0}]}"#,
            ),
            (
                AssessmentLine {
                    agents: vec![AgentId(3)],
                    score: Score::new(vec![0.5]).with("balanced", vec![0.25]),
                    population: Some(Score::new(1.0).with("balanced", 0.5)),
                    over: Some(more),
                },
                r#"{"agents":[3],"loss":[0.5],"accuracy":[],"balanced":[0.25],"population":{"loss":1.0,"accuracy":null,"balanced":0.5},"over":{"loss":{"min":0.25,"mean":0.5,"max":2.0},"accuracy":{"min":0.25,"mean":0.5,"max":1.0},"balanced":{"min":0.25,"mean":0.5,"max":1.0}}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&line).unwrap(), form);
            let read: AssessmentLine = serde_json::from_str(form).unwrap();
            assert_eq!(read.spread(), line.spread());
            assert_eq!(
                (read.agents, read.population, read.over),
                (line.agents, line.population, line.over)
            );
        }
    }

    #[test]
    fn an_agent_without_a_value_does_not_count() {
        let score = Score::new(vec![1.0, 3.0]).with("auroc", vec![0.5, f64::NAN]);
        let spread = score.spread().unwrap();
        assert_eq!((spread.loss.mean, spread.get("auroc").unwrap().mean), (2.0, 0.5));
        assert_eq!(Score::new(Vec::new()).spread(), None);
    }
}
