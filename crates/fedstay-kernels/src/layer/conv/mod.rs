//! Convolutions of 5×5 with pooling of 2×2, one image at a time, and their gradients.
//!
//! | what | lanes | file |
//! |---|---|---|
//! | forward, few channels in and out | pixels of a row | [`wide`] |
//! | forward, many output channels | output channels | [`deep`] |
//! | gradient of the weights | a row of the filter: 5 pixels × input channels | [`weights`] |
//! | gradient of the inputs | the 6×6 pixels that one pooled pixel looks at × channels | [`inputs`] |
//!
//! A pooled pixel is computed in registers: the four sums it is the largest of are never written,
//! only the largest one and, as a byte, which it was. Only that one has a gradient. So the backward
//! kernels do a quarter of the dense work, and none for a unit that an activation has cut off: they
//! visit a list of the errors that are not zero ([`select`]).
//!
//! Every entry checks the lengths it is given, and picks the instruction set at run time.

mod deep;
mod floats;
mod inputs;
mod lists;
mod order;
mod weights;
mod wide;

use crate::isa::Family;

pub use deep::{deep, pack_deep};
pub use inputs::{inputs, pack_inputs, patch};
pub use lists::{Grid, Places, select};
pub use order::{interleave, separate};
pub use weights::{add_sums, unpack_weights, weights, weights_line};
pub use wide::{pack_wide, wide};

/// The side of a filter.
pub const SIDE: usize = 5;
/// The number of taps of a filter on one channel.
pub const TAPS: usize = SIDE * SIDE;
/// The side of the square of pixels that a pooled pixel looks at.
pub const VIEW: usize = SIDE + 1;
/// The most floats in a vector. Rows of pooled pixels and of output channels are padded to a
/// multiple of it, and what is read at unaligned places has this many floats behind it, twice.
pub const LANES: usize = 16;
/// How many floats must follow an image in memory, because vectors read beyond its end.
pub const SLACK: usize = 3 * LANES;

/// The shape of one convolution and its pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The number of channels it reads.
    pub inputs: usize,
    /// The height of what it reads.
    pub height: usize,
    /// The width of what it reads.
    pub width: usize,
    /// The number of channels it writes.
    pub outputs: usize,
}

impl Shape {
    /// The height after convolution and pooling. An odd last row is not pooled, as in PyTorch.
    pub fn pooled_height(&self) -> usize {
        (self.height - (SIDE - 1)) / 2
    }

    /// The width after convolution and pooling.
    pub fn pooled_width(&self) -> usize {
        (self.width - (SIDE - 1)) / 2
    }

    /// The number of pooled pixels of one channel.
    pub fn pooled(&self) -> usize {
        self.pooled_height() * self.pooled_width()
    }

    /// How far apart the rows of a pooled plane are where pixels are the lanes.
    pub fn stride(&self) -> usize {
        self.pooled_width().next_multiple_of(LANES)
    }

    /// The size of a pooled plane where pixels are the lanes.
    pub fn plane(&self) -> usize {
        self.pooled_height() * self.stride()
    }

    /// How far apart pooled pixels are where channels are the lanes.
    pub fn depth(&self) -> usize {
        self.outputs.next_multiple_of(LANES)
    }

    /// The number of weights of its filters.
    pub fn weights(&self) -> usize {
        self.outputs * self.inputs * TAPS
    }
}

/// FloatLanes in a register, for each instruction set.
enum Floats {}

impl Family for Floats {
    type Portable = floats::PortableFloats;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = floats::Avx2Floats;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = floats::Avx512Floats;
}
