//! Logistic regression: one linear output z = w·x + b for labels 0 and 1.
//!
//! F(w, b) = mean over samples of ln(1 + e^z) - y z, which is convex. The guess is 1 where z > 0.

use serde::{Deserialize, Serialize};

use super::network::Head;
use super::{Activation, Architecture, Error, Init, Input, Network, Origin, Output};

pub(super) const ORIGIN: Origin = Origin {
    about: "one linear output and a logistic loss, for two classes: convex",
    reference: "",
};

/// Parameters of logistic regression.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogisticRegression {
    /// Where training starts.
    pub init: Init,
}

impl Architecture for LogisticRegression {
    fn is_convex(&self) -> bool {
        true
    }

    fn network_for(&self, input: Input, output: Output) -> Result<Network, Error> {
        let classes = output.classes("logistic-regression")?;
        if classes != 2 {
            return Err(Error::NotBinary { classes });
        }
        Network::new(vec![input.features, 1], Activation::default(), Head::Logistic, self.init)
    }
}
