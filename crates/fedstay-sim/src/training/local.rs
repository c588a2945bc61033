//! Local work: what an agent does with the weights before it reports.
//!
//! K steps of size η (or η/K) on batches, which FedAvg takes along a path and mini-batch SGD all at
//! the received weights. Either K is given, and every batch is drawn by itself, or a number of epochs
//! E: in each the rows are put in a random order and cut into batches, the last of which may be short,
//! so that an agent with n rows takes K = E⌈n/batch⌉ steps. The report's direction is the mean of the
//! K gradients, its reach the sum of the step sizes, so that the agent's own displacement is
//! `−reach · direction`, whatever its K. FedProx adds
//! `(μ/2)‖u − w‖²` to the local objective: Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, *Federated
//! Optimization in Heterogeneous Networks*, MLSys 2020; μ = 0 is FedAvg.

use crate::model::{Batch, Walk};
use fedstay::Seed;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// The agents' local work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "LocalTable", into = "LocalTable")]
pub struct Local {
    /// The number of local steps K, where no epochs are given.
    pub steps: usize,
    /// The number of passes over the agent's rows, instead of a number of steps.
    pub epochs: Option<usize>,
    /// The size of a local step.
    pub step: StepSize,
    /// The samples of a local step.
    pub batch: BatchSize,
    /// FedProx's pull back to the received weights.
    pub mu: f64,
    /// Whether to report the full gradient at the received weights in addition to the path. With
    /// several steps the mean along the path is not that gradient, and predictions made from it
    /// miss.
    pub exact_gradient: ExactGradient,
    /// How many rows an epoch visits, where that is not all of them: a load set by the server.
    visited: Option<usize>,
}

/// The `[local]` table of an experiment: steps or epochs.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LocalTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epochs: Option<usize>,
    step: StepSize,
    batch: BatchSize,
    mu: f64,
    exact_gradient: ExactGradient,
}

impl Default for LocalTable {
    fn default() -> Self {
        let mut written = Self::from(Local::default());
        written.steps = None;
        written
    }
}

impl From<Local> for LocalTable {
    fn from(local: Local) -> Self {
        let Local { steps, epochs, step, batch, mu, exact_gradient, .. } = local;
        let steps = epochs.is_none().then_some(steps);
        Self { steps, epochs, step, batch, mu, exact_gradient }
    }
}

impl TryFrom<LocalTable> for Local {
    type Error = &'static str;

    fn try_from(written: LocalTable) -> Result<Self, Self::Error> {
        let LocalTable { steps, epochs, step, batch, mu, exact_gradient } = written;
        if steps.is_some() && epochs.is_some() {
            return Err(BOTH);
        }
        let steps = steps.unwrap_or(1);
        Ok(Self { steps, epochs, step, batch, mu, exact_gradient, visited: None })
    }
}

/// The message for a table that says how much an agent works in two ways.
const BOTH: &str =
    "local.steps and local.epochs both say how much an agent works in a round: give one of them";

impl Default for Local {
    fn default() -> Self {
        Self {
            steps: 1,
            epochs: None,
            step: StepSize::Eta,
            batch: BatchSize::Full,
            mu: 0.0,
            exact_gradient: ExactGradient::Auto,
            visited: None,
        }
    }
}

/// The size of a local step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepSize {
    /// η per step, reach Kη: what reproduces the paper's figures.
    #[default]
    #[serde(rename = "eta")]
    Eta,
    /// η/K per step, reach η: as the paper prints it.
    #[serde(rename = "eta/K", alias = "eta-over-k", alias = "eta / K")]
    EtaOverK,
}

/// The samples of a local step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "local.batch must be a number of samples, or \"full\"")]
pub enum BatchSize {
    /// This many, drawn without repetition.
    Samples(usize),
    /// All of the agent's samples.
    #[serde(with = "full")]
    Full,
}

/// Whether the gradient at the received weights is reported beside what an agent did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "local.exact_gradient must be true, false or \"auto\"")]
pub enum ExactGradient {
    /// Where the rule or the guard predicts losses from what is reported; see
    /// [`Experiment::asks_for_gradients`](crate::experiment::Experiment::asks_for_gradients).
    #[default]
    #[serde(with = "auto")]
    Auto,
    /// Always, or never.
    Told(bool),
}

/// A word that stands for a variant which has no value.
macro_rules! word {
    ($name:ident, $word:literal, $other:literal) => {
        mod $name {
            use serde::{Deserialize, Deserializer, Serializer, de::Error};

            pub(super) fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($word)
            }

            pub(super) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<(), D::Error> {
                match String::deserialize(deserializer)?.as_str() {
                    $word => Ok(()),
                    other => Err(D::Error::custom(format!(
                        concat!("`{}` is neither ", $other, " nor `", $word, "`"),
                        other
                    ))),
                }
            }
        }
    };
}

