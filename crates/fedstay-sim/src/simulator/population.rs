//! The devices there are, those that take part, and the rows the others are judged by.

use std::ops::Range;
use std::sync::Arc;

use fedstay::Seed;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::rows;
use crate::data::{CopiedInputs, Copies, DataError, Dataset, Inputs, LoadedData};
use crate::model::{Error, RowProducts, Rows, RowsData};
use crate::partition::{Deal, Drawing, Histogram, Partition};

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

/// A data set dealt out, or to be drawn from.
///
/// Where rows are dealt out, they are in the order agents, held-out devices, test rows, each agent's
/// side by side, and rows that nobody holds are dropped. Where agents draw their rows with
/// replacement, the training rows are sorted by class, and an agent's are copied when they are needed.
#[derive(Debug, Clone)]
pub struct Population {
    data: Arc<Dataset>,
    agents: usize,
    held: Held,
    /// The agents' row products; none where they could take more than [`MOST_PRODUCTS`].
    products: Arc<[RowProducts]>,
}

/// The most memory that the row products of all agents may take.
const MOST_PRODUCTS: u64 = 1 << 29;

/// Who holds what.
#[derive(Debug, Clone)]
enum Held {
    /// Where the rows of each device begin, agents first, and where those of the last one end.
    Dealt(Arc<[usize]>),
    /// What says which of the first rows an agent draws, and how many these are.
    Drawn(Arc<Drawing>, usize),
}

/// The rows of one agent, where they lie or copied.
#[derive(Debug)]
pub struct AgentRows<'a> {
    data: &'a Arc<Dataset>,
    place: Place,
    /// The products of the rows with each other, where these are all of an agent's.
    products: Option<&'a RowProducts>,
}

#[derive(Debug)]
enum Place {
    Lying(Range<usize>),
    Copied(Copies),
}

