//! A concave quadratic over a box, exactly.
//!
//! ```text
//! maximise xᵀb − ½ xᵀCx  subject to  0 ≤ x ≤ most
//! ```
//!
//! for a positive semidefinite `C` with a diagonal of one. Two moves take turns, and neither ever lowers the value:
//! sweeps, which bring one variable after the other to the maximum along it and find out who is at a bound; and
//! Newton's step for those who are between theirs, which then is exact. `C` may be singular, so that step is softened
//! by a hair, which the next one takes back.
//!
//! References: Hsieh, Chang, Lin, Keerthi, Sundararajan, *A Dual Coordinate Descent Method for Large-scale Linear
//! SVM*, ICML 2008; Bertsekas, *SIAM J. Control Optim.* 20, 1982.

use crate::Vector;
use crate::numerics::{Cholesky, Machine, linalg};

/// Added to the diagonal for Newton's step.
const SOFT: f64 = 1e-10;
/// What may be left of a gain, relative to the terms it is the difference of.
pub(super) const TOLERANCE: f64 = 1e-11;
/// The most sweeps in one turn, and the most turns.
const SWEEPS: usize = 12;
const TURNS: usize = 300;

/// The quadratic, and where the search is.
#[derive(Debug, Clone)]
pub(super) struct Boxed {
    /// `C`, all of it, row by row.
    matrix: Vec<f64>,
    b: Vec<f64>,
    most: Vec<f64>,
    pub(super) x: Vec<f64>,
    /// `b − Cx`.
    rest: Vec<f64>,
}

/// On which side of its box a variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Low,
    Between,
    High,
}

impl Side {
    pub(super) fn of(x: f64, most: f64) -> Self {
        match (x <= 0.0, x >= most) {
            (true, _) => Self::Low,
            (_, true) => Self::High,
            _ => Self::Between,
        }
    }

    /// How far a variable with this slope is from where it should be: nothing at a bound that holds it back.
    pub(super) fn wants(self, slope: f64, most: f64) -> f64 {
        match self {
            _ if most <= 0.0 => 0.0,
            Self::Low => slope.max(0.0),
            Self::High => (-slope).max(0.0),
            Self::Between => slope.abs(),
        }
    }
}

impl Boxed {
    /// This quadratic, the search for whose maximum begins at `x`.
    pub(super) fn new(matrix: Vec<f64>, b: Vec<f64>, most: Vec<f64>, x: Vec<f64>) -> Self {
        Self { matrix, b, most, x, rest: Vec::new() }
    }

    fn size(&self) -> usize {
        self.b.len()
    }

    fn row(&self, index: usize) -> &[f64] {
        &self.matrix[index * self.size()..][..self.size()]
    }

    fn sides(&self) -> Vec<Side> {
        self.x.iter().zip(&self.most).map(|(x, most)| Side::of(*x, *most)).collect()
    }

    /// Goes to the maximum.
    pub(super) fn solve(&mut self, machine: &Machine) {
        self.measure();
        for _ in 0..TURNS {
            if self.is_solved() {
                return;
            }
            let mut before = self.sides();
            for _ in 0..SWEEPS {
                self.sweep();
                let after = self.sides();
                if std::mem::replace(&mut before, after) == before {
                    break;
                }
            }
            self.newton(machine);
            self.measure();
        }
    }

    /// Computes what is left anew.
    fn measure(&mut self) {
        let x = Vector::F64(&self.x);
        let rest = (0..self.size()).map(|i| self.b[i] - linalg::dot(Vector::F64(self.row(i)), x));
        self.rest = rest.collect();
    }

    fn is_solved(&self) -> bool {
        let sizes: f64 = self.x.iter().sum();
        (0..self.size()).all(|i| {
            let wants = Side::of(self.x[i], self.most[i]).wants(self.rest[i], self.most[i]);
            wants <= TOLERANCE * (self.b[i].abs() + sizes)
        })
    }

    /// Brings one variable after the other to the maximum along it.
    fn sweep(&mut self) {
        for i in 0..self.size() {
            let to = (self.x[i] + self.rest[i]).min(self.most[i]).max(0.0);
            let by = to - self.x[i];
            if by != 0.0 {
                self.x[i] = to;
                let size = self.size();
                let row = &self.matrix[i * size..][..size];
                linalg::add_scaled(&mut self.rest, -by, Vector::F64(row));
            }
        }
    }

    /// Goes towards the maximum over the variables that are between their bounds: all the way and back into the box, or
    /// as far as the first bound, whichever gains more.
    fn newton(&mut self, machine: &Machine) {
        let sides = self.sides();
        let free: Vec<usize> = (0..sides.len()).filter(|i| sides[*i] == Side::Between).collect();
        if free.is_empty() {
            return;
        }
        let (mut factor, mut members) = (Cholesky::default(), Vec::new());
        let size = self.size();
        let matrix = &self.matrix;
        let entry = |i: usize, j: usize| matrix[i * size + j] + if i == j { SOFT } else { 0.0 };
        factor.enter(machine, &mut members, &free, entry, |left| Some(left.max(SOFT)));
        let way = factor.solve(free.iter().map(|i| self.rest[*i]));
        let inside = |i: usize, way: f64| (self.x[i] + way).min(self.most[i]).max(0.0) - self.x[i];
        let clipped: Vec<f64> = free.iter().zip(&way).map(|(i, way)| inside(*i, *way)).collect();
        let room = |(i, way): (&usize, &f64)| {
            let room = if *way > 0.0 { self.most[*i] - self.x[*i] } else { self.x[*i] };
            if *way == 0.0 { f64::INFINITY } else { room / way.abs() }
        };
        // Many arrive at bounds at once by the first, and nobody is in the way of the others by the second.
        let first = free.iter().zip(&way).map(room).fold(1.0, f64::min);
        let (back, gain) = self.along(&free, &clipped, 1.0);
        let (straight, other) = self.along(&free, &way, first);
        match gain > other {
            true => self.go(&free, &clipped, back),
            false => self.go(&free, &way, straight),
        }
    }

    /// Which share of a way is best, up to this one, and what it gains.
    fn along(&self, free: &[usize], way: &[f64], most: f64) -> (f64, f64) {
        let slope: f64 = free.iter().zip(way).map(|(i, way)| self.rest[*i] * way).sum();
        if slope.is_nan() || slope <= 0.0 {
            return (0.0, 0.0);
        }
        let mut whole = vec![0.0; self.size()];
        free.iter().zip(way).for_each(|(i, way)| whole[*i] = *way);
        let along = |i: &usize| linalg::dot(Vector::F64(self.row(*i)), Vector::F64(&whole));
        let bend: f64 = free.iter().zip(way).map(|(i, way)| way * along(i)).sum();
        let share = if bend > slope / most { slope / bend } else { most };
        (share, share * (slope - 0.5 * share * bend))
    }

    fn go(&mut self, free: &[usize], way: &[f64], share: f64) {
        for (i, way) in free.iter().zip(way) {
            let to = self.x[*i] + share * way;
            if to.is_finite() {
                self.x[*i] = to.min(self.most[*i]).max(0.0);
            }
        }
    }
}