word!(full, "full", "a number");
word!(auto, "auto", "true, false");

impl Local {
    /// The number of local steps K of an agent with this many rows.
    pub fn steps_on(&self, rows: usize) -> usize {
        let batches = |epochs: usize| {
            let rows = self.visits(rows).max(1);
            epochs.saturating_mul(rows.div_ceil(self.batch_of(rows).max(1)))
        };
        self.epochs.map_or(self.steps, batches)
    }

    /// The size of one local step of an agent with this many rows.
    pub fn step_size(&self, eta: f64, rows: usize) -> f64 {
        match self.step {
            StepSize::Eta => eta,
            StepSize::EtaOverK => eta / self.steps_on(rows) as f64,
        }
    }

    /// The sum of the local step sizes of an agent with this many rows.
    pub fn reach(&self, eta: f64, rows: usize) -> f64 {
        self.step_size(eta, rows) * self.steps_on(rows) as f64
    }

    /// How an agent with this many rows moves: along a path, or standing still for mini-batch SGD.
    pub fn walk(&self, eta: f64, rows: usize, stands: bool) -> Walk {
        if stands {
            Walk::Stand
        } else {
            Walk::Descend { eta: self.step_size(eta, rows) as f32, mu: self.mu as f32 }
        }
    }

    /// Whether the direction is the full gradient at the received weights.
    pub fn is_exact(&self) -> bool {
        let times = self.epochs.unwrap_or(self.steps);
        times == 1 && self.batch == BatchSize::Full && self.visited.is_none()
    }

    /// Whether the gradient is reported in addition, where that is settled.
    pub(crate) fn adds_gradient(&self) -> bool {
        self.exact_gradient == ExactGradient::Told(true) && !self.is_exact()
    }

    /// How many rows one local step sees.
    pub fn batch_of(&self, rows: usize) -> usize {
        match self.batch {
            BatchSize::Samples(samples) => samples.min(rows),
            BatchSize::Full => rows,
        }
    }

    /// How many rows an epoch visits.
    fn visits(&self, rows: usize) -> usize {
        self.visited.map_or(rows, |visited| visited.min(rows))
    }

    /// The same work on a share of the usual samples, at least one and at most all: of every batch
    /// or, where epochs are given, of the rows that an epoch visits.
    pub fn with_load(&self, share: f64, rows: usize) -> Self {
        let share_of = |of: usize| (share * of as f64).round().max(1.0) as usize;
        if self.epochs.is_some() {
            let visited = Some(share_of(rows)).filter(|visited| *visited < rows);
            return Self { visited, ..self.clone() };
        }
        let samples = share_of(self.batch_of(rows));
        let batch = if samples >= rows { BatchSize::Full } else { BatchSize::Samples(samples) };
        Self { batch, ..self.clone() }
    }

    /// Draws the batches of a round into `drawn`, which stays empty if every step sees all rows.
    /// Streams are named by round and agent, so the draw depends on nothing else.
    pub fn draw(&self, rows: usize, seed: Seed, round: u32, agent: u64, drawn: &mut Vec<u32>) {
        drawn.clear();
        if self.batch_of(rows) >= rows && self.visits(rows) >= rows {
            return;
        }
        let mut rng = seed.stream("batch", u64::from(round), agent);
        if let Some(epochs) = self.epochs {
            for _ in 0..epochs {
                let from = drawn.len();
                drawn.extend(0..rows as u32);
                drawn[from..].shuffle(&mut rng);
                drawn.truncate(from + self.visits(rows));
            }
            return;
        }
        for _ in 0..self.steps {
            let batch = rand::seq::index::sample(&mut rng, rows, self.batch_of(rows));
            drawn.extend(batch.into_iter().map(|row| row as u32));
        }
    }

