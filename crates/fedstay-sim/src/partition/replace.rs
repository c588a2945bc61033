//! Rows that are drawn with replacement, when they are needed: `data.replace`.
//!
//! What an agent holds is a function of the seed and its number. Nothing is kept about it, so a million
//! agents cost what one does, and there may be more of them than rows. Every row of an agent is drawn
//! by itself, so two agents, and also one agent twice, may hold the same row. Each kind of partition
//! has its law:
//!
//! | partition | a row of agent i is |
//! |---|---|
//! | `iid` | any training row |
//! | `by-class` | for the share of its rows that it keeps, one of its own classes; else one of the pool, the mean of all agents' own classes |
//! | `dirichlet` | of a class drawn from the agent's own mixture, Dirichlet(α) |
//! | `shards` | in one of k shards of the sorted rows, drawn at random; a shard has per_agent/k rows |
//!
//! Within its class (its shard) every row is as likely as any other. Where sizes are unequal, `power`
//! gives agent i its share (i + 1)^(−skew) of all rows as without replacement, and `dirichlet` an
//! independent number of rows with the mean `data.per_agent` and Gamma's law with the shape 1/skew, of
//! which Dirichlet's are the shares. Every agent has at least one row and at most as many as there are.

use super::dirichlet::{gamma_variate, shares};
use super::{Deal, Partition, Sizing};
use crate::data::DataError;
use fedstay::Seed;
use rand::{Rng, RngExt};
use std::ops::Range;

/// Says which rows an agent holds, of training rows that are sorted by class.
#[derive(Debug, Clone)]
pub(crate) struct Drawing {
    seed: Seed,
    law: Law,
    /// The rows of each class.
    classes: Vec<Range<usize>>,
    rows: usize,
    /// How many rows an agent has on average.
    each: usize,
    sizing: (Sizing, f64),
    /// What the shares of a power law sum to.
    total: f64,
    agents: usize,
}

/// What a row of an agent is.
#[derive(Debug, Clone)]
pub(super) enum Law {
    Iid,
    ByClass {
        map: Vec<Vec<usize>>,
        kept: f64,
        /// How often each class is in the pool, relative to the others.
        pool: Vec<f64>,
    },
    Mixture {
        alpha: f64,
    },
    Shards {
        k: usize,
        width: usize,
    },
}

impl Drawing {
    /// The law of a partition over these rows.
    ///
    /// # Errors
    /// When a setting is missing or out of range; the message names the key.
    pub(crate) fn new(
        partition: &Partition,
        deal: &Deal<'_>,
        seed: Seed,
    ) -> Result<Self, DataError> {
        let rows = deal.targets.len();
        let Some(each) = deal.per_agent else {
            let why = "data.replace needs the number of rows that every agent draws, as in 50";
            return Err(DataError::setting("data.per_agent", why));
        };
        if deal.devices == 0 {
            return Err(DataError::setting("agents", "there must be at least one"));
        }
        if !(1..=rows).contains(&each) {
            let why =
                format!("must be from 1 to {rows}, the number of training rows, and is {each}");
            return Err(DataError::setting("data.per_agent", why));
        }
        let mut from = 0;
        let range = |count: usize| {
            from += count;
            from - count..from
        };
        let classes: Vec<Range<usize>> = deal.targets.counts().into_iter().map(range).collect();
        let law = partition.inner().law(deal, each, &classes)?;
        let sizing = partition.sizing();
        super::sizes::check(sizing.1)?;
        let power = |rank: usize| (rank as f64).powf(-sizing.1);
        let total = match sizing.0 {
            Sizing::Power => (1..=deal.devices).map(power).sum(),
            Sizing::Equal | Sizing::Dirichlet => 0.0,
        };
        let agents = deal.devices;
        Ok(Self { seed, law, classes, rows, each, sizing, total, agents })
    }

    /// How many rows an agent has on average.
    pub(crate) fn each(&self) -> usize {
        self.each
    }

    /// How many rows an agent has.
    pub(crate) fn count(&self, agent: usize) -> usize {
        let each = self.each as f64;
        let exact = match self.sizing {
            (_, 0.0) | (Sizing::Equal, _) => return self.each,
            (Sizing::Power, skew) => {
                ((agent + 1) as f64).powf(-skew) / self.total * each * self.agents as f64
            }
            (Sizing::Dirichlet, skew) => {
                let mut rng = self.seed.stream("size", 0, agent as u64);
                each * skew * gamma_variate(1.0 / skew, &mut rng)
            }
        };
        (exact.round().min(self.rows as f64) as usize).max(1)
    }

