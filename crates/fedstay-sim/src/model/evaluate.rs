//! How well weights do: exact mean losses, accuracies, and decisions without the whole sum.

use super::{Error, Loaded, LossSum, Network, Rows, Workspace};

/// A full evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// The mean loss. It does not depend on the order of the rows.
    pub loss: f64,
    /// How many rows were guessed right.
    pub correct: usize,
    /// How many rows there were.
    pub samples: usize,
}

impl Evaluation {
    /// The share of rows guessed right.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.samples as f64
    }
}

/// Whether a mean loss is at most a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// It is, and this is the exact loss.
    AtMost(f64),
    /// It is not, and the loss is at least this, which itself is above the bound.
    Above(f64),
}

impl Decision {
    /// Whether the loss is at most the bound.
    #[must_use]
    pub fn is_at_most(&self) -> bool {
        matches!(self, Self::AtMost(_))
    }
}

/// In which order an agent's rows are looked at: hardest first, by the last evaluation that saw
/// them all. It changes how soon a decision falls and how large the lower bound is, never the
/// decision. Starts with the rows as they come.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Order {
    index: Vec<u32>,
    losses: Vec<f32>,
}

impl Order {
    /// An order for as many rows as there are, keeping the one there is if it fits.
    fn fit(&mut self, rows: usize) {
        if self.index.len() != rows {
            self.index.clear();
            self.index.extend(0..rows as u32);
            self.losses.clear();
            self.losses.resize(rows, 0.0);
        }
    }

    fn record(&mut self, index: &[u32], losses: &[f32]) {
        for (row, loss) in index.iter().zip(losses) {
            self.losses[*row as usize] = *loss;
        }
    }

    /// Hardest first, equals by row.
    fn sort(&mut self) {
        let Self { index, losses } = self;
        let loss = |row: &u32| losses[*row as usize];
        index.sort_unstable_by(|a, b| loss(b).total_cmp(&loss(a)).then(a.cmp(b)));
    }
}

impl Network {
    /// The exact mean loss and the accuracy over all rows. With an order, also finds out which
    /// rows are the hardest, for the decisions to come.
    ///
    /// # Errors
    /// Everything that is wrong with the input, see [`Error`].
    pub fn evaluate(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        order: Option<&mut Order>,
        work: &mut Workspace,
    ) -> Result<Evaluation, Error> {
        self.check(weights, rows)?;
        let first = self.first(weights, rows, work.isa)?;
        let samples = rows.len();
        let mut order = order;
        if let Some(order) = order.as_deref_mut() {
            order.fit(samples);
        }
        let mut sum = LossSum::default();
        let mut correct = 0;
        for from in (0..samples).step_by(work.tile()) {
            let count = work.tile().min(samples - from);
            work.index.clear();
            work.index.extend(from as u32..(from + count) as u32);
            self.evaluate_tile(weights, first, rows, work);
            work.losses[..count].iter().for_each(|loss| sum.add(*loss));
            correct += work.hits[..count].iter().sum::<u32>() as usize;
            if let Some(order) = order.as_deref_mut() {
                order.record(&work.index[..count], &work.losses[..count]);
            }
        }
        if let Some(order) = order {
            order.sort();
        }
        Ok(Evaluation { loss: sum.mean(samples), correct, samples })
    }

    /// Whether the mean loss over all rows is at most `bound`: exactly the comparison
    /// `evaluate(..).loss <= bound`, but a *no* falls as soon as the rows seen so far prove it.
    ///
    /// # Errors
    /// [`Error::Bound`] if the bound is not a number, else as [`evaluate`](Self::evaluate).
    pub fn decide(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        bound: f64,
        order: &mut Order,
        work: &mut Workspace,
    ) -> Result<Decision, Error> {
        self.check(weights, rows)?;
        if bound.is_nan() {
            return Err(Error::Bound);
        }
        let first = self.first(weights, rows, work.isa)?;
        let samples = rows.len();
        let Some(threshold) = LossSum::largest_at_most(bound, samples) else {
            return Ok(Decision::Above(0.0));
        };
        order.fit(samples);
        let mut sum = LossSum::default();
        for from in (0..samples).step_by(work.tile()) {
            let count = work.tile().min(samples - from);
            work.index.clear();
            work.index.extend_from_slice(&order.index[from..from + count]);
            self.evaluate_tile(weights, first, rows, work);
            work.losses[..count].iter().for_each(|loss| sum.add(*loss));
            order.record(&work.index[..count], &work.losses[..count]);
            if sum > threshold {
                return Ok(Decision::Above(sum.mean(samples)));
            }
        }
        order.sort();
        Ok(Decision::AtMost(sum.mean(samples)))
    }
}
