//! Labelled rows in memory, and what can be done to them without a second copy.

use std::ops::Range;

use super::targets::CopiedTargets;
use super::{Classes, DataError, Owners, Targets};

/// Labelled samples in row-major order. Images stay 8-bit; everything else is `f32`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The name it is listed under.
    pub name: String,
    /// One row per sample.
    pub inputs: Inputs,
    /// The shape of a row that is an image.
    pub image: Option<Image>,
    /// What a model is to say of every row.
    pub targets: Targets,
    /// Which of two groups every row belongs to, where that is asked.
    pub groups: Option<RowGroups>,
    /// Who holds which row, where the data say so.
    pub owners: Option<Owners>,
}

/// Which of two groups every row belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowGroups {
    /// Whether a row belongs to the second.
    pub second: Vec<bool>,
    /// The class about which both are to be treated alike; without one, all rows count.
    pub positive: Option<u16>,
}

impl RowGroups {
    /// Whether a row of this class counts.
    pub fn counts(&self, label: u16) -> bool {
        self.positive.is_none_or(|positive| positive == label)
    }
}

/// The shape of an image that is stored plane after plane, each plane row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// The number of planes: 3 for colours.
    pub channels: usize,
    /// The number of rows of pixels.
    pub height: usize,
    /// The number of pixels in a row.
    pub width: usize,
}

/// The rows of a data set.
#[derive(Debug, Clone, PartialEq)]
pub enum Inputs {
    /// 8-bit features with the affine map that standardises them: feature `j` of a row means
    /// `f32::from(byte) * scale[j] + shift[j]`. The map folds into a model's first layer.
    Bytes {
        /// The bytes, row after row.
        rows: Vec<u8>,
        /// One factor per feature.
        scale: Vec<f32>,
        /// One offset per feature.
        shift: Vec<f32>,
    },
    /// Features as they are.
    Floats {
        /// The values, row after row.
        rows: Vec<f32>,
        /// The number of features of a row.
        features: usize,
    },
}

/// One sample's features, as they are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row<'a> {
    /// 8-bit features, still to be mapped by the data set's scale and shift.
    Bytes(&'a [u8]),
    /// Features as they are.
    Floats(&'a [f32]),
}

/// Some rows of a data set, copied side by side. Bytes are to be mapped by the data set's scale and
/// shift.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Copies {
    pub(crate) inputs: CopiedInputs,
    pub(crate) targets: CopiedTargets,
}

/// The features of copied rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CopiedInputs {
    /// 8-bit features.
    Bytes(Vec<u8>),
    /// Features as they are.
    Floats(Vec<f32>),
}

fn copied<T: Copy>(rows: &[T], features: usize, places: &[usize]) -> Vec<T> {
    let mut copies = Vec::with_capacity(places.len() * features);
    for place in places {
        copies.extend_from_slice(&rows[span(features, *place..*place + 1)]);
    }
    copies
}

/// Which features share one mean and one deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    /// An image stored plane after plane: all pixels of a plane share them.
    Planes(usize),
    /// A table: every column has its own.
    PerFeature,
    /// A table: every column has its own with every owner.
    PerOwner,
    /// None: features stay as they are.
    AsTheyAre,
}

impl Dataset {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The classes of the rows, for what the key asks.
    ///
    /// # Errors
    /// When rows have numbers.
    pub(crate) fn classes(&self, key: &'static str) -> Result<Classes<'_>, DataError> {
        self.targets.classes().ok_or_else(|| {
            let why = format!("asks for classes, but the target of {} is a number", self.name);
            DataError::setting(key, why)
        })
    }

    /// The number of features of a row.
    pub fn features(&self) -> usize {
        match &self.inputs {
            Inputs::Bytes { scale, .. } => scale.len(),
            Inputs::Floats { features, .. } => *features,
        }
    }

    /// Row `index` as it is stored. Panics beyond the last row, as a slice does.
    pub fn row(&self, index: usize) -> Row<'_> {
        let span = span(self.features(), index..index + 1);
        match &self.inputs {
            Inputs::Bytes { rows, .. } => Row::Bytes(&rows[span]),
            Inputs::Floats { rows, .. } => Row::Floats(&rows[span]),
        }
    }