    /// The most rows an agent can have.
    pub(crate) fn largest(&self) -> usize {
        match self.sizing {
            (_, 0.0) | (Sizing::Equal, _) => self.each,
            (Sizing::Power, _) => self.count(0),
            (Sizing::Dirichlet, _) => self.rows,
        }
    }

    /// How many rows of each class some agent can draw.
    pub(crate) fn reach(&self) -> Vec<usize> {
        let of = |class: usize| match &self.law {
            Law::ByClass { pool, .. } if pool[class] <= 0.0 => 0,
            // The last rows may be too few for a shard.
            Law::Shards { width, .. } => {
                let end = self.rows / width * width;
                let rows = &self.classes[class];
                rows.end.min(end) - rows.start.min(end)
            }
            _ => self.classes[class].len(),
        };
        (0..self.classes.len()).map(of).collect()
    }

    /// The rows of an agent.
    pub(crate) fn draw(&self, agent: usize) -> Vec<usize> {
        let mut rng = self.seed.stream("rows", 0, agent as u64);
        let count = self.count(agent);
        match &self.law {
            Law::Iid => (0..count).map(|_| rng.random_range(0..self.rows)).collect(),
            Law::ByClass { map, kept, pool } => {
                let own = &map[agent % map.len()];
                let kept = (kept * count as f64).round() as usize;
                let mut row = |place: usize| {
                    let class = match place < kept {
                        true => own[rng.random_range(0..own.len())],
                        false => weighted(pool, &mut rng),
                    };
                    rng.random_range(self.classes[class].clone())
                };
                (0..count).map(&mut row).collect()
            }
            Law::Mixture { alpha } => {
                let mut mixture = shares(*alpha, self.classes.len(), &mut rng);
                for (share, rows) in mixture.iter_mut().zip(&self.classes) {
                    *share = if rows.is_empty() { 0.0 } else { *share };
                }
                if mixture.iter().sum::<f64>() == 0.0 {
                    // All of its mixture is in classes without rows.
                    mixture = self.classes.iter().map(|rows| rows.len() as f64).collect();
                }
                let mut row = |_| {
                    let class = weighted(&mixture, &mut rng);
                    rng.random_range(self.classes[class].clone())
                };
                (0..count).map(&mut row).collect()
            }
            Law::Shards { k, width } => {
                let shards = self.rows / width;
                // Unequal agents have more or fewer shards of the same size.
                let k = (count * k).div_ceil(self.each).max(1);
                let starts: Vec<usize> =
                    (0..k).map(|_| rng.random_range(0..shards) * width).collect();
                let mut row =
                    |place: usize| starts[place * k / count] + rng.random_range(0..*width);
                (0..count).map(&mut row).collect()
            }
        }
    }
}

