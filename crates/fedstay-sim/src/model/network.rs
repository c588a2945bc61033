//! A stack of linear layers: its shape, the layout of its weights, and how they are initialised.

use rand_chacha::ChaCha8Rng;

use super::cnn::Front;
use super::layout::count;
use super::rows::length;
use super::{Activation, Error, Init, Layout, Loaded, Output, RowTargets, Rows};
use fedstay_kernels::layer::panel::Panels;

/// The loss on top of the last layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// Cross entropy of a softmax over the outputs.
    Softmax,
    /// Cross entropy of the logistic function of the one output.
    Logistic,
    /// The squared distance of the one output from a number.
    Squared,
}

impl Output {
    /// How many classes there are, for a kind of model that learns classes.
    pub(super) fn classes(self, kind: &'static str) -> Result<usize, Error> {
        match self {
            Self::Classes(classes) => Ok(classes),
            Self::Number => Err(Error::LearnsClasses { kind }),
        }
    }
}

/// The most weights of a model: half a gigabyte in the server's `f64`, of which it keeps several.
pub(crate) const MOST_WEIGHTS: u64 = 1 << 26;

/// Refuses widths whose weights would not fit in memory, before memory is allocated for them.
pub(crate) fn check_size(widths: &[usize]) -> Result<(), Error> {
    match count(widths) {
        weights if weights > u128::from(MOST_WEIGHTS) => {
            Err(Error::TooManyWeights { weights, most: MOST_WEIGHTS })
        }
        _ => Ok(()),
    }
}

/// A model for given data: what to compute, without the weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// The convolutions in front of the linear layers, if there are any.
    pub(crate) front: Option<Front>,
    /// The widths of the linear layers: features, hidden layers, outputs.
    pub(crate) widths: Vec<usize>,
    pub(crate) activation: Activation,
    pub(crate) head: Head,
    pub(crate) layout: Layout,
    pub(crate) panels: Panels,
    init: Init,
}

impl Network {
    pub(crate) fn new(
        widths: Vec<usize>,
        activation: Activation,
        head: Head,
        init: Init,
    ) -> Result<Self, Error> {
        let names = ["feature", "hidden unit in every layer", "class"];
        for (place, width) in widths.iter().enumerate() {
            let name = if place == 0 { 0 } else { 1 + usize::from(place + 1 == widths.len()) };
            if *width == 0 {
                return Err(Error::Zero { what: names[name] });
            }
        }
        let classes = widths[widths.len() - 1];
        if classes > usize::from(u16::MAX) + 1 {
            return Err(Error::TooManyClasses { classes });
        }
        check_size(&widths)?;
        let layout = Layout::linear(&widths);
        let panels = Panels::new(widths[0], widths[1]);
        Ok(Self { front: None, widths, activation, head, layout, panels, init })
    }

    /// Convolutions in front of linear layers.
    pub(crate) fn convolutional(
        front: Front,
        widths: Vec<usize>,
        activation: Activation,
        init: Init,
    ) -> Result<Self, Error> {
        let layout = Layout::convolutional(&[front.first, front.second], &widths);
        let linear = Self::new(widths, activation, Head::Softmax, init)?;
        Ok(Self { front: Some(front), layout, ..linear })
    }

    /// Where each tensor lies in the flat vector of weights.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How many numbers a row must have.
    #[must_use]
    pub fn features(&self) -> usize {
        self.front.as_ref().map_or(self.widths[0], Front::pixels)
    }

    /// What it puts out: labels are below the number of classes.
    #[must_use]
    pub fn output(&self) -> Output {
        match self.head {
            Head::Softmax => Output::Classes(self.widths[self.widths.len() - 1]),
            Head::Logistic => Output::Classes(2),
            Head::Squared => Output::Number,
        }
    }

    /// Whether its one output tells two classes apart.
    pub(crate) fn is_logistic(&self) -> bool {
        self.head == Head::Logistic
    }

    /// Draws the weights training starts from.
    #[must_use]
    pub fn initial_weights(&self, rng: &mut ChaCha8Rng) -> Vec<f64> {
        self.init.draw(&self.layout, rng)
    }

    /// Takes over the server's weights, rounded to the `f32` agents compute with. Once per round is
    /// enough: all agents share the result, and the forms kernels want are made on first use.
    ///
    /// # Errors
    /// [`Error::Length`] for a vector of the wrong length, [`Error::NotFinite`] for a weight that
    /// is not finite as an `f32`.
    pub fn load(&self, weights: &[f64]) -> Result<Loaded, Error> {
        length("weights", self.layout.parameters(), weights.len())?;
        Loaded::new(weights.iter().map(|weight| *weight as f32).collect())
    }

    /// How many linear layers there are.
    pub(crate) fn layers(&self) -> usize {
        self.widths.len() - 1
    }

    /// Checks that the rows have the right shape and the weights the right length.
    pub(crate) fn check(&self, weights: &Loaded, rows: &Rows<'_>) -> Result<(), Error> {
        length("weights", self.layout.parameters(), weights.flat().len())?;
        let got = rows.data().features();
        if got != self.features() {
            return Err(Error::Features { expected: self.features(), got });
        }
        let (expected, got) = ("numbers", "classes");
        match (self.output(), rows.targets()) {
            (Output::Number, RowTargets::Numbers(_)) => Ok(()),
            (Output::Classes(classes), RowTargets::Classes(labels)) => {
                check_labels(labels, classes)
            }
            (Output::Number, RowTargets::Classes(_)) => Err(Error::Targets { expected, got }),
            (Output::Classes(_), RowTargets::Numbers(_)) => {
                Err(Error::Targets { expected: got, got: expected })
            }
        }
    }
}

/// Checks that every label names a class.
fn check_labels(labels: &[u16], classes: usize) -> Result<(), Error> {
    let largest = labels.iter().fold(0, |largest, label| *label.max(&largest));
    if usize::from(largest) < classes {
        return Ok(());
    }
    let bad = |label: &u16| usize::from(*label) >= classes;
    let row = labels.iter().position(bad).expect("the largest is one");
    Err(Error::Label { row, label: labels[row], classes })
}
