//! Lists of the errors that are not zero, and of where each of them acts.

use super::floats::FloatLanes;
use super::{Floats, LANES};
use crate::Isa;
use crate::isa::dispatch;

/// Where errors act: error `i`, of which place `k` of four was the largest, at `base[i] + shift[k]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    base: Vec<u32>,
    shift: [u32; 4],
    /// The last place there is.
    last: usize,
}

impl Grid {
    /// The number of bases must be a multiple of [`LANES`].
    pub fn new(base: impl Iterator<Item = usize>, shift: [usize; 4]) -> Self {
        let number = |place: usize| u32::try_from(place).expect("an image fits in memory");
        let base: Vec<u32> = base.map(number).collect();
        assert!(base.len().is_multiple_of(LANES), "whole vectors");
        let shift = shift.map(number);
        let last = base.iter().max().unwrap_or(&0) + shift.iter().max().unwrap_or(&0);
        Self { base, shift, last: last as usize }
    }
}

/// The errors that are not zero and their places.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// With room for one vector more, as are the values.
    places: Vec<u32>,
    values: Vec<f32>,
    count: usize,
    last: usize,
}

impl Places {
    /// The places of the errors that are not zero.
    #[inline(always)]
    pub fn places(&self) -> &[u32] {
        &self.places[..self.count]
    }

    /// The errors that are not zero.
    #[inline(always)]
    pub fn values(&self) -> &[f32] {
        &self.values[..self.count]
    }

    /// A bound on all places, which the grid has given.
    pub fn last(&self) -> usize {
        self.last
    }
}

/// Lists the errors that are not zero, one error for each base of the grid.
pub fn select(isa: Isa, errors: &[f32], which: &[u8], grid: &Grid, list: &mut Places) {
    let room = errors.len() + LANES;
    if list.places.len() < room {
        list.places.resize(room, 0);
        list.values.resize(room, 0.0);
    }
    let (places, values) = (&mut list.places, &mut list.values);
    list.count = select_all(isa, errors, which, &grid.base, grid.shift, places, values);
    list.last = grid.last;
}

dispatch! {
    /// Returns how many errors are not zero.
    fn select_all(
        errors: &[f32], which: &[u8], base: &[u32], shift: [u32; 4], places: &mut [u32],
        values: &mut [f32],
    ) -> usize {
        assert!(errors.len().is_multiple_of(LANES), "whole vectors");
        assert_eq!((which.len(), base.len()), (errors.len(), errors.len()), "lengths");
        let room = errors.len() + LANES;
        assert!(places.len() >= room && values.len() >= room, "room");
    } = all over Floats
}

/// # Safety
/// The lengths are those that [`select_all`] checks.
#[inline(always)]
unsafe fn all<V: FloatLanes>(
    errors: &[f32],
    which: &[u8],
    base: &[u32],
    shift: [u32; 4],
    places: &mut [u32],
    values: &mut [f32],
) -> usize {
    let mut count = 0;
    for from in (0..errors.len()).step_by(V::LANES) {
        // SAFETY: the length is a multiple of `LANES`; `count <= from`, and both lists have room for
        // one vector more than there are errors.
        count += unsafe {
            V::select(
                errors.as_ptr().add(from),
                which.as_ptr().add(from),
                base.as_ptr().add(from),
                shift,
                places.as_mut_ptr().add(count),
                values.as_mut_ptr().add(count),
            )
        };
    }
    count
}