    /// Writes row `index` to `out` as a model sees it: standardised.
    pub fn copy_row(&self, index: usize, out: &mut [f32]) {
        let span = span(self.features(), index..index + 1);
        match &self.inputs {
            Inputs::Bytes { rows, scale, shift } => {
                let maps = scale.iter().zip(shift);
                for ((out, &byte), (scale, shift)) in out.iter_mut().zip(&rows[span]).zip(maps) {
                    *out = f32::from(byte) * scale + shift;
                }
            }
            Inputs::Floats { rows, .. } => out.copy_from_slice(&rows[span]),
        }
    }

    /// Copies of rows, in this order; a row may come twice.
    pub(crate) fn copies(&self, places: &[usize]) -> Copies {
        let features = self.features();
        let inputs = match &self.inputs {
            Inputs::Bytes { rows, .. } => CopiedInputs::Bytes(copied(rows, features, places)),
            Inputs::Floats { rows, .. } => CopiedInputs::Floats(copied(rows, features, places)),
        };
        Copies { inputs, targets: self.targets.copies(places) }
    }

    /// Puts every row into one of two groups by a number of its own: the mean of its features, or one
    /// of them. Rows above the mean of that number over `over` are the second group.
    pub(super) fn group(&mut self, by: Option<usize>, positive: Option<u16>, over: Range<usize>) {
        let mut row = vec![0.0; self.features()];
        let numbers: Vec<f64> = (0..self.len())
            .map(|index| {
                self.copy_row(index, &mut row);
                let mean = || row.iter().map(|value| f64::from(*value)).sum::<f64>();
                by.map_or_else(mean, |feature| f64::from(row[feature]))
            })
            .collect();
        let mean = numbers[over.clone()].iter().sum::<f64>() / over.len().max(1) as f64;
        let second = numbers.iter().map(|number| *number > mean).collect();
        self.groups = Some(RowGroups { second, positive });
    }

    /// Moves row `order[k]` to place `k`, for every `k`, without a second copy of the rows: each
    /// cycle is followed with one row in hand. Rows that `order` does not name are dropped and
    /// their memory is freed.
    ///
    /// Panics if `order` names a row twice or one that does not exist.
    pub fn arrange(&mut self, order: &[usize]) {
        let features = self.features();
        let full = completed(order, self.len());
        let kept = order.len();
        self.targets.arrange(&full, kept);
        if let Some(groups) = &mut self.groups {
            permute(&mut groups.second, 1, &full);
            cut(&mut groups.second, kept);
        }
        if let Some(owners) = &mut self.owners {
            permute(&mut owners.of, 1, &full);
            cut(&mut owners.of, kept);
        }
        match &mut self.inputs {
            Inputs::Bytes { rows, .. } => {
                permute(rows, features, &full);
                cut(rows, kept * features);
            }
            Inputs::Floats { rows, .. } => {
                permute(rows, features, &full);
                cut(rows, kept * features);
            }
        }
    }

    /// Gives the features mean 0 and deviation 1 over `rows` (the training rows), channel by
    /// channel. Bytes stay as they are and get another scale and shift; floats are rewritten.
    ///
    /// A channel that does not vary says nothing and becomes 0 throughout. Without rows or
    /// features nothing changes.
    pub fn standardise(&mut self, rows: Range<usize>, channels: Channels) {
        let features = self.features();
        let width = match channels {
            Channels::PerFeature => 1,
            Channels::Planes(n) if n > 0 && features.is_multiple_of(n) => features / n,
            Channels::Planes(_) => features,
            Channels::PerOwner | Channels::AsTheyAre => return,
        };
        if rows.is_empty() || features == 0 {
            return;
        }
        let counted = rows.len() as f64 * width as f64;
        let span = span(features, rows);
        match &mut self.inputs {
            Inputs::Bytes { rows, scale, shift } => {
                // Sums of bytes and of their squares are exact integers, and so is n²·variance.
                let mut sums = vec![(0u64, 0u64); features / width];
                for row in rows[span].chunks_exact(features) {
                    for (plane, (sum, squares)) in row.chunks_exact(width).zip(&mut sums) {
                        let (s, q) = byte_sums(plane);
                        (*sum, *squares) = (*sum + s, *squares + q);
                    }
                }
                for (channel, (sum, squares)) in sums.into_iter().enumerate() {
                    let spread =
                        u128::from(squares) * counted as u128 - u128::from(sum) * u128::from(sum);
                    let factor = inverse_deviation(spread as f64 / (counted * counted), 0.0);
                    scale[channel * width..][..width].fill(factor as f32);
                    let offset = -(sum as f64 / counted) * factor;
                    shift[channel * width..][..width].fill(offset as f32);
                }
            }
            Inputs::Floats { rows, .. } => {
                let mut means = vec![0f64; features / width];
                each(&rows[span.clone()], features, width, |c, value| means[c] += value / counted);
                let mut variances = vec![0f64; features / width];
                each(&rows[span], features, width, |c, value| {
                    variances[c] += (value - means[c]).powi(2) / counted;
                });
                for row in rows.chunks_exact_mut(features) {
                    for (c, plane) in row.chunks_exact_mut(width).enumerate() {
                        let factor = inverse_deviation(variances[c], means[c]);
                        for value in plane {
                            *value = ((f64::from(*value) - means[c]) * factor) as f32;
                        }
                    }
                }
            }
        }
    }
}

