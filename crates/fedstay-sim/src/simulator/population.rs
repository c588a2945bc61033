//! The devices there are, those that take part, and the rows the others are judged by.

use std::ops::Range;
use std::sync::Arc;

use fedstay::Seed;
use fedstay::record::{DataRows, UnusedRows};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::rows;
use crate::data::{CopiedInputs, Copies, DataError, Dataset, Inputs, LoadedData, Owners};
use crate::model::{Error, RowProducts, RowTargets, Rows, RowsData};
use crate::partition::{Deal, Drawing, Histogram, Partition};
use crate::training::{Arrive, Kind, Stream};

/// How many devices there are, how many take part, and how much each holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The devices that take part; 0 where there are as many as owners.
    pub agents: usize,
    /// All devices; by default as many as take part.
    pub population: Option<usize>,
    /// The rows of a device, on average where they are unequal; by default as many as all can have
    /// equally.
    pub per_agent: Option<usize>,
}

impl Sizes {
    /// With the number of agents that the data say, where that is left to them.
    ///
    /// # Errors
    /// When the data say another number, or some owners are not to take part.
    fn under(self, partition: &Partition, owners: Option<&Owners>) -> Result<Self, DataError> {
        if partition.is_given() && self.population.is_some() {
            let why = "all owners take part: leave this out, or choose another partition.kind";
            return Err(DataError::setting("population", why));
        }
        Ok(Self { agents: partition.devices(self.agents, owners)?, ..self })
    }
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
    /// What the agents are called, where they are owners.
    names: Arc<[String]>,
    /// Where the held-back rows of each owner begin among the test rows, and where those of the last
    /// one end; nothing where the data do not say whose a test row is.
    held_back: Arc<[usize]>,
    /// What became of every row that was read.
    rows: DataRows,
    /// What to know about training rows that go to nobody although nothing says that they should.
    warning: Option<String>,
    /// What the data say about themselves.
    told: Arc<[String]>,
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
        let Copies { inputs, targets } = match &self.place {
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
        Ok(Rows::new(inputs, targets.rows())?.with_scale(self.data.targets.scale()))
    }

    /// What a model is to say of them.
    pub(crate) fn targets(&self) -> RowTargets<'_> {
        match &self.place {
            Place::Lying(range) => self.data.targets.rows(range.clone()),
            Place::Copied(copies) => copies.targets.rows(),
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
        let LoadedData { mut data, train, left_out, not_used, warnings, .. } = loaded;
        let sizes = sizes.under(partition, data.owners.as_ref())?;
        let owners = data.owners.take_if(|_| partition.is_given());
        let devices = sizes.population.unwrap_or(sizes.agents);
        if devices < sizes.agents {
            let why = format!("{devices} devices are fewer than agents = {}", sizes.agents);
            return Err(DataError::setting("population", why));
        }
        let (targets, per_agent) = (&data.targets, sizes.per_agent);
        let deal =
            Deal { targets: targets.first(train), owners: owners.as_ref(), devices, per_agent };
        let mut dealt = partition.deal(&deal, rng)?;
        let mut counts = vec![0; targets.kinds()];
        dealt.iter().flatten().for_each(|row| counts[targets.kind(*row)] += 1);
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
        let mut tested: Vec<usize> =
            (train..data.len()).filter(|&row| counts[data.targets.kind(row)] > 0).collect();
        let held_back = owners.as_ref().map(|owners| owners.line_up(&mut tested));
        order.extend(tested);
        data.arrange(&order);
        let test = order.len() - training;
        unused.extend(untested(read - train - test));
        unused.extend(unwanted(left_out));
        let more = not_used.iter().map(|part| part.rows).sum::<usize>();
        unused.extend(not_used);
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
            read: read + left_out + more,
            dealt: bounds[sizes.agents],
            drawn: false,
            held_out: training - bounds[sizes.agents],
            test,
            unused,
        };
        let (data, held) = (Arc::new(data), Held::Dealt(bounds.into()));
        let names = owners.map(|owners| owners.names.into()).unwrap_or_default();
        let (told, agents) = (warnings.into(), sizes.agents);
        let held_back = held_back.unwrap_or_default().into();
        Ok(Population { data, agents, held, names, held_back, rows, warning, told, products })
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
        let LoadedData { mut data, train, left_out, not_used, warnings, .. } = loaded;
        let sizes = sizes.under(partition, data.owners.as_ref())?;
        if sizes.population.is_some() {
            let why = "cannot be given with data.replace: the rows of devices that do not take part \
                       would be those of agents too; without it the test rows stand for the population";
            return Err(DataError::setting("population", why));
        }
        let deal = Deal {
            targets: data.targets.first(train),
            owners: data.owners.as_ref(),
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
        order.sort_by_key(|row| data.targets.kind(*row));
        order.extend((train..data.len()).filter(|&row| counts[data.targets.kind(row)] > 0));
        let (read, test) = (data.len(), order.len() - train);
        data.arrange(&order);
        unused.extend(untested(read - train - test));
        unused.extend(unwanted(left_out));
        let more = not_used.iter().map(|part| part.rows).sum::<usize>();
        unused.extend(not_used);
        let rows = DataRows {
            read: read + left_out + more,
            dealt: counts.iter().sum(),
            drawn: true,
            held_out: 0,
            test,
            unused,
        };
        let held = Held::Drawn(Arc::new(drawing), train);
        let (data, products, names) = (Arc::new(data), Arc::default(), Arc::default());
        let (told, agents, held_back) = (warnings.into(), sizes.agents, Arc::default());
        Ok(Population { data, agents, held, names, held_back, rows, warning, told, products })
    }

