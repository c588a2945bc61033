//! What a plan answers, as data: everything that is printed, drawn or written comes from here.

use super::recommend::Advice;
use fedstay::record::DataRows;
use fedstay::{Interval, Measure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a plan answers: what was found, and what follows from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanAnswer {
    /// What the runs found.
    #[serde(flatten)]
    pub found: Findings,
    /// What follows from it.
    pub recommend: Advice,
}

/// What the runs of a plan found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The schema of this file.
    pub schema: String,
    /// The program's version.
    pub version: String,
    /// The table's name.
    pub on: String,
    /// The column that says who owns a row.
    pub owner: Option<String>,
    /// How it was found.
    pub method: Method,
    /// What became of every row that was read, on the first seed.
    pub rows: DataRows,
    /// The measure that decides, and is told first.
    pub measure: Measure,
    /// Differences of this size or less do not count.
    pub least: f64,
    /// The owners, in the order of the table.
    pub owners: Vec<OwnerFinding>,
    /// What an owner gains over training alone if nobody leaves, on average over the owners.
    pub mean_gain: Option<Interval>,
    /// What those who gain lose if those who do not are not there from the start.
    pub without: Option<WithoutFinding>,
    /// Every way that was tried, the ceiling and averaging first.
    pub ways: Vec<WayFinding>,
    /// What to know before believing the rest.
    pub notes: Vec<String>,
}

/// How it was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// The seeds; each draws its own held-back rows.
    pub seeds: Vec<u64>,
    /// The model that is trained.
    pub model: String,
    /// How many numbers it has.
    pub weights: usize,
    /// How many columns it reads, after encoding.
    pub features: usize,
    /// The most rounds.
    pub rounds: u32,
    /// The server's step size.
    pub step_size: f64,
    /// The target loss of an owner, as the file says it.
    pub epsilon: String,
    /// On which rows an owner decides.
    pub decides_on_rows: String,
    /// How often rows were drawn again for the intervals.
    pub resamples: u32,
}

/// Values of measures, by the measures' names.
pub type Measured = BTreeMap<String, Interval>;

/// Whether an owner gains by federating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gains {
    /// The interval of its gain lies above zero.
    Yes,
    /// The interval lies at or below the smallest difference that counts.
    No,
    /// Neither: its rows do not suffice to tell.
    Unknown,
}

/// What was found about an owner. All measures are on its own held-back rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnerFinding {
    /// Its name.
    pub name: String,
    /// How many rows it has, held-back ones included.
    pub rows: usize,
    /// How many of them are held back.
    pub test_rows: usize,
    /// Its best model without the others.
    pub alone: Measured,
    /// The common model if nobody leaves.
    pub together: Measured,
    /// One model of all rows in one place.
    pub pooled: Measured,
    /// The prediction that is the same for every row.
    pub constant: Measured,
    /// Together minus alone in the measure that decides; positive is better.
    pub gain: Option<Interval>,
    /// What that says.
    pub gains: Gains,
    /// Under averaging: when it leaves, if it does on any seed.
    pub leaves: Option<WhenLeaves>,
    /// Under averaging: what departures cost it; positive is worse.
    pub cost: Option<Interval>,
    /// Under averaging: what it still gains over alone with what it ends with.
    pub still_gains: Option<Interval>,
}

/// When an owner leaves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WhenLeaves {
    /// On which share of the seeds.
    pub share: f64,
    /// The earliest round.
    pub first: u32,
    /// The middle one.
    pub median: u32,
    /// The latest.
    pub last: u32,
}

/// What was found about a way to run the federation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WayFinding {
    /// The rule, with what is changed about it.
    pub label: String,
    /// Whether members can leave; they cannot under the ceiling, which nobody can run.
    pub may_leave: bool,
    /// The names of those who leave on at least half of the seeds.
    pub left: Vec<String>,
    /// Everybody who leaves on some seed, in the order of the table.
    pub leavers: Vec<Leaver>,
    /// How many leave, on average over the seeds.
    pub mean_left: f64,
    /// On how many seeds nobody leaves.
    pub kept_all: u32,
    /// How many have their target in the end, on average over the seeds.
    pub content: f64,
    /// What owners end with, on average over them: the delivered model, or the one they left with.
    pub measures: Measured,
    /// The same over those who gain by federating, in the measure that decides.
    pub of_gainers: Option<Interval>,
    /// How far it stays behind the ceiling for those who gain; positive is worse.
    pub behind: Option<Interval>,
    /// Who ends worst in the measure that decides, and with what.
    pub worst: Option<(String, f64)>,
    /// The delivered model on the held-back rows of all owners together.
    pub delivered: BTreeMap<String, f64>,
    /// In how many rounds an owner works, on average.
    pub rounds: f64,
    /// How many bytes go to an owner and back, on average.
    pub bytes: f64,
    /// On how many seeds the numbers went beyond all bounds; those seeds are not in the averages.
    pub diverged: u32,
    /// Whether another way is at least as good in everything that is listed, and better in something.
    pub dominated: bool,
}