impl AgentRows<'_> {
    /// The rows, as a model reads them.
    ///
    /// # Errors
    /// Never, for rows of a population that a simulator was made of.
    pub fn view(&self) -> Result<Rows<'_>, Error> {
        let Copies { inputs, labels } = match &self.place {
            Place::Lying(range) => {
                let rows = rows(self.data, range.clone())?;
                return Ok(match self.products {
                    Some(products) => rows.with_products(products),
                    None => rows,
                });
            }
            Place::Copied(copies) => copies,
        };
        let inputs = match (inputs, &self.data.inputs) {
            (CopiedInputs::Bytes(rows), Inputs::Bytes { scale, shift, .. }) => {
                RowsData::Bytes { rows, scale, shift }
            }
            (CopiedInputs::Bytes(rows), Inputs::Floats { .. }) => {
                RowsData::Bytes { rows, scale: &[], shift: &[] }
            }
            (CopiedInputs::Floats(rows), _) => {
                RowsData::Floats { rows, features: self.data.features() }
            }
        };
        Rows::new(inputs, labels)
    }

    /// Their classes.
    pub(crate) fn labels(&self) -> &[u16] {
        match &self.place {
            Place::Lying(range) => &self.data.labels[range.clone()],
            Place::Copied(copies) => &copies.labels,
        }
    }
}

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
        let (data, held) = (Arc::new(data), Held::Dealt(bounds.into()));
        Ok(Population { data, agents: sizes.agents, held, products })
    }

    /// Lets every agent draw its rows from all training rows, with replacement.
    ///
    /// # Errors
    /// When a setting is missing or out of range; the message names the key.
    pub fn drawn(
        loaded: LoadedData,
        partition: &Partition,
        sizes: Sizes,
        seed: Seed,
    ) -> Result<Self, DataError> {
        let LoadedData { mut data, train, .. } = loaded;
        if sizes.population.is_some() {
            let why = "cannot be given with data.replace: the rows of devices that do not take part \
                       would be those of agents too; without it the test rows stand for the population";
            return Err(DataError::setting("population", why));
        }
        let deal = Deal {
            labels: &data.labels[..train],
            classes: &data.classes,
            devices: sizes.agents,
            per_agent: sizes.per_agent,
        };
        let drawing = Drawing::new(partition, &deal, seed)?;
        let mut order: Vec<usize> = (0..train).collect();
        order.sort_by_key(|row| data.labels[*row]);
        let held = drawing.held();
        order.extend((train..data.len()).filter(|&row| held[usize::from(data.labels[row])]));
        data.arrange(&order);
        let held = Held::Drawn(Arc::new(drawing), train);
        let products = Arc::default();
        Ok(Population { data: Arc::new(data), agents: sizes.agents, held, products })
    }

    /// The same devices with every agent's rows class after class, beginning with the one it has most
    /// of; rows of one class stay in their order. Agents that draw their rows stay as they are.
    pub(crate) fn by_class(self) -> Self {
        let labels = &self.data.labels;
        let mut order: Vec<usize> = (0..self.data.len()).collect();
        for agent in 0..self.agents {
            let Some(rows) = self.place(agent) else { break };
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

    /// Where the products of an agent's rows with each other are kept, once they are needed; `None`
    /// where those of all agents could take too much memory.
    pub fn products(&self, agent: usize) -> Option<&RowProducts> {
        self.products.get(agent)
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
        match &self.held {
            Held::Dealt(bounds) => bounds[self.agents] / self.agents,
            Held::Drawn(drawing, _) => drawing.each(),
        }
    }

    /// How many rows an agent has.
    pub fn count(&self, agent: usize) -> usize {
        match &self.held {
            Held::Dealt(bounds) => bounds[agent + 1] - bounds[agent],
            Held::Drawn(drawing, _) => drawing.count(agent),
        }
    }

    /// How many rows each agent has.
    pub fn sizes(&self) -> Vec<usize> {
        (0..self.agents).map(|agent| self.count(agent)).collect()
    }

    /// The most rows an agent can have.
    pub fn largest(&self) -> usize {
        match &self.held {
            Held::Dealt(_) => self.sizes().into_iter().max().unwrap_or(0),
            Held::Drawn(drawing, _) => drawing.largest(),
        }
    }

    /// The rows of agent `agent`.
    pub fn agent(&self, agent: usize) -> AgentRows<'_> {
        self.some(agent, 0..self.count(agent))
    }

    /// Where some of the rows of agent `agent` lie, counted from its first; `None` where they are
    /// copied for it.
    pub(crate) fn span(&self, agent: usize, some: Range<usize>) -> Option<Range<usize>> {
        match &self.held {
            Held::Dealt(bounds) => Some(bounds[agent] + some.start..bounds[agent] + some.end),
            Held::Drawn(..) => None,
        }
    }

    /// Some of the rows of agent `agent`, counted from its first.
    pub(crate) fn some(&self, agent: usize, some: Range<usize>) -> AgentRows<'_> {
        let whole = some == (0..self.count(agent));
        let place = match &self.held {
            Held::Dealt(bounds) => {
                Place::Lying(bounds[agent] + some.start..bounds[agent] + some.end)
            }
            Held::Drawn(drawing, _) => Place::Copied(self.data.copies(&drawing.draw(agent)[some])),
        };
        AgentRows { data: &self.data, place, products: self.products(agent).filter(|_| whole) }
    }

    /// Where the rows of agent `agent` lie side by side; `None` where agents draw them.
    pub fn place(&self, agent: usize) -> Option<Range<usize>> {
        assert!(agent < self.agents, "there are {} agents, none is number {agent}", self.agents);
        match &self.held {
            Held::Dealt(bounds) => Some(bounds[agent]..bounds[agent + 1]),
            Held::Drawn(..) => None,
        }
    }

    /// The rows of the devices that do not take part, device after device.
    pub fn held_out(&self) -> Range<usize> {
        match &self.held {
            Held::Dealt(bounds) => bounds[self.agents]..bounds[bounds.len() - 1],
            Held::Drawn(_, train) => *train..*train,
        }
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

    /// How many rows of each class an agent has.
    pub(crate) fn classes_of(&self, agent: usize) -> Vec<usize> {
        let mut counts = vec![0; self.data.classes.len()];
        let rows = self.agent(agent);
        rows.labels().iter().for_each(|label| counts[usize::from(*label)] += 1);
        counts
    }

    /// How many rows of each class every agent has.
    pub fn histogram(&self) -> Histogram {
        let mut counts = vec![vec![0; self.data.classes.len()]; self.agents];
        for (agent, counts) in counts.iter_mut().enumerate() {
            *counts = self.classes_of(agent);
        }
        Histogram { classes: self.data.classes.clone(), counts }
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
        assert_eq!(population.place(9), Some(900..1000));
        for agent in 0..10 {
            let rows = population.place(agent).unwrap();
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
        assert_eq!((population.place(1).unwrap().start, population.per_agent()), (rows[0], 144));
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
            let labels = &lined.data().labels[lined.place(agent).unwrap()];
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
            let first = |agent| population.data().labels[population.place(agent).unwrap().start];
            (0..4).map(first).collect()
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

    #[test]
    fn drawn_rows_are_those_of_the_data_with_their_labels_and_nothing_is_kept_about_agents() {
        let loaded = || Data::default().load().unwrap();
        let (whole, train) = (loaded().data, loaded().train);
        let drawn = |sizes| Population::drawn(loaded(), &pure(), sizes, Seed(3));
        let population = drawn(sizes(1_000_000, None, Some(40))).unwrap();
        assert_eq!((population.agents(), population.per_agent()), (1_000_000, 40));
        assert_eq!(population.data().len(), whole.len(), "the rows are there once");
        assert_eq!((population.test(), population.population()), (train..1797, Some(train..1797)));
        let rows = population.agent(999_997);
        let rows = rows.view().unwrap();
        assert!(rows.labels().iter().all(|label| *label == 7) && rows.len() == 40);
        let RowsData::Bytes { rows: bytes, .. } = rows.data() else { panic!("digits are bytes") };
        let known = |one: &[u8]| {
            (0..train).any(|row| whole.row(row) == Row::Bytes(one) && whole.labels[row] == 7)
        };
        assert!(bytes.chunks_exact(64).all(known));
        let error = drawn(sizes(5, Some(9), Some(40))).unwrap_err().to_string();
        assert!(error.contains("population") && error.contains("data.replace"), "{error}");
        let few = drawn(sizes(3, None, Some(10))).unwrap();
        assert!(few.data().labels[few.test()].iter().all(|label| *label < 3));
        assert_eq!(few.histogram().counts[2][2], 10);
    }
}
