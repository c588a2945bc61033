//! Device i has class i, and some of every other.
//!
//! First every device gets n rows of its own class or classes. Then it keeps a share of them, the
//! other rows of all devices are pooled, and the pool is dealt out evenly at random. The share it
//! keeps is q *as described* (a larger q is more heterogeneous, as in the paper's text and figures)
//! or 1 − q *as printed* (the paper's formula, D̂_i = (1−q)·D_i ∪ (1/n)·D̂). Where devices are
//! unequal, each has its own n, in both steps.
//!
//! Reference: *On the Effect of Defections in Federated Learning and How to Prevent Them*,
//! arXiv 2311.16459, appendix "Generating Data with Heterogeneity q".

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::ops::Range;

use super::sizes::{Sizing, one};
use super::unused::named;
use super::{Deal, Dealing, Dealt, Law, Origin, Portions};
use crate::data::{ClassRef, DataError, Fits};

pub(super) const ORIGIN: Origin =
    Origin { about: "device i has class i and, by q and mix, some of every other", reference: "" };

/// One class per device, or any map from devices to classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByClass {
    /// The heterogeneity, from 0 to 1; `mix` says what it means.
    #[serde(default = "nine_tenths")]
    pub q: f64,
    /// How `q` is read.
    #[serde(default)]
    pub mix: Mix,
    /// The classes of each device: device i gets equally many rows of each class in `map[i]`. With
    /// more devices than entries the map starts again. By default device i has class i.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<Vec<Vec<ClassRef>>>,
    /// How many rows the devices have.
    #[serde(default)]
    pub sizes: Sizing,
    /// How unequal that is; 0 is equal.
    #[serde(default = "one")]
    pub skew: f64,
}

/// The two readings of q.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// Keep the share q of a device's own rows, pool 1 − q.
    #[default]
    AsDescribed,
    /// Keep the share 1 − q of a device's own rows, pool q.
    AsPrinted,
}

fn nine_tenths() -> f64 {
    0.9
}

impl Default for ByClass {
    fn default() -> Self {
        ByClass {
            q: nine_tenths(),
            mix: Mix::default(),
            map: None,
            sizes: Sizing::default(),
            skew: one(),
        }
    }
}

impl ByClass {
    /// The share of its own rows that a device keeps.
    pub(super) fn kept(&self) -> f64 {
        match self.mix {
            Mix::AsDescribed => self.q,
            Mix::AsPrinted => 1.0 - self.q,
        }
    }

    /// Checks the share.
    pub(super) fn check(&self) -> Result<(), DataError> {
        if (0.0..=1.0).contains(&self.q) {
            return Ok(());
        }
        let why = format!("{} is not a share: choose one from 0 to 1", self.q);
        Err(DataError::setting("partition.q", why))
    }

    /// The map with its classes looked up.
    pub(super) fn resolve(&self, deal: &Deal<'_>) -> Result<Vec<Vec<usize>>, DataError> {
        const KEY: &str = "partition.map";
        let classes = deal.classes("by-class")?.names;
        let Some(map) = &self.map else {
            return Ok((0..classes.len()).map(|class| vec![class]).collect());
        };
        if map.is_empty() || map.iter().any(Vec::is_empty) {
            return Err(DataError::setting(KEY, "every device needs at least one class"));
        }
        let find = |class: &ClassRef| class.find(KEY, "the data set", classes);
        map.iter().map(|classes| classes.iter().map(find).collect()).collect()
    }

    /// How many devices have each class.
    fn takers(&self, deal: &Deal<'_>) -> Vec<usize> {
        let mut takers = vec![0; deal.targets.kinds()];
        // The map was looked up when the rows were dealt.
        let Ok(map) = self.resolve(deal) else { return takers };
        for device in 0..deal.devices {
            map[device % map.len()].iter().for_each(|class| takers[*class] += 1);
        }
        takers
    }
}

impl Dealing for ByClass {
    fn sizing(&self) -> (Sizing, f64) {
        (self.sizes, self.skew)
    }

    /// A description of the partition, with the reading of q.
    fn describe(&self) -> String {
        let classes = if self.map.is_some() { "classes by map" } else { "one class a device" };
        let reading = match self.mix {
            Mix::AsDescribed => "as described",
            Mix::AsPrinted => "as printed",
        };
        let percent = (self.kept() * 1000.0).round() / 10.0;
        format!("{classes}, q = {} {reading} (keeps {percent}% of its own)", self.q)
    }

