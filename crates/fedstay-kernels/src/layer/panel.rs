//! The first layer in `f32` with AVX-512: weights in panels, nothing packed and nothing transposed.
//!
//! Weights live as `[outputs / width][inputs][width]`, width 16 or 32. That one layout serves
//!
//! - the forward product `z += x Wᵀ`: eight rows of `x` broadcast against a line of weights;
//! - the gradient `S = beta S + alpha dzᵀ x`: eight inputs broadcast against a line of `dz`;
//! - the move `W - eta S`, made on the fly for one block of `BLOCK` inputs at a time.
//!
//! Rows are widened to `f32` one block at a time as well, straight from 8-bit data: the conversion
//! is the packing, and a block of everything stays in the nearest cache. [`Panels::turn`] computes
//! the gradient of one step and the forward product of the next while a block is there.
//!
//! Every output element is one chain of fused multiply-adds over the inputs in their order, so a
//! row's result does not depend on its neighbours, and `turn` gives the bits of its two halves.

#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, unused_variables, reason = "checks that there is AVX-512 have failed before")
)]

use super::rows::RowsData;
use crate::Isa;

/// The number of inputs handled together.
const BLOCK: usize = 64;
/// The number of rows (forward) or inputs (gradient) of a register tile.
const SIDE: usize = 8;
/// The number of floats in a vector.
const LANES: usize = 16;
/// The most rows per call.
pub const MAX_ROWS: usize = 64;

/// The shape of a panelled weight matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panels {
    features: usize,
    outputs: usize,
    /// The number of vectors in a line: 1 or 2.
    vectors: usize,
    /// The number of panels.
    count: usize,
    /// Features rounded up to `SIDE`.
    padded: usize,
}

/// The rows a call works on.
#[derive(Debug, Clone, Copy)]
pub struct PanelRows<'a> {
    /// All rows.
    pub data: RowsData<'a>,
    /// Which of them, at most [`MAX_ROWS`].
    pub index: &'a [u32],
}

/// What a gradient is added to: `sum = beta * sum + alpha * dzᵀ x`.
#[derive(Debug)]
pub struct Gradient<'a> {
    /// The derivative with respect to the layer's output, one row per sample, `stride()` apart.
    pub dz: &'a [f32],
    /// The sum, in panels. Not read when `beta` is 0.
    pub sum: &'a mut [f32],
    /// What the old sum is multiplied by.
    pub beta: f32,
    /// What the new gradient is multiplied by.
    pub alpha: f32,
}

impl Panels {
    /// The panels of a layer.
    pub fn new(features: usize, outputs: usize) -> Self {
        let vectors = if outputs > LANES { 2 } else { 1 };
        let count = outputs.div_ceil(vectors * LANES);
        Self { features, outputs, vectors, count, padded: features.next_multiple_of(SIDE) }
    }

    fn width(&self) -> usize {
        self.vectors * LANES
    }

    /// How far apart the rows of the layer's output are.
    pub fn stride(&self) -> usize {
        self.count * self.width()
    }

    /// The number of floats in all panels.
    #[expect(clippy::len_without_is_empty, reason = "a layer has weights")]
    pub fn len(&self) -> usize {
        self.padded * self.stride()
    }

    /// Copies rows of weights (`[outputs][features]`) to panels.
    pub fn pack(&self, weights: &[f32], panels: &mut [f32]) {
        assert_eq!((weights.len(), panels.len()), (self.outputs * self.features, self.len()));
        panels.fill(0.0);
        for output in (0..self.outputs).step_by(LANES) {
            for input in (0..self.features).step_by(LANES) {
                self.exchange_square(output, input, |flat, at| panels[at] = weights[flat]);
            }
        }
    }

