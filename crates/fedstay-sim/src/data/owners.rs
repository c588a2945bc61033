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

    /// Puts rows into the order of their owners, each owner's in their order; returns where each
    /// owner's begin, and where those of the last one end.
    pub(crate) fn line_up(&self, rows: &mut [usize]) -> Vec<usize> {
        rows.sort_by_key(|row| self.of[*row]);
        let ends = |owner: usize| rows.partition_point(|row| usize::from(self.of[*row]) < owner);
        (0..=self.names.len()).map(ends).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_lined_up_owner_by_owner_and_an_owner_without_any_has_an_empty_place() {
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        let owners = Owners { names, of: vec![2, 0, 2, 0, 0] };
        let mut rows = vec![4, 2, 1, 0];
        assert_eq!(owners.line_up(&mut rows), [0, 2, 2, 4]);
        assert_eq!(rows, [4, 1, 2, 0]);
    }
}
