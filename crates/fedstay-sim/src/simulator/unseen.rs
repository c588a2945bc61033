//! How good a model is for an agent on rows that nobody trained on.
//!
//! Where rows are dealt out, those kept for testing are everybody's (where the data say whose a row
//! is, an agent has test rows of its own, see [`super::held_back`]); an agent's own future has its own mix of classes. So its
//! accuracy on unseen rows is each class's accuracy on the test rows, weighed by the agent's mix. That
//! is where training alone shows what it lacks: on its own rows a model trained alone is hard to beat.

use crate::data::Dataset;
use crate::simulator::population::Population;
use std::ops::Range;
use std::sync::Arc;

/// The test rows, class by class, and every agent's mix of these classes.
#[derive(Debug)]
pub(crate) struct Unseen {
    pub(crate) data: Arc<Dataset>,
    /// The rows of each class that has any.
    pub(crate) classes: Vec<Range<usize>>,
    /// For every agent, the weight of each of these classes; they sum to one.
    mix: Vec<Vec<f64>>,
}

impl Unseen {
    /// Returns `None` where rows have numbers, where no rows are kept for testing, or an agent has no class among them.
    pub(crate) fn new(population: &Population) -> Option<Self> {
        let histogram = population.histogram()?;
        let labels = population.data().targets.classes()?.of;
        let mut order: Vec<usize> = population.test().collect();
        order.sort_by_key(|row| labels[*row]);
        let mut classes: Vec<Range<usize>> = Vec::new();
        let mut names: Vec<u16> = Vec::new();
        for (place, row) in order.iter().enumerate() {
            match (names.last(), classes.last_mut()) {
                (Some(name), Some(class)) if *name == labels[*row] => class.end = place + 1,
                _ => {
                    names.push(labels[*row]);
                    classes.push(place..place + 1);
                }
            }
        }
        let mix: Option<Vec<Vec<f64>>> = histogram
            .counts
            .iter()
            .map(|counts| {
                let held: Vec<f64> =
                    names.iter().map(|name| counts[usize::from(*name)] as f64).collect();
                let all: f64 = held.iter().sum();
                (all > 0.0).then(|| held.into_iter().map(|count| count / all).collect())
            })
            .collect();
        let mut data = Dataset::clone(population.data());
        data.arrange(&order);
        Some(Self { data: Arc::new(data), classes, mix: mix.filter(|mix| !mix.is_empty())? })
    }

    /// An agent's accuracy, from the accuracy on each class.
    pub(crate) fn accuracy(&self, agent: usize, by_class: &[f64]) -> f64 {
        self.mix[agent].iter().zip(by_class).map(|(weight, accuracy)| weight * accuracy).sum()
    }
}
