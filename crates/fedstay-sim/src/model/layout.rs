//! Where each tensor of a model lies in the one flat vector of its weights.

use std::ops::Range;

/// A named tensor inside the flat vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The name PyTorch would give it in an `nn.Sequential`: `0.weight`, `0.bias`, `2.weight`, …
    pub name: String,
    /// Its shape: `[out, in]` for a weight, `[out]` for a bias. Row-major.
    pub shape: Vec<usize>,
    /// Its place in the flat vector.
    pub range: Range<usize>,
}

/// All tensors of a model, in the order of the flat vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    tensors: Vec<Tensor>,
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
        let mut tensors = Vec::new();
        let mut end = 0;
        for (layer, pair) in widths.windows(2).enumerate() {
            let (inputs, outputs) = (pair[0], pair[1]);
            for (kind, shape) in [("weight", vec![outputs, inputs]), ("bias", vec![outputs])] {
                let start = end;
                end += shape.iter().product::<usize>();
                tensors.push(Tensor {
                    name: format!("{}.{kind}", 2 * layer),
                    shape,
                    range: start..end,
                });
            }
        }
        Self { tensors }
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

    /// The ranges of the weight and the bias of a layer.
    pub(crate) fn layer(&self, layer: usize) -> (Range<usize>, Range<usize>) {
        (self.tensors[2 * layer].range.clone(), self.tensors[2 * layer + 1].range.clone())
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
    fn weights_are_counted_without_wrapping_around() {
        assert_eq!(count(&[4, 3, 2]), 23);
        assert_eq!(count(&[1 << 32, 1 << 32]), (1 << 64) + (1 << 32));
        assert_eq!(count(&[usize::MAX, usize::MAX, usize::MAX]), u128::MAX);
    }
}
