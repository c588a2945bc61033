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
mod inputs;
mod lists;
mod order;
mod vector;
mod weights;
mod wide;

pub(crate) use deep::{deep, pack_deep};
pub(crate) use inputs::{inputs, pack_inputs, patch};
pub(crate) use lists::{Grid, Places, select};
pub(crate) use order::{interleave, separate};
pub(crate) use weights::{unpack_weights, weights, weights_line};
pub(crate) use wide::{pack_wide, wide};

/// The side of a filter.
pub(crate) const SIDE: usize = 5;
/// The number of taps of a filter on one channel.
pub(crate) const TAPS: usize = SIDE * SIDE;
/// The side of the square of pixels that a pooled pixel looks at.
pub(crate) const VIEW: usize = SIDE + 1;
/// The most floats in a vector. Rows of pooled pixels and of output channels are padded to a
/// multiple of it, and what is read at unaligned places has this many floats behind it, twice.
pub(crate) const LANES: usize = 16;
/// How many floats must follow an image in memory, because vectors read beyond its end.
pub(crate) const SLACK: usize = 3 * LANES;

/// The shape of one convolution and its pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The number of channels it reads.
    pub(crate) inputs: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
    /// The number of channels it writes.
    pub(crate) outputs: usize,
}

impl Shape {
    /// The height after convolution and pooling. An odd last row is not pooled, as in PyTorch.
    pub(crate) fn pooled_height(&self) -> usize {
        (self.height - (SIDE - 1)) / 2
    }

    /// The width after convolution and pooling.
    pub(crate) fn pooled_width(&self) -> usize {
        (self.width - (SIDE - 1)) / 2
    }

    /// The number of pooled pixels of one channel.
    pub(crate) fn pooled(&self) -> usize {
        self.pooled_height() * self.pooled_width()
    }

    /// How far apart the rows of a pooled plane are where pixels are the lanes.
    pub(crate) fn stride(&self) -> usize {
        self.pooled_width().next_multiple_of(LANES)
    }

    /// The size of a pooled plane where pixels are the lanes.
    pub(crate) fn plane(&self) -> usize {
        self.pooled_height() * self.stride()
    }

    /// How far apart pooled pixels are where channels are the lanes.
    pub(crate) fn depth(&self) -> usize {
        self.outputs.next_multiple_of(LANES)
    }

    /// The number of weights of its filters.
    pub(crate) fn weights(&self) -> usize {
        self.outputs * self.inputs * TAPS
    }
}

/// Defines a safe entry `$name` that checks with `$check` and runs `$body::<V>` for the vectors of an
/// instruction set.
macro_rules! dispatch {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)?
     { $($check:tt)* } => $body:ident) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, reason = "inputs, weights and outputs are apart")]
        pub(crate) fn $name(isa: $crate::kernel::Isa, $($arg: $type),*) $(-> $out)? {
            $($check)*
            #[cfg(target_arch = "x86_64")]
            {
                #[allow(clippy::too_many_arguments, reason = "as above")]
                #[target_feature(enable = "avx512f")]
                unsafe fn avx512($($arg: $type),*) $(-> $out)? {
                    // SAFETY: passed on.
                    unsafe { $body::<$crate::kernel::conv::vector::Avx512>($($arg),*) }
                }
                #[allow(clippy::too_many_arguments, reason = "as above")]
                #[target_feature(enable = "avx2,fma")]
                unsafe fn avx2($($arg: $type),*) $(-> $out)? {
                    // SAFETY: passed on.
                    unsafe { $body::<$crate::kernel::conv::vector::Avx2>($($arg),*) }
                }
                assert!(isa.is_available(), "this machine lacks {isa:?}");
                // SAFETY: the instructions exist, as was just checked, and so were the lengths.
                if isa >= $crate::kernel::Isa::Avx512 {
                    return unsafe { avx512($($arg),*) };
                }
                if isa == $crate::kernel::Isa::Avx2 && is_x86_feature_detected!("fma") {
                    return unsafe { avx2($($arg),*) };
                }
            }
            let _ = isa;
            // SAFETY: the lengths were checked above; no particular instructions are used.
            unsafe { $body::<$crate::kernel::conv::vector::Portable>($($arg),*) }
        }
    };
}
pub(crate) use dispatch;
