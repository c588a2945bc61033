//! Where a kernel finds its input rows.

use crate::isa::dispatch;

/// Borrowed input rows, one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowsData<'a> {
    /// 8-bit features; feature `j` of a row means `f32::from(byte) * scale[j] + shift[j]`.
    Bytes {
        /// The rows, `scale.len()` bytes each.
        rows: &'a [u8],
        /// One factor per feature.
        scale: &'a [f32],
        /// One summand per feature.
        shift: &'a [f32],
    },
    /// Features as they are.
    Floats {
        /// The rows, `features` numbers each.
        rows: &'a [f32],
        /// The length of a row.
        features: usize,
    },
}

impl RowsData<'_> {
    /// The number of features of a row.
    #[must_use]
    pub fn features(&self) -> usize {
        match self {
            Self::Bytes { scale, .. } => scale.len(),
            Self::Floats { features, .. } => *features,
        }
    }

    /// How many whole rows there are.
    #[expect(
        clippy::len_without_is_empty,
        reason = "rows of no data are refused where data are read"
    )]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes { rows, scale, .. } => rows.len().checked_div(scale.len()).unwrap_or(0),
            Self::Floats { rows, features } => rows.len().checked_div(*features).unwrap_or(0),
        }
    }

    /// Writes features `from..` of one row, with the affine map applied, to the front of `out`, and
    /// zeros where the row ends before `out` does.
    #[inline(always)]
    pub fn fill(&self, row: usize, from: usize, out: &mut [f32]) {
        let features = self.features();
        let width = out.len().min(features - from);
        let (values, padding) = out.split_at_mut(width);
        let at = row * features + from;
        match self {
            Self::Bytes { rows, scale, shift } => {
                let affine = scale[from..][..width].iter().zip(&shift[from..][..width]);
                for ((value, byte), (scale, shift)) in
                    values.iter_mut().zip(&rows[at..][..width]).zip(affine)
                {
                    *value = f32::from(*byte) * scale + shift;
                }
            }
            Self::Floats { rows, .. } => values.copy_from_slice(&rows[at..][..width]),
        }
        padding.fill(0.0);
    }
}

dispatch! {
    /// Gathers whole rows into `out`, `features` numbers each, in the order of `index`.
    pub fn gather(data: RowsData<'_>, index: &[u32], out: &mut [f32]) {
        for (row, out) in index.iter().zip(out.chunks_exact_mut(data.features())) {
            data.fill(*row as usize, 0, out);
        }
    }
}

dispatch! {
    /// Writes features `from..from + width` of the rows from `top` on, `width` numbers for each, zeros
    /// where a row ends.
    pub fn widen(data: RowsData<'_>, top: usize, from: usize, width: usize, out: &mut [f32]) {
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            data.fill(top + row, from, out);
        }
    }
}

dispatch! {
    /// Adds numbers to sums in double precision.
    pub fn accumulate(part: &[f32], sums: &mut [f64]) {
        for (sum, part) in sums.iter_mut().zip(part) {
            *sum += f64::from(*part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;

    #[test]
    fn gathers_in_order_and_pads() {
        let data = RowsData::Bytes {
            rows: &[1, 2, 3, 10, 20, 30],
            scale: &[1.0, 0.5, 2.0],
            shift: &[0.0, 1.0, 0.0],
        };
        let mut out = [0.0; 9];
        gather(Isa::detect(), data, &[1, 0, 1], &mut out);
        assert_eq!(out, [10.0, 11.0, 60.0, 1.0, 2.0, 6.0, 10.0, 11.0, 60.0]);
        let mut block = [7.0; 4];
        data.fill(1, 1, &mut block);
        assert_eq!(block, [11.0, 60.0, 0.0, 0.0]);
        let floats = RowsData::Floats { rows: &[1.0, 2.0, 3.0, 4.0], features: 2 };
        floats.fill(1, 0, &mut block[..2]);
        assert_eq!(block[..2], [3.0, 4.0]);
        assert_eq!((data.len(), floats.len()), (2, 2));
    }
}
