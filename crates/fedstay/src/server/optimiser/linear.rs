//! `sgd` and `momentum`: optimisers whose step is a combination of the rule's steps.
//!
//! ```text
//! sgd:       s = lr·Δ
//! momentum:  m ← β1·m + Δ,   s = lr·m
//! ```
//!
//! They stay in the span of what agents have reported so far.

use super::{Optimise, Origin, check_beta, check_lr};
use crate::message::is_default;
use crate::packed;
use crate::{Error, Vector, linalg};
use serde::{Deserialize, Serialize};

pub(super) const SGD: Origin = Origin {
    about: "the rule's step, times a rate; the default, with a rate of 1",
    reference: "Reddi et al., Adaptive Federated Optimization, ICLR 2021",
};

pub(super) const MOMENTUM: Origin = Origin {
    about: "steps add up and fade; around fedavg it is FedAvgM",
    reference: "Hsu, Qi, Brown, Measuring the Effects of Non-Identical Data Distribution for \
                Federated Visual Classification, arXiv 1909.06335",
};

/// The rule's step, times a rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sgd {
    /// The rate. 1 takes the rule's step as it is.
    pub lr: f64,
}

impl Default for Sgd {
    fn default() -> Self {
        Self { lr: 1.0 }
    }
}

impl Optimise for Sgd {
    fn check(&self) -> Result<(), Error> {
        check_lr(self.lr)
    }

    fn apply(&mut self, step: &mut [f64]) {
        linalg::scale(step, self.lr);
    }
}

/// Steps add up and fade.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Momentum {
    /// The rate.
    pub lr: f64,
    /// How much of the last step is taken again. A rule that always takes the same step moves
    /// `1/(1 − β1)` times as far in the end.
    pub beta1: f64,
    #[serde(skip_serializing_if = "is_default")]
    memory: Momenta,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Momenta {
    #[serde(with = "packed")]
    m: Vec<f64>,
}

impl Default for Momentum {
    fn default() -> Self {
        Self { lr: 1.0, beta1: 0.9, memory: Momenta::default() }
    }
}

impl Momentum {
    /// The optimiser with these parameters.
    pub fn new(lr: f64, beta1: f64) -> Self {
        Self { lr, beta1, ..Self::default() }
    }
}

impl Optimise for Momentum {
    fn check(&self) -> Result<(), Error> {
        check_lr(self.lr)?;
        check_beta("server.beta1", self.beta1)
    }

    fn apply(&mut self, step: &mut [f64]) {
        let m = &mut self.memory.m;
        m.resize(step.len(), 0.0);
        linalg::scale(m, self.beta1);
        linalg::add_scaled(m, 1.0, Vector::F64(step));
        step.copy_from_slice(m);
        linalg::scale(step, self.lr);
    }

    fn vectors(&self) -> Vec<&[f64]> {
        Some(self.memory.m.as_slice()).filter(|m| !m.is_empty()).into_iter().collect()
    }
}
