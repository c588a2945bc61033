//! Weights that sum to one: the nearest ones, and those of the shortest combination.
//!
//! References: Duchi, Shalev-Shwartz, Singer, Chandra, *Efficient Projections onto the ℓ1-Ball for
//! Learning in High Dimensions*, ICML 2008 (the projection). Nocedal, Wright, *Numerical
//! Optimization*, 2nd ed. 2006, §16.5 (active sets); Platt, *Fast Training of Support Vector
//! Machines using Sequential Minimal Optimization*, 1998 (moving weight between two at a time).

/// How much the slopes of a pair may differ and still count as equal, relative to the largest
/// squared length. It bounds the duality gap of `½‖Σ λ_m u_m‖²`.
const GAP: f64 = 1e-14;

/// Replaces `values` by the nearest point of `{λ ≥ 0, Σ λ = total}`.
///
/// This is exact: sorted from the largest down, the values above a common threshold stay, less the
/// threshold. Values may be as low as negative infinity; the largest must be finite.
pub fn project(values: &mut [f64], total: f64) {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Adding the same number to all changes nothing but the rounding, which is best around zero.
    values.iter_mut().for_each(|value| *value -= largest);
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut threshold) = (0.0, -total);
    for (index, value) in sorted.iter().enumerate() {
        sum += value;
        let next = (sum - total) / (index + 1) as f64;
        if value - next > 0.0 {
            threshold = next;
        } else {
            break;
        }
    }
    values.iter_mut().for_each(|value| *value = (*value - threshold).max(0.0));
}

/// The weights λ with `Σ λ = 1`, `λ ≥ 0` and `|λ_m − 1/M| ≤ radius` of the shortest
/// `Σ λ_m u_m`, given the inner products of the `count` vectors.
pub fn shortest(gram: &[f64], count: usize, radius: f64) -> Vec<f64> {
    let uniform = 1.0 / count as f64;
    let (low, high) = ((uniform - radius).max(0.0), (uniform + radius).min(1.0));
    let mut search = SimplexSearch { gram, count, low, high, weights: vec![uniform; count] };
    let mut slopes = search.slopes();
    // Few agents: both moves in every turn. Many: the costlier one, cubic in their number, less
    // often.
    let every = 1 + count / 16;
    for turn in 0..1000 + 100 * count {
        if turn % every == 0 {
            search.move_within();
            slopes = search.slopes();
        }
        if !search.move_pair(&mut slopes) {
            break;
        }
    }
    search.weights
}

/// A search for the shortest combination. Both moves only ever shorten it.
struct SimplexSearch<'a> {
    gram: &'a [f64],
    count: usize,
    low: f64,
    high: f64,
    weights: Vec<f64>,
}

impl SimplexSearch<'_> {
    fn gram(&self, a: usize, b: usize) -> f64 {
        self.gram[a * self.count + b]
    }

    fn largest(&self) -> f64 {
        (0..self.count).map(|m| self.gram(m, m)).fold(0.0, f64::max)
    }

    /// The inner product of every vector with the combination: half the derivative of its square.
    fn slopes(&self) -> Vec<f64> {
        let row = |m: usize| &self.gram[m * self.count..(m + 1) * self.count];
        let slope = |m| row(m).iter().zip(&self.weights).map(|(g, w)| g * w).sum();
        (0..self.count).map(slope).collect()
    }

    /// Moves weight from the vector with the greatest slope that has some to give to the one with
    /// the least that can take some, as far as it helps; `false` if no pair would help.
    fn move_pair(&mut self, slopes: &mut [f64]) -> bool {
        let by_slope = |a: &usize, b: &usize| f64::total_cmp(&slopes[*a], &slopes[*b]);
        let taker = (0..self.count).filter(|m| self.weights[*m] < self.high).min_by(by_slope);
        let giver = (0..self.count).filter(|m| self.weights[*m] > self.low).max_by(by_slope);
        let (Some(taker), Some(giver)) = (taker, giver) else { return false };
        let difference = slopes[giver] - slopes[taker];
        if difference <= GAP * self.largest() {
            return false;
        }
        let apart = self.gram(giver, giver) + self.gram(taker, taker);
        let curvature = apart - 2.0 * self.gram(giver, taker);
        let (takes, gives) = (self.high - self.weights[taker], self.weights[giver] - self.low);
        let room = takes.min(gives);
        let moved = if curvature > 0.0 { (difference / curvature).min(room) } else { room };
        self.weights[taker] = if moved == takes { self.high } else { self.weights[taker] + moved };
        self.weights[giver] = if moved == gives { self.low } else { self.weights[giver] - moved };
        for (m, slope) in slopes.iter_mut().enumerate() {
            *slope += moved * (self.gram(m, taker) - self.gram(m, giver));
        }
        true
    }

    /// Moves the weights that are not at a bound to where their slopes are equal, or until one of
    /// them reaches a bound.
    fn move_within(&mut self) {
        let inside = |m: &usize| self.weights[*m] > self.low && self.weights[*m] < self.high;
        let free: Vec<usize> = (0..self.count).filter(inside).collect();
        let Some((last, others)) = free.split_last() else { return };
        let slopes = self.slopes();
        let matrix = |a: usize, b: usize| {
            self.gram(a, b) - self.gram(a, *last) - self.gram(*last, b) + self.gram(*last, *last)
        };
        let matrix: Vec<Vec<f64>> =
            others.iter().map(|a| others.iter().map(|b| matrix(*a, *b)).collect()).collect();
        let right = others.iter().map(|m| slopes[*last] - slopes[*m]).collect();
        let mut moves = solve(matrix, right);
        moves.push(-moves.iter().sum::<f64>());
        let bound = |by: f64| if by > 0.0 { self.high } else { self.low };
        let room = |(m, by): (&usize, &f64)| {
            if *by == 0.0 { f64::INFINITY } else { (bound(*by) - self.weights[*m]) / by }
        };
        let rooms: Vec<f64> = free.iter().zip(&moves).map(room).collect();
        let share = rooms.iter().copied().fold(1.0, f64::min);
        let ends = free.iter().zip(&moves).zip(&rooms).map(|((m, by), room)| {
            if *room <= share { bound(*by) } else { self.weights[*m] + share * by }
        });
        for (m, end) in free.iter().zip(ends.collect::<Vec<f64>>()) {
            self.weights[*m] = end;
        }
    }
}

