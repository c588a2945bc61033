//! The nearest point of an intersection of half-spaces, by its dual.
//!
//! ```text
//! minimise ½‖s − s0‖²  subject to  ⟨g_m, s⟩ ≥ need_m  for every m
//! ```
//!
//! has the solution `s = s0 + Σ λ_m g_m` where `λ ≥ 0` maximises `λᵀb − ½ λᵀGλ`, with the Gram
//! matrix `G` of the `g_m` and `b_m = need_m − ⟨g_m, s0⟩`. There is one variable per agent, and
//! nothing of the size of the weights. It is solved by an active set (Lawson and Hanson's for
//! non-negative least squares), with the directions in which `G` is singular followed until a
//! variable leaves or the dual turns out to be unbounded, which is a proof that the half-spaces do
//! not meet: a combination `λ ≥ 0` with `Σ λ_m g_m = 0` and `λᵀb > 0` (Farkas).
//!
//! Rows may be added after a solution was found, which then continues from it (see `slabs/mod.rs`), and
//! right-hand sides may change. While few rows are active, they enter and leave one by one. Once many
//! are, many enter at once, and all that are negative at the maximum over them leave at once (block
//! principal pivoting). That need not raise the dual; where it does not, it is taken back, and rows
//! leave one by one.
//!
//! References: Lawson, Hanson, *Solving Least Squares Problems*, Prentice-Hall 1974, chapter 23;
//! Portugal, Júdice, Vicente, *Math. Comp.* 63, 1994.

use super::{Cholesky, Machine, linalg};
use crate::Vector;

/// A gain below this, relative to the terms it is the difference of, is rounding.
const TOLERANCE: f64 = 1e-12;
/// A pivot of the normalised Gram matrix below this is a dependence.
const DEPENDENT: f64 = 1e-13;
/// Only rows with a larger pivot than this enter together with others.
const INDEPENDENT: f64 = 1e-6;
/// The same for a matrix that was computed in single precision; below it, nothing is known of a row.
const INDEPENDENT_IN_SINGLE: f64 = 1e-4;
/// From this many active rows on, half as many may enter at once.
const MANY: usize = 32;
/// From this many rows on, all are measured in one pass over the matrix, in the order of memory.
const LONG: usize = 128;
/// Up to this many rows that leave together are turned out of the factor one by one; for more it is
/// made anew from the first of them on.
const TURNED: usize = 8;
/// Turns after which rows enter one by one whatever they are, so that rounding cannot keep blocks of
/// them going round in circles.
const TURNS_TOGETHER: usize = 100;

/// The answer to a nearest-point problem.
#[derive(Debug, Clone, PartialEq)]
pub enum Nearest {
    /// The multipliers `λ_m`.
    Multipliers(Vec<f64>),
    /// The half-spaces do not meet.
    Empty,
}

/// The multipliers for a Gram matrix (row by row, `n` rows) and right-hand side `b`.
///
/// A vector of length zero constrains nothing; its multiplier is zero. `ridge` softens every
/// constraint a little, relative to its vector's length; with a ridge above zero there is always an
/// answer.
pub fn nearest(gram: &[f64], b: &[f64], ridge: f64) -> Nearest {
    let n = b.len();
    let length: Vec<f64> = (0..n).map(|i| gram[i * n + i].max(0.0).sqrt()).collect();
    let live: Vec<usize> = (0..n).filter(|i| length[*i] > 0.0).collect();
    let mut active = ActiveSet::default();
    for (row, i) in live.iter().enumerate() {
        // Normalised: unit diagonal, so that one tolerance serves vectors of any length.
        let before = live[..row].iter().map(|j| gram[i * n + j] / (length[*i] * length[*j]));
        active.add(before, 1.0 + ridge, b[*i] / length[*i]);
    }
    if active.solve().is_err() {
        return Nearest::Empty;
    }
    let mut multipliers = vec![0.0; n];
    for (value, i) in active.multipliers().iter().zip(live) {
        multipliers[i] = value / length[i];
    }
    Nearest::Multipliers(multipliers)
}

/// Maximises `λᵀb − ½ λᵀGλ` over `λ ≥ 0` for a matrix with a diagonal of about one, whose rows may
/// come one after the other.
#[derive(Debug, Clone, Default)]
pub struct ActiveSet {
    /// The lower triangle of `G`, row by row.
    gram: Vec<f64>,
    b: Vec<f64>,
    x: Vec<f64>,
    /// The rows with a multiplier above zero, in the order of the factor.
    passive: Vec<usize>,
    /// The factor of their part of `G`.
    factor: Cholesky,
    /// Whether `G` was computed in single precision.
    single: bool,
    machine: Machine,
}

