//! Long columns in pieces, so that what has been used up can be given back before the rest.

/// The rows of a piece.
pub(super) const BLOCK: usize = 1 << 16;

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Blocks<T> {
    blocks: Vec<Vec<T>>,
}

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self { blocks: Vec::new() }
    }
}

impl<T: Copy> Blocks<T> {
    pub(super) fn push(&mut self, value: T) {
        match self.blocks.last_mut() {
            Some(last) if last.len() < BLOCK => last.push(value),
            None => self.blocks.push(vec![value]),
            Some(_) => {
                let mut next = Vec::with_capacity(BLOCK);
                next.push(value);
                self.blocks.push(next);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    /// The value of a row. Panics beyond the last row, as a slice does.
    pub(super) fn get(&self, row: usize) -> T {
        self.blocks[row / BLOCK][row % BLOCK]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.blocks.iter().flatten().copied()
    }

    /// One piece, which is given away.
    pub(super) fn take(&mut self, block: usize) -> Vec<T> {
        self.blocks.get_mut(block).map(std::mem::take).unwrap_or_default()
    }
}

impl<T: Copy> FromIterator<T> for Blocks<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut blocks = Self::default();
        values.into_iter().for_each(|value| blocks.push(value));
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_its_order() {
        let count = 2 * BLOCK + 3;
        let mut blocks: Blocks<u32> = (0..count as u32).collect();
        assert_eq!(
            (blocks.len(), blocks.get(BLOCK), blocks.get(count - 1)),
            (count, BLOCK as u32, count as u32 - 1)
        );
        assert!(blocks.iter().eq(0..count as u32));
        assert_eq!(
            (blocks.take(2), blocks.take(3)),
            (vec![2 * BLOCK as u32, 2 * BLOCK as u32 + 1, 2 * BLOCK as u32 + 2], vec![])
        );
        assert_eq!(Blocks::<u8>::default().len(), 0);
    }
}
