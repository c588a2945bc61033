//! A sum of vectors and what is to be known about it, while a block of everything is in the cache.

use super::dot::{dot_block, tail};
use super::lanes::{Doubles, Element, Lanes, WIDTH};
use super::{BLOCK, Line, SPAN};
use crate::isa::dispatch;
use crate::{Bf16, Isa, Vector};

/// The lines of a block.
const LINES: usize = BLOCK / WIDTH;
/// Vectors of one precision that are read side by side.
const TOGETHER: usize = 4;

/// What was measured of a sum, over one span.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Combined {
    /// Its inner product with itself.
    pub square: f64,
    /// Its inner products with the vectors that were watched.
    pub along: Vec<f64>,
}

/// `out = (start + Σ times · vector) / divisor` over one span, where `start` is zero or what is in
/// `out`, and the sum's inner products with itself and with the `watched`. The columns of the span
/// begin at `first` in the vectors.
///
/// Terms are added one after the other, each product rounded, as by [`add_scaled`].
pub(in super::super) fn combine(
    isa: Isa,
    onto: bool,
    terms: &[(f64, Vector<'_>)],
    divisor: f64,
    watched: &[Vector<'_>],
    first: usize,
    out: &mut [f64],
) -> Combined {
    let end = first + out.len();
    assert!(out.len() <= SPAN, "more than one span");
    for vector in terms.iter().map(|term| &term.1).chain(watched) {
        assert!(end <= vector.len(), "columns that a vector does not have");
    }
    span(isa, onto, terms, divisor, watched, first, out)
}

dispatch! {
    fn span(
        onto: bool, terms: &[(f64, Vector<'_>)], divisor: f64, watched: &[Vector<'_>],
        first: usize, out: &mut [f64]
    ) -> Combined = body over Doubles
}

/// # Safety
/// The machine must have the instructions of `V`, and all vectors the columns.
#[inline(always)]
unsafe fn body<V: Lanes>(
    onto: bool,
    terms: &[(f64, Vector<'_>)],
    divisor: f64,
    watched: &[Vector<'_>],
    first: usize,
    out: &mut [f64],
) -> Combined {
    let mut totals = vec![Line::ZERO; watched.len() + 1];
    let mut sum = [Line::ZERO; LINES];
    for (index, out) in out.chunks_mut(BLOCK).enumerate() {
        let (start, columns) = (first + index * BLOCK, out.len());
        let lines = columns.div_ceil(WIDTH);
        // SAFETY: the block lies within the columns that `out` and all vectors have.
        unsafe {
            match onto {
                true => super::dot::widen::<V>(Vector::F64(out), 0, columns, sum.as_mut_ptr()),
                false => sum[..lines].fill(Line::ZERO),
            }
            add_terms::<V>(terms, start, columns, sum.as_mut_ptr());
            if divisor != 1.0 {
                for line in &mut sum[..lines] {
                    let at: *mut f64 = line.0.as_mut_ptr();
                    V::load_f64(at).div(V::splat(divisor)).store(at);
                }
            }
            // Past the last column there are zeros, which change no sum.
            let block: *const f64 = sum.as_ptr().cast();
            for (vector, total) in watched.iter().zip(&mut totals) {
                let part: V = match vector {
                    Vector::F64(g) => dot_block::<V, f64, f64>(g[start..].as_ptr(), block, columns),
                    Vector::F32(g) => dot_block::<V, f32, f64>(g[start..].as_ptr(), block, columns),
                    Vector::BF16(g) => {
                        dot_block::<V, Bf16, f64>(g[start..].as_ptr(), block, columns)
                    }
                };
                let at: *mut f64 = total.0.as_mut_ptr();
                V::load_f64(at).add(part).store(at);
            }
            let at: *mut f64 = totals[watched.len()].0.as_mut_ptr();
            let square = dot_block::<V, f64, f64>(block, block, columns);
            V::load_f64(at).add(square).store(at);
            std::ptr::copy_nonoverlapping(block, out.as_mut_ptr(), columns);
        }
    }
    let mut along: Vec<f64> = totals.into_iter().map(Line::sum).collect();
    Combined { square: along.pop().unwrap_or_default(), along }
}

/// Adds the terms to a block, as many of one precision as possible side by side.
///
/// # Safety
/// The machine must have the instructions of `V`; all vectors must have the columns, and `sum` lines
/// for them.
#[inline(always)]
unsafe fn add_terms<V: Lanes>(
    terms: &[(f64, Vector<'_>)],
    start: usize,
    columns: usize,
    sum: *mut Line,
) {
    let mut rest = terms;
    while let [(times, vector), ..] = rest {
        // SAFETY: by the contract; all vectors have `columns` numbers from `start` on.
        unsafe {
            macro_rules! of {
                ($precision:ident, $number:ty, $values:expr) => {{
                    let together = rest.first_chunk::<TOGETHER>().and_then(|terms| {
                        let mut all = [(0.0, std::ptr::null()); TOGETHER];
                        for (place, (times, vector)) in all.iter_mut().zip(terms) {
                            let Vector::$precision(values) = vector else { return None };
                            *place = (*times, values[start..].as_ptr());
                        }
                        Some(all)
                    });
                    match together {
                        Some(all) => {
                            add_some::<V, $number, TOGETHER>(all, columns, sum);
                            TOGETHER
                        }
                        None => {
                            let one = [(*times, $values[start..].as_ptr())];
                            add_some::<V, $number, 1>(one, columns, sum);
                            1
                        }
                    }
                }};
            }
            let taken = match vector {
                Vector::F64(values) => of!(F64, f64, values),
                Vector::F32(values) => of!(F32, f32, values),
                Vector::BF16(values) => of!(BF16, Bf16, values),
            };
            rest = &rest[taken..];
        }
    }
}

/// # Safety
/// As above, with `columns` numbers behind every pointer.
#[inline(always)]
unsafe fn add_some<V: Lanes, N: Element, const R: usize>(
    terms: [(f64, *const N); R],
    columns: usize,
    sum: *mut Line,
) {
    // SAFETY: by the contract; what is loaded whole ends before `columns`, and `tail` has eight numbers.
    unsafe {
        let whole = columns / WIDTH;
        for line in 0..whole {
            let at: *mut f64 = sum.add(line).cast();
            let mut value = V::load_f64(at);
            for (times, vector) in terms {
                // The block after this one is wanted next, and too far away to be guessed.
                V::fetch(vector.wrapping_add(line * WIDTH + BLOCK).cast());
                let number: V = N::load(vector.add(line * WIDTH));
                value = value.add(V::splat(times).mul(number));
            }
            value.store(at);
        }
        let rest = columns % WIDTH;
        if rest > 0 {
            let at: *mut f64 = sum.add(whole).cast();
            let mut value = V::load_f64(at);
            for (times, vector) in terms {
                let padded = tail(vector.add(whole * WIDTH), rest);
                value = value.add(V::splat(times).mul(N::load(padded.as_ptr())));
            }
            value.store(at);
        }
    }
}

/// `target += times · vector`; components past the shorter one stay as they are.
pub(in super::super) fn add_scaled(isa: Isa, target: &mut [f64], times: f64, vector: Vector<'_>) {
    match vector {
        Vector::F64(values) => add::<f64>(isa, target, times, values),
        Vector::F32(values) => add::<f32>(isa, target, times, values),
        Vector::BF16(values) => add::<Bf16>(isa, target, times, values),
    }
}

dispatch! {
    fn add<N: Element>(target: &mut [f64], times: f64, vector: &[N]) = add_body over Doubles
}

/// # Safety
/// The machine must have the instructions of `V`.
#[inline(always)]
unsafe fn add_body<V: Lanes, N: Element>(target: &mut [f64], times: f64, vector: &[N]) {
    let columns = target.len().min(vector.len());
    let (to, from) = (target.as_mut_ptr(), vector.as_ptr());
    let whole = columns - columns % WIDTH;
    // SAFETY: both have `columns` numbers.
    unsafe {
        let mut at = 0;
        while at < whole {
            let value = V::splat(times).mul(N::load(from.add(at)));
            V::load_f64(to.add(at)).add(value).store(to.add(at));
            at += WIDTH;
        }
        if at < columns {
            let padded = tail(from.add(at), columns - at);
            let value = Line::of(V::splat(times).mul(N::load(padded.as_ptr())));
            for (target, value) in target[whole..columns].iter_mut().zip(value.0) {
                *target += value;
            }
        }
    }
}
