//! L-BFGS with backtracking.
//!
//! Reference: Liu and Nocedal, *On the limited memory BFGS method for large scale optimization*,
//! Mathematical Programming 45, 1989.

use fedstay::linalg::dot_short as dot;
use std::collections::VecDeque;

use crate::model::Error;

/// How many steps are remembered.
const MEMORY: usize = 10;
/// How often a step is halved before its direction is given up.
const HALVINGS: usize = 12;
/// The share of what a slope promises that a step has to bring.
const LEAST: f64 = 1e-4;
/// Losses are sums of numbers of 32 bits: a smaller share of one is noise.
const NOISE: f64 = 1e-9;

/// What is to become small.
pub(super) trait Objective {
    /// The loss at a point, and its gradient there; `None` where the loss is not finite.
    fn at(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<Option<f64>, Error>;
}

/// A step that was taken, and by how much the gradient changed.
struct Curvature {
    step: Vec<f64>,
    change: Vec<f64>,
    /// Their inner product.
    product: f64,
}

/// A descent, step after step.
pub(super) struct Lbfgs {
    point: Vec<f64>,
    loss: f64,
    gradient: Vec<f64>,
    memory: VecDeque<Curvature>,
}

impl Lbfgs {
    /// Where a descent begins.
    pub(super) fn new(start: Vec<f64>, objective: &mut dyn Objective) -> Result<Self, Error> {
        let mut gradient = vec![0.0; start.len()];
        let loss = objective.at(&start, &mut gradient)?;
        if loss.is_none() {
            gradient.fill(0.0);
        }
        let loss = loss.unwrap_or(f64::INFINITY);
        Ok(Self { point: start, loss, gradient, memory: VecDeque::new() })
    }

    /// Where it is.
    pub(super) fn point(&self) -> &[f64] {
        &self.point
    }

    /// Takes a step; false where there is nothing left to gain: no part of the gradient is above
    /// `tolerance`, or what a step brings is noise.
    pub(super) fn step(
        &mut self,
        tolerance: f64,
        objective: &mut dyn Objective,
    ) -> Result<bool, Error> {
        if self.gradient.iter().all(|part| part.abs() <= tolerance) {
            return Ok(false);
        }
        let mut direction = self.direction();
        if dot(&direction, &self.gradient) >= 0.0 {
            self.memory.clear();
            direction = self.direction();
        }
        let slope = dot(&direction, &self.gradient);
        let mut length = match self.memory.is_empty() {
            true => (-slope).sqrt().recip().min(1.0),
            false => 1.0,
        };
        let mut gradient = vec![0.0; self.point.len()];
        for _ in 0..HALVINGS {
            let there: Vec<f64> =
                self.point.iter().zip(&direction).map(|(at, by)| at + length * by).collect();
            let loss = objective.at(&there, &mut gradient)?;
            if let Some(loss) = loss.filter(|loss| *loss <= self.loss + LEAST * length * slope) {
                let gained = self.loss - loss;
                self.take(there, loss, &gradient);
                return Ok(gained > NOISE * loss.abs());
            }
            length *= 0.5;
        }
        // What was remembered may mislead; if the steepest way does not lead on either, this is it.
        let remembered = !self.memory.is_empty();
        self.memory.clear();
        Ok(remembered)
    }

    fn take(&mut self, there: Vec<f64>, loss: f64, gradient: &[f64]) {
        let apart = |new: &[f64], old: &[f64]| -> Vec<f64> {
            new.iter().zip(old).map(|(new, old)| new - old).collect()
        };
        let (step, change) = (apart(&there, &self.point), apart(gradient, &self.gradient));
        let product = dot(&step, &change);
        // Only where the loss curves upwards along the step does it say how far to go.
        if product > 1e-10 * dot(&change, &change) {
            if self.memory.len() == MEMORY {
                self.memory.pop_front();
            }
            self.memory.push_back(Curvature { step, change, product });
        }
        (self.point, self.loss) = (there, loss);
        self.gradient.copy_from_slice(gradient);
    }

    /// Minus the gradient times what is known of the inverse curvature: the two loops.
    fn direction(&self) -> Vec<f64> {
        let mut direction: Vec<f64> = self.gradient.iter().map(|part| -part).collect();
        let mut shares = Vec::with_capacity(self.memory.len());
        for Curvature { step, change, product } in self.memory.iter().rev() {
            let share = dot(step, &direction) / product;
            add(&mut direction, -share, change);
            shares.push(share);
        }
        if let Some(Curvature { change, product, .. }) = self.memory.back() {
            let scale = product / dot(change, change);
            direction.iter_mut().for_each(|part| *part *= scale);
        }
        for (Curvature { step, change, product }, share) in
            self.memory.iter().zip(shares.into_iter().rev())
        {
            let back = dot(change, &direction) / product;
            add(&mut direction, share - back, step);
        }
        direction
    }
}

fn add(sum: &mut [f64], times: f64, vector: &[f64]) {
    sum.iter_mut().zip(vector).for_each(|(sum, part)| *sum += times * part);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A narrow valley, not convex.
    struct Rosenbrock;

    impl Objective for Rosenbrock {
        fn at(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<Option<f64>, Error> {
            let [x, y] = *point else { unreachable!("a plane") };
            let off = y - x * x;
            gradient.copy_from_slice(&[-400.0 * x * off - 2.0 * (1.0 - x), 200.0 * off]);
            Ok(Some(100.0 * off * off + (1.0 - x) * (1.0 - x)))
        }
    }

    #[test]
    fn it_finds_the_end_of_a_narrow_valley() {
        let mut descent = Lbfgs::new(vec![-1.2, 1.0], &mut Rosenbrock).unwrap();
        let mut last = descent.loss;
        for _ in 0..200 {
            let more = descent.step(1e-8, &mut Rosenbrock).unwrap();
            assert!(descent.loss <= last);
            last = descent.loss;
            if !more {
                break;
            }
        }
        let [x, y] = *descent.point() else { unreachable!("a plane") };
        assert!((x - 1.0).abs() < 1e-4 && (y - 1.0).abs() < 1e-4, "{x} {y}");
    }

    /// Everything left of 1 has no loss that could be computed.
    struct Cliff;

    impl Objective for Cliff {
        fn at(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<Option<f64>, Error> {
            gradient[0] = 1.0;
            Ok((point[0] >= 1.0).then_some(point[0]))
        }
    }

    #[test]
    fn it_stops_before_losses_that_are_not_finite() {
        let mut descent = Lbfgs::new(vec![1.7], &mut Cliff).unwrap();
        for _ in 0..100 {
            if !descent.step(1e-8, &mut Cliff).unwrap() {
                break;
            }
        }
        assert!((1.0..1.01).contains(&descent.point()[0]), "{:?}", descent.point());
        let mut nowhere = Lbfgs::new(vec![0.0], &mut Cliff).unwrap();
        assert!(!nowhere.step(1e-8, &mut Cliff).unwrap());
    }
}
