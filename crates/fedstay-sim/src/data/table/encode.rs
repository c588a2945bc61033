//! Features made of columns: a number is one, a category has one of 0 and 1 for each of its texts.
//!
//! A category with two texts has one feature, `sex = M`; one with more has one for each, in the order of the
//! texts, which are taken from all rows. What is missing in a category is a text of its own. What is missing
//! in numbers is filled by what is usual in the training rows, and a feature of 0 and 1, `age is missing`,
//! says where.

use super::blocks::BLOCK;
use super::column::Role;
use super::prepared::Prepared;
use super::raw::RawTable;
use super::settings::Fill;
use super::values::{CellValues, Levels, MISSING};
use crate::data::DataError;

/// What becomes of a column.
enum Becomes {
    /// Itself, with this where it is missing, and whether another feature says so.
    Number { fill: f32, flag: bool },
    /// 1 where it has this text.
    Is(u32),
    /// The place of each text, and of what is missing, among so many features.
    Each { places: Vec<u32>, missing: u32, width: usize },
}

impl Becomes {
    fn width(&self) -> usize {
        match self {
            Self::Number { flag, .. } => 1 + usize::from(*flag),
            Self::Is(_) => 1,
            Self::Each { width, .. } => *width,
        }
    }
}

/// The features that a category becomes: a name each.
pub(super) fn category(name: &str, levels: &Levels, missing: bool) -> Vec<String> {
    let sorted = levels.sorted();
    let mut names: Vec<String> =
        sorted.iter().map(|code| format!("{name} = {}", levels.texts[*code as usize])).collect();
    if missing {
        names.push(format!("{name} is missing"));
    }
    match names.len() {
        1 => Vec::new(),
        2 => names.split_off(1),
        _ => names,
    }
}

/// What features are called, in their order.
pub(super) fn names(raw: &RawTable) -> Vec<String> {
    let features = raw.columns.iter().filter(|column| column.role == Role::Feature);
    let of = |column: &super::column::TableColumn| match &column.values {
        CellValues::Numbers(_) => {
            let missing = (column.missing.0 > 0).then(|| format!("{} is missing", column.name));
            std::iter::once(column.name.clone()).chain(missing).collect()
        }
        CellValues::Texts(_, levels) => category(&column.name, levels, column.missing.0 > 0),
        _ => Vec::new(),
    };
    features.flat_map(of).collect()
}

