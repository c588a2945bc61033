//! What an experiment works on: a named problem, or training on data.

use super::keys;
use crate::data::{Data, DataError, Predicted};
use crate::is_default;
use crate::measure::{LIST, Listed, Measuring};
use crate::model::Model;
use crate::partition::Partition;
use crate::training::{DecidesOn, DecidesOnRows, EvalAgents, Local, Shelf, Stream};
use fedstay::problem::Problem;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Map;

/// What an experiment works on. In a file, a problem is the table `[problem]`; without it, the keys
/// of [`Training`] stand at the top.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// A named problem with exact oracles, which brings its own agents.
    Problem(Problem),
    /// Training a model on data that are dealt out to agents.
    Training(Box<Training>),
}

/// What is trained, on what, by whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Training {
    /// How many agents take part; 0, which no file can say, until the data have said how many owners
    /// there are.
    #[serde(skip_serializing_if = "is_default")]
    pub agents: usize,
    /// How many devices there are; those that do not take part serve the population metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<usize>,
    /// The share of the remaining agents that is asked each round.
    pub participation: f64,
    /// On which loss an agent decides.
    pub decides_on: DecidesOn,
    /// On which rows that loss is measured.
    #[serde(skip_serializing_if = "is_default")]
    pub decides_on_rows: DecidesOnRows,
    /// Whether the last remaining agent continues to train.
    pub last_stays: bool,
    /// How many rounds lie between two measurements of all agents and the population.
    pub eval_every: u32,
    /// What is measured then, and at the end, besides the loss.
    #[serde(skip_serializing_if = "is_default")]
    pub measure: Measuring,
    /// Whose rows are evaluated then, and at the end.
    #[serde(skip_serializing_if = "is_default")]
    pub eval_agents: EvalAgents,
    /// The data set.
    pub data: Data,
    /// How the rows are dealt to the agents.
    pub partition: Partition,
    /// The model.
    pub model: Model,
    /// The agents' local work.
    pub local: Local,
    /// The models that are kept for agents that come later.
    #[serde(skip_serializing_if = "is_default")]
    pub library: Shelf,
    /// Which rows agents see in a round.
    #[serde(skip_serializing_if = "Stream::is_usual")]
    pub stream: Stream,
}

impl Training {
    /// How the rows come to the agents, for the head of an output.
    pub fn describe_data(&self) -> String {
        let drawn = if self.data.replace { "; drawn with replacement" } else { "" };
        format!("{}{drawn}", self.partition.describe())
    }

    /// What is predicted.
    fn task(&self) -> Predicted {
        match self.data.predicts_number() {
            true => Predicted::Number,
            false => Predicted::Classes,
        }
    }

    /// Refuses measures of classes where a number is learned, and measures of numbers elsewhere.
    pub(super) fn check_measures(&self) -> Result<(), DataError> {
        let task = self.task();
        let of_other = |listed: &&&'static Listed| listed.task() != task;
        let Some(wrong) = self.measure.listed().iter().find(of_other) else { return Ok(()) };
        let (of, but) = match task {
            Predicted::Number => ("classes", "data.task is \"number\""),
            Predicted::Classes => ("a number", "the data have classes"),
        };
        let fits: Vec<&str> =
            LIST.iter().filter(|listed| listed.task() == task).map(Listed::name).collect();
        let (name, fits) = (wrong.name(), fits.join(", "));
        let why = format!("`{name}` is measured of {of}, but {but}: choose of {fits}");
        Err(DataError::setting("measure", why))
    }

    /// The local steps of an agent of the usual size in a round, as far as can be told without data.
    pub(crate) fn usual_steps(&self) -> u64 {
        self.local.steps_on(self.data.per_agent.unwrap_or(1)) as u64
    }
}

impl Default for Training {
    fn default() -> Self {
        Self {
            agents: 10,
            population: None,
            participation: 1.0,
            decides_on: DecidesOn::Received,
            decides_on_rows: DecidesOnRows::Training,
            last_stays: false,
            eval_every: 10,
            measure: Measuring::default(),
            eval_agents: EvalAgents::All,
            data: Data::default(),
            partition: Partition::default(),
            model: Model::default(),
            local: Local::default(),
            library: Shelf::default(),
            stream: Stream::default(),
        }
    }
}

impl Serialize for Work {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Problem(problem) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(keys::PROBLEM, problem)?;
                map.end()
            }
            Self::Training(training) => training.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Work {
    /// Written by hand, because serde's own untagged enums say only that nothing fits.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = Map::deserialize(deserializer)?;
        let work = match table.remove(keys::PROBLEM) {
            Some(problem) => serde_json::from_value(problem).map(Self::Problem),
            None => serde_json::from_value(table.into())
                .map(|training| Self::Training(Box::new(training))),
        };
        work.map_err(D::Error::custom)
    }
}
