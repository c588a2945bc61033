//! The layers of models: matrix products on 8-bit images, convolutions, activations and losses.
//!
//! Nothing here knows what a model is. Every entry point is safe and checks the shapes it is
//! given; the instruction set is picked at run time, so one binary serves every machine:
//!
//! | [`Isa`](crate::Isa) | first layer, training | first layer, evaluation of 8-bit rows | the rest |
//! |---|---|---|---|
//! | `portable`, `avx2` | `gemm` crate | `gemm` crate, rows widened to `f32` | `gemm` crate |
//! | `avx512` | [`panel`]s | [`panel`]s | `gemm` crate |
//! | `vnni` | [`panel`]s | [`limbs`]: exact integer sums | `gemm` crate |
//!
//! What goes through the `gemm` crate is in the simulator, so that a server need not build it.
//! Convolutions are in [`conv`], with kernels of their own for every width of vectors. [`listed`] is the
//! product that local steps by the rows' products take with 512-bit vectors.
//!
//! All of it runs on the calling thread, and a row's result never depends on which other rows
//! share its tile: that is what lets an evaluation visit rows in any order.

pub mod buffer;
pub mod conv;
pub mod head;
pub mod limbs;
pub mod listed;
pub mod panel;
pub mod rows;
pub mod scalar;
