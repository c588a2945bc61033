//! What a model is to say of some rows, as it reads them, and what it puts out for that.

/// What a model is to say of some rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowTargets<'a> {
    /// The class of every row.
    Classes(&'a [u16]),
    /// The number of every row.
    Numbers(&'a [f32]),
}

impl RowTargets<'_> {
    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Classes(labels) => labels.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many rows are of each of `kinds` kinds: of each class, or all of one kind.
    pub(crate) fn counts(&self, kinds: usize) -> Vec<usize> {
        let mut counts = vec![0; kinds];
        match self {
            Self::Classes(labels) => {
                labels.iter().for_each(|label| counts[usize::from(*label)] += 1);
            }
            Self::Numbers(numbers) => counts[0] = numbers.len(),
        }
        counts
    }
}

impl<'a, T: AsRef<[u16]> + ?Sized> From<&'a T> for RowTargets<'a> {
    fn from(labels: &'a T) -> Self {
        Self::Classes(labels.as_ref())
    }
}

/// What a network puts out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// One of this number of classes.
    Classes(usize),
    /// A number.
    Number,
}

impl From<usize> for Output {
    fn from(classes: usize) -> Self {
        Self::Classes(classes)
    }
}
