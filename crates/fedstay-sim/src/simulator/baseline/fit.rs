//! One fit: a network, some rows, a ridge, and a descent.

use super::lbfgs::{Lbfgs, Objective};
use super::units::Units;
use crate::model::{Batch, Error, Network, Output, Rows, Workspace};

/// What the ridge on a bias is worth, in rows, whatever its strength on weights: next to nothing. It is there
/// so that rows of one class have a best model at all.
const ON_BIAS: f64 = 0.1;

/// The mean loss of some rows with a ridge.
pub(super) struct Fit<'a> {
    network: &'a Network,
    rows: &'a Rows<'a>,
    units: &'a Units,
    /// Those that are fitted.
    batch: Batch<'a>,
    /// Half of every weight's share in the ridge.
    ridge: Vec<f64>,
    gradient: Vec<f32>,
    work: &'a mut Workspace,
}

impl<'a> Fit<'a> {
    pub(super) fn new(
        (network, rows, units): (&'a Network, &'a Rows<'a>, &'a Units),
        batch: Batch<'a>,
        strength: f64,
        work: &'a mut Workspace,
    ) -> Self {
        let count = match batch {
            Batch::All => rows.len(),
            Batch::Rows(some) => some.len(),
        } as f64;
        let ridge = ridge(network, strength).into_iter().map(|part| part / count).collect();
        let gradient = vec![0.0; network.layout().parameters()];
        Self { network, rows, units, batch, ridge, gradient, work }
    }

    /// Descends from some weights until nothing is left to gain, or `most` steps were taken. `watch` is told
    /// the weights after every step, and those at the start; it says whether to go on.
    pub(super) fn descend(
        mut self,
        start: &[f64],
        (most, tolerance): (u32, f64),
        mut watch: impl FnMut(&[f64], &mut Workspace) -> Result<(), Error>,
    ) -> Result<Vec<f64>, Error> {
        let units = self.units;
        let mut descent = Lbfgs::new(units.point(start), &mut self)?;
        watch(start, self.work)?;
        let mut weights = start.to_vec();
        for _ in 0..most {
            let more = descent.step(tolerance, &mut self)?;
            weights = units.weights(descent.point());
            watch(&weights, self.work)?;
            if !more {
                break;
            }
        }
        Ok(weights)
    }
}

impl Objective for Fit<'_> {
    fn at(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<Option<f64>, Error> {
        let weights = self.units.weights(point);
        let loaded = match self.network.load(&weights) {
            Err(Error::NotFinite { .. }) => return Ok(None),
            loaded => loaded?,
        };
        let Self { network, rows, batch, work, .. } = self;
        let mut loss =
            network.loss_and_gradient(&loaded, rows, *batch, &mut self.gradient, work)?;
        for (((part, slope), weight), ridge) in
            gradient.iter_mut().zip(&self.gradient).zip(&weights).zip(&self.ridge)
        {
            *part = f64::from(*slope) + 2.0 * ridge * weight;
            loss += ridge * weight * weight;
        }
        self.units.gradient(gradient);
        let finite = loss.is_finite() && gradient.iter().all(|part| part.is_finite());
        Ok(finite.then_some(loss))
    }
}

/// The mean loss of some rows.
pub(super) fn loss(
    (network, rows): (&Network, &Rows<'_>),
    some: &[u32],
    weights: &[f64],
    work: &mut Workspace,
) -> Result<f64, Error> {
    let mut gradient = vec![0.0; network.layout().parameters()];
    let weights = network.load(weights)?;
    network.loss_and_gradient(&weights, rows, Batch::Rows(some), &mut gradient, work)
}

/// Half of every weight's share in the ridge, in rows.
fn ridge(network: &Network, strength: f64) -> Vec<f64> {
    let (on_weight, on_bias) = match (network.output(), network.is_logistic()) {
        // A squared loss is no half of a square, so its ridge is not either; its best bias always exists.
        (Output::Number, _) => (strength, 0.0),
        // Both classes have weights of their own, half as large as if one had them all.
        (Output::Classes(2), false) => (strength, 0.5 * ON_BIAS),
        (Output::Classes(_), _) => (0.5 * strength, 0.5 * ON_BIAS),
    };
    let tensors = network.layout().tensors().chunks_exact(2);
    tensors
        .flat_map(|pair| {
            let weights = std::iter::repeat_n(on_weight, pair[0].range.len());
            weights.chain(std::iter::repeat_n(on_bias, pair[1].range.len()))
        })
        .collect()
}