impl Prepared {
    /// The features of the rows in use, row after row, and how many each has. What was read is given away
    /// piece by piece.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub(super) fn features(
        &mut self,
        fill: Fill,
        test: &[bool],
    ) -> Result<(Vec<f32>, usize), DataError> {
        let becomes = self.becomes(fill, test);
        let features: usize = becomes.iter().map(|(_, becomes)| becomes.width()).sum();
        let mut rows: Vec<f32> = Vec::new();
        let size = self.rows.len().saturating_mul(features);
        rows.try_reserve_exact(size).map_err(|_| {
            let why = format!(
                "{} rows of {features} features do not fit into memory: leave out categories with many texts",
                self.rows.len()
            );
            DataError::setting("data.leave_out", why)
        })?;
        let mut used = self.rows.iter().copied().peekable();
        for block in 0..self.raw.rows.div_ceil(BLOCK) {
            let columns = &mut self.raw.columns;
            let pieces: Vec<Piece<'_>> = becomes
                .iter()
                .map(|(at, becomes)| match &mut columns[*at].values {
                    CellValues::Numbers(numbers) => Piece::Numbers(numbers.take(block), becomes),
                    CellValues::Texts(codes, _) => Piece::Codes(codes.take(block), becomes),
                    _ => Piece::Numbers(Vec::new(), becomes),
                })
                .collect();
            let first = block * BLOCK;
            while let Some(row) = used.next_if(|row| (*row as usize) < first + BLOCK) {
                pieces.iter().for_each(|piece| piece.write(row as usize - first, &mut rows));
            }
        }
        Ok((rows, features))
    }

    /// What becomes of each column with features.
    fn becomes(&self, fill: Fill, test: &[bool]) -> Vec<(usize, Becomes)> {
        let columns = self.raw.columns.iter().enumerate();
        let features = columns.filter(|(_, column)| column.role == Role::Feature);
        let of = |(at, column): (usize, &super::column::TableColumn)| {
            let flag = column.missing.0 > 0;
            let becomes = match &column.values {
                CellValues::Numbers(numbers) => {
                    let mut fill_in = 0.0;
                    if flag {
                        let train = self.rows.iter().zip(test).filter(|(_, test)| !**test);
                        let known = train.map(|(row, _)| numbers.get(*row as usize));
                        fill_in = usual(known.filter(|number| !number.is_nan()).collect(), fill);
                    }
                    Becomes::Number { fill: fill_in, flag }
                }
                CellValues::Texts(_, levels) => {
                    let sorted = levels.sorted();
                    match (sorted.len() + usize::from(flag), &sorted[..]) {
                        (0 | 1, _) => return None,
                        (2, [_, second]) => Becomes::Is(*second),
                        (2, _) => Becomes::Is(MISSING),
                        (width, _) => {
                            let mut places = vec![0; sorted.len()];
                            for (place, code) in sorted.iter().enumerate() {
                                places[*code as usize] = place as u32;
                            }
                            Becomes::Each { places, missing: sorted.len() as u32, width }
                        }
                    }
                }
                _ => return None,
            };
            Some((at, becomes))
        };
        features.filter_map(of).collect()
    }
}

/// A piece of a column, and what becomes of it.
enum Piece<'a> {
    Numbers(Vec<f32>, &'a Becomes),
    Codes(Vec<u32>, &'a Becomes),
}

impl Piece<'_> {
    fn write(&self, row: usize, out: &mut Vec<f32>) {
        match self {
            Self::Numbers(numbers, Becomes::Number { fill, flag }) => {
                let number = numbers.get(row).copied().unwrap_or(f32::NAN);
                let missing = number.is_nan();
                out.push(if missing { *fill } else { number });
                if *flag {
                    out.push(f32::from(u8::from(missing)));
                }
            }
            Self::Codes(codes, Becomes::Is(code)) => {
                out.push(f32::from(u8::from(codes[row] == *code)))
            }
            Self::Codes(codes, Becomes::Each { places, missing, width }) => {
                let place = places.get(codes[row] as usize).unwrap_or(missing);
                let start = out.len();
                out.resize(start + width, 0.0);
                out[start + *place as usize] = 1.0;
            }
            // A column becomes what its values are.
            Self::Numbers(..) | Self::Codes(..) => {}
        }
    }
}

/// What is usual among some numbers; 0 where there are none.
fn usual(mut numbers: Vec<f32>, fill: Fill) -> f32 {
    if numbers.is_empty() {
        return 0.0;
    }
    if fill == Fill::Mean {
        let count = numbers.len() as f64;
        return numbers.iter().map(|number| f64::from(*number) / count).sum::<f64>() as f32;
    }
    let (middle, even) = (numbers.len() / 2, numbers.len().is_multiple_of(2));
    let (below, upper, _) = numbers.select_nth_unstable_by(middle, f32::total_cmp);
    match below.iter().copied().max_by(f32::total_cmp) {
        Some(lower) if even => ((f64::from(lower) + f64::from(*upper)) / 2.0) as f32,
        _ => *upper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_is_the_median_or_the_mean() {
        let median = |numbers: &[f32]| usual(numbers.to_vec(), Fill::Median);
        assert_eq!(
            (median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 9.0]), median(&[5.0])),
            (2.0, 3.0, 5.0)
        );
        assert_eq!((usual(vec![1.0, 2.0, 6.0], Fill::Mean), median(&[])), (3.0, 0.0));
    }
}
