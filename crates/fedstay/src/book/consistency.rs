//! Whether what an agent reports can be true: a diagnosis that flags and never expels.
//!
//! A convex loss lies above each of its tangents. So two honest reports of the same agent, at `w`
//! and at `w' = w + s`, satisfy
//!
//! ```text
//! F(w') ≥ F(w) + ⟨g(w), s⟩     else the loss fell below its tangent
//! F(w') ≤ F(w) + ⟨g(w'), s⟩    else it rose above what its gradient allows
//! ```
//!
//! Beyond rounding, a violation is a proof that a loss or a gradient is not what it is said to be:
//! a lie that begins or ends, or a direction that is stale. A loss that is *always* off by the same
//! amount has the same gradients and could be somebody's true loss; no such check can tell.
//!
//! A third check is a rule of thumb even for convex losses. If some model satisfies everybody, it
//! is at least `(F_m − ε_m)/‖g_m‖` away. An agent's loss is implausible if this distance is a
//! hundred times what every other agent has implied and what the run has moved.
//!
//! For nets and sampled gradients all of this is a rule of thumb: losses bend both ways, so only
//! gross violations, far above what the others show in the same round, are flagged. A flag is then
//! a hint, not a proof.

use crate::run::record::Summary;
pub use crate::run::record::flag::{Flag, FlagReason};
use crate::{AgentId, Error, Loss, Memory, Vector, linalg, packed};
use crate::{Book, RoundRecord};
use fedstay_kernels::numerics::PerPrecision;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// An agent's implied distance is implausible above this many times everybody else's.
const IMPLAUSIBLE: f64 = 100.0;
/// For nets, violations below this share of the losses are bends.
const BEND_OF_LOSSES: f64 = 0.25;
/// For nets, violations below this many times the median over the agents of the round are bends.
const BEND_OF_MEDIAN: f64 = 10.0;
/// The allowance for rounding, relative to all terms, for gradients in double and in single
/// precision.
const ROUNDING: PerPrecision = PerPrecision { f64: 1e-10, f32: 1e-5 };

/// Checks the rounds of a run, one after another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Consistency {
    /// Whether losses are convex and gradients exact, so that a violation is a proof.
    convex: bool,
    said: BTreeMap<AgentId, LastSaid>,
    #[serde(with = "packed")]
    step: Vec<f64>,
    /// The length of the path from the start.
    travelled: f64,
    /// The farthest implied distance of each agent so far.
    farthest: BTreeMap<AgentId, f64>,
    doubted: BTreeMap<AgentId, FlaggedAgent>,
}

/// What an agent said in the last round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct LastSaid {
    loss: f64,
    exact: bool,
    /// `⟨g, s⟩` for the step that followed.
    along: f64,
    norm: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct FlaggedAgent {
    first: u32,
    times: u32,
    doubt: FlagReason,
    most: f64,
}

/// How an agent's report compares with its last.
struct Violation {
    agent: AgentId,
    doubt: FlagReason,
    by: f64,
    rounding: f64,
    losses: f64,
}

/// Whether the agent was shown other weights than the server's. What it said is then about those, and
/// the server's step says nothing about how far they moved.
fn shown(record: &RoundRecord<'_>, agent: AgentId) -> bool {
    record.decision.shown.iter().any(|shown| shown.agent == agent)
}

impl Consistency {
    /// A check for convex losses with exact gradients, or for nets.
    pub fn new(convex: bool) -> Self {
        Self { convex, ..Self::default() }
    }

    /// Adds a round and returns the doubts it raises, by agent.
    pub fn look(&mut self, record: &RoundRecord<'_>) -> Vec<Flag> {
        let mut flags = self.tangents(record);
        flags.extend(self.plausible(record));
        flags.sort_by_key(|flag| flag.agent);
        for flag in &flags {
            let doubted = self.doubted.entry(flag.agent).or_insert(FlaggedAgent {
                first: record.line.round,
                times: 0,
                doubt: flag.doubt,
                most: 0.0,
            });
            doubted.times += 1;
            doubted.most = doubted.most.max(flag.by);
        }
        self.remember(record);
        flags
    }