/// A place, each as likely as its weight says; one of them is positive.
fn weighted(weights: &[f64], rng: &mut impl Rng) -> usize {
    let mut target = rng.random::<f64>() * weights.iter().sum::<f64>();
    let mut chosen = 0;
    for (place, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        chosen = place;
        target -= weight;
        if target < 0.0 {
            break;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Classes, TargetsOf};
    use crate::partition::{ByClass, Dirichlet, Iid, Mix, Shards};

    /// Ten classes of 30 rows each, sorted.
    fn drawing(partition: &Partition, agents: usize, each: usize) -> Result<Drawing, DataError> {
        let labels: Vec<u16> = (0..300).map(|row| row / 30).collect();
        let classes: Vec<String> = (0..10).map(|class| class.to_string()).collect();
        let targets = TargetsOf::Classes(Classes { of: &labels, names: &classes });
        let deal = Deal { targets, owners: None, devices: agents, per_agent: Some(each) };
        Drawing::new(partition, &deal, Seed(4))
    }

    fn classes_of(rows: &[usize]) -> Vec<usize> {
        let mut counts = vec![0; 10];
        rows.iter().for_each(|row| counts[row / 30] += 1);
        counts
    }

    fn sized(sizes: Sizing, skew: f64) -> Partition {
        Partition::Iid(Iid { sizes, skew })
    }

    #[test]
    fn what_an_agent_holds_is_a_function_of_the_seed_and_its_number() {
        let iid = Partition::Iid(Iid::default());
        let (few, many) = (drawing(&iid, 5, 40).unwrap(), drawing(&iid, 1_000_000, 40).unwrap());
        assert_eq!(few.draw(3), many.draw(3), "however many others there are");
        assert_ne!(many.draw(3), many.draw(999_999));
        assert!(many.draw(999_999).iter().all(|row| *row < 300));
        // With replacement: 300 draws of 300 rows see about 1 − 1/e of them.
        let mut rows = drawing(&iid, 1, 300).unwrap().draw(0);
        rows.sort_unstable();
        rows.dedup();
        assert!((165..215).contains(&rows.len()), "{}", rows.len());
    }

    #[test]
    fn every_partition_keeps_its_law() {
        let pure = Partition::ByClass(ByClass { q: 1.0, ..ByClass::default() });
        let drawn = drawing(&pure, 1_000, 50).unwrap();
        assert_eq!(classes_of(&drawn.draw(123))[3], 50);
        let mixed = Partition::ByClass(ByClass { q: 0.6, ..ByClass::default() });
        let counts = classes_of(&drawing(&mixed, 1_000, 200).unwrap().draw(17));
        assert!((120 + 4..120 + 22).contains(&counts[7]), "{counts:?}");
        let printed = ByClass { q: 0.6, mix: Mix::AsPrinted, ..ByClass::default() };
        let counts =
            classes_of(&drawing(&Partition::ByClass(printed), 1_000, 200).unwrap().draw(17));
        assert!((80 + 4..80 + 28).contains(&counts[7]), "{counts:?}");
        let few = Partition::Dirichlet(Dirichlet { alpha: 0.01, sizes: Sizing::Equal, skew: 1.0 });
        let most = |agent: usize, drawing: &Drawing| {
            classes_of(&drawing.draw(agent)).into_iter().max().unwrap()
        };
        let uneven = drawing(&few, 100, 100).unwrap();
        let mean: usize = (0..100).map(|agent| most(agent, &uneven)).sum::<usize>() / 100;
        let even = Partition::Dirichlet(Dirichlet { alpha: 1e6, sizes: Sizing::Equal, skew: 1.0 });
        assert!(mean > 90 && most(0, &drawing(&even, 100, 100).unwrap()) < 25, "{mean}");
        let shards = Partition::Shards(Shards { k: 2, sizes: Sizing::Equal, skew: 1.0 });
        let drawn = drawing(&shards, 100, 20).unwrap();
        for agent in 0..100 {
            let mut shards: Vec<usize> = drawn.draw(agent).iter().map(|row| row / 10).collect();
            shards.dedup();
            assert!(shards.len() <= 2, "{shards:?}");
        }
    }

    #[test]
    fn numbers_of_rows_follow_their_law() {
        let power = drawing(&sized(Sizing::Power, 1.0), 10, 20).unwrap();
        let rows: Vec<usize> = (0..10).map(|agent| power.count(agent)).collect();
        assert!(rows.is_sorted_by(|a, b| a >= b) && rows[0] == 68, "{rows:?}");
        assert!((195..205).contains(&rows.iter().sum::<usize>()), "{rows:?}");
        assert_eq!(power.largest(), 68);
        let gamma = drawing(&sized(Sizing::Dirichlet, 0.5), 4_000, 20).unwrap();
        let rows: Vec<f64> = (0..4_000).map(|agent| gamma.count(agent) as f64).collect();
        let mean = rows.iter().sum::<f64>() / 4_000.0;
        let spread = rows.iter().map(|rows| (rows - mean).powi(2)).sum::<f64>() / 4_000.0;
        // Gamma with the shape 2 has the variance mean²/2.
        assert!(
            (mean - 20.0).abs() < 0.8 && (spread / 200.0 - 1.0).abs() < 0.15,
            "{mean} {spread}"
        );
        assert!(rows.iter().all(|rows| (1.0..=300.0).contains(rows)));
        assert_eq!(gamma.draw(7).len(), gamma.count(7));
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let said = |result: Result<Drawing, DataError>| result.unwrap_err().to_string();
        let iid = Partition::Iid(Iid::default());
        assert!(said(drawing(&iid, 5, 0)).contains("data.per_agent"));
        assert!(said(drawing(&iid, 5, 301)).contains("from 1 to 300"));
        assert!(said(drawing(&sized(Sizing::Power, -1.0), 5, 10)).contains("partition.skew"));
        let odd = Partition::Shards(Shards { k: 3, sizes: Sizing::Equal, skew: 1.0 });
        assert!(said(drawing(&odd, 5, 10)).contains("partition.k"));
        let q = Partition::ByClass(ByClass { q: 1.5, ..ByClass::default() });
        assert!(said(drawing(&q, 5, 10)).contains("partition.q"));
        let targets = TargetsOf::Classes(Classes { of: &[0], names: &["a".to_owned()] });
        let deal = Deal { targets, owners: None, devices: 3, per_agent: None };
        assert!(said(Drawing::new(&iid, &deal, Seed(0))).contains("data.replace needs"));
    }
}
