//! Who computes sums over long vectors: an instruction set and, if the caller has some, several hands.
//!
//! The core starts no threads. A caller that has threads hands them in as [`Workers`]; a long vector is then
//! cut into spans that do not depend on how many there are, and what the spans came to is added in
//! their order. So neither the instruction set nor the number of threads changes a bit.

use super::kernel::{self, Combined, SPAN, Sums};
use crate::{Isa, Vector, lock};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Below this many numbers to read, handing out work costs more than it saves.
const WORTH_SHARING: usize = 1 << 18;
/// The vectors that one hand measures along a step; where there are more of them than that for each span,
/// they are shared out, not the spans.
const MANY: usize = 32;
/// Products that a number from memory takes part in by the time the next one is there.
const FREE: usize = 16;
/// The columns of a sum that one hand forms.
const PIECE: usize = 1 << 9;
/// Vectors of a Gram matrix that are widened together, or half of those that are copied in single precision;
/// with the totals of their products they fill about half of a second-level cache.
const PANEL: usize = 64;

/// Hands to share work among: a pool of threads, in most cases.
pub trait Workers: Send + Sync {
    /// Calls `part` once with every number below `parts`, in any order and on any thread, and returns
    /// when all calls have returned.
    fn share(&self, parts: usize, part: &(dyn Fn(usize) + Sync));

    /// Calls `work` once, where it is quickest to share parts of it from, and returns when it has returned:
    /// on a thread of the pool, if threads from outside have to wake one for every part.
    fn host(&self, work: &mut (dyn FnMut() + Send)) {
        work();
    }
}

/// What sums over long vectors are computed with.
///
/// ```
/// # extern crate fedstay_kernels as fedstay;
/// use fedstay::numerics::{Machine, Workers};
/// use std::sync::Arc;
///
/// /// One thread per part: simple, and good enough for few parts.
/// struct Scoped;
///
/// impl Workers for Scoped {
///     fn share(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
///         std::thread::scope(|scope| {
///             (0..parts).for_each(|index| drop(scope.spawn(move || part(index))));
///         });
///     }
/// }
///
/// let machine = Machine::default().with_workers(Arc::new(Scoped));
/// # let _ = machine;
/// ```
#[derive(Clone)]
pub struct Machine {
    isa: Isa,
    workers: Option<Arc<dyn Workers>>,
}

impl Default for Machine {
    /// The strongest instruction set there is, on the calling thread.
    fn default() -> Self {
        Self::new(Isa::detect())
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hands = if self.workers.is_some() { " with workers" } else { "" };
        write!(f, "{}{hands}", self.isa.name())
    }
}

/// All machines are equal: what they compute does not depend on which it is.
impl PartialEq for Machine {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The lower triangle of a Gram matrix, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Gram {
    entries: Vec<f64>,
}

impl Gram {
    /// The inner product of two of the vectors.
    pub fn get(&self, one: usize, other: usize) -> f64 {
        let (row, column) = (one.max(other), one.min(other));
        self.entries[triangle(row) + column]
    }
}

/// The number of entries in the first rows of a lower triangle.
fn triangle(rows: usize) -> usize {
    rows * (rows + 1) / 2
}

impl Machine {
    /// This instruction set, on the calling thread.
    pub fn new(isa: Isa) -> Self {
        Self { isa, workers: None }
    }

    /// This machine, with hands to share work among.
    #[must_use]
    pub fn with_workers(self, workers: Arc<dyn Workers>) -> Self {
        Self { workers: Some(workers), ..self }
    }

    /// What `work` came to, done by one of the hands if there are some: for work of which many parts will be
    /// shared, one after the other.
    pub fn host<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let Some(workers) = &self.workers else { return work() };
        let (mut work, mut came) = (Some(work), None);
        let mut once = || {
            if let Some(work) = work.take() {
                came = Some(work());
            }
        };
        workers.host(&mut once);
        // Workers that forget it are slow, not wrong.
        once();
        came.expect("it is done by now")
    }

