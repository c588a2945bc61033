//! What can be wrong with what a model is given.

/// Why a model refused. Every variant says what was found and what was expected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model without inputs, outputs or hidden units.
    #[error("a model needs at least one {what}, got 0")]
    Zero {
        /// What the model has none of.
        what: &'static str,
    },
    /// Logistic regression can only tell two classes apart.
    #[error("logistic regression needs exactly 2 classes, got {classes}; use softmax-regression")]
    NotBinary {
        /// The number of classes in the data.
        classes: usize,
    },
    /// A model of classes was given numbers to predict.
    #[error(
        "model.kind = \"{kind}\" learns classes, but the target is a number: use linear-regression or \
         mlp"
    )]
    LearnsClasses {
        /// The kind of model.
        kind: &'static str,
    },
    /// A model of numbers was given classes to predict.
    #[error(
        "model.kind = \"{kind}\" learns a number, but the target is a class: use softmax-regression, \
         or data.task = \"number\" where the label is a number"
    )]
    LearnsNumbers {
        /// The kind of model.
        kind: &'static str,
    },
    /// Rows have classes where the network puts out a number, or the other way round.
    #[error("the rows' targets are {got}, the model's {expected}")]
    Targets {
        /// What the network puts out.
        expected: &'static str,
        /// What the rows have.
        got: &'static str,
    },
    /// The weights would not fit in memory.
    #[error(
        "the model would have {weights} weights, but may have at most {most}: \
         lower model.hidden"
    )]
    TooManyWeights {
        /// How many weights there would be; the largest possible number if there would be more.
        weights: u128,
        /// How many weights are allowed.
        most: u64,
    },
    /// There are more layers than anybody would wait for.
    #[error("model.hidden lists {layers} layers, but may list at most {most}")]
    TooManyLayers {
        /// How many hidden layers were asked for.
        layers: usize,
        /// How many hidden layers are allowed.
        most: usize,
    },
    /// A convolutional net was given rows that are not images.
    #[error(
        "a cnn reads images, but the data are rows of {features} numbers without a shape: use \
         data.kind = \"cifar10\", \"mnist\" or \"fashion-mnist\", or an .npz whose x has the shape \
         [samples, height, width] or [samples, channels, height, width] with up to 4 channels; \
         model.kind = \"mlp\" reads any rows"
    )]
    NoImage {
        /// How many numbers a row has.
        features: usize,
    },
    /// An image of which two convolutions leave nothing.
    #[error(
        "a cnn needs images of at least {least}×{least} pixels, the data have {height}×{width}: use \
         model.kind = \"mlp\""
    )]
    SmallImage {
        /// The images' height.
        height: usize,
        /// The images' width.
        width: usize,
        /// The smallest height and width.
        least: usize,
    },
    /// A convolution has more filters than anybody would wait for.
    #[error(
        "model.channels asks for {channels} filters, but a convolution may have at most {most}"
    )]
    TooManyChannels {
        /// How many filters were asked for.
        channels: usize,
        /// How many filters are allowed.
        most: usize,
    },
    /// There are more classes than labels can name.
    #[error("{classes} classes are more than a label can name (65536)")]
    TooManyClasses {
        /// How many classes were asked for.
        classes: usize,
    },
    /// A slice has the wrong length.
    #[error("{what}: expected {expected} values, got {got}")]
    Length {
        /// Which slice.
        what: &'static str,
        /// What the model needs.
        expected: usize,
        /// What it was given.
        got: usize,
    },
    /// The rows have another number of features than the model.
    #[error("the model reads rows of {expected} features, the data have {got}")]
    Features {
        /// The model's inputs.
        expected: usize,
        /// The rows' features.
        got: usize,
    },
    /// There are no rows, or a batch is empty.
    #[error("{what} is empty: a mean over no samples is not defined")]
    Empty {
        /// What was empty.
        what: &'static str,
    },
    /// A label does not name a class.
    #[error("row {row} has label {label}, but the model knows the classes 0 to {}", classes - 1)]
    Label {
        /// The first such row.
        row: usize,
        /// Its label.
        label: u16,
        /// How many classes there are.
        classes: usize,
    },
    /// A batch refers to a row that does not exist.
    #[error("a batch refers to row {row}, but there are only {rows} rows")]
    Row {
        /// The row asked for.
        row: u32,
        /// How many rows there are.
        rows: usize,
    },
    /// There are more rows than an index can name.
    #[error("{rows} rows are more than one agent can hold (4294967295)")]
    TooManyRows {
        /// How many rows were given.
        rows: usize,
    },
    /// A number that must be finite in 32 bits is not.
    #[error("{what} {index} is {value}: it must be finite in 32 bits")]
    NotFinite {
        /// What kind of number.
        what: &'static str,
        /// Which one.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// A bound is not a number.
    #[error("the bound of a decision is not a number")]
    Bound,
    /// A step size or proximal weight is negative or not finite.
    #[error("{what} is {value}: it must be finite and not negative")]
    Negative {
        /// Which setting.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// Weights were quantised for one scaling of the bytes and used with another.
    #[error(
        "these weights were folded with another scaling of the bytes: load them once for each data set"
    )]
    Scaling,
}

impl Error {
    /// What this means for a run in which it turned up.
    pub(crate) fn in_round(self, round: u32) -> fedstay::Error {
        match self {
            // A bound is not a number where a norm is not one.
            Self::NotFinite { .. } | Self::Bound => {
                fedstay::Error::Diverged { round, why: self.to_string() }
            }
            _ => fedstay::Error::Engine { round, why: self.to_string() },
        }
    }
}
