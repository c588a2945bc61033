//! The devices there are, those that take part, and the rows the others are judged by.

use std::ops::Range;
use std::sync::Arc;

use fedstay::Seed;
use fedstay::record::{DataRows, UnusedRows};
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
    /// What became of every row that was read.
    rows: DataRows,
    /// What to know about training rows that go to nobody although nothing says that they should.
    warning: Option<String>,
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
        let LoadedData { mut data, train, left_out, .. } = loaded;
        let devices = sizes.population.unwrap_or(sizes.agents);
        if devices < sizes.agents {
            let why = format!("{devices} devices are fewer than agents = {}", sizes.agents);
            return Err(DataError::setting("population", why));
        }
        let labels = &data.labels[..train];
        let (classes, per_agent) = (&data.classes, sizes.per_agent);
        let deal = Deal { labels, classes, devices, per_agent };
        let mut dealt = partition.deal(&deal, rng)?;
        let mut counts = vec![0; classes.len()];
        dealt.iter().flatten().for_each(|row| counts[usize::from(labels[*row])] += 1);
        let mut unused = partition.unused(&deal, &counts);
        let each = counts.iter().sum::<usize>() / devices;
        let warning = much_unused(&unused, train, || partition.instead(each));
        if devices > sizes.agents {
            // Those that take part stay in the order of their numbers.
            let mut numbers: Vec<usize> = (0..devices).collect();
            numbers.shuffle(rng);
            numbers[..sizes.agents].sort_unstable();
            numbers[sizes.agents..].sort_unstable();
            dealt = numbers.into_iter().map(|number| std::mem::take(&mut dealt[number])).collect();
        }

        let mut order: Vec<usize> = dealt.iter().flatten().copied().collect();
        let (read, training) = (data.len(), order.len());
        order.extend((train..data.len()).filter(|&row| counts[usize::from(data.labels[row])] > 0));
        data.arrange(&order);
        let test = order.len() - training;
        unused.extend(untested(read - train - test));
        unused.extend(unwanted(left_out));
        let mut bounds = vec![0];
        for rows in &dealt {
            bounds.push(bounds[bounds.len() - 1] + rows.len());
        }
        let rows = (0..sizes.agents).map(|agent| bounds[agent + 1] - bounds[agent]);
        let bytes = |rows| RowProducts::bytes(rows) + size_of::<RowProducts>() as u64;
        let fits = rows.map(bytes).sum::<u64>() <= MOST_PRODUCTS;
        let places = if fits { sizes.agents } else { 0 };
        let products = (0..places).map(|_| RowProducts::default()).collect();
        let rows = DataRows {
            read: read + left_out,
            dealt: bounds[sizes.agents],
            drawn: false,
            held_out: training - bounds[sizes.agents],
            test,
            unused,
        };
        let (data, held) = (Arc::new(data), Held::Dealt(bounds.into()));
        Ok(Population { data, agents: sizes.agents, held, rows, warning, products })
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
        let LoadedData { mut data, train, left_out, .. } = loaded;
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
        let counts = drawing.reach();
        // Every agent may draw any row of its classes: what nobody draws, nobody could.
        let mut unused = partition.unused(&Deal { per_agent: None, ..deal }, &counts);
        let each = drawing.each();
        let warning = much_unused(&unused, train, || partition.instead(each));
        let mut order: Vec<usize> = (0..train).collect();
        order.sort_by_key(|row| data.labels[*row]);
        order.extend((train..data.len()).filter(|&row| counts[usize::from(data.labels[row])] > 0));
        let (read, test) = (data.len(), order.len() - train);
        data.arrange(&order);
        unused.extend(untested(read - train - test));
        unused.extend(unwanted(left_out));
        let rows = DataRows {
            read: read + left_out,
            dealt: counts.iter().sum(),
            drawn: true,
            held_out: 0,
            test,
            unused,
        };
        let held = Held::Drawn(Arc::new(drawing), train);
        let (data, products) = (Arc::new(data), Arc::default());
        Ok(Population { data, agents: sizes.agents, held, rows, warning, products })
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

    /// What became of every row that was read.
    pub fn rows(&self) -> &DataRows {
        &self.rows
    }

    /// What to know before believing results on these rows, if anything.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let one = match &self.data.classes[..] {
            [class] => Some(format!(
                "all rows are of one class, `{class}`: there is nothing to tell apart, and every model \
                 can be right about all of them"
            )),
            _ => None,
        };
        self.warning.iter().cloned().chain(one).collect()
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

