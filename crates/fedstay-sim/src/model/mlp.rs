//! Multi-layer perceptron: linear layers of any number and width, an activation between every two,
//! cross entropy of a softmax on top, or the squared loss of one output where the target is a number.

use serde::{Deserialize, Deserializer, Serialize};

use super::network::{Head, check_size};
use super::{Activation, Architecture, Error, Init, Input, Network, Origin, Output};

pub(super) const ORIGIN: Origin =
    Origin { about: "a multi-layer perceptron of any depth and width", reference: "" };

/// Parameters of a multi-layer perceptron.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mlp {
    /// The width of every hidden layer, first to last. One number stands for one layer.
    #[serde(deserialize_with = "one_or_many")]
    pub hidden: Vec<usize>,
    /// What a hidden unit does with its input.
    pub activation: Activation,
    /// Where training starts.
    pub init: Init,
}

impl Default for Mlp {
    fn default() -> Self {
        Self { hidden: vec![64], activation: Activation::default(), init: Init::default() }
    }
}

/// The most hidden layers: a pass through more takes longer than anybody would wait.
const MOST_LAYERS: usize = 100;

impl Architecture for Mlp {
    /// Hidden units make the loss non-convex. Without any this is softmax regression, but nobody
    /// should rely on that.
    fn is_convex(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), Error> {
        check_hidden(&self.hidden)
    }

    fn network_for(&self, input: Input, output: Output) -> Result<Network, Error> {
        self.check()?;
        let (outputs, head) = match output {
            Output::Classes(classes) => (classes, Head::Softmax),
            Output::Number => (1, Head::Squared),
        };
        let widths =
            std::iter::once(input.features).chain(self.hidden.iter().copied()).chain([outputs]);
        Network::new(widths.collect(), self.activation, head, self.init)
    }
}

/// Refuses hidden layers that would be too many or too wide whatever the data.
pub(super) fn check_hidden(hidden: &[usize]) -> Result<(), Error> {
    if hidden.len() > MOST_LAYERS {
        return Err(Error::TooManyLayers { layers: hidden.len(), most: MOST_LAYERS });
    }
    // There is at least one feature and one class on either side.
    let widths: Vec<usize> = std::iter::once(1).chain(hidden.iter().copied()).chain([1]).collect();
    check_size(&widths)
}

/// Reads widths: a list, or one number for one layer.
pub(super) fn one_or_many<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<usize>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "`model.hidden` must be a width, or a list of widths such as [128, 64]"
    )]
    enum Widths {
        One(usize),
        Many(Vec<usize>),
    }
    Ok(match Widths::deserialize(deserializer)? {
        Widths::One(width) => vec![width],
        Widths::Many(widths) => widths,
    })
}
