//! One inner product.

use super::lanes::{Doubles, Element, Lanes, WIDTH, add_product};
use super::{BLOCK, Line, SPAN};
use crate::isa::dispatch;
use crate::{Bf16, Isa, Vector};

/// The inner product; components past the shorter vector do not count.
pub(in super::super) fn dot(isa: Isa, a: Vector<'_>, b: Vector<'_>) -> f64 {
    use Vector::{BF16, F32, F64};
    match (a, b) {
        (F64(a), F64(b)) => spans(isa, a, b),
        (F32(a), F32(b)) => spans(isa, a, b),
        (BF16(a), BF16(b)) => spans(isa, a, b),
        (F32(a), F64(b)) | (F64(b), F32(a)) => spans(isa, a, b),
        (BF16(a), F64(b)) | (F64(b), BF16(a)) => spans(isa, a, b),
        (BF16(a), F32(b)) | (F32(b), BF16(a)) => spans(isa, a, b),
    }
}

fn spans<A: Element, B: Element>(isa: Isa, a: &[A], b: &[B]) -> f64 {
    let columns = a.len().min(b.len());
    if columns <= SPAN {
        return dot_span::<A, B>(isa, &a[..columns], &b[..columns]);
    }
    let spans = a[..columns].chunks(SPAN).zip(b[..columns].chunks(SPAN));
    spans.map(|(a, b)| dot_span::<A, B>(isa, a, b)).sum()
}

dispatch! {
    /// The inner product of one span, of which both have the same columns.
    fn dot_span<A: Element, B: Element>(a: &[A], b: &[B]) -> f64 = body over Doubles
}

/// # Safety
/// The machine must have the instructions of `V`.
#[inline(always)]
unsafe fn body<V: Lanes, A: Element, B: Element>(a: &[A], b: &[B]) -> f64 {
    let columns = a.len().min(b.len());
    let (a, b) = (a.as_ptr(), b.as_ptr());
    // SAFETY: every block lies within `columns`, which both slices have.
    unsafe {
        let mut total = V::zero();
        let mut start = 0;
        // Four blocks side by side, so that no sum waits for its last addition.
        while start + 4 * BLOCK <= columns {
            let mut sums = [V::zero(); 4];
            for at in (start..start + BLOCK).step_by(WIDTH) {
                for (block, sum) in sums.iter_mut().enumerate() {
                    let at = at + block * BLOCK;
                    // What is wanted next is too far away to be guessed.
                    V::fetch(a.wrapping_add(at + 4 * BLOCK).cast());
                    V::fetch(b.wrapping_add(at + 4 * BLOCK).cast());
                    *sum = add_product::<V, A, B>(*sum, A::load(a.add(at)), B::load(b.add(at)));
                }
            }
            for sum in sums {
                total = total.add(sum);
            }
            start += 4 * BLOCK;
        }
        while start < columns {
            let block = BLOCK.min(columns - start);
            total = total.add(dot_block::<V, A, B>(a.add(start), b.add(start), block));
            start += block;
        }
        Line::of(total).sum()
    }
}

dispatch! {
    /// The inner product of vectors so short that many sums side by side are worth more than being the
    /// same number in every kernel: rows of a small factor.
    pub(in super::super) fn dot_short(a: &[f64], b: &[f64]) -> f64 = short over Doubles
}

/// # Safety
/// The machine must have the instructions of `V`.
#[inline(always)]
unsafe fn short<V: Lanes>(a: &[f64], b: &[f64]) -> f64 {
    const SUMS: usize = 4;
    let columns = a.len().min(b.len());
    let (a, b) = (a.as_ptr(), b.as_ptr());
    // SAFETY: both have `columns` numbers.
    unsafe {
        let mut sums = [V::zero(); SUMS];
        let mut start = 0;
        while start + SUMS * WIDTH <= columns {
            for (index, sum) in sums.iter_mut().enumerate() {
                let at = start + index * WIDTH;
                *sum = sum.add(V::load_f64(a.add(at)).mul(V::load_f64(b.add(at))));
            }
            start += SUMS * WIDTH;
        }
        for sum in &mut sums {
            let block = WIDTH.min(columns - start);
            *sum = sum.add(dot_block::<V, f64, f64>(a.add(start), b.add(start), block));
            start += block;
        }
        let [first, second, third, fourth] = sums;
        Line::of(first.add(third).add(second.add(fourth))).sum()
    }
}

/// The eight sums of a block.
///
/// # Safety
/// The machine must have the instructions of `V`, and both pointers `columns` numbers.
#[inline(always)]
pub(super) unsafe fn dot_block<V: Lanes, A: Element, B: Element>(
    a: *const A,
    b: *const B,
    columns: usize,
) -> V {
    // SAFETY: by the contract; what is loaded whole ends before `columns`, and `tail` has eight numbers.
    unsafe {
        let mut sum = V::zero();
        let whole = columns - columns % WIDTH;
        let mut at = 0;
        while at < whole {
            sum = add_product::<V, A, B>(sum, A::load(a.add(at)), B::load(b.add(at)));
            at += WIDTH;
        }
        if at < columns {
            let (a, b) = (tail(a.add(at), columns - at), tail(b.add(at), columns - at));
            sum = add_product::<V, A, B>(sum, A::load(a.as_ptr()), B::load(b.as_ptr()));
        }
        sum
    }
}

/// Fewer than eight numbers, with zeros for those that are missing.
///
/// # Safety
/// There must be `count` numbers, and no more than eight.
#[inline(always)]
pub(super) unsafe fn tail<N: Element>(at: *const N, count: usize) -> [N; WIDTH] {
    let mut numbers = [N::ZERO; WIDTH];
    for (index, number) in numbers.iter_mut().enumerate().take(count) {
        // SAFETY: there are `count` numbers, by the contract.
        *number = unsafe { *at.add(index) };
    }
    numbers
}

/// Widens `columns` numbers into lines, with zeros after the last.
///
/// # Safety
/// The machine must have the instructions of `V`; there must be `columns` numbers behind `from`, and
/// room for them, rounded up to whole lines, behind `to`.
#[inline(always)]
pub(super) unsafe fn widen<V: Lanes>(
    vector: Vector<'_>,
    start: usize,
    columns: usize,
    to: *mut Line,
) {
    #[inline(always)]
    unsafe fn each<V: Lanes, N: Element>(from: *const N, columns: usize, to: *mut Line) {
        // SAFETY: by the contract of `widen`; what is loaded whole ends before `columns`.
        unsafe {
            let lines = columns / WIDTH;
            for line in 0..lines {
                // The block after this one is wanted next, and too far away to be guessed.
                V::fetch(from.wrapping_add(line * WIDTH + BLOCK).cast());
                N::load::<V>(from.add(line * WIDTH)).store(to.add(line).cast());
            }
            let rest = columns % WIDTH;
            if rest > 0 {
                let padded = tail(from.add(lines * WIDTH), rest);
                N::load::<V>(padded.as_ptr()).store(to.add(lines).cast());
            }
        }
    }
    // SAFETY: passed on: the caller promises `columns` numbers from `start` on.
    unsafe {
        match vector {
            Vector::F64(values) => each::<V, f64>(values[start..].as_ptr(), columns, to),
            Vector::F32(values) => each::<V, f32>(values[start..].as_ptr(), columns, to),
            Vector::BF16(values) => each::<V, Bf16>(values[start..].as_ptr(), columns, to),
        }
    }
}
