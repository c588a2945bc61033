//! Conflicts between gradients: where `⟨g_i, g_j⟩ < 0`, a step for one raises the other's loss.
//!
//! A gradient that was projected off others is a combination of all of them, so everything here is
//! done on coefficients and the Gram matrix, and nothing as long as the weights is copied.

use crate::{Vector, linalg};

/// A squared length below this is a zero gradient: it conflicts with nothing.
const ZERO: f64 = 1e-200;

/// How some gradients lie relative to each other.
pub(super) struct Conflicts {
    gram: Vec<f64>,
    count: usize,
}

impl Conflicts {
    /// The conflicts among these gradients, each times a number of zero or more.
    pub(super) fn new(gradients: &[Vector<'_>], times: &[f64]) -> Self {
        let (mut gram, count) = (linalg::gram(gradients), gradients.len());
        for (index, product) in gram.iter_mut().enumerate() {
            *product *= times[index / count] * times[index % count];
        }
        Self { gram, count }
    }

    /// The gradient `own` without its conflicts, as coefficients of all: in the given order, it is
    /// projected off every other gradient with which its current form conflicts.
    pub(super) fn resolve(&self, own: usize, order: &[usize]) -> Vec<f64> {
        let mut coefficients = vec![0.0; self.count];
        coefficients[own] = 1.0;
        for other in order.iter().copied().filter(|other| *other != own) {
            let row = &self.gram[other * self.count..(other + 1) * self.count];
            let product: f64 = row.iter().zip(&coefficients).map(|(g, c)| g * c).sum();
            if product < 0.0 && row[other] > ZERO {
                coefficients[other] -= product / row[other];
            }
        }
        coefficients
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_conflicts_is_turned_and_one_that_does_not_is_left() {
        let (a, b, c, zero) = ([1.0, 0.0], [-1.0, 1.0], [0.0, 1.0], [0.0, 0.0]);
        let all = [&a, &b, &c, &zero].map(|v| Vector::F64(v));
        let conflicts = Conflicts::new(&all, &[1.0; 4]);
        let order = [0, 1, 2, 3];
        // a off b: a + b/2 = (½, ½).
        assert_eq!(conflicts.resolve(0, &order), [1.0, 0.5, 0.0, 0.0]);
        assert_eq!(conflicts.resolve(1, &order), [1.0, 1.0, 0.0, 0.0]);
        assert_eq!(conflicts.resolve(2, &order), [0.0, 0.0, 1.0, 0.0]);
        assert_eq!(conflicts.resolve(3, &order), [0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn a_longer_gradient_is_taken_off_by_its_own_length() {
        let (a, b) = ([1.0, 0.0], [-1.0, 1.0]);
        let conflicts = Conflicts::new(&[Vector::F64(&a), Vector::F64(&b)], &[1.0, 3.0]);
        // The second is (−3, 3): a sixth of it turns the first to (½, ½).
        assert!((conflicts.resolve(0, &[0, 1])[1] - 0.5 / 3.0).abs() < 1e-15);
        assert_eq!(conflicts.resolve(1, &[0, 1]), [3.0, 1.0]);
    }

    #[test]
    fn a_gradient_too_short_to_square_is_no_conflict() {
        let (a, tiny) = ([1.0], [-1e-170]);
        let conflicts = Conflicts::new(&[Vector::F64(&a), Vector::F64(&tiny)], &[1.0; 2]);
        assert_eq!(conflicts.resolve(0, &[0, 1]), [1.0, 0.0]);
    }
}
