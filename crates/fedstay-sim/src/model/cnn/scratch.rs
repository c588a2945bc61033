//! Memory that convolutions reuse.

use fedstay_kernels::layer::buffer::Buffer;
use fedstay_kernels::layer::conv::Places;

/// Scratch memory of the convolutions in front of a network. What is said to be of every image is
/// kept from the forward to the backward pass over a tile; the rest serves one image after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scratch {
    /// One image as planes, and with its channels side by side.
    pub(super) image: Buffer,
    pub(super) pixels: Buffer,
    /// The weights in the orders that the kernels want.
    pub(super) first: Buffer,
    pub(super) second: Buffer,
    pub(super) second_bias: Buffer,
    pub(super) second_patches: Buffer,
    /// The first pooled planes of every image, the activation's derivatives there, and which of four
    /// sums was the largest.
    pub(super) hidden: Buffer,
    pub(super) hidden_slopes: Buffer,
    pub(super) hidden_which: Vec<u8>,
    /// The second convolution's output for one image, `[pooled pixel][depth]`; for every image, which
    /// of four sums was the largest, in that order and plane by plane.
    pub(super) pooled: Buffer,
    pub(super) pooled_which: Vec<u8>,
    pub(super) planes_which: Vec<u8>,
    /// The activation's derivatives for every image, in the order of the features.
    pub(super) slopes: Buffer,
    /// The loss's derivatives with respect to the features of every image.
    pub(super) errors: Buffer,
    /// Those of one image before the activation, plane by plane and pixel by pixel.
    pub(super) planes_errors: Buffer,
    pub(super) pooled_errors: Buffer,
    /// The first pooled planes of one image with channels side by side, and the loss's derivatives
    /// there; these again as planes, before the activation.
    pub(super) hidden_pixels: Buffer,
    pub(super) hidden_errors: Buffer,
    pub(super) hidden_planes: Buffer,
    pub(super) patch: Buffer,
    pub(super) list: Places,
    /// The gradients of a tile.
    pub(super) first_sums: Buffer,
    pub(super) second_sums: Buffer,
    pub(super) first_bias_sums: Vec<f32>,
    pub(super) second_bias_sums: Vec<f32>,
}
