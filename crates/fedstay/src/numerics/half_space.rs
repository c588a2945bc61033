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
//! not meet.
//!
//! Reference: Lawson, Hanson, *Solving Least Squares Problems*, Prentice-Hall 1974, chapter 23.

use super::Cholesky;

/// A gain below this, relative to the problem's scale, is rounding.
const TOLERANCE: f64 = 1e-12;
/// A pivot of the normalised Gram matrix below this is a dependence.
const DEPENDENT: f64 = 1e-13;

/// The answer to a nearest-point problem.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Nearest {
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
pub(crate) fn nearest(gram: &[f64], b: &[f64], ridge: f64) -> Nearest {
    let n = b.len();
    let length: Vec<f64> = (0..n).map(|i| gram[i * n + i].max(0.0).sqrt()).collect();
    let live: Vec<usize> = (0..n).filter(|i| length[*i] > 0.0).collect();
    let k = live.len();
    // Normalised: unit diagonal, so that one tolerance serves vectors of any length.
    let mut cosine = vec![0.0; k * k];
    for (row, i) in live.iter().enumerate() {
        for (column, j) in live.iter().enumerate() {
            cosine[row * k + column] = gram[i * n + j] / (length[*i] * length[*j]);
        }
        cosine[row * k + row] = 1.0 + ridge;
    }
    let right: Vec<f64> = live.iter().map(|i| b[*i] / length[*i]).collect();
    let Some(scaled) = active_set(&cosine, &right) else { return Nearest::Empty };
    let mut multipliers = vec![0.0; n];
    for (value, i) in scaled.into_iter().zip(live) {
        multipliers[i] = value / length[i];
    }
    Nearest::Multipliers(multipliers)
}

/// `argmax λᵀb − ½ λᵀGλ` over `λ ≥ 0`; `None` if unbounded.
fn active_set(g: &[f64], b: &[f64]) -> Option<Vec<f64>> {
    let n = b.len();
    let scale = b.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let mut x = vec![0.0; n];
    let mut passive: Vec<usize> = Vec::new();
    // Each turn raises the dual; far fewer than this are ever needed.
    for _ in 0..30 * (n + 1) {
        let gain = |i: usize| b[i] - (0..n).map(|j| g[i * n + j] * x[j]).sum::<f64>();
        let best = (0..n).filter(|i| !passive.contains(i)).map(|i| (gain(i), i)).fold(
            None,
            |best: Option<(f64, usize)>, next| match best {
                Some(best) if best.0 >= next.0 => Some(best),
                _ => Some(next),
            },
        );
        let size = scale.max(x.iter().fold(0.0f64, |largest, value| largest.max(*value)));
        let Some((_, entering)) = best.filter(|(gain, _)| *gain > TOLERANCE * size) else {
            return Some(x);
        };
        enter(g, b, &mut x, &mut passive, entering)?;
    }
    Some(x)
}

/// Takes a variable in and moves to the maximum over the passive set, dropping what would turn
/// negative.
fn enter(
    g: &[f64],
    b: &[f64],
    x: &mut [f64],
    passive: &mut Vec<usize>,
    entering: usize,
) -> Option<()> {
    let n = b.len();
    let mut entering = Some(entering);
    loop {
        let direction: Vec<(usize, f64)>;
        let full_step: f64;
        let factor = factorise(g, n, passive)?;
        match entering {
            Some(new) if distance(&factor, g, n, passive, new) <= DEPENDENT => {
                // The new vector depends on the passive ones: along d the quadratic part is flat.
                let y = factor.solve(passive.iter().map(|i| g[i * n + new]));
                let mut flat: Vec<(usize, f64)> =
                    passive.iter().copied().zip(y.iter().map(|y| -y)).collect();
                flat.push((new, 1.0));
                full_step = f64::INFINITY;
                direction = flat;
            }
            _ => {
                passive.extend(entering);
                let z = factorise(g, n, passive)?.solve(passive.iter().map(|i| b[*i]));
                direction = passive.iter().copied().zip(z).map(|(i, z)| (i, z - x[i])).collect();
                full_step = 1.0;
            }
        }
        let blocking = direction
            .iter()
            .filter(|(i, d)| *d < 0.0 && Some(*i) != entering)
            .map(|(i, d)| (x[*i] / -d, *i))
            .fold(
                (full_step, None),
                |best, (step, i)| if step < best.0 { (step, Some(i)) } else { best },
            );
        match blocking {
            (step, _) if step == f64::INFINITY => return None,
            (step, blocked) => {
                for (i, d) in &direction {
                    x[*i] = (x[*i] + step * d).max(0.0);
                }
                if blocked.is_none() {
                    return Some(());
                }
                if let Some(new) = entering.filter(|new| !passive.contains(new)) {
                    passive.push(new);
                }
                entering = None;
                if let Some(blocked) = blocked {
                    x[blocked] = 0.0;
                    passive.retain(|i| *i != blocked);
                }
            }
        }
    }
}