    /// The inner product of every vector with itself.
    pub fn squares(&self, vectors: &[Vector<'_>]) -> Vec<f64> {
        let columns = vectors.iter().map(Vector::len).max().unwrap_or(0);
        let parts = self.spans(columns, vectors.len(), |span| {
            let square = |vector: &Vector<'_>| {
                let part = vector.slice(span.start.min(vector.len())..span.end.min(vector.len()));
                kernel::dot(self.isa, part, part)
            };
            vectors.iter().map(square).collect()
        });
        sum(parts)
    }

    /// The inner products of all pairs.
    pub fn gram(&self, vectors: &[Vector<'_>]) -> Gram {
        Gram { entries: self.gram_rows(Sums::Double, vectors, 0) }
    }

    /// The lower triangle of the Gram matrix from row `first` on, row by row. All vectors must have
    /// the same number of components.
    pub fn gram_rows(&self, sums: Sums, vectors: &[Vector<'_>], first: usize) -> Vec<f64> {
        let mut entries = Vec::new();
        self.gram_onto(sums, vectors, first, &mut entries);
        entries
    }

    /// The same, at the end of what is there.
    pub fn gram_onto(&self, sums: Sums, vectors: &[Vector<'_>], first: usize, onto: &mut Vec<f64>) {
        let columns = vectors.first().map_or(0, Vector::len);
        let most = if sums == Sums::Single { 2 * PANEL } else { PANEL };
        let (old, new) = (panels(0..first, most), panels(first..vectors.len(), most));
        let mut pairs: Vec<(Range<usize>, Option<Range<usize>>)> = Vec::new();
        for (index, rows) in new.iter().enumerate() {
            let beside = old.iter().chain(&new[..index]);
            pairs.extend(beside.map(|others| (rows.clone(), Some(others.clone()))));
            pairs.push((rows.clone(), None));
        }
        let spans = columns.div_ceil(SPAN).max(1);
        let new = vectors.len() - first.min(vectors.len());
        // While one is read from memory, its products with several others take no longer.
        let times = (vectors.len() / FREE).max(1);
        let numbers = columns.saturating_mul(new).saturating_mul(times);
        let blocks = self.parts(pairs.len() * spans, numbers, |part| {
            let (rows, others) = &pairs[part / spans];
            let others = others.as_ref().map(|others| &vectors[others.clone()]);
            let span = span(part % spans, columns);
            kernel::products(self.isa, sums, &vectors[rows.clone()], others, span)
        });
        let before = onto.len();
        onto.resize(before + triangle(vectors.len()) - triangle(first), 0.0);
        let entries = &mut onto[before..];
        let mut blocks = blocks.into_iter();
        for (rows, others) in pairs {
            let mut values = sum(blocks.by_ref().take(spans).collect()).into_iter();
            for row in rows.clone() {
                let columns = others.clone().unwrap_or(rows.start..row + 1);
                let start = triangle(row) - triangle(first);
                for (entry, value) in entries[start..][columns].iter_mut().zip(&mut values) {
                    *entry = value;
                }
            }
        }
    }

    /// `out = (start + Σ times · vector) / divisor`, where `start` is zero or, if `onto`, what is in
    /// `out`; and, from the same pass, the inner products of the sum with itself and with the
    /// `watched`. All vectors must have as many components as `out`.
    pub fn combine(
        &self,
        onto: bool,
        terms: &[(f64, Vector<'_>)],
        divisor: f64,
        watched: &[Vector<'_>],
        out: &mut [f64],
    ) -> Combined {
        let numbers = out.len().saturating_mul(terms.len());
        let many = watched.len() > out.len().div_ceil(SPAN) * MANY && numbers >= WORTH_SHARING;
        if many && self.workers.is_some() {
            self.form(onto, terms, divisor, numbers, out);
            let square = self.along(&[Vector::F64(out)], out)[0];
            return Combined { square, along: self.along(watched, out) };
        }
        let spans: Vec<Mutex<&mut [f64]>> = out.chunks_mut(SPAN).map(Mutex::new).collect();
        let parts = self.parts(spans.len(), numbers, |part| {
            let mut out = lock(&spans[part]);
            kernel::combine(self.isa, onto, terms, divisor, watched, part * SPAN, &mut out)
        });
        let mut all = Combined { square: 0.0, along: vec![0.0; watched.len()] };
        for part in parts {
            all.square += part.square;
            all.along.iter_mut().zip(part.along).for_each(|(all, part)| *all += part);
        }
        all
    }

    /// A sum that is measured afterwards: pieces of it are formed by the hands that are free.
    fn form(
        &self,
        onto: bool,
        terms: &[(f64, Vector<'_>)],
        divisor: f64,
        numbers: usize,
        out: &mut [f64],
    ) {
        let pieces: Vec<Mutex<&mut [f64]>> = out.chunks_mut(PIECE).map(Mutex::new).collect();
        self.parts(pieces.len(), numbers, |part| {
            let mut out = lock(&pieces[part]);
            kernel::combine(self.isa, onto, terms, divisor, &[], part * PIECE, &mut out);
        });
    }

    /// The inner products of all vectors with a step.
    pub fn along(&self, vectors: &[Vector<'_>], step: &[f64]) -> Vec<f64> {
        let numbers = step.len().saturating_mul(vectors.len());
        let parts: Vec<&[Vector<'_>]> = vectors.chunks(MANY).collect();
        let measured = self.parts(parts.len(), numbers, |part| {
            let along = |vector: &Vector<'_>| kernel::dot(self.isa, *vector, Vector::F64(step));
            parts[part].iter().map(along).collect::<Vec<f64>>()
        });
        measured.concat()
    }

    /// `target += times · vector`.
    pub fn add_scaled(&self, target: &mut [f64], times: f64, vector: Vector<'_>) {
        let numbers = target.len();
        let spans: Vec<Mutex<&mut [f64]>> = target.chunks_mut(SPAN).map(Mutex::new).collect();
        self.parts(spans.len(), numbers, |part| {
            let mut target = lock(&spans[part]);
            let columns = part * SPAN..part * SPAN + target.len();
            kernel::add_scaled(self.isa, &mut target, times, vector.slice(columns));
        });
    }

    /// What `work` came to on every span.
    fn spans<T: Send>(
        &self,
        columns: usize,
        rows: usize,
        work: impl Fn(Range<usize>) -> T + Sync,
    ) -> Vec<T> {
        let parts = columns.div_ceil(SPAN);
        self.parts(parts, columns.saturating_mul(rows), |part| work(span(part, columns)))
    }

    /// The instruction set.
    pub(super) fn isa(&self) -> Isa {
        self.isa
    }

    /// What `work` came to on every part, in order; shared among the workers if there are enough
    /// numbers to read.
    pub(super) fn parts<T: Send>(
        &self,
        parts: usize,
        numbers: usize,
        work: impl Fn(usize) -> T + Sync,
    ) -> Vec<T> {
        let shared = parts > 1 && numbers >= WORTH_SHARING;
        let Some(workers) = self.workers.as_ref().filter(|_| shared) else {
            return (0..parts).map(work).collect();
        };
        let done: Vec<Mutex<Option<T>>> = (0..parts).map(|_| Mutex::new(None)).collect();
        workers.share(parts, &|part| {
            let came = work(part);
            *lock(&done[part]) = Some(came);
        });
        // A part that nobody took is done here: workers that forget one are slow, not wrong.
        let take = |(part, slot): (usize, Mutex<Option<T>>)| {
            slot.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or_else(|| work(part))
        };
        done.into_iter().enumerate().map(take).collect()
    }
}

/// The columns of a span.
fn span(index: usize, columns: usize) -> Range<usize> {
    index * SPAN..columns.min((index + 1) * SPAN)
}

/// A range in equal parts, none of which is larger than this.
fn panels(range: Range<usize>, most: usize) -> Vec<Range<usize>> {
    let parts = range.len().div_ceil(most);
    let at = |part: usize| range.start + range.len() * part / parts;
    (0..parts).map(|part| at(part)..at(part + 1)).collect()
}

/// The sums of what the spans came to, in their order.
fn sum(parts: Vec<Vec<f64>>) -> Vec<f64> {
    let mut parts = parts.into_iter();
    let mut total = parts.next().unwrap_or_default();
    for part in parts {
        total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
    }
    total
}
