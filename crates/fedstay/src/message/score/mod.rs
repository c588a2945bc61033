//! How good weights are: a loss, and whatever else was measured, by name.
//!
//! A [`Score`] is the same thing everywhere: of one agent (`Score`), over all agents
//! (`Score<Spread>`), or in columns over them (`Score<Vec<f64>>`). In files its parts stand side by
//! side under their names: `"loss": 0.41, "accuracy": 0.87, "balanced": 0.79`. What a name means
//! (which direction is better, how a value is shown) is a [`Measure`], which files list once.

mod files;
mod interval;
mod measure;

pub use files::ScorePart;
pub use interval::Interval;
pub use measure::{Better, Measure, MeasureName, Unit};

use smallvec::SmallVec;

/// A loss and whatever else was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Score<T = f64> {
    /// The loss.
    pub loss: T,
    /// The rest, by name.
    pub measures: Measures<T>,
}

/// Values by the names of their measures, in the order in which they were added. One value needs no
/// room of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Measures<T = f64>(SmallVec<[(MeasureName, T); 1]>);

impl<T> Default for Measures<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T> Measures<T> {
    /// The value of a measure.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All values with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// All values with their names as they are kept.
    pub fn named(&self) -> impl Iterator<Item = (&MeasureName, &T)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the value of a measure.
    pub fn set(&mut self, name: impl Into<MeasureName>, value: T) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }
}

impl<T> Score<T> {
    /// A loss and nothing else.
    pub fn new(loss: T) -> Self {
        Self { loss, measures: Measures::default() }
    }

    /// The same with the value of a measure, if there is one.
    #[must_use]
    pub fn with(mut self, name: impl Into<MeasureName>, value: impl Into<Option<T>>) -> Self {
        if let Some(value) = value.into() {
            self.measures.set(name, value);
        }
        self
    }

    /// The value of a measure; the loss is one of them.
    pub fn get(&self, name: &str) -> Option<&T> {
        if name == Measure::LOSS.name { Some(&self.loss) } else { self.measures.get(name) }
    }

    /// Makes another value of each.
    pub fn map<U>(&self, mut of: impl FnMut(&T) -> U) -> Score<U> {
        let measures = self.measures.0.iter().map(|(name, value)| (name.clone(), of(value)));
        let measures = Measures(measures.collect());
        Score { loss: of(&self.loss), measures }
    }
}

impl Score {
    /// The value of a measure, if it has one.
    pub fn of(&self, name: &str) -> Option<f64> {
        self.get(name).copied()
    }
}

impl Score<Vec<f64>> {
    /// Scores side by side: a column for the losses, and one for every measure that any of them has,
    /// with NaN where one does not have it.
    pub fn columns<'a>(scores: impl ExactSizeIterator<Item = &'a Score>) -> Self {
        let all = scores.len();
        let mut columns = Self::new(Vec::with_capacity(all));
        for (place, score) in scores.enumerate() {
            columns.loss.push(score.loss);
            for (name, value) in &score.measures.0 {
                let known = columns.measures.0.iter().position(|(known, _)| known == name);
                let column = known.unwrap_or_else(|| {
                    columns.measures.0.push((name.clone(), vec![f64::NAN; all]));
                    columns.measures.0.len() - 1
                });
                columns.measures.0[column].1[place] = *value;
            }
        }
        columns
    }

    /// The score in one place of the columns, if they are that long.
    pub fn at(&self, place: usize) -> Option<Score> {
        let loss = *self.loss.get(place)?;
        let known = |(name, column): &(MeasureName, Vec<f64>)| {
            let value = column.get(place).copied().filter(|value| !value.is_nan())?;
            Some((name.clone(), value))
        };
        Some(Score { loss, measures: Measures(self.measures.0.iter().filter_map(known).collect()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measure_is_set_once_and_the_loss_is_one() {
        let mut score = Score::new(0.5).with("accuracy", 0.75).with("brier", None);
        assert_eq!(
            [score.of("loss"), score.of("accuracy"), score.of("brier")],
            [Some(0.5), Some(0.75), None]
        );
        score.measures.set("accuracy", 0.25);
        assert_eq!(score, Score::new(0.5).with("accuracy", 0.25));
        assert_eq!(score.map(|value| value * 2.0), Score::new(1.0).with("accuracy", 0.5));
    }

    #[test]
    fn columns_have_a_gap_where_a_score_lacks_a_measure() {
        let scores =
            [Score::new(1.0), Score::new(2.0).with("a", 0.5), Score::new(3.0).with("b", 0.25)];
        let columns = Score::columns(scores.iter());
        assert_eq!(columns.loss, [1.0, 2.0, 3.0]);
        let a = columns.get("a").unwrap();
        assert!(a[0].is_nan() && a[1] == 0.5 && a[2].is_nan(), "{a:?}");
        for (place, score) in scores.iter().enumerate() {
            assert_eq!(columns.at(place).as_ref(), Some(score));
        }
        assert_eq!(columns.at(3), None);
    }
}