    /// The same devices with every agent's rows in the order in which they arrive.
    ///
    /// # Errors
    /// When they are to arrive by class and have none.
    pub(super) fn lined_up(self, stream: Stream) -> Result<Self, DataError> {
        match (stream.kind, stream.order) {
            (Kind::Grow | Kind::Slide, Arrive::Class) => {
                self.data.classes("stream.order")?;
                Ok(self.by_class())
            }
            _ => Ok(self),
        }
    }

    /// The same devices with every agent's rows class after class, beginning with the one it has most
    /// of; rows of one class stay in their order. Agents that draw their rows stay as they are.
    fn by_class(self) -> Self {
        let targets = &self.data.targets;
        let mut order: Vec<usize> = (0..self.data.len()).collect();
        for agent in 0..self.agents {
            let Some(rows) = self.place(agent) else { break };
            let counts = targets.counts(rows.clone());
            // The first of those that it has most of.
            let most = (0..counts.len()).rev().max_by_key(|class| counts[*class]).unwrap_or(0);
            let turn =
                |row: &usize| (targets.kind(*row) + counts.len() - most) % counts.len().max(1);
            order[rows].sort_by_key(turn);
        }
        let mut data = Dataset::clone(&self.data);
        data.arrange(&order);
        Self { data: Arc::new(data), ..self }
    }

    /// The same places for other rows.
    #[cfg(test)]
    pub(super) fn with_data(self, data: Dataset) -> Self {
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
        let one = match self.data.targets.classes().map(|classes| classes.names) {
            Some([class]) => Some(format!(
                "all rows are of one class, `{class}`: there is nothing to tell apart, and every model \
                 can be right about all of them"
            )),
            _ => None,
        };
        self.warning.iter().cloned().chain(one).chain(self.told.iter().cloned()).collect()
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

    /// The rows of all agents, or those that they draw theirs from.
    pub(crate) fn training(&self) -> Range<usize> {
        match &self.held {
            Held::Dealt(bounds) => 0..bounds[self.agents],
            Held::Drawn(_, train) => 0..*train,
        }
    }

    /// The held-back rows of agent `agent`, if it has any.
    pub(crate) fn kept_back(&self, agent: usize) -> Option<AgentRows<'_>> {
        let place = Place::Lying(self.held_back(agent)?);
        Some(AgentRows { data: &self.data, place, products: None })
    }

    /// The test rows, of those classes that some device has.
    pub fn test(&self) -> Range<usize> {
        self.held_out().end..self.data.len()
    }

    /// Where the held-back rows of agent `agent` lie: its own, on which nobody trains. `None` where the
    /// data do not say whose a test row is, or it has none.
    pub fn held_back(&self, agent: usize) -> Option<Range<usize>> {
        let &[from, to] = self.held_back.get(agent..agent + 2)? else { return None };
        let first = self.test().start;
        (from < to).then(|| first + from..first + to)
    }

    /// Whether some agent has held-back rows of its own.
    pub fn holds_back(&self) -> bool {
        self.held_back.last().is_some_and(|rows| *rows > 0)
    }

    /// The rows that stand for the population: the held-out devices or, where all take part, the
    /// test rows. `None` if there are neither.
    pub fn population(&self) -> Option<Range<usize>> {
        let rows = if self.held_out().is_empty() { self.test() } else { self.held_out() };
        Some(rows).filter(|rows| !rows.is_empty())
    }

    /// How many rows of each kind (of each class, or all) an agent has.
    pub(crate) fn kinds_of(&self, agent: usize) -> Vec<usize> {
        self.agent(agent).targets().counts(self.data.targets.kinds())
    }

    /// How many rows of each class every agent has; `None` where rows have numbers.
    pub fn histogram(&self) -> Option<Histogram> {
        let classes = self.data.targets.classes()?.names.to_vec();
        let counts = (0..self.agents).map(|agent| self.kinds_of(agent)).collect();
        Some(Histogram { classes, counts })
    }

    /// The owner whose rows an agent has, where the data say so.
    pub fn name(&self, agent: usize) -> Option<&str> {
        self.names.get(agent).map(String::as_str)
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
mod tests;
