//! The devices there are, those that take part, and the rows the others are judged by.

use std::ops::Range;
use std::sync::Arc;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::data::{DataError, Dataset, LoadedData};
use crate::model::RowProducts;
use crate::partition::{Deal, Histogram, Partition};

/// How many devices there are, how many take part, and how much each holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The devices that take part.
    pub agents: usize,
    /// All devices; by default as many as take part.
    pub population: Option<usize>,
    /// The rows of a device, on average where they are unequal; by default as many as all can have
    /// equally.
    pub per_agent: Option<usize>,
}

/// A data set dealt out: one shared block of rows in which each agent's rows lie side by side.
///
/// The rows are in the order agents, held-out devices, test rows. Rows that nobody holds are
/// dropped.
#[derive(Debug, Clone)]
pub struct Population {
    data: Arc<Dataset>,
    agents: usize,
    /// Where the rows of each device begin, agents first, and where those of the last one end.
    bounds: Arc<[usize]>,
    /// The agents' row products; none where they could take more than [`MOST_PRODUCTS`].
    products: Arc<[RowProducts]>,
}

/// The most memory that the row products of all agents may take.
const MOST_PRODUCTS: u64 = 1 << 29;

impl Population {
    /// Deals the training rows out to `sizes.population` devices and lets `sizes.agents` of them
    /// take part, chosen at random; the others are held out.
    pub fn new(
        loaded: LoadedData,
        partition: &Partition,
        sizes: Sizes,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self, DataError> {
        let LoadedData { mut data, train, .. } = loaded;
        let devices = sizes.population.unwrap_or(sizes.agents);
        if devices < sizes.agents {
            let why = format!("{devices} devices are fewer than agents = {}", sizes.agents);
            return Err(DataError::setting("population", why));
        }
        let labels = &data.labels[..train];
        let (classes, per_agent) = (&data.classes, sizes.per_agent);
        let mut dealt = partition.deal(&Deal { labels, classes, devices, per_agent }, rng)?;
        if devices > sizes.agents {
            // Those that take part stay in the order of their numbers.
            let mut numbers: Vec<usize> = (0..devices).collect();
            numbers.shuffle(rng);
            numbers[..sizes.agents].sort_unstable();
            numbers[sizes.agents..].sort_unstable();
            dealt = numbers.into_iter().map(|number| std::mem::take(&mut dealt[number])).collect();
        }

        let mut order: Vec<usize> = dealt.iter().flatten().copied().collect();
        let mut held = vec![false; data.classes.len()];
        order.iter().for_each(|&row| held[usize::from(data.labels[row])] = true);
        order.extend((train..data.len()).filter(|&row| held[usize::from(data.labels[row])]));
        data.arrange(&order);
        let mut bounds = vec![0];
        for rows in &dealt {
            bounds.push(bounds[bounds.len() - 1] + rows.len());
        }
        let rows = (0..sizes.agents).map(|agent| bounds[agent + 1] - bounds[agent]);
        let bytes = |rows| RowProducts::bytes(rows) + size_of::<RowProducts>() as u64;
        let fits = rows.map(bytes).sum::<u64>() <= MOST_PRODUCTS;
        let places = if fits { sizes.agents } else { 0 };
        let products = (0..places).map(|_| RowProducts::default()).collect();
        let (data, bounds) = (Arc::new(data), bounds.into());
        Ok(Population { data, agents: sizes.agents, bounds, products })
    }

    /// The same devices with every agent's rows class after class, beginning with the one it has most
    /// of; rows of one class stay in their order.
    pub(crate) fn by_class(self) -> Self {
        let labels = &self.data.labels;
        let mut order: Vec<usize> = (0..self.data.len()).collect();
        for agent in 0..self.agents {
            let rows = self.agent(agent);
            let counts = self.data.class_counts(rows.clone());
            // The first of those that it has most of.
            let most = (0..counts.len()).rev().max_by_key(|class| counts[*class]).unwrap_or(0);
            let turn = |row: &usize| {
                (usize::from(labels[*row]) + counts.len() - most) % counts.len().max(1)
            };
            order[rows].sort_by_key(turn);
        }
        let mut data = Dataset::clone(&self.data);
        data.arrange(&order);
        Self { data: Arc::new(data), ..self }
    }

    /// The rows.
    pub fn data(&self) -> &Arc<Dataset> {
        &self.data
    }

    /// How many devices take part.
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// How many rows an agent has on average, rounded down; every agent, where all are equal.
    pub fn per_agent(&self) -> usize {
        self.bounds[self.agents] / self.agents
    }

    /// How many rows each agent has.
    pub fn sizes(&self) -> Vec<usize> {
        (0..self.agents).map(|agent| self.agent(agent).len()).collect()
    }

    /// The rows of agent `agent`.
    pub fn agent(&self, agent: usize) -> Range<usize> {
        assert!(agent < self.agents, "there are {} agents, none is number {agent}", self.agents);
        self.bounds[agent]..self.bounds[agent + 1]
    }

    /// Where the products of an agent's rows with each other are kept, once they are needed; `None`
    /// where those of all agents could take too much memory.
    pub fn products(&self, agent: usize) -> Option<&RowProducts> {
        self.products.get(agent)
    }

    /// The rows of the devices that do not take part, device after device.
    pub fn held_out(&self) -> Range<usize> {
        self.bounds[self.agents]..self.bounds[self.bounds.len() - 1]
    }

    /// The test rows, of those classes that some device has.
    pub fn test(&self) -> Range<usize> {
        self.held_out().end..self.data.len()
    }

    /// The rows that stand for the population: the held-out devices or, where all take part, the
    /// test rows. `None` if there are neither.
    pub fn population(&self) -> Option<Range<usize>> {
        let rows = if self.held_out().is_empty() { self.test() } else { self.held_out() };
        Some(rows).filter(|rows| !rows.is_empty())
    }

    /// How many rows of each class every agent has.
    pub fn histogram(&self) -> Histogram {
        let agents = (0..self.agents).map(|agent| self.agent(agent));
        Histogram::new(&self.data.classes, &self.data.labels, agents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Row, Source};
    use crate::partition::{ByClass, Iid, Sizing};
    use rand::SeedableRng;

    fn sizes(agents: usize, population: Option<usize>, per_agent: Option<usize>) -> Sizes {
        Sizes { agents, population, per_agent }
    }

    fn digits(partition: &Partition, sizes: Sizes, seed: u64) -> Result<Population, DataError> {
        let loaded = Data::default().load().unwrap();
        Population::new(loaded, partition, sizes, &mut ChaCha8Rng::seed_from_u64(seed))
    }

    fn pure() -> Partition {
        Partition::ByClass(ByClass { q: 1.0, ..ByClass::default() })
    }

    #[test]
    fn every_agent_has_its_rows_side_by_side() {
        let population = digits(&pure(), sizes(10, None, Some(100)), 1).unwrap();
        assert_eq!(population.agent(9), 900..1000);
        for agent in 0..10 {
            let rows = population.agent(agent);
            assert!(population.data().labels[rows].iter().all(|&l| usize::from(l) == agent));
        }
        assert_eq!(population.histogram().counts[3][3], 100);
        assert_eq!(population.population(), Some(1000..1355));
    }

    #[test]
    fn unequal_agents_have_their_own_ranges_and_the_first_has_half() {
        let unequal = Iid { sizes: Sizing::Power, skew: 1.5 };
        let population = digits(&Partition::Iid(unequal), sizes(10, None, None), 3).unwrap();
        let rows = population.sizes();
        assert_eq!(rows.iter().sum::<usize>(), 1440);
        assert!((715..=725).contains(&rows[0]) && rows[9] < 30, "{rows:?}");
        assert!(rows.is_sorted_by(|a, b| a >= b), "{rows:?}");
        assert_eq!((population.agent(1).start, population.per_agent()), (rows[0], 144));
        assert_eq!(population.test().start, 1440);
        let counted: usize = population.histogram().counts[0].iter().sum();
        assert_eq!(counted, rows[0]);
    }

    #[test]
    fn rows_can_be_lined_up_by_class_each_agents_own_first() {
        let population = digits(&Partition::default(), sizes(10, None, None), 2).unwrap();
        let lined = population.clone().by_class();
        assert_eq!(lined.histogram(), population.histogram());
        for agent in 0..10 {
            let labels = &lined.data().labels[lined.agent(agent)];
            let runs = 1 + labels.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let classes: std::collections::HashSet<_> = labels.iter().collect();
            assert_eq!((usize::from(labels[0]), runs), (agent, classes.len()));
        }
    }

    #[test]
    fn images_and_labels_stay_together() {
        let whole = Source::default().load().unwrap().data;
        let known: std::collections::HashMap<Vec<u8>, u16> = (0..whole.len())
            .map(|row| match whole.row(row) {
                Row::Bytes(bytes) => (bytes.to_vec(), whole.labels[row]),
                Row::Floats(_) => panic!("digits are bytes"),
            })
            .collect();
        let population = digits(&Partition::default(), sizes(10, None, None), 2).unwrap();
        let data = population.data();
        for row in 0..data.len() {
            let Row::Bytes(bytes) = data.row(row) else { panic!("digits are bytes") };
            assert_eq!(known[bytes], data.labels[row]);
        }
    }

    #[test]
    fn devices_that_do_not_take_part_stand_for_the_population() {
        let partition = Partition::Iid(Iid::default());
        let population = digits(&partition, sizes(4, Some(20), Some(50)), 3).unwrap();
        assert_eq!(population.agents(), 4);
        assert_eq!(population.population(), Some(200..1000));
        assert_eq!(population.test().len(), 355);
        // Which devices take part is random, their order is not.
        let chosen = |seed| -> Vec<u16> {
            let population = digits(&pure(), sizes(4, Some(10), Some(50)), seed).unwrap();
            (0..4).map(|agent| population.data().labels[population.agent(agent).start]).collect()
        };
        assert!((0..10).all(|seed| chosen(seed).is_sorted()));
        assert!((0..10).any(|seed| chosen(seed) != chosen(0)));
        assert_eq!(chosen(5), chosen(5));
    }

    #[test]
    fn the_test_rows_are_of_classes_somebody_has() {
        let population = digits(&pure(), sizes(3, None, None), 4).unwrap();
        assert!(population.data().labels.iter().all(|&label| label < 3));
    }

    #[test]
    fn a_population_smaller_than_its_agents_is_refused() {
        let error = digits(&pure(), sizes(5, Some(4), None), 5).unwrap_err();
        assert_eq!(error.to_string(), "population: 4 devices are fewer than agents = 5");
    }
}