impl Dataset {
    /// Gives every owner's features mean 0 and deviation 1 over its rows among the first ones (the training
    /// rows), feature by feature. An owner without any has its rows as they are.
    pub(super) fn standardise_by_owner(&mut self, first: usize) {
        let (Some(owners), Inputs::Floats { rows, features }) = (&self.owners, &mut self.inputs)
        else {
            return;
        };
        let features = *features;
        if features == 0 {
            return;
        }
        let owner = |row: usize| usize::from(owners.of[row]);
        let mut counts = vec![0f64; owners.names.len()];
        owners.of[..first].iter().for_each(|owner| counts[usize::from(*owner)] += 1.0);
        let mut means = vec![0f64; counts.len() * features];
        let mut variances = means.clone();
        let training = |rows: &[f32], visit: &mut dyn FnMut(usize, usize, f64)| {
            for (row, values) in rows.chunks_exact(features).take(first).enumerate() {
                for (feature, value) in values.iter().enumerate() {
                    visit(owner(row), feature, f64::from(*value));
                }
            }
        };
        training(rows, &mut |owner, feature, value| {
            means[owner * features + feature] += value / counts[owner];
        });
        training(rows, &mut |owner, feature, value| {
            let at = owner * features + feature;
            variances[at] += (value - means[at]).powi(2) / counts[owner];
        });
        for (row, values) in rows.chunks_exact_mut(features).enumerate() {
            let owner = owner(row);
            for (feature, value) in values.iter_mut().enumerate().filter(|_| counts[owner] > 0.0) {
                let at = owner * features + feature;
                let factor = inverse_deviation(variances[at], means[at]);
                *value = ((f64::from(*value) - means[at]) * factor) as f32;
            }
        }
    }
}

/// Calls `visit` with the channel and the value of every number in `rows`.
fn each(rows: &[f32], features: usize, width: usize, mut visit: impl FnMut(usize, f64)) {
    for row in rows.chunks_exact(features) {
        for (channel, plane) in row.chunks_exact(width).enumerate() {
            plane.iter().for_each(|&value| visit(channel, f64::from(value)));
        }
    }
}

/// The sum of some bytes and of their squares.
fn byte_sums(bytes: &[u8]) -> (u64, u64) {
    // 65,536 squares of bytes just fit 32 bits, and 32-bit sums vectorise.
    bytes.chunks(1 << 16).fold((0, 0), |(sum, squares), part| {
        let s: u32 = part.iter().map(|&byte| u32::from(byte)).sum();
        let q: u32 = part.iter().map(|&byte| u32::from(byte) * u32::from(byte)).sum();
        (sum + u64::from(s), squares + u64::from(q))
    })
}

/// One over the deviation; 0 where it is below what an `f32` of that mean can resolve.
fn inverse_deviation(variance: f64, mean: f64) -> f64 {
    if variance > 1e-16 * mean * mean { variance.sqrt().recip() } else { 0.0 }
}

/// Where `rows` lie in a block of rows of `features` numbers.
fn span(features: usize, rows: Range<usize>) -> Range<usize> {
    rows.start * features..rows.end * features
}

/// `order` followed by the rows it leaves out.
fn completed(order: &[usize], len: usize) -> Vec<usize> {
    let mut named = vec![false; len];
    for &row in order {
        assert!(!std::mem::replace(&mut named[row], true), "row {row} is named twice");
    }
    let rest = (0..len).filter(|&row| !named[row]);
    order.iter().copied().chain(rest).collect()
}

