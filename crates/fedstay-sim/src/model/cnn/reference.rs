//! The convolutions in `f64`, written as plainly as possible.

use crate::model::reference::activate;
use crate::model::{Activation, Network};
use fedstay_kernels::layer::conv::{SIDE, Shape};

/// The features of an image, and how close it came to a place where the gradient jumps: another pixel
/// becoming the largest of four, or a rectified unit being switched.
pub(crate) fn features(network: &Network, weights: &[f64], image: &[f64]) -> (Vec<f64>, f64) {
    let front = network.front.as_ref().expect("convolutions");
    let mut clearance = f64::INFINITY;
    let mut x = image.to_vec();
    for (shape, (weight, bias)) in
        [front.first, front.second].into_iter().zip(network.layout.front())
    {
        let (weight, bias) = (&weights[weight], &weights[bias]);
        x = convolved(shape, network.activation, weight, bias, &x, &mut clearance);
    }
    (x, clearance)
}

fn convolved(
    shape: Shape,
    activation: Activation,
    weights: &[f64],
    bias: &[f64],
    image: &[f64],
    clearance: &mut f64,
) -> Vec<f64> {
    let mut pooled = Vec::new();
    for (output, bias) in bias.iter().enumerate() {
        let sum = |y: usize, x: usize| {
            let mut sum = *bias;
            for input in 0..shape.inputs {
                for (row, column) in (0..SIDE).flat_map(|row| (0..SIDE).map(move |c| (row, c))) {
                    let filter = (output * shape.inputs + input) * SIDE + row;
                    let pixels = (input * shape.height + y + row) * shape.width;
                    sum += weights[filter * SIDE + column] * image[pixels + x + column];
                }
            }
            sum
        };
        for y in 0..shape.pooled_height() {
            for x in 0..shape.pooled_width() {
                let (y, x) = (2 * y, 2 * x);
                let mut four = [sum(y, x), sum(y, x + 1), sum(y + 1, x), sum(y + 1, x + 1)];
                four.sort_by(f64::total_cmp);
                *clearance = clearance.min(four[3] - four[2]);
                if activation == Activation::Relu {
                    *clearance = clearance.min(four[3].abs());
                }
                pooled.push(activate(activation, four[3]));
            }
        }
    }
    pooled
}
