//! Who holds which row, where the data say so.

/// Who holds which row. The owner is never a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owners {
    /// What the owners are called.
    pub names: Vec<String>,
    /// The owner of every row, an index into `names`.
    pub of: Vec<u16>,
}

impl Owners {
    /// The rows of each owner among the first ones, in their order.
    pub(crate) fn rows(&self, first: usize) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); self.names.len()];
        for (row, owner) in self.of[..first].iter().enumerate() {
            rows[usize::from(*owner)].push(row);
        }
        rows
    }
}