    /// Copies panels to rows, each element multiplied by `factor`.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn unpack(&self, panels: &[f32], factor: f32, weights: &mut [f32]) {
        assert!(Isa::detect().has_avx512(), "no AVX-512");
        assert_eq!((weights.len(), panels.len()), (self.outputs * self.features, self.len()));
        for output in (0..self.outputs).step_by(LANES) {
            for input in (0..self.features).step_by(LANES) {
                if output + LANES <= self.outputs && input + LANES <= self.features {
                    #[cfg(target_arch = "x86_64")]
                    avx512::unpack_square(self, panels, factor, weights, output, input);
                } else {
                    self.exchange_square(output, input, |flat, panelled| {
                        weights[flat] = factor * panels[panelled];
                    });
                }
            }
        }
    }

    /// Visits the elements of a square of 16 outputs by 16 inputs, as far as they exist, with their
    /// positions in rows and in panels.
    #[inline(always)]
    fn exchange_square(&self, output: usize, input: usize, mut visit: impl FnMut(usize, usize)) {
        let width = self.width();
        for o in output..(output + LANES).min(self.outputs) {
            for i in input..(input + LANES).min(self.features) {
                visit(o * self.features + i, (o / width * self.padded + i) * width + o % width);
            }
        }
    }

    /// `z += x Wᵀ`. Rows of `z` are [`stride`](Self::stride) apart; those up to the next multiple
    /// of eight are written as well, with meaningless values.
    ///
    /// # Panics
    /// Where AVX-512 is missing or a slice is too short: a mistake of the caller.
    pub fn forward(&self, batch: PanelRows<'_>, weights: &[f32], z: &mut [f32]) {
        self.check(batch, weights);
        assert!(z.len() >= batch.index.len().next_multiple_of(SIDE) * self.stride());
        #[cfg(target_arch = "x86_64")]
        avx512::forward(self, batch, weights, z);
    }

    /// `sum = beta * sum + alpha * dzᵀ x`.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn gradient(&self, batch: PanelRows<'_>, gradient: &mut Gradient<'_>) {
        self.check(batch, gradient.sum);
        assert!(gradient.dz.len() >= batch.index.len() * self.stride());
        #[cfg(target_arch = "x86_64")]
        avx512::gradient(self, batch, gradient);
    }

    /// [`gradient`](Self::gradient) on one batch, then [`forward`](Self::forward) on the next with
    /// weights `start - eta * sum`, block by block.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn turn(
        &self,
        batch: PanelRows<'_>,
        gradient: &mut Gradient<'_>,
        next: PanelRows<'_>,
        start: &[f32],
        eta: f32,
        z: &mut [f32],
    ) {
        self.check(batch, gradient.sum);
        self.check(next, start);
        assert!(gradient.dz.len() >= batch.index.len() * self.stride());
        assert!(z.len() >= next.index.len().next_multiple_of(SIDE) * self.stride());
        #[cfg(target_arch = "x86_64")]
        avx512::turn(self, batch, gradient, next, start, eta, z);
    }

    fn check(&self, batch: PanelRows<'_>, weights: &[f32]) {
        assert!(Isa::detect().has_avx512(), "no AVX-512");
        assert_eq!(batch.data.features(), self.features);
        assert!(batch.index.len() <= MAX_ROWS);
        assert!(batch.index.iter().all(|row| (*row as usize) < batch.data.len()));
        assert_eq!(weights.len(), self.len());
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod transpose;

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(len: usize, seed: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * 7919 + seed * 104_729) % 2001) as f32 / 1000.0 - 1.0).collect()
    }

    #[test]
    fn agrees_with_the_definition() {
        if !crate::Isa::detect().has_avx512() {
            return;
        }
        for (features, outputs, rows) in [(1, 1, 1), (64, 16, 8), (70, 33, 13), (200, 100, 64)] {
            let panels = Panels::new(features, outputs);
            let (floats, weights) = (numbers(rows * features, 1), numbers(outputs * features, 2));
            let mut start = vec![f32::NAN; panels.len()];
            panels.pack(&weights, &mut start);
            let mut back = vec![f32::NAN; weights.len()];
            panels.unpack(&start, 1.0, &mut back);
            assert_eq!(back, weights);

            let data = RowsData::Floats { rows: &floats, features };
            let index: Vec<u32> = (0..rows as u32).rev().collect();
            let batch = PanelRows { data, index: &index };
            let stride = panels.stride();
            let mut z = vec![1.0; rows.next_multiple_of(SIDE) * stride];
            panels.forward(batch, &start, &mut z);
            let x = |row: usize, j: usize| floats[index[row] as usize * features + j];
            for row in 0..rows {
                for o in 0..outputs {
                    let want: f32 =
                        (0..features).map(|j| x(row, j) * weights[o * features + j]).sum();
                    assert!((z[row * stride + o] - 1.0 - want).abs() < 1e-4);
                }
            }
            let dz = numbers(rows * stride, 3);
            let mut sum = vec![f32::NAN; panels.len()];
            panels.gradient(batch, &mut Gradient { dz: &dz, sum: &mut sum, beta: 0.0, alpha: 1.0 });
            panels.gradient(batch, &mut Gradient { dz: &dz, sum: &mut sum, beta: 0.5, alpha: 2.0 });
            panels.unpack(&sum, 2.0, &mut back);
            for o in 0..outputs {
                for j in 0..features {
                    let want: f32 = (0..rows).map(|row| x(row, j) * dz[row * stride + o]).sum();
                    assert!((back[o * features + j] - 5.0 * want).abs() < 1e-4);
                }
            }
        }
    }

    /// The fused step equals its two halves, to the bit.
    #[test]
    fn a_turn_is_a_gradient_and_a_forward() {
        if !crate::Isa::detect().has_avx512() {
            return;
        }
        let (features, outputs, rows) = (150, 40, 21);
        let panels = Panels::new(features, outputs);
        let floats = numbers(rows * features, 4);
        let data = RowsData::Floats { rows: &floats, features };
        let (index, after): (Vec<u32>, Vec<u32>) = ((0..21).collect(), (3..14).collect());
        let (batch, next) = (PanelRows { data, index: &index }, PanelRows { data, index: &after });
        let mut start = vec![0.0; panels.len()];
        panels.pack(&numbers(outputs * features, 5), &mut start);
        let dz = numbers(rows * panels.stride(), 6);
        let old = numbers(panels.len(), 7);
        let (eta, beta, alpha) = (0.3, 0.9, 0.1);
        let (mut sum, mut z) = (old.clone(), vec![0.5; 16 * panels.stride()]);
        let gradient = &mut Gradient { dz: &dz, sum: &mut sum, beta, alpha };
        panels.turn(batch, gradient, next, &start, eta, &mut z);
        let (mut want, mut want_z) = (old, vec![0.5; 16 * panels.stride()]);
        panels.gradient(batch, &mut Gradient { dz: &dz, sum: &mut want, beta, alpha });
        let moved: Vec<f32> =
            start.iter().zip(&want).map(|(start, sum)| start - eta * sum).collect();
        panels.forward(next, &moved, &mut want_z);
        let real = after.len() * panels.stride();
        assert_eq!((sum, &z[..real]), (want, &want_z[..real]));
    }
}