/// An owner that leaves on some seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leaver {
    /// Its name.
    pub name: String,
    /// When.
    #[serde(flatten)]
    pub when: WhenLeaves,
}

/// The federation without those who do not gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WithoutFinding {
    /// Who is not there.
    pub names: Vec<String>,
    /// What that costs those who gain, on average over them; positive is worse.
    pub cost: Interval,
}

/// The label of the ceiling: averaging, and nobody may leave.
pub const CEILING: &str = "fedavg+never";
/// The label of plain averaging.
pub const AVERAGING: &str = "fedavg";

impl Gains {
    /// The rule by which a gain is told: above zero with 95% confidence, or not above what counts.
    pub fn of(gain: Interval, least: f64) -> Self {
        match (gain.low > 0.0, gain.high <= least) {
            (true, _) => Self::Yes,
            (false, true) => Self::No,
            (false, false) => Self::Unknown,
        }
    }
}

impl PlanAnswer {
    /// The same with names that can stand in a sentence: of owners who have numbers, with the column in front,
    /// as in `district 12`.
    #[must_use]
    pub fn spoken(&self) -> Self {
        let mut spoken = self.clone();
        let Self { found, recommend } = &mut spoken;
        let Some(column) = found.owner.clone() else { return spoken };
        let is_number = |name: &str| name.parse::<f64>().is_ok();
        if !found.owners.iter().any(|owner| is_number(&owner.name)) {
            return spoken;
        }
        let say = |name: &mut String| {
            if is_number(name) {
                *name = format!("{column} {name}");
            }
        };
        found.owners.iter_mut().for_each(|owner| say(&mut owner.name));
        found.without.iter_mut().flat_map(|without| &mut without.names).for_each(say);
        for way in &mut found.ways {
            way.left.iter_mut().for_each(say);
            way.leavers.iter_mut().for_each(|leaver| say(&mut leaver.name));
            way.worst.iter_mut().for_each(|(name, _)| say(name));
        }
        let Advice { gainers, nothing, unknown, leavers, .. } = recommend;
        [gainers, nothing, unknown, leavers].into_iter().flatten().for_each(say);
        spoken
    }
}

impl Findings {
    /// The schema of `plan.json`.
    pub const SCHEMA: &'static str = "fedstay.plan/1";

    /// The way with this label.
    pub fn way(&self, label: &str) -> Option<&WayFinding> {
        self.ways.iter().find(|way| way.label == label)
    }

    /// The names of the owners of whom this is true.
    pub fn names(&self, is: impl Fn(&OwnerFinding) -> bool) -> Vec<String> {
        self.owners.iter().filter(|owner| is(owner)).map(|owner| owner.name.clone()).collect()
    }
}

impl WayFinding {
    /// Whether another way is at least as good in everything that is listed, and better in something:
    /// in who stays, in what owners end with, in what the worst ends with, and in rounds.
    pub(super) fn is_dominated_by(&self, other: &Self, measure: &Measure) -> bool {
        let bad = |way: &Self| -> [f64; 4] {
            let mean = way.measures.get(&*measure.name).map(|mean| measure.badness(mean.value));
            let worst = way.worst.as_ref().map(|(_, worst)| measure.badness(*worst));
            let unknown = f64::INFINITY;
            [way.mean_left, mean.unwrap_or(unknown), worst.unwrap_or(unknown), way.rounds]
        };
        let (own, others) = (bad(self), bad(other));
        let pairs = || own.iter().zip(&others);
        pairs().all(|(own, other)| other <= own) && pairs().any(|(own, other)| other < own)
    }
}