/// Above this share of the training rows somebody should know that they go to nobody.
const MUCH: f64 = 0.1;

/// The warning about training rows that go to nobody although the experiment does not say so.
fn much_unused(
    unused: &[UnusedRows],
    train: usize,
    instead: impl FnOnce() -> String,
) -> Option<String> {
    let unasked: Vec<&UnusedRows> = unused.iter().filter(|part| !part.asked).collect();
    let rows: usize = unasked.iter().map(|part| part.rows).sum();
    let why: Vec<&str> = unasked.iter().map(|part| part.why.as_str()).collect();
    let share = rows as f64 / train.max(1) as f64;
    (share > MUCH).then(|| {
        format!(
            "{rows} of {train} training rows ({:.0}%) are not used: {}; {}",
            100.0 * share,
            why.join("; "),
            instead()
        )
    })
}

/// Test rows that nobody is judged by.
fn untested(rows: usize) -> Option<UnusedRows> {
    let why = "test rows of classes that nobody holds".to_owned();
    (rows > 0).then_some(UnusedRows { rows, why, asked: false })
}

/// Rows that the experiment leaves out.
fn unwanted(rows: usize) -> Option<UnusedRows> {
    let why = "of other classes than data.classes".to_owned();
    (rows > 0).then_some(UnusedRows { rows, why, asked: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ClassRef, Data, Row, Source};
    use crate::partition::{ByClass, Dirichlet, Iid, Shards, Sizing};
    use proptest::prelude::*;
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
    /// Rows that know their number in the file: it is their only feature.
    fn numbered(labels: &[u16], classes: u16, test_share: usize) -> LoadedData {
        let train = labels.len() - labels.len() * test_share / 10;
        LoadedData {
            data: Dataset {
                groups: None,
                name: "numbered".into(),
                inputs: Inputs::Floats {
                    rows: (0..labels.len()).map(|row| row as f32).collect(),
                    features: 1,
                },
                image: None,
                labels: labels.to_vec(),
                classes: (0..classes).map(|class| class.to_string()).collect(),
            },
            train,
            channels: crate::data::Channels::PerFeature,
            left_out: 0,
        }
    }

    fn any_partition() -> impl Strategy<Value = Partition> {
        let map = vec![vec![ClassRef::Index(0)], vec![ClassRef::Index(1), ClassRef::Index(0)]];
        let by_class = move |q: f64, mapped: bool, sizes: Sizing| {
            let map = mapped.then(|| map.clone());
            Partition::ByClass(ByClass { q, map, sizes, ..ByClass::default() })
        };
        let sizes = || prop_oneof![Just(Sizing::Equal), Just(Sizing::Power)];
        prop_oneof![
            (0.0..=1.0, any::<bool>(), sizes())
                .prop_map(move |(q, mapped, sizes)| by_class(q, mapped, sizes)),
            sizes().prop_map(|sizes| Partition::Iid(Iid { sizes, skew: 1.0 })),
            (0.1..2.0f64, sizes()).prop_map(|(alpha, sizes)| {
                Partition::Dirichlet(Dirichlet { alpha, sizes, skew: 1.0 })
            }),
            (1..4usize)
                .prop_map(|k| { Partition::Shards(Shards { k, sizes: Sizing::Equal, skew: 1.0 }) }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn every_row_is_in_exactly_one_place_and_the_line_counts_them_all(
            labels in prop::collection::vec(0u16..4, 20..120),
            kept in prop::option::of(1..4usize),
            test_share in 0..5usize,
            partition in any_partition(),
            agents in 1..7usize,
            more in 0..4usize,
            per_agent in prop::option::of(1..4usize),
            replace: bool,
            seed: u64,
        ) {
            let mut loaded = numbered(&labels, 4, test_share);
            if let Some(kept) = kept {
                let classes: Vec<ClassRef> = (0..=kept).map(ClassRef::Index).collect();
                loaded.select(&classes).unwrap();
            }
            let train = loaded.train;
            let per_agent = if replace { Some(per_agent.unwrap_or(2)) } else { per_agent };
            let population = match replace {
                true => Population::drawn(loaded, &partition, sizes(agents, None, per_agent), Seed(seed)),
                false => {
                    let sizes = sizes(agents, (more > 0).then_some(agents + more), per_agent);
                    Population::new(loaded, &partition, sizes, &mut ChaCha8Rng::seed_from_u64(seed))
                }
            };
            // Too few rows for so many agents is refused, and not what this is about.
            let Ok(population) = population else { return Ok(()) };
            let rows = population.rows();
            prop_assert_eq!(rows.read, labels.len());
            prop_assert_eq!(rows.dealt + rows.held_out + rows.test + rows.unused(), rows.read);
            prop_assert!(rows.unused.iter().all(|part| part.rows > 0 && !part.why.is_empty()));
            prop_assert_eq!(rows.test, population.test().len());
            prop_assert_eq!(rows.held_out, population.held_out().len());
            // What is here, is here once.
            let number = |row: usize| match population.data().row(row) {
                Row::Floats(features) => features[0] as usize,
                Row::Bytes(_) => unreachable!("these rows are floats"),
            };
            let here: Vec<usize> = (0..population.data().len()).map(number).collect();
            let once: std::collections::BTreeSet<usize> = here.iter().copied().collect();
            prop_assert_eq!(once.len(), here.len());
            prop_assert_eq!(replace, rows.drawn);
            if replace {
                let drawn: std::collections::BTreeSet<u16> =
                    (0..agents).flat_map(|agent| population.agent(agent).labels().to_vec()).collect();
                let none = rows.unused.iter().find(|part| part.why.contains("leaves out"));
                prop_assert!(rows.dealt + none.map_or(0, |part| part.rows) <= train);
                prop_assert!(drawn.len() <= rows.dealt);
            } else {
                prop_assert_eq!(population.sizes().iter().sum::<usize>(), rows.dealt);
                prop_assert_eq!(here.len() + rows.unused(), rows.read);
            }
            // The warning is about what nobody asked for, and about nothing less than a tenth.
            let unasked: usize =
                rows.unused.iter().filter(|part| !part.asked && !part.why.starts_with("test")).map(|part| part.rows).sum();
            prop_assert_eq!(population.warning.is_some(), unasked as f64 > 0.1 * train as f64);
        }
    }

    #[test]
    fn a_small_class_that_keeps_all_agents_small_is_named_and_warned_about() {
        let labels: Vec<u16> =
            (0..300).map(|row| if row % 100 == 0 { 2 } else { row % 2 }).collect();
        let deal = |partition: &Partition, agents, per_agent| {
            let mut rng = ChaCha8Rng::seed_from_u64(0);
            let loaded = numbered(&labels, 3, 0);
            Population::new(loaded, partition, sizes(agents, None, per_agent), &mut rng).unwrap()
        };
        let few = deal(&pure(), 3, None);
        assert_eq!((few.rows().dealt, few.rows().unused()), (9, 291));
        let [warning] = &few.warnings()[..] else { panic!("{:?}", few.warnings()) };
        for told in
            ["291 of 300 training rows (97%)", "class `2` has no more", "data.per_agent = 3"]
        {
            assert!(warning.contains(told), "{warning}");
        }
        // Who says so needs no warning, and is told all the same.
        let stated = deal(&pure(), 3, Some(3));
        assert_eq!(stated.warnings(), Vec::<String>::new());
        assert_eq!(stated.rows().unused[0].why, "data.per_agent = 3");
        let two = deal(&pure(), 2, None);
        assert!(two.rows().unused.iter().any(|part| part.why.contains("leaves out class `2`")));
        assert_eq!(two.warnings(), Vec::<String>::new(), "three rows of 300 are few");
        let iid = deal(&Partition::Iid(Iid::default()), 7, None);
        assert_eq!((iid.rows().unused(), iid.warnings().len()), (300 % 7, 0));
    }

    #[test]
    fn rows_of_one_class_teach_nothing_and_that_is_said() {
        let loaded = numbered(&[0; 30], 1, 0);
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let iid = Partition::Iid(Iid::default());
        let population = Population::new(loaded, &iid, sizes(3, None, None), &mut rng).unwrap();
        assert!(population.warnings()[0].contains("one class, `0`"), "{:?}", population.warnings());
    }
}
