//! From what every model is worth on every draw of held-back rows to findings. No data and no models here.

use super::answer::{
    AVERAGING, CEILING, Findings, Gains, Leaver, Measured, OwnerFinding, WayFinding, WhenLeaves,
    WithoutFinding,
};
use super::compute::{Against, PlanRun};
use super::resample::{Redrawn, Sureness};
use fedstay::{Interval, Measure};
use std::collections::BTreeMap;

/// What a run of one way on one seed comes to.
pub(super) struct Judged {
    /// What became of its members; the models are not needed any more.
    pub(super) run: PlanRun,
    /// Every member's measures on its own held-back rows, in the order of the measures.
    pub(super) redrawn: Vec<Vec<Option<Redrawn>>>,
    /// The delivered model's measures on the held-back rows of all.
    pub(super) delivered: Vec<Option<f64>>,
}

/// What is known of one seed: by the label of the way, or the name of what it is compared with.
pub(super) type SeedJudged = BTreeMap<String, Judged>;

/// Everything that findings are made of.
pub(super) struct Evidence<'a> {
    pub(super) measures: &'a [Measure],
    pub(super) names: &'a [String],
    pub(super) seeds: Vec<SeedJudged>,
    /// What every owner has.
    pub(super) rows: &'a [OwnerRows],
    pub(super) sureness: Sureness,
}

/// How many rows an owner has.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnerRows {
    /// In all.
    pub(super) rows: usize,
    /// Held back on a seed.
    pub(super) held: usize,
    /// Held back of the class that has fewest, where there are two classes.
    pub(super) rarest: usize,
}

/// With fewer held-back rows of a class, no gain is told: its draws are too few to be believed.
const FEWEST: usize = 5;

/// The label under which the runs without those who do not gain are kept.
pub(super) const WITHOUT: &str = "without those who do not gain";