/// Factorises the rows and columns of a passive set.
fn factorise(g: &[f64], n: usize, passive: &[usize]) -> Option<Cholesky> {
    // Dependent vectors are not let in; what is left of a nearly dependent one is rounding.
    let pivot = |left: f64| Some(left.max(DEPENDENT));
    Cholesky::new(passive.len(), |i, j| g[passive[i] * n + passive[j]], pivot)
}

/// The squared distance of a new vector from the span of the passive ones.
fn distance(factor: &Cholesky, g: &[f64], n: usize, passive: &[usize], new: usize) -> f64 {
    let along = factor.forward(passive.iter().map(|i| g[i * n + new]));
    g[new * n + new] - along.iter().map(|value| value * value).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gram(vectors: &[Vec<f64>]) -> Vec<f64> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        vectors.iter().flat_map(|a| vectors.iter().map(move |b| dot(a, b))).collect()
    }

    proptest! {
        /// The Karush-Kuhn-Tucker conditions, which are sufficient because the problem is convex.
        #[test]
        fn what_it_returns_is_optimal_or_the_half_spaces_do_not_meet(
            (vectors, b) in (1usize..5, 1usize..7).prop_flat_map(|(dimension, n)| (
                prop::collection::vec(prop::collection::vec(-3.0..3.0f64, dimension), n),
                prop::collection::vec(-2.0..2.0f64, n),
            )),
            twin in any::<bool>(),
        ) {
            let mut vectors = vectors;
            let mut b = b;
            if twin {
                // An exact copy, which makes the Gram matrix singular.
                vectors.push(vectors[0].clone());
                b.push(b[0] + 0.1);
            }
            let n = b.len();
            let g = gram(&vectors);
            match nearest(&g, &b, 0.0) {
                Nearest::Multipliers(x) => {
                    let size = 1.0 + x.iter().sum::<f64>();
                    for i in 0..n {
                        prop_assert!(x[i] >= 0.0);
                        let slack = (0..n).map(|j| g[i * n + j] * x[j]).sum::<f64>() - b[i];
                        let tolerance = 1e-8 * size * (1.0 + g[i * n + i]);
                        prop_assert!(slack >= -tolerance, "violated by {slack}");
                        prop_assert!(x[i] * slack <= tolerance * size, "not tight: {slack}");
                    }
                }
                Nearest::Empty => {
                    // A certificate: some combination λ ≥ 0 with Σ λ g = 0 and λᵀb > 0 exists, so a
                    // softened problem still violates somebody.
                    let Nearest::Multipliers(x) = nearest(&g, &b, 1e-7) else {
                        return Err(TestCaseError::fail("a ridge always has an answer"));
                    };
                    let worst = (0..n)
                        .map(|i| b[i] - (0..n).map(|j| g[i * n + j] * x[j]).sum::<f64>())
                        .fold(0.0, f64::max);
                    prop_assert!(worst > 1e-7, "called empty, but all hold to {worst}");
                }
            }
        }
    }

    #[test]
    fn opposite_half_spaces_do_not_meet() {
        let g = gram(&[vec![1.0, 0.0], vec![-1.0, 0.0]]);
        assert_eq!(nearest(&g, &[1.0, 1.0], 0.0), Nearest::Empty);
        assert_eq!(nearest(&g, &[1.0, -2.0], 0.0), Nearest::Multipliers(vec![1.0, 0.0]));
        assert_eq!(nearest(&[], &[], 0.0), Nearest::Multipliers(vec![]));
    }
}