impl ActiveSet {
    /// This set, computing with another machine from here on.
    pub fn with_machine(self, machine: Machine) -> Self {
        Self { machine, ..self }
    }

    /// Forgets all rows. Of a matrix in single precision, rows that may depend on others are an error, with an empty
    /// direction, since nothing can be said about them.
    pub fn clear(&mut self, single: bool) {
        self.single = single;
        self.gram.clear();
        self.b.clear();
        self.x.clear();
        self.passive.clear();
        self.factor.truncate(0);
    }

    /// Adds a row: its products with the rows before it, with itself, and its right-hand side.
    pub fn add(&mut self, before: impl IntoIterator<Item = f64>, diagonal: f64, right: f64) {
        self.gram.extend(before);
        self.gram.push(diagonal);
        self.b.push(right);
        self.x.push(0.0);
        debug_assert_eq!(self.gram.len(), self.b.len() * (self.b.len() + 1) / 2);
    }

    /// The multipliers of all rows.
    pub fn multipliers(&self) -> &[f64] {
        &self.x
    }

    /// Replaces all right-hand sides; minus infinity asks for nothing.
    pub fn restate(&mut self, right: impl Fn(usize) -> f64) {
        self.b = (0..self.b.len()).map(right).collect();
    }

    /// Begins with the rows that were active before the right-hand sides were replaced, without those
    /// whose multipliers are not above zero now.
    pub fn resume(&mut self) {
        self.extend_factor();
        let asks_nothing = |place: &usize| self.b[self.passive[*place]] == f64::NEG_INFINITY;
        let places: Vec<usize> = (0..self.passive.len()).filter(asks_nothing).collect();
        self.drop_all(&places);
        self.settle();
    }

    /// Puts right what the matrix has wrong, given what every row really lacks: moves the right-hand sides
    /// so that they lack as much by the matrix, and goes to the maximum over the rows that are active.
    pub fn correct(&mut self, lacking: &[f64]) {
        let given = self.given(|_| true);
        let asks = |i: usize| self.b[i] != f64::NEG_INFINITY;
        self.b = (0..self.b.len())
            .map(|i| if asks(i) { lacking[i] + given[i] } else { f64::NEG_INFINITY })
            .collect();
        self.resume();
    }

    /// Begins with these rows, without those that depend on others or whose multipliers are not above
    /// zero.
    pub fn expect(&mut self, rows: &[usize]) {
        self.passive.clear();
        self.factor.truncate(0);
        let least = self.independent();
        self.let_all_in(rows, |left| (left > least).then_some(left));
        self.settle();
    }

