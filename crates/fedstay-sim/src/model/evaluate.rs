//! How well weights do: exact mean losses, accuracies, and decisions without the whole sum.

use super::network::Head;
use super::rows::length;
use super::{Error, Loaded, LossSum, Network, Output, Reads, Rows, Said, Workspace};
use fedstay_kernels::layer::scalar::{exp, softplus};

/// A full evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// The mean loss. It does not depend on the order of the rows.
    pub loss: f64,
    /// How many rows were classified correctly; `None` where rows have numbers.
    pub correct: Option<usize>,
    /// How many rows there were.
    pub samples: usize,
}

impl Evaluation {
    /// The share of rows that were classified correctly; `None` where rows have numbers.
    #[must_use]
    pub fn accuracy(&self) -> Option<f64> {
        self.correct.map(|correct| correct as f64 / self.samples as f64)
    }
}

/// Whether a mean loss is at most a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LossTest {
    /// It is at most the bound, and this is the exact loss.
    AtMost(f64),
    /// It is above the bound, and so is this lower bound of the loss.
    Above(f64),
}

impl LossTest {
    /// Whether the loss is at most the bound.
    #[must_use]
    pub fn is_at_most(&self) -> bool {
        matches!(self, Self::AtMost(_))
    }
}

/// The order in which an agent's rows are looked at: hardest first, by the last loss of each. A row
/// that was never seen counts as the hardest, so at first the rows come as they are, and all have
/// been seen after a few decisions; a row that was easy is not looked at again until those before
/// it have become as easy. The order changes how soon a decision is reached and how large the lower
/// bound is, never the decision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Order {
    /// For every row, its last loss above its number, from the largest to the smallest.
    keys: Vec<u64>,
}

/// Sorts by loss, then rows of equal loss from the last to the first. Losses are never negative, so
/// their bits sort as they do.
fn key(row: u32, loss: f32) -> u64 {
    u64::from(loss.to_bits()) << 32 | u64::from(!row)
}

impl Order {
    /// Makes the order fit the number of rows, keeping the current one if it does.
    fn fit(&mut self, rows: usize) {
        if self.keys.len() != rows {
            self.keys.clear();
            self.keys.extend((0..rows as u32).map(|row| key(row, f32::INFINITY)));
        }
    }

    /// The rows in places `from..from + count`.
    fn rows(&self, from: usize, count: usize) -> impl Iterator<Item = u32> {
        self.keys[from..from + count].iter().map(|key| !(*key as u32))
    }

    /// Replaces the keys from place `from` on; [`sort`](Self::sort) must follow.
    fn record(&mut self, from: usize, rows: &[u32], losses: &[f32]) {
        let keys = &mut self.keys[from..from + rows.len()];
        for ((place, row), loss) in keys.iter_mut().zip(rows).zip(losses) {
            *place = key(*row, *loss);
        }
    }

    /// Sorts the keys. The sort is stable because that one is fast where most is already in order.
    fn sort(&mut self) {
        self.keys.sort_by(|a, b| b.cmp(a));
    }
}

impl Network {
    /// The exact mean loss and the accuracy over all rows. With an order, also finds out which
    /// rows are the hardest, for the decisions to come.
    ///
    /// # Errors
    /// If anything is wrong with the input, see [`Error`].
    pub fn evaluate(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        order: Option<&mut Order>,
        work: &mut Workspace,
    ) -> Result<Evaluation, Error> {
        self.evaluate_noting(weights, rows, order, work, |_, _| {})
    }

