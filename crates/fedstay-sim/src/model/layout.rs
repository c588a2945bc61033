//! Where each tensor of a model lies in the one flat vector of its weights.

use std::ops::Range;

use fedstay_kernels::layer::conv::{SIDE, Shape};

/// A named tensor inside the flat vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The name PyTorch would give it in an `nn.Sequential`: `0.weight`, `0.bias`, `2.weight`, …
    pub name: String,
    /// Its shape: `[out, in]` for a weight, `[out, in, 5, 5]` for that of a convolution, `[out]` for a
    /// bias. Row-major.
    pub shape: Vec<usize>,
    /// Its place in the flat vector.
    pub range: Range<usize>,
}

/// All tensors of a model, in the order of the flat vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    tensors: Vec<Tensor>,
    /// How many convolutions come before the linear layers.
    convolutions: usize,
}

/// How many weights linear layers between these widths have. It saturates instead of wrapping, so
/// that absurd widths are recognised before memory is allocated for them.
pub(crate) fn count(widths: &[usize]) -> u128 {
    widths.windows(2).fold(0u128, |count, pair| {
        let (inputs, outputs) = (pair[0] as u128, pair[1] as u128);
        count.saturating_add((inputs + 1).saturating_mul(outputs))
    })
}

impl Layout {
    /// Linear layers between these widths, with an activation between every two of them.
    pub(crate) fn linear(widths: &[usize]) -> Self {
        Self::convolutional(&[], widths)
    }

    /// Convolutions, each followed by an activation and pooling, then a flattening and linear layers.
    pub(crate) fn convolutional(convolutions: &[Shape], widths: &[usize]) -> Self {
        let front = convolutions.iter().enumerate().map(|(at, convolution)| {
            (3 * at, vec![convolution.outputs, convolution.inputs, SIDE, SIDE])
        });
        let first = if convolutions.is_empty() { 0 } else { 3 * convolutions.len() + 1 };
        let linear = widths.windows(2).enumerate();
        let linear = linear.map(|(layer, pair)| (first + 2 * layer, vec![pair[1], pair[0]]));
        let mut tensors = Vec::new();
        let mut end = 0;
        for (place, weight) in front.chain(linear) {
            let bias = vec![weight[0]];
            for (kind, shape) in [("weight", weight), ("bias", bias)] {
                let start = end;
                end += shape.iter().product::<usize>();
                tensors.push(Tensor { name: format!("{place}.{kind}"), shape, range: start..end });
            }
        }
        Self { tensors, convolutions: convolutions.len() }
    }

    /// The tensors, in the order of the flat vector.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The length of the flat vector.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.tensors.last().map_or(0, |tensor| tensor.range.end)
    }

    /// The ranges of the weight and the bias of a linear layer.
    pub(crate) fn layer(&self, layer: usize) -> (Range<usize>, Range<usize>) {
        self.pair(self.convolutions + layer)
    }

    /// The ranges of the weights and biases of two convolutions.
    pub(crate) fn front(&self) -> [(Range<usize>, Range<usize>); 2] {
        assert_eq!(self.convolutions, 2, "convolutions");
        [self.pair(0), self.pair(1)]
    }

    fn pair(&self, at: usize) -> (Range<usize>, Range<usize>) {
        (self.tensors[2 * at].range.clone(), self.tensors[2 * at + 1].range.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_a_sequential() {
        let layout = Layout::linear(&[4, 3, 2]);
        let names: Vec<&str> = layout.tensors().iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["0.weight", "0.bias", "2.weight", "2.bias"]);
        assert_eq!(layout.tensors()[0].shape, [3, 4]);
        assert_eq!(layout.layer(1), (15..21, 21..23));
        assert_eq!(layout.parameters(), 23);
    }

    #[test]
    fn convolutions_come_first_and_count_what_stands_between_them() {
        let first = Shape { inputs: 3, height: 32, width: 32, outputs: 6 };
        let second = Shape { inputs: 6, height: 14, width: 14, outputs: 16 };
        let layout = Layout::convolutional(&[first, second], &[400, 120, 84, 10]);
        let names: Vec<&str> = layout.tensors().iter().map(|t| t.name.as_str()).collect();
        let places = [0, 3, 7, 9, 11];
        let want: Vec<String> =
            places.iter().flat_map(|at| [format!("{at}.weight"), format!("{at}.bias")]).collect();
        assert_eq!(names, want);
        assert_eq!(layout.tensors()[2].shape, [16, 6, 5, 5]);
        assert_eq!(layout.front(), [(0..450, 450..456), (456..2856, 2856..2872)]);
        assert_eq!(layout.layer(0), (2872..50872, 50872..50992));
        assert_eq!(layout.parameters(), 62_006);
    }

    #[test]
    fn weights_are_counted_without_wrapping_around() {
        assert_eq!(count(&[4, 3, 2]), 23);
        assert_eq!(count(&[1 << 32, 1 << 32]), (1 << 64) + (1 << 32));
        assert_eq!(count(&[usize::MAX, usize::MAX, usize::MAX]), u128::MAX);
    }
}
