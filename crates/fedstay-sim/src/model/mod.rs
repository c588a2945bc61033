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
mod linear_regression;
mod loaded;
mod logistic_regression;
mod matmul;
mod mlp;
mod network;
mod pass;
#[cfg(test)]
mod reference;
mod rows;
mod said;
mod softmax_regression;
mod steps;
mod sum;
mod workspace;

use fedstay::list::Origin;
use fedstay::listed;

use crate::data::{Dataset, Image};

pub use crate::data::{Output, RowTargets};
pub use cnn::Cnn;
pub(crate) use cnn::MOST_CHANNELS;
pub use error::Error;
pub use evaluate::{Evaluation, LossTest, Order};
pub use fedstay_kernels::layer::scalar::Activation;
pub use gram::RowProducts;
pub use init::Init;
pub use layout::{Layout, Tensor};
pub use linear_regression::LinearRegression;
pub use loaded::Loaded;
pub use logistic_regression::LogisticRegression;
pub use mlp::Mlp;
pub use network::Network;
pub use rows::{Batch, Rows, RowsData};
pub use said::{ClassesSaid, NumbersSaid, Reads, Said};
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

    /// The network for rows like `input` with this output: classes, or a number.
    ///
    /// # Errors
    /// When no such network exists, for instance without features, with too few classes, or because the
    /// model learns classes and the output is a number.
    fn network_for(&self, input: Input, output: Output) -> Result<Network, Error>;

    /// The same for rows like those of an image or a data set, or of that many numbers.
    ///
    /// # Errors
    /// As [`network_for`](Self::network_for).
    fn network(&self, input: impl Into<Input>, output: impl Into<Output>) -> Result<Network, Error>
    where
        Self: Sized,
    {
        self.network_for(input.into(), output.into())
    }
}

listed! {
    /// Every kind of model there is, under the name it has in a configuration.
    pub enum Model: deref Architecture, "kind", Mlp {
        /// One linear layer and a softmax.
        SoftmaxRegression(SoftmaxRegression) = "softmax-regression", softmax_regression::ORIGIN;
        /// One linear output and a squared loss, for a number.
        LinearRegression(LinearRegression) = "linear-regression", linear_regression::ORIGIN;
        /// One linear output and a logistic loss, for two classes.
        LogisticRegression(LogisticRegression) = "logistic-regression", logistic_regression::ORIGIN;
        /// A multi-layer perceptron.
        Mlp(Mlp) = "mlp", mlp::ORIGIN;
        /// Two convolutions with pooling, then linear layers.
        Cnn(Cnn) = "cnn", cnn::ORIGIN;
    }
}

impl Model {
    /// The network for rows like `input`, or of that many numbers, with this output, or this number of classes.
    ///
    /// # Errors
    /// When no such network exists, for instance without features or with too few classes.
    pub fn network(
        &self,
        input: impl Into<Input>,
        output: impl Into<Output>,
    ) -> Result<Network, Error> {
        self.network_for(input.into(), output.into())
    }
}

#[cfg(test)]
pub(super) mod tests;