    fn tangents(&self, record: &RoundRecord<'_>) -> Vec<Flag> {
        let step = Vector::F64(&self.step);
        let moved = linalg::norm(step) + linalg::norm(Vector::F64(record.received));
        let mut misses = Vec::new();
        let told = record.reports.iter().zip(record.reports.norms());
        let told: Vec<_> = told
            .filter(|(report, _)| !shown(record, report.agent))
            .filter_map(|(report, norm)| {
                Some((report, norm, self.said.get(&report.agent)?, report.loss()?))
            })
            .collect();
        let upper =
            |before: &LastSaid, loss: &Loss| before.exact && !matches!(loss, Loss::Sampled { .. });
        let slopes: Vec<Vector<'_>> = told
            .iter()
            .filter(|(_, _, before, loss)| upper(before, loss))
            .map(|(report, ..)| report.slope())
            .collect();
        let mut along = record.reports.machine().along(&slopes, &self.step).into_iter();
        for (report, norm, before, loss) in told {
            let unit = ROUNDING.of([report.slope()]);
            let losses = before.loss.abs().max(loss.value().abs());
            let rounding = unit * (losses + (norm + before.norm) * moved);
            let mut miss = |doubt, by| {
                misses.push(Violation { agent: report.agent, doubt, by, rounding, losses });
            };
            // A lower bound will do on the side on which a larger loss would only be a larger
            // violation.
            if let Loss::Exact(now) = loss {
                miss(FlagReason::BelowTangent, before.loss + before.along - now);
            }
            if upper(before, &loss) {
                let allowed = before.loss + along.next().unwrap_or_default();
                miss(FlagReason::AboveTangent, loss.value() - allowed);
            }
        }
        let median = median(misses.iter().map(|miss| miss.by.abs()).collect());
        let flagged = misses.into_iter().filter(|miss| {
            let bend = if self.convex {
                0.0
            } else {
                BEND_OF_LOSSES * miss.losses + BEND_OF_MEDIAN * median
            };
            miss.by > miss.rounding + bend
        });
        flagged.map(|miss| Flag { agent: miss.agent, doubt: miss.doubt, by: miss.by }).collect()
    }

    fn plausible(&mut self, record: &RoundRecord<'_>) -> Vec<Flag> {
        let mut far = Vec::new();
        for (report, norm) in record.reports.iter().zip(record.reports.norms()) {
            let (Some(Loss::Exact(loss)), Some(epsilon)) = (report.loss(), report.epsilon()) else {
                continue;
            };
            // A zero gradient implies an infinite distance, which says nothing.
            if loss > epsilon && *norm > 0.0 {
                far.push((report.agent, (loss - epsilon) / norm));
            }
        }
        let mut flags = Vec::new();
        for (agent, distance) in &far {
            let others = self.farthest.iter().chain(far.iter().map(|(agent, far)| (agent, far)));
            let others = others.filter(|(other, _)| *other != agent).map(|(_, far)| *far);
            let others = others.fold(0.0, f64::max);
            let by = distance / (others + self.travelled);
            if others > 0.0 && by > IMPLAUSIBLE {
                flags.push(Flag { agent: *agent, doubt: FlagReason::Implausible, by });
            }
        }
        for (agent, distance) in far {
            let farthest = self.farthest.entry(agent).or_default();
            *farthest = farthest.max(distance);
        }
        flags
    }

    fn remember(&mut self, record: &RoundRecord<'_>) {
        self.said.clear();
        self.step.clear();
        self.step.extend_from_slice(record.step);
        let step = Vector::F64(record.step);
        self.travelled += linalg::norm(step);
        let told = record.reports.iter().zip(record.reports.norms());
        let told: Vec<_> = told
            .filter(|(report, _)| !shown(record, report.agent))
            .filter_map(|(report, norm)| match report.loss()? {
                Loss::Exact(loss) => Some((report, *norm, loss, true)),
                Loss::AtLeast(loss) => Some((report, *norm, loss, false)),
                Loss::Sampled { .. } => None,
            })
            .collect();
        let slopes: Vec<Vector<'_>> = told.iter().map(|(report, ..)| report.slope()).collect();
        let along = record.reports.machine().along(&slopes, record.step);
        for ((report, norm, loss, exact), along) in told.into_iter().zip(along) {
            self.said.insert(report.agent, LastSaid { loss, exact, along, norm });
        }
    }

    /// The warnings for a reader of the summary. `called` says what an agent is called.
    pub fn warnings(&self, called: impl Fn(AgentId) -> String) -> Vec<String> {
        let weight = match self.convex {
            true => "for convex losses no honest agent's reports do that",
            false => "for a net that is a hint, not a proof",
        };
        let sentence = |(agent, doubted): (&AgentId, &FlaggedAgent)| {
            let FlaggedAgent { first, times, doubt, most } = doubted;
            let weight = match doubt {
                FlagReason::Implausible => "a hint, not a proof",
                _ => weight,
            };
            let times = if *times == 1 { "once".into() } else { format!("{times} times") };
            let agent = called(*agent);
            format!(
                "{agent} is flagged {times}, first in round {first}: {} (by up to {most:.3}); \
                 {weight}. It was not expelled",
                doubt.words()
            )
        };
        self.doubted.iter().map(sentence).collect()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

impl Book for Consistency {
    fn annotate(&mut self, record: &mut RoundRecord<'_>) {
        record.line.flags = self.look(record);
    }

    fn round(&mut self, _: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        Ok(ControlFlow::Continue(()))
    }

    fn section(&self) -> Option<&'static str> {
        Some("consistency")
    }

    fn save(&self) -> Result<Memory, Error> {
        Memory::of(self)
    }

    fn restore(&mut self, memory: &Memory) -> Result<(), Error> {
        *self = memory.read()?;
        Ok(())
    }

    fn enter(&self, summary: &mut Summary) {
        let warnings = self.warnings(|agent| summary.called(agent));
        summary.warnings.extend(warnings);
    }
}
