//! Local work: what an agent does with the weights before it reports.
//!
//! K steps of size η (or η/K) on batches, which FedAvg takes along a path and mini-batch SGD all at
//! the received weights. The report's direction is the mean of the K gradients, its reach the sum
//! of the step sizes, so that the agent's own displacement is `−reach · direction`. FedProx adds
//! `(μ/2)‖u − w‖²` to the local objective: Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, *Federated
//! Optimization in Heterogeneous Networks*, MLSys 2020; μ = 0 is FedAvg.

use crate::model::{Batch, Walk};
use fedstay::Seed;
use serde::{Deserialize, Serialize};

/// The agents' local work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Local {
    /// The number of local steps K.
    pub steps: usize,
    /// The size of a local step.
    pub step: StepSize,
    /// The samples of a local step.
    pub batch: BatchSize,
    /// FedProx's pull back to the received weights.
    pub mu: f64,
    /// Whether to report the full gradient at the received weights in addition to the path. With
    /// several steps the mean along the path is not that gradient, and predictions made from it
    /// miss.
    pub exact_gradient: bool,
}

impl Default for Local {
    fn default() -> Self {
        Self {
            steps: 1,
            step: StepSize::Eta,
            batch: BatchSize::Full,
            mu: 0.0,
            exact_gradient: false,
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

mod full {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("full")
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "full" => Ok(()),
            other => Err(D::Error::custom(format!("`{other}` is neither a number nor `full`"))),
        }
    }
}

impl Local {
    /// The size of one local step.
    pub fn step_size(&self, eta: f64) -> f64 {
        match self.step {
            StepSize::Eta => eta,
            StepSize::EtaOverK => eta / self.steps as f64,
        }
    }

    /// The sum of the local step sizes.
    pub fn reach(&self, eta: f64) -> f64 {
        self.step_size(eta) * self.steps as f64
    }

    /// How to move: along a path, or standing still for mini-batch SGD.
    pub fn walk(&self, eta: f64, stands: bool) -> Walk {
        if stands {
            Walk::Stand
        } else {
            Walk::Descend { eta: self.step_size(eta) as f32, mu: self.mu as f32 }
        }
    }

    /// Whether the direction is the full gradient at the received weights.
    pub fn is_exact(&self) -> bool {
        self.steps == 1 && self.batch == BatchSize::Full
    }

    /// How many rows one local step sees.
    pub fn batch_of(&self, rows: usize) -> usize {
        match self.batch {
            BatchSize::Samples(samples) => samples.min(rows),
            BatchSize::Full => rows,
        }
    }

    /// The same work on a share of the usual samples: at least one, at most all.
    pub fn with_load(&self, share: f64, rows: usize) -> Self {
        let samples = (share * self.batch_of(rows) as f64).round().max(1.0) as usize;
        let batch = if samples >= rows { BatchSize::Full } else { BatchSize::Samples(samples) };
        Self { batch, ..self.clone() }
    }

    /// Draws the batches of a round into `drawn`. Streams are named by round and agent, so the
    /// draw depends on nothing else.
    pub fn draw(&self, rows: usize, seed: Seed, round: u32, agent: u64, drawn: &mut Vec<u32>) {
        drawn.clear();
        let BatchSize::Samples(samples) = self.batch else { return };
        if samples >= rows {
            return;
        }
        let mut rng = seed.stream("batch", u64::from(round), agent);
        for _ in 0..self.steps {
            let batch = rand::seq::index::sample(&mut rng, rows, samples);
            drawn.extend(batch.into_iter().map(|row| row as u32));
        }
    }

    /// The batches that were drawn.
    pub fn batches<'a>(&self, drawn: &'a [u32]) -> Vec<Batch<'a>> {
        match self.batch {
            BatchSize::Samples(samples) if !drawn.is_empty() => {
                drawn.chunks_exact(samples).map(Batch::Rows).collect()
            }
            _ => vec![Batch::All; self.steps],
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
}