    /// The batches that were drawn for an agent with this many rows.
    pub fn batches<'a>(&self, drawn: &'a [u32], rows: usize) -> Vec<Batch<'a>> {
        if drawn.is_empty() {
            return vec![Batch::All; self.steps_on(rows)];
        }
        let visits = self.visits(rows).max(1);
        let batch = self.batch_of(visits).max(1);
        match self.epochs {
            Some(_) => drawn
                .chunks(visits)
                .flat_map(|epoch| epoch.chunks(batch))
                .map(Batch::Rows)
                .collect(),
            None => drawn.chunks_exact(batch).map(Batch::Rows).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_share_of_the_usual_samples() {
        let batch = |batch, share| Local { batch, ..Local::default() }.with_load(share, 100).batch;
        assert_eq!(batch(BatchSize::Samples(32), 1.0), BatchSize::Samples(32));
        assert_eq!(batch(BatchSize::Samples(32), 0.4), BatchSize::Samples(13));
        assert_eq!(batch(BatchSize::Samples(32), 0.0), BatchSize::Samples(1));
        assert_eq!(batch(BatchSize::Samples(32), 9.0), BatchSize::Full);
        assert_eq!(batch(BatchSize::Full, 0.25), BatchSize::Samples(25));
        assert_eq!(batch(BatchSize::Full, 1.6), BatchSize::Full);
    }

    fn epochs(epochs: usize, batch: usize) -> Local {
        Local { epochs: Some(epochs), batch: BatchSize::Samples(batch), ..Local::default() }
    }

    #[test]
    fn an_epoch_visits_every_row_once_and_its_last_batch_may_be_short() {
        let local = epochs(3, 4);
        let mut drawn = Vec::new();
        local.draw(10, Seed(1), 5, 2, &mut drawn);
        let batches = local.batches(&drawn, 10);
        let sizes: Vec<usize> = batches
            .iter()
            .map(|batch| match batch {
                Batch::Rows(rows) => rows.len(),
                Batch::All => panic!("the batches are smaller than the agent's rows"),
            })
            .collect();
        assert_eq!(sizes, [4, 4, 2, 4, 4, 2, 4, 4, 2]);
        assert_eq!(local.steps_on(10), 9);
        for epoch in drawn.chunks(10) {
            let mut rows = epoch.to_vec();
            rows.sort_unstable();
            assert_eq!(rows, (0..10).collect::<Vec<u32>>());
        }
        assert!(drawn[..10] != drawn[10..20], "every epoch has its own order");
        // The converse: batches that are drawn by themselves repeat rows within as many steps.
        let steps = Local { steps: 9, batch: BatchSize::Samples(4), ..Local::default() };
        steps.draw(10, Seed(1), 5, 2, &mut drawn);
        let mut first = drawn[..8].to_vec();
        first.sort_unstable();
        first.dedup();
        assert!(first.len() < 8, "{first:?}");
    }

    #[test]
    fn steps_of_epochs_follow_the_rows_and_so_does_the_reach() {
        let local = epochs(2, 10);
        assert_eq!([1, 10, 11, 25].map(|rows| local.steps_on(rows)), [2, 2, 4, 6]);
        assert_eq!(local.reach(0.5, 25), 3.0);
        let shared = Local { step: StepSize::EtaOverK, ..local.clone() };
        assert_eq!(
            (shared.step_size(0.6, 25), shared.reach(0.6, 25)),
            (0.6 / 6.0, 0.6 / 6.0 * 6.0)
        );
        let full = Local { epochs: Some(3), ..Local::default() };
        assert_eq!((full.steps_on(25), full.is_exact()), (3, false));
        assert!(Local { epochs: Some(1), ..Local::default() }.is_exact());
        let mut drawn = Vec::new();
        full.draw(25, Seed(0), 1, 0, &mut drawn);
        assert_eq!(full.batches(&drawn, 25), [Batch::All; 3]);
    }

    #[test]
    fn a_load_of_epochs_is_a_share_of_the_rows_they_visit() {
        let local = epochs(2, 10).with_load(0.35, 40);
        let mut drawn = Vec::new();
        local.draw(40, Seed(3), 1, 0, &mut drawn);
        assert_eq!((drawn.len(), local.steps_on(40)), (28, 4));
        assert_eq!(epochs(2, 10).with_load(1.7, 40), epochs(2, 10));
        let all = Local { epochs: Some(1), ..Local::default() }.with_load(0.5, 40);
        all.draw(40, Seed(3), 1, 0, &mut drawn);
        assert_eq!((drawn.len(), all.batches(&drawn, 40).len(), all.is_exact()), (20, 1, false));
    }

    #[test]
    fn steps_or_epochs_are_written_and_read_and_never_both() {
        let written = |local: &Local| serde_json::to_value(local).unwrap();
        let (steps, passes) = (Local { steps: 7, ..Local::default() }, epochs(2, 10));
        assert_eq!(
            (written(&steps)["steps"].as_u64(), written(&steps).get("epochs")),
            (Some(7), None)
        );
        assert_eq!(
            (written(&passes)["epochs"].as_u64(), written(&passes).get("steps")),
            (Some(2), None)
        );
        for local in [steps, passes, Local::default()] {
            assert_eq!(serde_json::from_value::<Local>(written(&local)).unwrap(), local);
        }
        let both = serde_json::json!({ "steps": 1, "epochs": 1 });
        let error = serde_json::from_value::<Local>(both).unwrap_err().to_string();
        assert!(error.contains("local.steps") && error.contains("give one of them"), "{error}");
    }
}
