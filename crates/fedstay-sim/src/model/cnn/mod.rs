//! Convolutional net: two convolutions of 5×5, each with an activation and max pooling of 2×2, then
//! linear layers, cross entropy of a softmax on top. With its defaults on images of 3×32×32 it is the
//! net of PyTorch's tutorial on CIFAR-10, with 62,006 weights.
//!
//! In PyTorch, `Sequential(Conv2d, ReLU, MaxPool2d(2), Conv2d, ReLU, MaxPool2d(2), Flatten, Linear,
//! ReLU, …, Linear)`: names and shapes of the tensors are those.
//!
//! Reference: Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, *Gradient-Based Learning Applied to Document
//! Recognition*, Proceedings of the IEEE 86(11), 1998.

mod front;
#[cfg(test)]
pub(crate) mod reference;
mod scratch;
mod steps;
#[cfg(test)]
mod tests;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::mlp::one_or_many;
use super::network::check_size;
use super::{Activation, Architecture, Error, Init, Input, Network, Origin, Output};
use fedstay_kernels::layer::conv::Shape;
pub(crate) use front::Front;
pub(crate) use scratch::Scratch;
pub(crate) use steps::IMAGES;

pub(super) const ORIGIN: Origin = Origin {
    about: "two convolutions of 5×5 with pooling, then linear layers, for images",
    reference: "",
};

/// Parameters of a convolutional net.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cnn {
    /// The number of filters of the first and of the second convolution.
    #[serde(deserialize_with = "two")]
    pub channels: [usize; 2],
    /// The width of every hidden linear layer, first to last. One number stands for one layer.
    #[serde(deserialize_with = "one_or_many")]
    pub hidden: Vec<usize>,
    /// What a hidden unit does with its input.
    pub activation: Activation,
    /// Where training starts.
    pub init: Init,
}

impl Default for Cnn {
    fn default() -> Self {
        Self {
            channels: [6, 16],
            hidden: vec![120, 84],
            activation: Activation::Relu,
            init: Init::default(),
        }
    }
}

/// The most filters of a convolution.
pub(crate) const MOST_CHANNELS: usize = 512;
/// The smallest height and width of which two convolutions and poolings leave a pixel.
const SMALLEST: usize = 16;

/// Reads the numbers of filters of two convolutions.
fn two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[usize; 2], D::Error> {
    let listed = Vec::<usize>::deserialize(deserializer)?;
    listed.try_into().map_err(|listed: Vec<usize>| {
        D::Error::custom(format!(
            "`model.channels` must list the filters of two convolutions, such as [6, 16], but lists {}",
            listed.len()
        ))
    })
}

impl Cnn {
    /// The widths from the flattened pixels to the classes.
    fn widths(&self, pixels: usize, classes: usize) -> Vec<usize> {
        std::iter::once(pixels).chain(self.hidden.iter().copied()).chain([classes]).collect()
    }
}

impl Architecture for Cnn {
    fn is_convex(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), Error> {
        for channels in self.channels {
            if channels == 0 {
                return Err(Error::Zero { what: "filter in every convolution" });
            }
            if channels > MOST_CHANNELS {
                return Err(Error::TooManyChannels { channels, most: MOST_CHANNELS });
            }
        }
        super::mlp::check_hidden(&self.hidden)
    }

    fn network_for(&self, input: Input, output: Output) -> Result<Network, Error> {
        let classes = output.classes("cnn")?;
        self.check()?;
        let Some(image) = input.image else {
            return Err(Error::NoImage { features: input.features });
        };
        if image.height.min(image.width) < SMALLEST {
            let (height, width) = (image.height, image.width);
            return Err(Error::SmallImage { height, width, least: SMALLEST });
        }
        if image.channels == 0 || image.channels > MOST_CHANNELS {
            let channels = image.channels;
            return Err(Error::TooManyChannels { channels, most: MOST_CHANNELS });
        }
        let [outputs, next] = self.channels;
        let (inputs, height, width) = (image.channels, image.height, image.width);
        let first = Shape { inputs, height, width, outputs };
        let (height, width) = (first.pooled_height(), first.pooled_width());
        let second = Shape { inputs: outputs, height, width, outputs: next };
        let widths = self.widths(second.pooled() * next, classes);
        check_size(&widths)?;
        Network::convolutional(Front::new(first, second), widths, self.activation, self.init)
    }
}
