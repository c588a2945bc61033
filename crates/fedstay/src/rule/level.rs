//! `level`: the shortest step after which everybody is predicted to be below their target loss.
//!
//! ```text
//! minimise ‖s‖²  subject to  F_m + ⟨g_m, s⟩ ≤ ε_m − 2δ  for every agent m still in
//! ```
//!
//! The optimiser of `retain` without its floors, for servers that need none: under the policy
//! `preview`, which keeps everybody by what it shows them, or with agents that never leave. On its own
//! it loses everybody, as averaging does.
//!
//! Each `F_m + ⟨g_m, s⟩` is a cut of a convex loss and lies below it, so every model that satisfies
//! everybody by 2δ is on the far side of all cuts, and the step brings the weights nearer to all of
//! them: by `δ/L` or more, in the sense of squares, in every round in which somebody is above
//! `ε_m − δ`. So it is there within `(D·L/δ)²` rounds, from a distance of D.
//!
//! When everybody is below `ε_m − δ`, or the cuts do not meet, δ is halved: a set without much room
//! inside is approached more finely. The server must know every agent's loss, target loss and
//! gradient. It stops `stalled` when the cuts do not meet even at ε.
//!
//! Reference: projection onto level sets, Polyak, *USSR Comput. Math.* 9, 1969.

use super::floors::Floors;
use super::{Aggregator, Decision, Facts, Origin, Round, SLACK, StopReason};
use crate::Error;
use crate::message::is_default;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "the shortest step to where all are predicted content; for `+preview`, which keeps them",
    reference: "Polyak, Minimization of unsmooth functionals, USSR Comput. Math. 9, 1969",
};

/// δ may fall to this share of the first.
const SMALLEST: f64 = 1e-9;

/// The shortest step to everybody's level.
///
/// ```
/// use fedstay::rule::Level;
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// // The first is to come 2δ below its target loss; the second is there already.
/// let near = Report::new(AgentId(0), Loss::Exact(1.1).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(0.0).leaves_at(0.1), Vector::F64(&[0.0, 2.0]));
/// let mut server = Server::new(vec![0.0, 0.0], Level::new(0.05), 1.0)?;
/// server.step(&Reports::new(2, vec![near, far])?)?;
/// assert_eq!(server.weights(), [-1.1, 0.0]);
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Level {
    /// It aims 2δ below every target loss. Larger: it is there sooner, if that is possible at all.
    pub delta: f64,
    #[serde(skip_serializing_if = "is_default")]
    memory: LevelMemory,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct LevelMemory {
    /// δ, once it has been halved.
    delta: Option<f64>,
}

impl Default for Level {
    fn default() -> Self {
        Self { delta: SLACK, memory: LevelMemory::default() }
    }
}

impl Level {
    /// The rule with slack δ.
    pub fn new(delta: f64) -> Self {
        Self { delta, ..Self::default() }
    }

    fn slack(&self) -> f64 {
        self.memory.delta.unwrap_or(self.delta)
    }
}

impl Aggregator for Level {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let mut floors = Floors::new(round.reports, "level")?;
        let above = floors.loss.iter().zip(&floors.precision);
        let highest = above.map(|(loss, epsilon)| loss - epsilon).fold(f64::MIN, f64::max);
        let smallest = self.delta * SMALLEST;
        while self.slack() > smallest && highest <= -self.slack() {
            self.memory.delta = Some(self.slack() / 2.0);
        }
        let mut stop = None;
        while floors.reach(step, -2.0 * self.slack()).is_err() {
            if self.slack() <= smallest {
                stop = floors.reach(step, 0.0).is_err().then_some(StopReason::Stalled);
                break;
            }
            self.memory.delta = Some(self.slack() / 2.0);
        }
        let decision = Decision::new(round.forecast(step, 0.0), round.step_size);
        Ok(Decision { stop, ..decision })
    }

    fn facts(&self) -> Facts {
        Facts { cuts: true, reads_gradients: true, ..Facts::default() }
    }

    fn check(&self) -> Result<(), Error> {
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentId, Loss, Report, Reports, Server, Vector};

    #[test]
    fn it_goes_as_far_as_everybody_needs_and_no_farther() {
        let (a, b) = ([1.0, 0.0], [0.0, 2.0]);
        let report = |id, loss, g| {
            Report::new(AgentId(id), Loss::Exact(loss).leaves_at(0.1), Vector::F64(g))
        };
        let reports = Reports::new(2, vec![report(0, 1.1, &a), report(1, 0.0, &b)]).unwrap();
        let mut server = Server::new(vec![0.0, 0.0], Level::new(0.05), 1.0).unwrap();
        server.step(&reports).unwrap();
        assert_eq!(server.weights(), [-1.1, 0.0], "the second is below its level");
    }

    #[test]
    fn where_no_level_can_be_met_it_stalls() {
        let (a, b) = ([1.0], [-1.0]);
        let report =
            |id, g| Report::new(AgentId(id), Loss::Exact(1.0).leaves_at(0.1), Vector::F64(g));
        let reports = Reports::new(1, vec![report(0, &a), report(1, &b)]).unwrap();
        let mut server = Server::new(vec![0.0], Level::default(), 1.0).unwrap();
        let decision = server.step(&reports).unwrap();
        assert_eq!((decision.stop, server.weights()), (Some(StopReason::Stalled), &[0.0][..]));
    }
}