impl Evidence<'_> {
    fn headline(&self) -> &Measure {
        &self.measures[0]
    }

    /// 1 where more is better, else −1.
    fn sign(&self) -> f64 {
        -self.headline().badness(1.0)
    }

    /// Something of each seed on which it is known, averaged over them by draw.
    fn over_seeds(&self, of: impl Fn(&SeedJudged) -> Option<Redrawn>) -> Option<Redrawn> {
        Redrawn::mean(&self.seeds.iter().filter_map(of).collect::<Vec<_>>())
    }

    /// A member's measure under a label, over the seeds.
    fn measured(&self, label: &str, owner: usize) -> Measured {
        let of = |(place, measure): (usize, &Measure)| {
            let redrawn = self.over_seeds(|seed| seed.get(label)?.redrawn[owner][place].clone())?;
            let interval = self.interval(&redrawn, owner, bounds(measure));
            Some((measure.name.to_string(), interval))
        };
        self.measures.iter().enumerate().filter_map(of).collect()
    }

    /// Draws of an owner as far apart as its rows are unsure; `None` where draws of so few say nothing.
    fn spread(&self, redrawn: &Redrawn, owner: usize) -> Option<Redrawn> {
        Some(redrawn.spread(self.sureness.factor(self.rows[owner].rarest)?))
    }

    /// An owner's interval, from the least to the most that is possible where its rows say nothing.
    fn interval(&self, redrawn: &Redrawn, owner: usize, (least, most): (f64, f64)) -> Interval {
        match self.spread(redrawn, owner) {
            Some(spread) => within(spread.interval(), (least, most)),
            None => Interval { value: redrawn.value, low: least, high: most },
        }
    }

    /// By how much a member is better off under one label than under another.
    fn better(&self, label: &str, than: &str, owner: usize) -> Option<Redrawn> {
        self.over_seeds(|seed| {
            let of = |label: &str| seed.get(label)?.redrawn[owner][0].as_ref();
            Some(of(label)?.minus(of(than)?).times(self.sign()))
        })
    }

    /// The mean of that over some members.
    fn mean_better(&self, label: &str, than: &str, owners: &[usize]) -> Option<Interval> {
        let of = |owner: &usize| self.spread(&self.better(label, than, *owner)?, *owner);
        let each: Vec<Redrawn> = owners.iter().filter_map(of).collect();
        Some(Redrawn::mean(&each)?.interval())
    }

    /// When a member leaves under a label, if it does on any seed.
    fn leaving(&self, label: &str, owner: usize) -> Option<WhenLeaves> {
        let runs = || self.seeds.iter().filter_map(|seed| seed.get(label)).map(|one| &one.run);
        let mut rounds: Vec<u32> = runs().filter_map(|run| run.members[owner].left).collect();
        rounds.sort_unstable();
        Some(WhenLeaves {
            share: rounds.len() as f64 / runs().count() as f64,
            first: *rounds.first()?,
            median: rounds[(rounds.len() - 1) / 2],
            last: *rounds.last()?,
        })
    }

    /// What was found about each member.
    pub(super) fn owners(&self, least: f64) -> Vec<OwnerFinding> {
        let somebody_left =
            (0..self.names.len()).any(|owner| self.leaving(AVERAGING, owner).is_some());
        let finding = |(owner, name): (usize, &String)| {
            let (least_value, most) = bounds(self.headline());
            let apart = most - least_value;
            let interval = |label: &str, than: &str| {
                let better = self.better(label, than, owner)?;
                Some(self.interval(&better, owner, (-apart, apart)))
            };
            let rows = self.rows[owner];
            let told = |gain| match rows.rarest < FEWEST {
                true => Gains::Unknown,
                false => Gains::of(gain, least),
            };
            let gain = interval(CEILING, Against::Alone.name());
            OwnerFinding {
                name: name.clone(),
                rows: rows.rows,
                test_rows: rows.held,
                alone: self.measured(Against::Alone.name(), owner),
                together: self.measured(CEILING, owner),
                pooled: self.measured(Against::Pooled.name(), owner),
                constant: self.measured(Against::Constant.name(), owner),
                gain,
                gains: gain.map_or(Gains::Unknown, told),
                leaves: self.leaving(AVERAGING, owner),
                cost: interval(CEILING, AVERAGING).filter(|_| somebody_left),
                still_gains: interval(AVERAGING, Against::Alone.name()).filter(|_| somebody_left),
            }
        };
        self.names.iter().enumerate().map(finding).collect()
    }

    /// What members gain on average.
    pub(super) fn mean_gain(&self) -> Option<Interval> {
        let all: Vec<usize> = (0..self.names.len()).collect();
        self.mean_better(CEILING, Against::Alone.name(), &all)
    }

    /// What it costs those who gain that others are not there.
    pub(super) fn without(&self, owners: &[OwnerFinding]) -> Option<WithoutFinding> {
        let cost = self.mean_better(CEILING, WITHOUT, &gainers(owners))?;
        let names = names_of(owners, Gains::No);
        Some(WithoutFinding { names, cost })
    }

    /// What was found about the ways.
    pub(super) fn ways(&self, labels: &[String], owners: &[OwnerFinding]) -> Vec<WayFinding> {
        let mut ways: Vec<WayFinding> =
            labels.iter().filter_map(|label| self.way(label, owners)).collect();
        let dominated: Vec<bool> = ways
            .iter()
            .map(|way| {
                let others = ways.iter().filter(|other| other.may_leave);
                way.may_leave
                    && others.into_iter().any(|other| way.is_dominated_by(other, self.headline()))
            })
            .collect();
        ways.iter_mut().zip(dominated).for_each(|(way, dominated)| way.dominated = dominated);
        ways
    }

    fn way(&self, label: &str, owners: &[OwnerFinding]) -> Option<WayFinding> {
        let judged: Vec<&Judged> = self.seeds.iter().filter_map(|seed| seed.get(label)).collect();
        let whole: Vec<&&Judged> = judged.iter().filter(|one| one.run.diverged.is_none()).collect();
        let per_seed = |of: &dyn Fn(&Judged) -> f64| mean(whole.iter().map(|one| of(one)));
        let count = |one: &Judged, is: &dyn Fn(&super::compute::PlanMember) -> bool| {
            one.run.members.iter().filter(|member| is(member)).count()
        };
        let each: Vec<Measured> =
            (0..self.names.len()).map(|owner| self.measured(label, owner)).collect();
        let headline = self.headline();
        let ends = each.iter().zip(self.names).filter_map(|(measured, name)| {
            Some((name.clone(), measured.get(&*headline.name)?.value))
        });
        let worst =
            ends.max_by(|(_, a), (_, b)| headline.badness(*a).total_cmp(&headline.badness(*b)));
        let leavers: Vec<Leaver> = self
            .names
            .iter()
            .enumerate()
            .filter_map(|(owner, name)| {
                Some(Leaver { name: name.clone(), when: self.leaving(label, owner)? })
            })
            .collect();
        let often = leavers.iter().filter(|leaver| leaver.when.share >= 0.5);
        let all: Vec<usize> = (0..self.names.len()).collect();
        let gainers = Some(gainers(owners)).filter(|some| !some.is_empty()).unwrap_or(all);
        let own =
            |owner: &usize| self.over_seeds(|seed| seed.get(label)?.redrawn[*owner][0].clone());
        let of_gainers = Redrawn::mean(&gainers.iter().filter_map(own).collect::<Vec<_>>());
        let reports =
            |one: &Judged| mean(one.run.members.iter().map(|member| f64::from(member.reports)));
        Some(WayFinding {
            label: label.to_owned(),
            may_leave: label != CEILING,
            left: often.map(|leaver| leaver.name.clone()).collect(),
            leavers,
            mean_left: per_seed(&|one| count(one, &|member| member.left.is_some()) as f64),
            kept_all: whole
                .iter()
                .filter(|one| count(one, &|member| member.left.is_some()) == 0)
                .count() as u32,
            content: per_seed(&|one| count(one, &|member| member.content) as f64),
            measures: self.mean_measures(label),
            of_gainers: of_gainers.map(|of| within(of.interval(), bounds(headline))),
            behind: self.mean_better(CEILING, label, &gainers).filter(|_| label != CEILING),
            worst,
            delivered: self.delivered(label),
            rounds: per_seed(&reports),
            bytes: per_seed(&|one| reports(one) * one.run.bytes_per_report as f64),
            diverged: (judged.len() - whole.len()) as u32,
            dominated: false,
        })
        .filter(|_| !judged.is_empty())
    }

    /// The mean of every measure over the members.
    fn mean_measures(&self, label: &str) -> Measured {
        let of = |(place, measure): (usize, &Measure)| {
            let own = |owner: usize| {
                let own = self.over_seeds(|seed| seed.get(label)?.redrawn[owner][place].clone())?;
                self.spread(&own, owner)
            };
            let each: Vec<Redrawn> = (0..self.names.len()).filter_map(own).collect();
            let interval = Redrawn::mean(&each)?.interval();
            Some((measure.name.to_string(), within(interval, bounds(measure))))
        };
        self.measures.iter().enumerate().filter_map(of).collect()
    }

    /// The delivered model on the held-back rows of all, over the seeds.
    fn delivered(&self, label: &str) -> BTreeMap<String, f64> {
        let of = |(place, measure): (usize, &Measure)| {
            let known = self.seeds.iter().filter_map(|seed| seed.get(label)?.delivered[place]);
            let known: Vec<f64> = known.collect();
            (!known.is_empty()).then(|| (measure.name.to_string(), mean(known.iter().copied())))
        };
        self.measures.iter().enumerate().filter_map(of).collect()
    }
}