    /// Goes to the maximum; if there is none, returns a direction `λ ≥ 0` along which the dual
    /// rises forever.
    pub fn solve(&mut self) -> Result<(), Vec<f64>> {
        // Each turn raises the dual; far fewer than this are ever needed.
        for turn in 0..30 * (self.b.len() + 1) {
            let lacking = self.lacking();
            // The last of equals.
            let most = lacking.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0));
            let Some((_, entering)) = most else { return Ok(()) };
            let together = self.passive.len() >= MANY && turn < TURNS_TOGETHER;
            if !together || !self.enter_together(lacking)? {
                self.enter(Some(entering))?;
            }
        }
        Ok(())
    }

    /// Solves the system of the rows that are active once more for what is left of their right-hand
    /// sides, where the caller measured that more exactly. Rows that would turn negative stay.
    pub fn refine(&mut self, left: impl Fn(usize) -> f64) {
        let more = self.factor.solve(self.passive.iter().map(|i| left(*i)));
        for (i, more) in self.passive.iter().zip(more) {
            self.x[*i] = (self.x[*i] + more).max(0.0);
        }
    }

    /// Rows with a larger pivot than this are independent of those before them, beyond doubt.
    fn independent(&self) -> f64 {
        if self.single { INDEPENDENT_IN_SINGLE } else { INDEPENDENT }
    }

    fn product(&self, i: usize, j: usize) -> f64 {
        product(&self.gram, i, j)
    }

    /// The rows outside of the passive set whose constraints are violated, and how much.
    fn lacking(&self) -> Vec<(f64, usize)> {
        let mut inside = vec![false; self.b.len()];
        self.passive.iter().for_each(|i| inside[*i] = true);
        if self.b.len() >= LONG {
            return self.lacking_of_many(&inside);
        }
        let mut lacking = Vec::new();
        for i in (0..self.b.len()).filter(|i| !inside[*i]) {
            let (mut gain, mut size) = (self.b[i], self.b[i].abs());
            for j in &self.passive {
                let term = self.product(i, *j) * self.x[*j];
                gain -= term;
                size += term.abs();
            }
            if gain > TOLERANCE * size {
                lacking.push((gain, i));
            }
        }
        lacking
    }

    /// The same for many rows.
    fn lacking_of_many(&self, inside: &[bool]) -> Vec<(f64, usize)> {
        let given = self.given(|i| !inside[i]);
        // No product of two rows is larger than their lengths, which are about one.
        let sizes: f64 = self.x.iter().sum();
        let outside = (0..self.b.len()).filter(|i| !inside[*i]);
        let lacks = outside.map(|i| (self.b[i] - given[i], i));
        lacks.filter(|(gain, i)| *gain > TOLERANCE * (self.b[*i].abs() + sizes)).collect()
    }

    /// `G x` for the rows that are wanted, other places being left unfinished. Every row of the triangle is
    /// read at most once: a row that is pulled gives to those before it, and one that is wanted takes from
    /// them.
    fn given(&self, wanted: impl Fn(usize) -> bool) -> Vec<f64> {
        let mut given = vec![0.0; self.b.len()];
        let mut rest = &self.gram[..];
        for i in 0..self.b.len() {
            let (row, below) = rest.split_at(i + 1);
            rest = below;
            if self.x[i] != 0.0 {
                linalg::add_scaled(&mut given[..=i], self.x[i], Vector::F64(row));
            }
            if wanted(i) {
                given[i] += linalg::dot(Vector::F64(&row[..i]), Vector::F64(&self.x[..i]));
            }
        }
        given
    }

    /// Takes in the variables that lack most, half as many as there are, and moves to the maximum.
    /// Says whether anything moved; if not, one alone has to enter.
    fn enter_together(&mut self, mut lacking: Vec<(f64, usize)>) -> Result<bool, Vec<f64>> {
        lacking.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        lacking.truncate(self.passive.len() / 2);
        let new: Vec<usize> = lacking.into_iter().map(|(_, new)| new).collect();
        let least = self.independent();
        let independent = |left: f64| (left > least).then_some(left);
        self.extend_factor();
        let (passive, x, value) = (self.passive.clone(), self.x.clone(), self.value());
        self.let_all_in(&new, independent);
        if self.passive.len() == passive.len() {
            return Ok(false);
        }
        self.settle();
        if self.value() > value {
            return Ok(true);
        }
        // Too many left at once.
        self.x.clone_from(&x);
        self.passive.clear();
        self.factor.truncate(0);
        self.let_all_in(&passive, |left| Some(left.max(DEPENDENT)));
        self.let_all_in(&new, independent);
        self.enter(None)?;
        Ok(self.x != x)
    }

    /// Moves to the maximum over the passive set, without those that are not above zero there, and so
    /// on until all are.
    fn settle(&mut self) {
        loop {
            let z = self.factor.solve(self.passive.iter().map(|i| self.b[*i]));
            let places = (0..z.len()).filter(|place| z[*place].is_nan() || z[*place] <= 0.0);
            let places: Vec<usize> = places.collect();
            if places.is_empty() {
                self.x.fill(0.0);
                self.passive.iter().zip(z).for_each(|(i, z)| self.x[*i] = z);
                return;
            }
            self.drop_all(&places);
        }
    }

    /// The dual at a maximum over the passive set.
    fn value(&self) -> f64 {
        self.passive.iter().map(|i| self.b[*i] * self.x[*i]).sum::<f64>() / 2.0
    }

    /// Takes those of these rows into the passive set whose `pivot` is some.
    fn let_all_in(&mut self, new: &[usize], pivot: impl Fn(f64) -> Option<f64>) {
        let Self { gram, passive, factor, machine, .. } = self;
        let gram = &gram[..];
        factor.enter(machine, passive, new, |i, j| product(gram, i, j), pivot);
    }

    /// Takes the rows at these places, which are in order, out of the passive set.
    fn drop_all(&mut self, places: &[usize]) {
        let Some(first) = places.first().copied().filter(|_| places.len() > TURNED) else {
            for place in places.iter().rev() {
                self.passive.remove(*place);
                self.factor.remove(*place);
            }
            return;
        };
        let mut rest = self.passive.split_off(first);
        for place in places.iter().rev() {
            rest.remove(place - first);
        }
        self.factor.truncate(first);
        self.let_all_in(&rest, |left| Some(left.max(DEPENDENT)));
    }

    /// Takes a variable in, if one is given, and moves to the maximum over the passive set, dropping
    /// what would turn negative.
    fn enter(&mut self, mut entering: Option<usize>) -> Result<(), Vec<f64>> {
        loop {
            let mut direction: Vec<(usize, f64)>;
            let full_step: f64;
            match entering.map(|new| (new, self.outside(new))) {
                Some((_, outside)) if self.single && outside.distance <= self.independent() => {
                    return Err(Vec::new());
                }
                Some((new, outside)) if outside.distance <= DEPENDENT => {
                    // The new vector depends on the passive ones: along this direction the
                    // quadratic part is flat.
                    let y = self.factor.solve(self.passive.iter().map(|i| self.product(*i, new)));
                    direction = self.passive.iter().copied().zip(y.iter().map(|y| -y)).collect();
                    direction.push((new, 1.0));
                    full_step = f64::INFINITY;
                }
                independent => {
                    match independent {
                        Some((new, outside)) => self.let_in(new, outside),
                        None => self.extend_factor(),
                    }
                    let z = self.factor.solve(self.passive.iter().map(|i| self.b[*i]));
                    let passive = self.passive.iter().copied();
                    direction = passive.zip(z).map(|(i, z)| (i, z - self.x[i])).collect();
                    full_step = 1.0;
                }
            }
            let mut blocking = (full_step, None);
            for (i, d) in direction.iter().filter(|(i, d)| *d < 0.0 && Some(*i) != entering) {
                let step = self.x[*i] / -d;
                if step < blocking.0 {
                    blocking = (step, Some(*i));
                }
            }
            let (step, blocked) = blocking;
            if step == f64::INFINITY {
                let mut ray = vec![0.0; self.b.len()];
                direction.iter().for_each(|(i, d)| ray[*i] = d.max(0.0));
                return Err(ray);
            }
            for (i, d) in &direction {
                self.x[*i] = (self.x[*i] + step * d).max(0.0);
            }
            let Some(blocked) = blocked else { return Ok(()) };
            if let Some(new) = entering.take().filter(|new| !self.passive.contains(new)) {
                self.passive.push(new);
            }
            self.x[blocked] = 0.0;
            if let Some(place) = self.passive.iter().position(|i| *i == blocked) {
                self.passive.remove(place);
                match self.factor.size() {
                    0..MANY => self.factor.truncate(place),
                    size if place < size => self.factor.remove(place),
                    _ => {}
                }
            }
        }
    }

    /// Brings the factor up to the passive set, of which it has the first rows.
    fn extend_factor(&mut self) {
        while self.factor.size() < self.passive.len() {
            let new = self.passive[self.factor.size()];
            let before = self.passive[..self.factor.size()].iter().map(|i| self.product(*i, new));
            let before: Vec<f64> = before.collect();
            // Dependent vectors are not let in; what is left of a nearly dependent one is rounding.
            let diagonal = self.product(new, new);
            self.factor.append(before, |known| (diagonal - known).max(DEPENDENT));
        }
    }

    /// What a new vector has outside of the span of the passive ones.
    fn outside(&mut self, new: usize) -> Outside {
        self.extend_factor();
        let row = self.factor.forward(self.passive.iter().map(|i| self.product(*i, new)));
        let along: f64 = row.iter().map(|value| value * value).sum();
        Outside { distance: self.product(new, new) - along, row }
    }

    /// Takes a new vector into the passive set, with the row of the factor that is known by then.
    fn let_in(&mut self, new: usize, outside: Outside) {
        self.passive.push(new);
        self.factor.append_row(outside.row, outside.distance.max(DEPENDENT));
    }
}

/// The cell of a lower triangle.
fn product(gram: &[f64], i: usize, j: usize) -> f64 {
    let (row, column) = (i.max(j), i.min(j));
    gram[row * (row + 1) / 2 + column]
}

/// A vector seen from the span of the passive ones.
struct Outside {
    /// Its squared distance.
    distance: f64,
    /// Its row of the factor, left of the diagonal.
    row: Vec<f64>,
}

#[cfg(test)]
mod tests;
