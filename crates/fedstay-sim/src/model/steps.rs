//! Local work: gradients along K local steps, or K gradients at one point.
//!
//! With S the sum of the gradients so far, an agent that started at w stands at u = w - η S.
//! Nothing else has to be kept: FedProx's pull μ (u - w) is -μη S, so a step is S ← (1 - μη) S +
//! ∇F(u; batch), the direction of a report is S / K, and nothing is lost to rounding when η is
//! tiny.

use super::cnn::IMAGES;
use super::matmul::Matrix;
use super::pass::Accumulate;
use super::rows::length;
use super::{Batch, Error, Loaded, Network, RowProducts, Rows, Workspace};
use fedstay_kernels::layer::panel;

/// What an agent does between two gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Walk {
    /// It takes a step: local SGD, and FedProx where `mu` is not 0.
    Descend {
        /// The local step size η.
        eta: f32,
        /// FedProx's μ, which adds μ (u - w) to every gradient.
        mu: f32,
    },
    /// It stays: mini-batch SGD, K gradients at the received weights.
    Stand,
}

impl Network {
    /// The mean of K gradients, one per batch, starting at the received weights. The agent then
    /// stands at [`weights.displaced(direction, -eta * K)`](Loaded::displaced).
    ///
    /// Returns the mean of the batches' losses, each taken where its gradient was.
    ///
    /// # Errors
    /// If anything is wrong with the input, see [`Error`]. A path that diverges is not an error:
    /// the direction is then not finite.
    pub fn local_steps(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        batches: &[Batch<'_>],
        walk: Walk,
        direction: &mut [f32],
        work: &mut Workspace,
    ) -> Result<f64, Error> {
        self.check(weights, rows)?;
        length("direction", self.layout.parameters(), direction.len())?;
        if batches.is_empty() {
            return Err(Error::Empty { what: "the list of batches" });
        }
        batches.iter().try_for_each(|batch| batch.check(rows))?;
        let (eta, keep) = match walk {
            Walk::Stand => (0.0, 1.0),
            Walk::Descend { eta, mu } => {
                for (what, value) in [("eta", eta), ("mu", mu)] {
                    if !(value.is_finite() && value >= 0.0) {
                        return Err(Error::Negative { what, value: value.into() });
                    }
                }
                (eta, 1.0 - mu * eta)
            }
        };
        let products = rows.products().filter(|_| eta != 0.0 && self.products_pay(rows, batches));
        self.take_steps(weights, rows, batches, (eta, keep), products, direction, work)
    }

    /// [`local_steps`](Self::local_steps) once everything is checked and decided: steps of `eta`,
    /// each of which keeps the share `keep` of the sum so far, by the rows' products if there are
    /// some.
    #[expect(clippy::too_many_arguments, reason = "a step needs them all")]
    pub(super) fn take_steps(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        batches: &[Batch<'_>],
        (eta, keep): (f32, f32),
        products: Option<&RowProducts>,
        direction: &mut [f32],
        work: &mut Workspace,
    ) -> Result<f64, Error> {
        self.size_buffers(work.tile(), work);
        work.sum.resize(self.layout.parameters());
        work.moved.resize(self.layout.parameters());
        let panelled = work.panelled() && self.front.is_none();
        let total = if let Some(front) = &self.front {
            walk(weights, rows, batches, (eta, keep), IMAGES, work, |flat, into, work| {
                self.train_images(front, flat, rows, into, work)
            })
        } else if let Some(products) = products {
            self.walk_by_products(products, weights, rows, batches, (eta, keep), work)?
        } else if panelled {
            self.walk_panelled(weights, rows, batches, eta, keep, work)
        } else {
            walk(weights, rows, batches, (eta, keep), work.tile(), work, |flat, into, work| {
                self.train_plain(flat, rows, into, work)
            })
        };
        let share = 1.0 / batches.len() as f32;
        let (first, _) = self.layout.layer(0);
        let plain = if panelled { first.end } else { 0 };
        for (direction, sum) in direction[plain..].iter_mut().zip(&work.sum[plain..]) {
            *direction = share * sum;
        }
        if panelled {
            self.panels.unpack(&work.sum_panels, share, &mut direction[first]);
        }
        Ok(total / batches.len() as f64)
    }

    /// The mean loss over a batch and its gradient.
    ///
    /// # Errors
    /// As [`local_steps`](Self::local_steps).
    pub fn loss_and_gradient(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        batch: Batch<'_>,
        gradient: &mut [f32],
        work: &mut Workspace,
    ) -> Result<f64, Error> {
        self.local_steps(weights, rows, &[batch], Walk::Stand, gradient, work)
    }

    /// Adds the gradients of the rows in `work.index`, with the first layer through `gemm`, and returns the
    /// sum of their losses.
    fn train_plain(
        &self,
        flat: &[f32],
        rows: &Rows<'_>,
        into: Accumulate,
        work: &mut Workspace,
    ) -> f64 {
        let (first, inputs) = (self.layout.layer(0).0, self.widths[0]);
        let first = Matrix::rows(&flat[first], self.widths[1], inputs, inputs).transposed();
        self.first_plain(flat, first, rows, work);
        let loss = self.train_tile(flat, rows, self.widths[1], into, work);
        self.first_gradient_plain(into, work);
        loss
    }

    /// Takes the steps with the first layer in panels; leaves the sum of gradients in `work`, that
    /// of the first layer's weights in panels.
    fn walk_panelled(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        batches: &[Batch<'_>],
        eta: f32,
        keep: f32,
        work: &mut Workspace,
    ) -> f64 {
        let start = weights.panels(self);
        work.sum_panels.resize(self.panels.len());
        let mut moved = std::mem::take(&mut work.moved);
        let mut moved_panels = std::mem::take(&mut work.moved_panels);
        let mut next = std::mem::take(&mut work.next);
        let upper = self.layout.layer(0).0.end;
        let stride = self.panels.stride();
        let small = |batch: &Batch<'_>| batch.len(rows) <= panel::MAX_ROWS;
        let mut total = 0.0;
        // Whether the last step has already computed this one's first layer.
        let mut begun = false;
        for (step, batch) in batches.iter().enumerate() {
            let stands = step == 0 || eta == 0.0;
            if !stands {
                displace(&weights.flat()[upper..], eta, &work.sum[upper..], &mut moved[upper..]);
            }
            let flat: &[f32] = if stands { weights.flat() } else { &moved };
            let first = if stands || begun {
                start
            } else {
                moved_panels.resize(start.len());
                displace(start, eta, &work.sum_panels, &mut moved_panels);
                &moved_panels
            };
            let follower =
                batches.get(step + 1).filter(|next| eta != 0.0 && small(batch) && small(next));
            total += tiles(batch, rows, step, keep, work.tile(), work, |into, work| {
                if !begun {
                    self.first_panelled(flat, first, rows, work);
                }
                let loss = self.train_tile(flat, rows, stride, into, work);
                let batch = panel::PanelRows { data: rows.data(), index: &work.index };
                let gradient = &mut panel::Gradient {
                    dz: &work.errors[0],
                    sum: &mut work.sum_panels,
                    beta: into.beta,
                    alpha: into.alpha,
                };
                let Some(follower) = follower else {
                    self.panels.gradient(batch, gradient);
                    return loss;
                };
                follower.tile(0, follower.len(rows), &mut next);
                let bias = self.layout.layer(0).1;
                let z = &mut work.values[0];
                // The bias after this step; `moved` itself is still in use.
                for row in z.chunks_exact_mut(stride).take(next.len()) {
                    displace(&weights.flat()[bias.clone()], eta, &work.sum[bias.clone()], row);
                }
                let after = panel::PanelRows { data: rows.data(), index: &next };
                self.panels.turn(batch, gradient, after, start, eta, z);
                loss
            });
            begun = follower.is_some();
        }
        (work.moved, work.moved_panels, work.next) = (moved, moved_panels, next);
        total
    }
}

/// Takes local steps, `size` rows at a time; leaves the sum of gradients in `work`. `train` adds those of the
/// rows in `work.index`, at the weights of the step, and returns the sum of their losses.
fn walk(
    weights: &Loaded,
    rows: &Rows<'_>,
    batches: &[Batch<'_>],
    (eta, keep): (f32, f32),
    size: usize,
    work: &mut Workspace,
    mut train: impl FnMut(&[f32], Accumulate, &mut Workspace) -> f64,
) -> f64 {
    let mut total = 0.0;
    let mut moved = std::mem::take(&mut work.moved);
    for (step, batch) in batches.iter().enumerate() {
        let flat = if step == 0 || eta == 0.0 {
            weights.flat()
        } else {
            displace(weights.flat(), eta, &work.sum, &mut moved);
            &moved
        };
        total += tiles(batch, rows, step, keep, size, work, |into, work| train(flat, into, work));
    }
    work.moved = moved;
    total
}

/// Runs `tile` over the tiles of a batch, of `size` rows each, with the weights their gradients carry, and returns the
/// batch's mean loss. The first tile of a step takes over what earlier steps left.
pub(super) fn tiles(
    batch: &Batch<'_>,
    rows: &Rows<'_>,
    step: usize,
    keep: f32,
    size: usize,
    work: &mut Workspace,
    mut tile: impl FnMut(Accumulate, &mut Workspace) -> f64,
) -> f64 {
    let len = batch.len(rows);
    let mut total = 0.0;
    for from in (0..len).step_by(size) {
        batch.tile(from, size.min(len - from), &mut work.index);
        let beta = match (from, step) {
            (0, 0) => 0.0,
            (0, _) => keep,
            _ => 1.0,
        };
        total += tile(Accumulate { beta, alpha: 1.0 / len as f32 }, work);
    }
    total / len as f64
}

/// `out = start - eta * sum`.
pub(crate) fn displace(start: &[f32], eta: f32, sum: &[f32], out: &mut [f32]) {
    for ((out, start), sum) in out.iter_mut().zip(start).zip(sum) {
        *out = start - eta * sum;
    }
}
