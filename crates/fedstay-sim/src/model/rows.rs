//! Rows with their targets, borrowed from the holder of the data.

use super::{Error, RowProducts, RowTargets};
use crate::data::Scale;
pub use fedstay_kernels::layer::rows::RowsData;

/// An agent's samples: inputs and a target for each.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    data: RowsData<'a>,
    targets: RowTargets<'a>,
    products: Option<&'a RowProducts>,
    scale: Scale,
}

impl<'a> Rows<'a> {
    /// Checks that there is a target for every row and, for bytes, a whole affine map.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows, [`Error::Length`] where lengths disagree,
    /// [`Error::NotFinite`] for a map that is not finite.
    pub fn new(data: RowsData<'a>, targets: impl Into<RowTargets<'a>>) -> Result<Self, Error> {
        let targets = targets.into();
        let features = data.features();
        if features == 0 {
            return Err(Error::Zero { what: "feature" });
        }
        let got = match data {
            RowsData::Bytes { rows, scale, shift } => {
                length("shift", scale.len(), shift.len())?;
                finite("scale", scale)?;
                finite("shift", shift)?;
                rows.len()
            }
            RowsData::Floats { rows, .. } => rows.len(),
        };
        length("rows", targets.len() * features, got)?;
        if targets.is_empty() {
            return Err(Error::Empty { what: "the data" });
        }
        if let RowTargets::Numbers(numbers) = targets {
            finite("target", numbers)?;
        }
        if u32::try_from(targets.len()).is_err() {
            return Err(Error::TooManyRows { rows: targets.len() });
        }
        Ok(Self { data, targets, products: None, scale: Scale::default() })
    }

    /// The same rows, with a place for their products with each other: local steps then use them
    /// where that is less work. The place must not have been used for other rows.
    #[must_use]
    pub fn with_products(self, products: &'a RowProducts) -> Self {
        Self { products: Some(products), ..self }
    }

    /// The same rows, of which it is known what their numbers mean.
    #[must_use]
    pub fn with_scale(self, scale: Scale) -> Self {
        Self { scale, ..self }
    }

    /// What 0 and 1 mean, where rows have numbers.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.scale
    }

    pub(crate) fn products(&self) -> Option<&'a RowProducts> {
        self.products
    }

    /// The inputs.
    #[must_use]
    pub fn data(&self) -> RowsData<'a> {
        self.data
    }

    /// What a model is to say of them.
    #[must_use]
    pub fn targets(&self) -> RowTargets<'a> {
        self.targets
    }

    /// How many rows there are; at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "never empty, by construction")]
    pub fn len(&self) -> usize {
        self.targets.len()
    }
}

/// Which rows a gradient is taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch<'a> {
    /// All rows.
    All,
    /// These rows, in this order; a row may come twice.
    Rows(&'a [u32]),
}

impl Batch<'_> {
    /// How many samples the batch has.
    pub(crate) fn len(&self, rows: &Rows<'_>) -> usize {
        match self {
            Self::All => rows.len(),
            Self::Rows(index) => index.len(),
        }
    }

    /// Checks that the batch is not empty and that every row exists.
    pub(crate) fn check(&self, rows: &Rows<'_>) -> Result<(), Error> {
        let Self::Rows(index) = self else { return Ok(()) };
        if index.is_empty() {
            return Err(Error::Empty { what: "a batch" });
        }
        match index.iter().find(|row| **row as usize >= rows.len()) {
            Some(row) => Err(Error::Row { row: *row, rows: rows.len() }),
            None => Ok(()),
        }
    }

    /// Visits every row of the batch, in order.
    pub(crate) fn each(&self, rows: &Rows<'_>, mut visit: impl FnMut(usize)) {
        match self {
            Self::All => (0..rows.len()).for_each(visit),
            Self::Rows(index) => index.iter().for_each(|row| visit(*row as usize)),
        }
    }

    /// Writes samples `from..from + count` of the batch to `index`.
    pub(crate) fn tile(&self, from: usize, count: usize, index: &mut Vec<u32>) {
        index.clear();
        match self {
            Self::All => index.extend(from as u32..(from + count) as u32),
            Self::Rows(rows) => index.extend_from_slice(&rows[from..from + count]),
        }
    }
}

pub(crate) fn length(what: &'static str, expected: usize, got: usize) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::Length { what, expected, got }) }
}

pub(crate) fn finite(what: &'static str, values: &[f32]) -> Result<(), Error> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(Error::NotFinite { what, index, value: values[index].into() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_does_not_fit() {
        let bytes = |rows, scale, shift| RowsData::Bytes { rows, scale, shift };
        let (one, nan) = ([1.0; 2], [1.0, f32::NAN]);
        assert!(Rows::new(bytes(&[1, 2, 3, 4], &one, &one), &[0, 1]).is_ok());
        assert!(matches!(
            Rows::new(bytes(&[1, 2, 3], &one, &one), &[0, 1]),
            Err(Error::Length { .. })
        ));
        assert!(matches!(
            Rows::new(bytes(&[1, 2], &one, &one[..1]), &[0]),
            Err(Error::Length { .. })
        ));
        assert!(matches!(
            Rows::new(bytes(&[1, 2], &one, &nan), &[0]),
            Err(Error::NotFinite { .. })
        ));
        assert!(matches!(Rows::new(bytes(&[], &one, &one), &[]), Err(Error::Empty { .. })));
        assert!(matches!(Rows::new(bytes(&[], &[], &[]), &[]), Err(Error::Zero { .. })));
        let floats = RowsData::Floats { rows: &[1.0, 2.0], features: 1 };
        let rows = Rows::new(floats, &[0, 1]).unwrap();
        assert_eq!(Batch::Rows(&[2]).check(&rows), Err(Error::Row { row: 2, rows: 2 }));
        assert!(matches!(Batch::Rows(&[]).check(&rows), Err(Error::Empty { .. })));
        assert_eq!(Batch::All.len(&rows), 2);
    }
}