    /// As [`evaluate`](Self::evaluate), and takes down what the model says of each row.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub(crate) fn listen(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        reads: Reads,
        work: &mut Workspace,
    ) -> Result<(Evaluation, Said), Error> {
        let mut said = Said::nothing(self.output(), rows.scale());
        let note = |work: &Workspace, count| self.note(work, count, reads, &mut said);
        let evaluation = self.evaluate_noting(weights, rows, None, work, note)?;
        Ok((evaluation, said))
    }

    /// Takes down what the model says of the first rows of a tile.
    fn note(&self, work: &Workspace, count: usize, reads: Reads, said: &mut Said) {
        let (tile, logits) = (work.tile(), &work.logits);
        let outputs = logits.len() / tile;
        let said = match said {
            Said::Classes(said) => said,
            Said::Numbers(said) => {
                said.targets.extend(&work.numbers[..count]);
                said.predictions.extend(&logits[..count]);
                said.losses.extend(&work.losses[..count]);
                return;
            }
        };
        said.labels.extend(&work.labels[..count]);
        said.hits.extend(work.hits[..count].iter().map(|hit| *hit == 1));
        said.losses.extend(&work.losses[..count]);
        if reads < Reads::Probabilities {
            return;
        }
        for row in 0..count {
            let of_row = (0..outputs).map(|output| logits[output * tile + row]);
            match self.head {
                Head::Logistic => {
                    // Each by itself, so that neither is rounded to nothing beside the other.
                    let of = |z: f32| softplus(z).1;
                    said.probabilities.extend([of(-logits[row]), of(logits[row])]);
                }
                Head::Squared => {}
                Head::Softmax => {
                    let top = of_row.clone().fold(f32::NEG_INFINITY, f32::max);
                    let from = said.probabilities.len();
                    said.probabilities.extend(of_row.map(|z| exp(z - top)));
                    let sum: f32 = said.probabilities[from..].iter().sum();
                    said.probabilities[from..].iter_mut().for_each(|share| *share /= sum);
                }
            }
        }
    }

    /// As [`evaluate`](Self::evaluate); `note` is told of every tile, and of how many rows it has.
    fn evaluate_noting(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        mut order: Option<&mut Order>,
        work: &mut Workspace,
        mut note: impl FnMut(&Workspace, usize),
    ) -> Result<Evaluation, Error> {
        self.check(weights, rows)?;
        let first = self.first(weights, rows, work.isa)?;
        let samples = rows.len();
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
            note(work, count);
            if let Some(order) = order.as_deref_mut() {
                order.record(from, &work.index[..count], &work.losses[..count]);
            }
        }
        if let Some(order) = order {
            order.sort();
        }
        Ok(Evaluation { loss: sum.mean(samples), correct: self.counted(correct), samples })
    }

    /// Hits, where there is such a thing.
    fn counted(&self, hits: usize) -> Option<usize> {
        matches!(self.output(), Output::Classes(_)).then_some(hits)
    }

    /// As [`evaluate`](Self::evaluate) for groups of rows that lie side by side, of these lengths.
    /// Groups share tiles, so that small ones do not cost as much as whole tiles; as a row's loss
    /// depends on the row alone, the results are those of each group by itself, bit for bit.
    ///
    /// # Errors
    /// [`Error::Length`] if the groups do not make up the rows, [`Error::Empty`] for an empty group,
    /// else as [`evaluate`](Self::evaluate).
    pub fn evaluate_each(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        groups: &[usize],
        work: &mut Workspace,
    ) -> Result<Vec<Evaluation>, Error> {
        self.evaluate_each_noting(weights, rows, groups, work, |_, _| {})
    }

    /// As [`evaluate_each`](Self::evaluate_each), and takes down what the model says of each row.
    ///
    /// # Errors
    /// As [`evaluate_each`](Self::evaluate_each).
    pub(crate) fn listen_to_each(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        groups: &[usize],
        reads: Reads,
        work: &mut Workspace,
    ) -> Result<(Vec<Evaluation>, Said), Error> {
        let mut said = Said::nothing(self.output(), rows.scale());
        let note = |work: &Workspace, count| self.note(work, count, reads, &mut said);
        let each = self.evaluate_each_noting(weights, rows, groups, work, note)?;
        Ok((each, said))
    }

    fn evaluate_each_noting(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        groups: &[usize],
        work: &mut Workspace,
        mut note: impl FnMut(&Workspace, usize),
    ) -> Result<Vec<Evaluation>, Error> {
        self.check(weights, rows)?;
        length("groups", rows.len(), groups.iter().sum())?;
        if groups.contains(&0) {
            return Err(Error::Empty { what: "a group of rows" });
        }
        let first = self.first(weights, rows, work.isa)?;
        let mut sums = vec![(LossSum::default(), 0); groups.len()];
        let (mut group, mut missing) = (0, groups[0]);
        for from in (0..rows.len()).step_by(work.tile()) {
            let count = work.tile().min(rows.len() - from);
            work.index.clear();
            work.index.extend(from as u32..(from + count) as u32);
            self.evaluate_tile(weights, first, rows, work);
            note(work, count);
            for (loss, hit) in work.losses.iter().zip(&work.hits).take(count) {
                if missing == 0 {
                    group += 1;
                    missing = groups[group];
                }
                let (sum, correct) = &mut sums[group];
                sum.add(*loss);
                *correct += *hit as usize;
                missing -= 1;
            }
        }
        let evaluation = |((sum, correct), samples): ((LossSum, usize), &usize)| Evaluation {
            loss: sum.mean(*samples),
            correct: self.counted(correct),
            samples: *samples,
        };
        Ok(sums.into_iter().zip(groups).map(evaluation).collect())
    }

    /// Whether the mean loss over all rows is at most `bound`: exactly the comparison
    /// `evaluate(..).loss <= bound`, but it returns as soon as the rows seen so far prove the loss
    /// to be above.
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
    ) -> Result<LossTest, Error> {
        self.check(weights, rows)?;
        if bound.is_nan() {
            return Err(Error::Bound);
        }
        let samples = rows.len();
        let Some(threshold) = LossSum::largest_at_most(bound, samples) else {
            return Ok(LossTest::Above(0.0));
        };
        let first = self.first(weights, rows, work.isa)?;
        order.fit(samples);
        let mut sum = LossSum::default();
        for from in (0..samples).step_by(work.tile()) {
            let count = work.tile().min(samples - from);
            work.index.clear();
            work.index.extend(order.rows(from, count));
            self.evaluate_tile(weights, first, rows, work);
            work.losses[..count].iter().for_each(|loss| sum.add(*loss));
            order.record(from, &work.index[..count], &work.losses[..count]);
            if sum > threshold {
                order.sort();
                return Ok(LossTest::Above(sum.mean(samples)));
            }
        }
        order.sort();
        Ok(LossTest::AtMost(sum.mean(samples)))
    }
}