    fn deal(&self, portions: &Portions<'_>, rng: &mut ChaCha8Rng) -> Dealt {
        self.check()?;
        let map = self.resolve(portions.deal)?;
        let mut classes = Deal::shuffled(portions.deal.classes("by-class")?, rng);
        let has: Vec<usize> = classes.iter().map(Vec::len).collect();
        let counts = portions.counts(rows_each(portions, &map, &has)?);

        let kept = |each: usize| (self.kept() * each as f64).round() as usize;
        let mut pool = Vec::with_capacity(counts.iter().map(|each| each - kept(*each)).sum());
        let mut devices = Vec::with_capacity(counts.len());
        for (device, each) in counts.iter().copied().enumerate() {
            let mut own = Vec::with_capacity(each);
            for (class, rows) in shares(&map[device % map.len()], each) {
                let left = classes[class].len() - rows;
                own.extend(classes[class].drain(left..));
            }
            own.shuffle(rng);
            pool.extend(own.drain(kept(each)..));
            devices.push(own);
        }
        pool.shuffle(rng);
        for (rows, each) in devices.iter_mut().zip(counts) {
            let left = pool.len() - (each - kept(each));
            rows.extend(pool.drain(left..));
        }
        Ok(devices)
    }

    fn law(&self, deal: &Deal<'_>, _: usize, classes: &[Range<usize>]) -> Result<Law, DataError> {
        self.check()?;
        let map = self.resolve(deal)?;
        let used = &map[..map.len().min(deal.devices)];
        if let Some(class) = used.iter().flatten().find(|class| classes[**class].is_empty()) {
            let class = &deal.classes("by-class")?.names[*class];
            let why = format!("class {class} has no training rows to draw from");
            return Err(DataError::setting("partition.map", why));
        }
        let mut pool = vec![0.0; classes.len()];
        for (entry, own) in used.iter().enumerate() {
            let agents = deal.devices / map.len() + usize::from(entry < deal.devices % map.len());
            for class in own {
                pool[*class] += agents as f64 / own.len() as f64;
            }
        }
        Ok(Law::ByClass { map, kept: self.kept(), pool })
    }

    fn untaken(&self, deal: &Deal<'_>, left: &[usize]) -> Option<(Vec<usize>, String, bool)> {
        let takers = self.takers(deal);
        let nobodys = |class: &usize| takers[*class] == 0 && left[*class] > 0;
        let nobodys = (0..left.len()).filter(nobodys).collect();
        Some(match &self.map {
            Some(_) => (nobodys, "partition.map".to_owned(), true),
            None => (nobodys, format!("one class each for {} devices", deal.devices), false),
        })
    }

    fn limit(&self, deal: &Deal<'_>, left: &[usize]) -> String {
        let takers = self.takers(deal);
        let spare = |class: &usize| left[*class] as f64 / takers[*class] as f64;
        let classes = (0..left.len()).filter(|class| takers[*class] > 0);
        let short = classes.min_by(|a, b| spare(a).total_cmp(&spare(b)));
        let name = named(deal, &Vec::from_iter(short));
        let how = match self.sizes == Sizing::Equal || self.skew == 0.0 {
            true => "all get equally many",
            false => "shares are as partition.sizes says",
        };
        format!("{name} has no more rows, and {how}")
    }

    fn instead(&self, stated: &str) -> String {
        format!(
            "partition.kind = \"dirichlet\" or \"iid\" deals out all rows but a few; {stated}, or name \
             the classes in data.classes"
        )
    }
}

/// How `each` rows split over a device's classes; the first ones take the remainder.
fn shares(classes: &[usize], each: usize) -> impl Iterator<Item = (usize, usize)> {
    let (whole, rest) = (each / classes.len(), each % classes.len());
    let share = move |(place, &class): (usize, &usize)| (class, whole + usize::from(place < rest));
    classes.iter().enumerate().map(share)
}

/// How many rows a device gets on average: those asked for, else the most that every class can serve.
fn rows_each(
    portions: &Portions<'_>,
    map: &[Vec<usize>],
    has: &[usize],
) -> Result<usize, DataError> {
    let deal = portions.deal;
    let short = |each: usize| {
        let mut needs = vec![0usize; has.len()];
        for (device, rows) in portions.counts(each).into_iter().enumerate() {
            for (class, rows) in shares(&map[device % map.len()], rows) {
                needs[class] = needs[class].saturating_add(rows);
            }
        }
        let class = (0..has.len()).find(|&class| needs[class] > has[class])?;
        Some((class, needs[class]))
    };
    // More rows need more of every class (or, unequal and rounded, hardly less), so the most that fits
    // can be found by halving.
    let (mut fits, mut over) = (0, deal.targets.len() + 1);
    while over - fits > 1 {
        let middle = fits + (over - fits) / 2;
        if short(middle).is_none() { fits = middle } else { over = middle }
    }
    let each = deal.per_agent.unwrap_or(fits.max(1));
    match short(each) {
        None => Ok(each),
        Some((class, needs)) => Err(DataError::TooFewOfClass {
            class: deal.classes("by-class")?.names[class].clone(),
            has: has[class],
            needs,
            per_agent: each,
            fits: Fits(fits),
        }),
    }
}