/// Moves block `order[k]` of `width` items to place `k`; `order` is a permutation.
pub(super) fn permute<T: Copy>(items: &mut [T], width: usize, order: &[usize]) {
    let mut placed = vec![false; order.len()];
    let mut hand = Vec::with_capacity(width);
    for start in 0..order.len() {
        if placed[start] || order[start] == start {
            continue;
        }
        hand.clear();
        hand.extend_from_slice(&items[start * width..][..width]);
        let mut place = start;
        loop {
            placed[place] = true;
            let from = order[place];
            if from == start {
                items[place * width..][..width].copy_from_slice(&hand);
                break;
            }
            items.copy_within(from * width..(from + 1) * width, place * width);
            place = from;
        }
    }
}

/// Keeps the first `len` items and frees the rest of the memory.
pub(super) fn cut<T>(items: &mut Vec<T>, len: usize) {
    items.truncate(len);
    items.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(rows: Vec<u8>, features: usize) -> Dataset {
        let count = rows.len() / features;
        let second = (0..count).map(|row| row % 3 == 1).collect();
        Dataset {
            groups: Some(RowGroups { second, positive: None }),
            name: "test".into(),
            targets: Targets::Classes {
                of: (0..count).map(|row| row as u16).collect(),
                names: (0..count).map(|row| row.to_string()).collect(),
            },
            owners: Some(Owners {
                names: vec!["north".into(), "south".into()],
                of: (0..count).map(|row| u16::from(row % 5 == 2)).collect(),
            }),
            inputs: Inputs::Bytes { rows, scale: vec![1.0; features], shift: vec![0.0; features] },
            image: None,
        }
    }

    proptest! {
        #[test]
        fn arrange_equals_a_copy(
            order in Just((0..23usize).collect::<Vec<_>>()).prop_shuffle(),
            kept in 0..24usize,
        ) {
            let order = &order[..kept.min(23)];
            let mut data = bytes((0..69).collect(), 3);
            let before = data.clone();
            data.arrange(order);
            prop_assert_eq!(data.len(), order.len());
            for (place, &row) in order.iter().enumerate() {
                prop_assert_eq!(data.row(place), before.row(row));
                prop_assert_eq!(data.targets.kind(place), before.targets.kind(row));
                let owner = |data: &Dataset, row: usize| data.owners.as_ref().unwrap().of[row];
                prop_assert_eq!(owner(&data, place), owner(&before, row));
                let second = |data: &Dataset, row: usize| data.groups.as_ref().unwrap().second[row];
                prop_assert_eq!(second(&data, place), second(&before, row));
            }
        }
    }

    #[test]
    #[should_panic(expected = "row 1 is named twice")]
    fn a_row_cannot_go_to_two_places() {
        bytes(vec![0, 1, 2], 1).arrange(&[1, 1]);
    }

    fn moments(data: &Dataset, rows: Range<usize>, features: Range<usize>) -> (f64, f64) {
        let mut values = Vec::new();
        let mut row = vec![0.0; data.features()];
        for index in rows {
            data.copy_row(index, &mut row);
            values.extend(row[features.clone()].iter().map(|&value| f64::from(value)));
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        (mean, (square / values.len() as f64).sqrt())
    }

    #[test]
    fn standardised_channels_have_mean_0_and_deviation_1_on_the_training_rows() {
        let raw: Vec<u8> = (0..120u32).map(|i| (i * i * 7 % 251) as u8).collect();
        let mut images = bytes(raw.clone(), 6);
        let mut table = images.clone();
        table.inputs =
            Inputs::Floats { rows: raw.iter().map(|&b| f32::from(b)).collect(), features: 6 };
        for (data, channels, width) in
            [(&mut images, Channels::Planes(2), 3), (&mut table, Channels::PerFeature, 1)]
        {
            data.standardise(0..15, channels);
            for channel in 0..6 / width {
                let (mean, deviation) =
                    moments(data, 0..15, channel * width..(channel + 1) * width);
                assert!(mean.abs() < 1e-6 && (deviation - 1.0).abs() < 1e-6, "{mean} {deviation}");
            }
        }
    }

    #[test]
    fn a_constant_channel_becomes_zero_not_infinite() {
        let mut data = bytes(vec![9, 1, 9, 2, 9, 3], 2);
        data.standardise(0..3, Channels::PerFeature);
        assert_eq!(moments(&data, 0..3, 0..1), (0.0, 0.0));
        let mut empty = bytes(vec![], 1);
        empty.standardise(0..0, Channels::Planes(1));
    }
}
