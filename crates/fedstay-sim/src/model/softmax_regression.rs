//! Softmax regression: one linear layer, as many outputs as classes.
//!
//! F(W, b) = mean over samples of ln Σ_c exp(z_c - z_y) with z = W x + b, which is convex. With
//! [`Init::ZeroOutput`] it starts at zero, where every class is equally likely and the loss is
//! ln(classes).

use serde::{Deserialize, Serialize};

use super::network::Head;
use super::{Activation, Architecture, Error, Init, Input, Network, Origin, Output};

pub(super) const ORIGIN: Origin =
    Origin { about: "one linear layer and a softmax: convex", reference: "" };

/// Parameters of softmax regression.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SoftmaxRegression {
    /// Where training starts.
    pub init: Init,
}

impl Architecture for SoftmaxRegression {
    fn is_convex(&self) -> bool {
        true
    }

    fn network_for(&self, input: Input, output: Output) -> Result<Network, Error> {
        let classes = output.classes("softmax-regression")?;
        Network::new(vec![input.features, classes], Activation::default(), Head::Softmax, self.init)
    }
}
