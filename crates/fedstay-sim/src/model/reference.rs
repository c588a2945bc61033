//! The same models in `f64`, written as plainly as possible, to check the fast ones against.

use super::network::Head;
use super::{Activation, Network, RowTargets, Rows};

/// The loss of every row.
pub(crate) fn losses(network: &Network, weights: &[f64], rows: &Rows<'_>) -> Vec<f64> {
    (0..rows.len())
        .map(|row| {
            let z = outputs(network, weights, rows, row);
            let label = || match rows.targets() {
                RowTargets::Classes(labels) => usize::from(labels[row]),
                RowTargets::Numbers(_) => panic!("a model of classes reads numbers"),
            };
            let number = || match rows.targets() {
                RowTargets::Classes(_) => panic!("a model of numbers reads classes"),
                RowTargets::Numbers(numbers) => f64::from(numbers[row]),
            };
            match network.head {
                Head::Squared => (z[0] - number()).powi(2),
                Head::Softmax => (0..z.len()).map(|c| (z[c] - z[label()]).exp()).sum::<f64>().ln(),
                Head::Logistic => z[0].exp().ln_1p() - label() as f64 * z[0],
            }
        })
        .collect()
}

/// The mean loss over the listed rows.
pub(crate) fn mean_loss(network: &Network, weights: &[f64], rows: &Rows<'_>, batch: &[u32]) -> f64 {
    let losses = losses(network, weights, rows);
    batch.iter().map(|row| losses[*row as usize]).sum::<f64>() / batch.len() as f64
}

/// The gradient of the mean loss by central differences.
pub(crate) fn gradient(
    network: &Network,
    weights: &[f64],
    rows: &Rows<'_>,
    batch: &[u32],
) -> Vec<f64> {
    derivatives(network, weights, rows, batch, 0..weights.len(), 1e-5)
}

/// The derivatives with respect to some of the weights, by central differences of this step.
pub(crate) fn derivatives(
    network: &Network,
    weights: &[f64],
    rows: &Rows<'_>,
    batch: &[u32],
    places: impl Iterator<Item = usize>,
    h: f64,
) -> Vec<f64> {
    let mut weights = weights.to_vec();
    places
        .map(|i| {
            let middle = weights[i];
            weights[i] = middle + h;
            let above = mean_loss(network, &weights, rows, batch);
            weights[i] = middle - h;
            let below = mean_loss(network, &weights, rows, batch);
            weights[i] = middle;
            (above - below) / (2.0 * h)
        })
        .collect()
}

/// The output of the last layer.
pub(crate) fn outputs(network: &Network, weights: &[f64], rows: &Rows<'_>, row: usize) -> Vec<f64> {
    let mut x = vec![0.0f32; network.features()];
    rows.data().fill(row, 0, &mut x);
    let mut x: Vec<f64> = x.into_iter().map(f64::from).collect();
    if network.front.is_some() {
        x = super::cnn::reference::features(network, weights, &x).0;
    }
    for layer in 0..network.layers() {
        let (weight, bias) = network.layout().layer(layer);
        let z = weights[weight].chunks_exact(x.len()).zip(&weights[bias]);
        let z = z.map(|(w, b)| b + w.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>());
        let last = layer + 1 == network.layers();
        x = z.map(|z| if last { z } else { activate(network.activation, z) }).collect();
    }
    x
}

pub(crate) fn activate(activation: Activation, z: f64) -> f64 {
    match activation {
        Activation::Softplus => z.exp().ln_1p(),
        Activation::Relu => z.max(0.0),
        Activation::Tanh => z.tanh(),
    }
}
