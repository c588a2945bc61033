//! `adagrad`, `adam` and `yogi`: optimisers with a rate for every weight.
//!
//! ```text
//! m ← β1·m + (1 − β1)·Δ
//! adagrad:  v ← v + Δ²
//! adam:     v ← β2·v + (1 − β2)·Δ²
//! yogi:     v ← v − (1 − β2)·Δ²·sign(v − Δ²)
//! s = lr·m/(√v + τ)
//! ```
//!
//! one weight at a time, with `m = 0` and `v = τ²` at the start and without a correction for that
//! start, as in the reference. Their steps leave the span of the reports: two weights that agents
//! move by different amounts may be moved by the same.
//!
//! τ says how small a step still counts: a weight that the rule moves by much less than τ is moved
//! as by `sgd` with a rate of `lr/(2τ)` to `lr/τ`, one that it moves by much more by about `lr`.

use super::{Optimise, Origin, check_beta, check_lr};
use crate::Error;
use crate::message::is_default;
use crate::packed;
use serde::{Deserialize, Serialize};

const REFERENCE: &str = "Reddi et al., Adaptive Federated Optimization, ICLR 2021";

pub(super) const ADAGRAD: Origin = Origin {
    about: "every weight slows down with the way it has come; around fedavg it is FedAdagrad",
    reference: REFERENCE,
};

pub(super) const ADAM: Origin = Origin {
    about: "every weight moves by about the rate; around fedavg it is FedAdam",
    reference: REFERENCE,
};

pub(super) const YOGI: Origin = Origin {
    about: "as adam, but what is remembered of a weight changes slowly; FedYogi",
    reference: REFERENCE,
};

/// The reference's τ.
const TAU: f64 = 1e-3;
/// The reference tunes the rate for every task; this is the middle of the rates it tries.
const RATE: f64 = 0.01;

/// What all three remember.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Moments {
    #[serde(with = "packed")]
    m: Vec<f64>,
    #[serde(with = "packed")]
    v: Vec<f64>,
}

impl Moments {
    /// Replaces `step` by `lr·m/(√v + τ)`; `next` gives the new v from the old one and Δ².
    fn apply(
        &mut self,
        step: &mut [f64],
        [lr, beta1, tau]: [f64; 3],
        next: impl Fn(f64, f64) -> f64,
    ) {
        self.m.resize(step.len(), 0.0);
        self.v.resize(step.len(), tau * tau);
        for ((s, m), v) in step.iter_mut().zip(&mut self.m).zip(&mut self.v) {
            *m = beta1 * *m + (1.0 - beta1) * *s;
            *v = next(*v, *s * *s);
            *s = lr * *m / (v.sqrt() + tau);
        }
    }

    fn vectors(&self) -> Vec<&[f64]> {
        [self.m.as_slice(), &self.v].into_iter().filter(|vector| !vector.is_empty()).collect()
    }
}

fn check_tau(tau: f64) -> Result<(), Error> {
    match tau.is_finite() && tau > 0.0 {
        true => Ok(()),
        false => Err(Error::bad_parameter("server.tau", tau, "a number above zero")),
    }
}

/// Every weight slows down with the way it has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Adagrad {
    /// The rate.
    pub lr: f64,
    /// How much of the last direction is kept; 0 in the reference's experiments.
    pub beta1: f64,
    /// How small a step still counts.
    pub tau: f64,
    #[serde(skip_serializing_if = "is_default")]
    memory: Moments,
}

impl Default for Adagrad {
    fn default() -> Self {
        Self { lr: RATE, beta1: 0.0, tau: TAU, memory: Moments::default() }
    }
}

impl Adagrad {
    /// The optimiser with this rate.
    pub fn new(lr: f64) -> Self {
        Self { lr, ..Self::default() }
    }
}

impl Optimise for Adagrad {
    fn check(&self) -> Result<(), Error> {
        check_lr(self.lr)?;
        check_beta("server.beta1", self.beta1)?;
        check_tau(self.tau)
    }

    fn apply(&mut self, step: &mut [f64]) {
        self.memory.apply(step, [self.lr, self.beta1, self.tau], |v, square| v + square);
    }

    fn vectors(&self) -> Vec<&[f64]> {
        self.memory.vectors()
    }
}

/// Makes an optimiser with two rates of forgetting from how it changes v.
macro_rules! forgetting {
    ($(#[$doc:meta])* $name:ident, $next:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            /// The rate.
            pub lr: f64,
            /// How much of the last direction is kept.
            pub beta1: f64,
            /// How much of what is known about the length of a weight's steps is kept.
            pub beta2: f64,
            /// How small a step still counts.
            pub tau: f64,
            #[serde(skip_serializing_if = "is_default")]
            memory: Moments,
        }

        impl Default for $name {
            fn default() -> Self {
                let memory = Moments::default();
                Self { lr: RATE, beta1: 0.9, beta2: 0.99, tau: TAU, memory }
            }
        }

        impl $name {
            /// The optimiser with this rate.
            pub fn new(lr: f64) -> Self {
                Self { lr, ..Self::default() }
            }
        }

        impl Optimise for $name {
            fn check(&self) -> Result<(), Error> {
                check_lr(self.lr)?;
                check_beta("server.beta1", self.beta1)?;
                check_beta("server.beta2", self.beta2)?;
                check_tau(self.tau)
            }

            fn apply(&mut self, step: &mut [f64]) {
                let (beta2, next) = (self.beta2, $next);
                let rates = [self.lr, self.beta1, self.tau];
                self.memory.apply(step, rates, |v, square| next(beta2, v, square));
            }

            fn vectors(&self) -> Vec<&[f64]> {
                self.memory.vectors()
            }
        }
    };
}

forgetting!(
    /// Every weight moves by about the rate.
    Adam,
    |beta2: f64, v: f64, square: f64| beta2 * v + (1.0 - beta2) * square
);

forgetting!(
    /// As [`Adam`], but v changes by at most `(1 − β2)·Δ²`, so that it grows slowly too.
    Yogi,
    |beta2: f64, v: f64, square: f64| {
        let towards = if v > square { 1.0 } else if v < square { -1.0 } else { 0.0 };
        v - (1.0 - beta2) * square * towards
    }
);
