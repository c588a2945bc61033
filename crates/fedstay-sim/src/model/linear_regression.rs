//! Linear regression: one linear output z = w·x + b for a number y.
//!
//! F(w, b) = mean over samples of (z - y)², which is convex. Numbers are standardised over the training
//! rows, so a loss of 1 is what the mean of all rows makes, and 1 minus the loss the share of the
//! variance that the model explains.

use serde::{Deserialize, Serialize};

use super::network::Head;
use super::{Activation, Architecture, Error, Init, Input, Network, Origin, Output};

pub(super) const ORIGIN: Origin =
    Origin { about: "one linear output and a squared loss, for a number: convex", reference: "" };

/// Parameters of linear regression.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinearRegression {
    /// Where training starts.
    pub init: Init,
}

impl Architecture for LinearRegression {
    fn is_convex(&self) -> bool {
        true
    }

    fn network_for(&self, input: Input, output: Output) -> Result<Network, Error> {
        match output {
            Output::Classes(_) => Err(Error::LearnsNumbers { kind: "linear-regression" }),
            Output::Number => {
                let widths = vec![input.features, 1];
                Network::new(widths, Activation::default(), Head::Squared, self.init)
            }
        }
    }
}
