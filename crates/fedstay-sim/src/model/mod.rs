//! Models: what an agent trains, and how well it does.
//!
//! A model is a stack of linear layers with an activation between them and a loss on top, with or
//! without convolutions in front: a [`Network`]. Each kind is one file that says which stack it is ([`Architecture`], one method).
//! Weights are one flat vector with a named [`Layout`]: `f64` at the server, `f32` where an agent
//! computes ([`Network::load`]). Everything an agent asks of a model is a method of `Network`:
//!
//! - [`Network::evaluate`]: the exact mean loss and the accuracy over rows;
//! - [`Network::decide`]: whether the mean loss is at most a bound, usually found out much sooner;
//! - [`Network::local_steps`] and [`Network::loss_and_gradient`]: what a report is made of.
//!
//! They run on the calling thread, reuse one [`Workspace`], and give the same bits whatever else
//! runs on the machine. Kernels are picked at run time, see [`fedstay_kernels::layer`].

mod cnn;
mod error;
mod evaluate;
mod gram;
mod init;
mod layout;
mod loaded;
mod logistic_regression;
mod matmul;
mod mlp;
mod network;
mod pass;
#[cfg(test)]
mod reference;
mod rows;
mod softmax_regression;
mod steps;
mod sum;
mod workspace;

use serde::{Deserialize, Serialize};

use crate::data::{Dataset, Image};

pub use cnn::Cnn;
pub(crate) use cnn::MOST_CHANNELS;
pub use error::Error;
pub use evaluate::{Evaluation, LossTest, Order};
pub use fedstay_kernels::layer::scalar::Activation;
pub use gram::RowProducts;
pub use init::Init;
pub use layout::{Layout, Tensor};
pub use loaded::Loaded;
pub use logistic_regression::LogisticRegression;
pub use mlp::Mlp;
pub use network::Network;
pub use rows::{Batch, Rows, RowsData};
pub use softmax_regression::SoftmaxRegression;
pub use steps::Walk;
pub use sum::{LOSS_CEILING, LossSum};
pub use workspace::Workspace;

/// What a model is given of every sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// How many numbers a row has.
    pub features: usize,
    /// The shape of a row that is an image.
    pub image: Option<Image>,
}

impl From<usize> for Input {
    /// Rows of numbers without a shape.
    fn from(features: usize) -> Self {
        Self { features, image: None }
    }
}

impl From<Image> for Input {
    fn from(image: Image) -> Self {
        Self { features: image.channels * image.height * image.width, image: Some(image) }
    }
}

impl From<&Dataset> for Input {
    fn from(data: &Dataset) -> Self {
        Self { features: data.features(), image: data.image }
    }
}

/// A kind of model: which network it is for given data.
pub trait Architecture {
    /// Whether the loss is convex in the weights. Where it is, a contradiction between two reports
    /// of an agent proves that it does not tell the truth. There is no default: a model that says
    /// nothing must not make liars of honest agents.
    fn is_convex(&self) -> bool;

    /// Checks what can be checked before the data are known.
    ///
    /// # Errors
    /// When no data could make this a network.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The network for rows like `input`, or of that many numbers, and labels `0..classes`.
    ///
    /// # Errors
    /// When no such network exists, for instance without features or with too few classes.
    fn network(&self, input: impl Into<Input>, classes: usize) -> Result<Network, Error>;
}

/// Every kind of model there is, under the name it has in a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Model {
    /// One linear layer and a softmax.
    SoftmaxRegression(SoftmaxRegression),
    /// One linear output and a logistic loss, for two classes.
    LogisticRegression(LogisticRegression),
    /// A multi-layer perceptron.
    Mlp(Mlp),
    /// Two convolutions with pooling, then linear layers.
    Cnn(Cnn),
}

impl Model {
    /// Every kind with a description, in the order in which they are listed.
    pub const KINDS: [(&'static str, &'static str); 4] = [
        ("softmax-regression", "one linear layer and a softmax: convex"),
        ("logistic-regression", "one linear output and a logistic loss, for two classes: convex"),
        ("mlp", "a multi-layer perceptron of any depth and width"),
        ("cnn", "two convolutions of 5×5 with pooling, then linear layers, for images"),
    ];
}

impl Architecture for Model {
    fn is_convex(&self) -> bool {
        match self {
            Self::SoftmaxRegression(model) => model.is_convex(),
            Self::LogisticRegression(model) => model.is_convex(),
            Self::Mlp(model) => model.is_convex(),
            Self::Cnn(model) => model.is_convex(),
        }
    }

    fn check(&self) -> Result<(), Error> {
        match self {
            Self::SoftmaxRegression(model) => model.check(),
            Self::LogisticRegression(model) => model.check(),
            Self::Mlp(model) => model.check(),
            Self::Cnn(model) => model.check(),
        }
    }

    fn network(&self, input: impl Into<Input>, classes: usize) -> Result<Network, Error> {
        match self {
            Self::SoftmaxRegression(model) => model.network(input, classes),
            Self::LogisticRegression(model) => model.network(input, classes),
            Self::Mlp(model) => model.network(input, classes),
            Self::Cnn(model) => model.network(input, classes),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
