//! Memory that calls reuse.

use super::cnn::Scratch;
use super::gram::Dual;
use fedstay_kernels::Isa;
use fedstay_kernels::layer::buffer::Buffer;
use fedstay_kernels::layer::{head, panel};

/// Scratch memory for one thread, and the instruction set its kernels use. It grows to what the
/// largest call needed; after that no call allocates. It carries nothing from one call to the next.
#[derive(Debug, Clone)]
pub struct Workspace {
    pub(crate) isa: Isa,
    /// The row numbers of the current tile.
    pub(crate) index: Vec<u32>,
    /// Their labels.
    pub(crate) labels: Vec<u32>,
    /// Their numbers, where that is what they have.
    pub(crate) numbers: Vec<f32>,
    /// Their inputs, where a kernel does not read rows itself.
    pub(crate) inputs: Buffer,
    /// The output of each hidden layer, `[row][stride]`.
    pub(crate) values: Vec<Buffer>,
    /// The activations' derivatives there.
    pub(crate) slopes: Vec<Buffer>,
    /// The loss's derivatives with respect to each layer's output before the activation.
    pub(crate) errors: Vec<Buffer>,
    /// The last layer's output, `[output][row]`.
    pub(crate) logits: Buffer,
    pub(crate) losses: Buffer,
    pub(crate) hits: Vec<u32>,
    /// The next tile's rows, while a step is fused with the next.
    pub(crate) next: Vec<u32>,
    /// Weights after some local steps, flat, and the first layer's in panels.
    pub(crate) moved: Buffer,
    pub(crate) moved_panels: Buffer,
    /// The sum of gradients, likewise.
    pub(crate) sum: Buffer,
    pub(crate) sum_panels: Buffer,
    /// What a walk by the rows' products needs.
    pub(crate) dual: Dual,
    /// What convolutions need.
    pub(crate) front: Scratch,
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}

impl Workspace {
    /// A workspace for the best kernels of this machine.
    #[must_use]
    pub fn new() -> Self {
        Self::with_isa(Isa::detect())
    }

    /// A workspace for given kernels, or the best ones below them that this machine has.
    #[must_use]
    pub fn with_isa(isa: Isa) -> Self {
        Self {
            isa,
            index: Vec::new(),
            labels: Vec::new(),
            numbers: Vec::new(),
            inputs: Buffer::default(),
            values: Vec::new(),
            slopes: Vec::new(),
            errors: Vec::new(),
            logits: Buffer::default(),
            losses: Buffer::default(),
            hits: Vec::new(),
            next: Vec::new(),
            moved: Buffer::default(),
            moved_panels: Buffer::default(),
            sum: Buffer::default(),
            sum_panels: Buffer::default(),
            dual: Dual::default(),
            front: Scratch::default(),
        }
    }

    /// The instruction set in use.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The number of rows handled together. It is fixed, and short tiles are filled up, because the
    /// `gemm` crate may choose its summation order by the shape; this way a row's result depends on
    /// the row alone.
    pub(crate) fn tile(&self) -> usize {
        const { assert!(panel::MAX_ROWS.is_multiple_of(head::LANES)) }
        if self.isa.has_avx512() { panel::MAX_ROWS } else { 256 }
    }

    /// Whether the first layer runs in panels.
    pub(crate) fn panelled(&self) -> bool {
        self.isa.has_avx512()
    }
}
