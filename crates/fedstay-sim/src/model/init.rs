//! Where training starts.

use fedstay::numerics::{normal, uniform};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Layout;

/// How the first weights are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// The default of `nn.Linear` and `nn.Conv2d`: weights and biases uniform in ±1/√(inputs), of
    /// which a filter has 25 for each channel it reads.
    #[default]
    Torch,
    /// Weights normal with deviation √(2/inputs), biases zero (He et al., 2015).
    He,
    /// As `he`, but the output layer is zero: every class starts equally likely, so that no agent
    /// can be content before training begins.
    ZeroOutput,
    /// Weights normal with deviation 0.01, biases zero.
    Small,
}

impl Init {
    /// Draws weights for a layout, tensor by tensor.
    pub(crate) fn draw(self, layout: &Layout, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let mut weights = Vec::with_capacity(layout.parameters());
        let layers = layout.tensors().len() / 2;
        for (layer, pair) in layout.tensors().chunks_exact(2).enumerate() {
            let inputs = pair[0].shape[1..].iter().product::<usize>() as f64;
            let deviation = match self {
                Self::Torch => {
                    let bound = inputs.sqrt().recip();
                    let count = pair[0].range.len() + pair[1].range.len();
                    weights.extend((0..count).map(|_| bound * (2.0 * uniform(rng) - 1.0)));
                    continue;
                }
                Self::He => (2.0 / inputs).sqrt(),
                Self::ZeroOutput if layer + 1 == layers => 0.0,
                Self::ZeroOutput => (2.0 / inputs).sqrt(),
                Self::Small => 0.01,
            };
            weights.extend((0..pair[0].range.len()).map(|_| deviation * normal(rng)));
            weights.resize(pair[1].range.end, 0.0);
        }
        weights
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn draw(init: Init) -> (Layout, Vec<f64>) {
        let layout = Layout::linear(&[400, 50, 10]);
        let weights = init.draw(&layout, &mut ChaCha8Rng::seed_from_u64(1));
        assert_eq!(weights.len(), layout.parameters());
        assert_eq!(weights, init.draw(&layout, &mut ChaCha8Rng::seed_from_u64(1)));
        (layout, weights)
    }

    fn deviation(values: &[f64]) -> f64 {
        (values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64).sqrt()
    }

    #[test]
    fn spread_is_as_documented() {
        let (layout, w) = draw(Init::Torch);
        let (weight, bias) = layout.layer(0);
        assert!((deviation(&w[weight.clone()]) - 0.05 / 3f64.sqrt()).abs() < 1e-3);
        assert!(w[weight.start..bias.end].iter().all(|v| v.abs() <= 0.05));
        assert!(w[bias].iter().any(|v| *v != 0.0));
        let (layout, w) = draw(Init::He);
        assert!((deviation(&w[layout.layer(0).0]) - (2f64 / 400.0).sqrt()).abs() < 1e-3);
        assert!((deviation(&w[layout.layer(1).0]) - (2f64 / 50.0).sqrt()).abs() < 3e-2);
        assert!(w[layout.layer(0).1].iter().all(|v| *v == 0.0));
        let (layout, w) = draw(Init::ZeroOutput);
        assert!((deviation(&w[layout.layer(0).0]) - (2f64 / 400.0).sqrt()).abs() < 1e-3);
        assert!(w[layout.layer(1).0.start..].iter().all(|v| *v == 0.0));
        let (layout, w) = draw(Init::Small);
        assert!((deviation(&w[layout.layer(0).0]) - 0.01).abs() < 3e-4);
    }
}