/// Solves with a positive semi-definite matrix by elimination; what the matrix does not determine
/// is zero.
///
/// [`Cholesky`](super::Cholesky) would not do: the matrix is usually singular, and elimination
/// without square roots passes over a pivot of zero by itself.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    let least = 1e-13 * (0..size).map(|m| matrix[m][m]).fold(0.0, f64::max);
    for pivot in 0..size {
        if matrix[pivot][pivot] <= least {
            matrix[pivot][pivot] = f64::INFINITY;
        }
        let (top, below) = matrix.split_at_mut(pivot + 1);
        for (offset, row) in below.iter_mut().enumerate() {
            let factor = row[pivot] / top[pivot][pivot];
            for column in pivot + 1..size {
                row[column] -= factor * top[pivot][column];
            }
            right[pivot + 1 + offset] -= factor * right[pivot];
        }
    }
    for pivot in (0..size).rev() {
        let known: f64 = (pivot + 1..size).map(|m| matrix[pivot][m] * right[m]).sum();
        right[pivot] = (right[pivot] - known) / matrix[pivot][pivot];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Vector, linalg};
    use proptest::prelude::*;

    #[test]
    fn projections_by_hand() {
        for (values, total, expected) in [
            (vec![0.2, 0.8], 1.0, vec![0.2, 0.8]),
            (vec![1.0, 1.0], 1.0, vec![0.5, 0.5]),
            (vec![2.0, 0.0], 1.0, vec![1.0, 0.0]),
            (vec![0.0, 0.0, 0.0, 0.0], 1.0, vec![0.25; 4]),
            (vec![0.0, f64::NEG_INFINITY], 1.0, vec![1.0, 0.0]),
            (vec![3.0, 1.0], 0.0, vec![0.0, 0.0]),
            (vec![-7.0], 1.0, vec![1.0]),
        ] {
            let mut projected = values.clone();
            project(&mut projected, total);
            let near = projected.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-15);
            assert!(near, "{values:?} to {projected:?}");
        }
    }

    proptest! {
        #[test]
        fn a_projection_is_the_one_point_that_meets_the_optimality_conditions(
            values in prop::collection::vec(-3.0..3.0f64, 1..9)
        ) {
            let mut projected = values.clone();
            project(&mut projected, 1.0);
            prop_assert!((projected.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            // For every point y of the simplex ⟨values − projected, y − projected⟩ ≤ 0; corners
            // suffice.
            let along = |corner: usize| -> f64 {
                values.iter().zip(&projected).enumerate()
                    .map(|(m, (v, p))| (v - p) * (f64::from(u8::from(m == corner)) - p)).sum()
            };
            prop_assert!((0..values.len()).all(|corner| along(corner) < 1e-12));
            prop_assert!(projected.iter().all(|weight| *weight >= 0.0));
        }

        #[test]
        fn the_shortest_combination_has_no_duality_gap(
            dimension in 1usize..8,
            seeds in prop::collection::vec(prop::collection::vec(-1.0..1.0f64, 8), 1..9),
            radius in 0.0..1.0f64,
        ) {
            let vectors: Vec<Vector<'_>> = seeds.iter().map(|v| Vector::F64(&v[..dimension])).collect();
            let count = vectors.len();
            let gram = linalg::gram(&vectors);
            let weights = shortest(&gram, count, radius);
            let uniform = 1.0 / count as f64;
            prop_assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(weights.iter().all(|w| *w >= 0.0 && (w - uniform).abs() <= radius + 1e-12));
            let slopes: Vec<f64> = (0..count)
                .map(|m| (0..count).map(|n| gram[m * count + n] * weights[n]).sum())
                .collect();
            // The most a linear model promises: fill up the least slopes first.
            let (low, high) = ((uniform - radius).max(0.0), (uniform + radius).min(1.0));
            let mut sorted = slopes.clone();
            sorted.sort_by(f64::total_cmp);
            let mut left = 1.0 - low * count as f64;
            let best: f64 = sorted.iter().map(|slope| {
                let more = left.min(high - low);
                left -= more;
                slope * (low + more)
            }).sum();
            let now: f64 = slopes.iter().zip(&weights).map(|(s, w)| s * w).sum();
            let scale = (0..count).map(|m| gram[m * count + m]).fold(0.0, f64::max);
            prop_assert!(now - best <= 1e-12 * scale.max(1e-9), "gap {}", now - best);
        }
    }
}
