//! The weights as agents compute with them.

use std::sync::OnceLock;

use super::rows::{finite, length};
use super::{Error, Network, RowsData};
use fedstay_kernels::layer::buffer::Buffer;
use fedstay_kernels::layer::limbs::Limbs;

/// A model's weights in `f32`, with the forms that kernels want, each made when it is first needed.
/// It can be shared between threads.
#[derive(Debug, Clone)]
pub struct Loaded {
    flat: Vec<f32>,
    /// The first layer's weights in panels.
    panels: OnceLock<Buffer>,
    /// The first layer's weights, `[input][output]`.
    transposed: OnceLock<Vec<f32>>,
    /// The first layer quantised, for one scaling of the bytes.
    limbs: OnceLock<Limbs>,
}

impl Loaded {
    pub(crate) fn new(flat: Vec<f32>) -> Result<Self, Error> {
        finite("weight", &flat)?;
        let (panels, transposed, limbs) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Ok(Self { flat, panels, transposed, limbs })
    }

    /// The flat vector.
    #[must_use]
    pub fn flat(&self) -> &[f32] {
        &self.flat
    }

    /// These weights plus `by * direction`: for instance, where an agent stands after K local steps
    /// (`by = -eta * K`, the direction being the mean of its gradients).
    ///
    /// # Errors
    /// [`Error::Length`] for a direction of the wrong length, [`Error::NotFinite`] where the sum
    /// is not finite.
    pub fn displaced(&self, direction: &[f32], by: f32) -> Result<Self, Error> {
        length("direction", self.flat.len(), direction.len())?;
        let moved = self.flat.iter().zip(direction).map(|(weight, d)| weight + by * d);
        Self::new(moved.collect())
    }

    /// The first layer's weights in panels.
    pub(crate) fn panels(&self, network: &Network) -> &[f32] {
        self.panels.get_or_init(|| {
            let mut panels = Buffer::zeros(network.panels.len());
            network.panels.pack(&self.flat[network.layout.layer(0).0], &mut panels);
            panels
        })
    }

    /// The first layer's weights, `[input][output]`: what `gemm` can read without packing.
    pub(crate) fn transposed(&self, network: &Network) -> &[f32] {
        self.transposed.get_or_init(|| {
            let (inputs, outputs) = (network.widths[0], network.widths[1]);
            let weights = &self.flat[network.layout.layer(0).0];
            let mut transposed = vec![0.0; weights.len()];
            for (output, row) in weights.chunks_exact(inputs).enumerate() {
                for (input, weight) in row.iter().enumerate() {
                    transposed[input * outputs + output] = *weight;
                }
            }
            transposed
        })
    }

    /// The first layer quantised for these rows, which must be readable that way.
    pub(crate) fn limbs(&self, network: &Network, data: RowsData<'_>) -> Result<&Limbs, Error> {
        let RowsData::Bytes { scale, shift, .. } = data else { return Err(Error::Scaling) };
        let limbs = self.limbs.get_or_init(|| {
            let (weight, bias) = network.layout.layer(0);
            Limbs::new(&self.flat[weight], &self.flat[bias], scale, shift)
        });
        if limbs.fit(data) { Ok(limbs) } else { Err(Error::Scaling) }
    }
}