/// Beyond any error of a number that a table holds.
const ANY: f64 = 1e300;

/// What values of a measure can be.
fn bounds(measure: &Measure) -> (f64, f64) {
    match measure.is_share() || measure.name == "auroc" {
        true => (0.0, 1.0),
        false => (-ANY, ANY),
    }
}

/// An interval without what no value can be.
fn within(interval: Interval, (least, most): (f64, f64)) -> Interval {
    Interval { low: interval.low.max(least), high: interval.high.min(most), ..interval }
}

/// The places of those who gain.
fn gainers(owners: &[OwnerFinding]) -> Vec<usize> {
    (0..owners.len()).filter(|owner| owners[*owner].gains == Gains::Yes).collect()
}

fn names_of(owners: &[OwnerFinding], gains: Gains) -> Vec<String> {
    let some = owners.iter().filter(|owner| owner.gains == gains);
    some.map(|owner| owner.name.clone()).collect()
}

/// The mean; 0 of none.
fn mean(of: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = of.fold((0.0, 0_u32), |(sum, count), one| (sum + one, count + 1));
    sum / f64::from(count.max(1))
}

impl Findings {
    /// The smallest difference that counts: 0.01 of a measure that lies between 0 and 1, else a hundredth
    /// of what owners have alone on average.
    pub(super) fn least(measure: &Measure, alone: impl Iterator<Item = f64>) -> f64 {
        const LEAST: f64 = 0.01;
        match measure.name.as_ref() {
            "rmse" | "mae" => LEAST * mean(alone),
            _ => LEAST,
        }
    }
}
