//! Who bound the last step: where the search for those who bind the next one begins.
//!
//! Most agents that were at their floor or aim after one projection are there after the next. The
//! projection has one answer wherever its search begins, up to rounding and to the hair by which an aim
//! may be missed; but with hundreds of agents it is found much sooner (see `fedstay_kernels::numerics::slabs`). Where
//! few bind, nothing is remembered.

use crate::AgentId;
use crate::rule::floors::Floors;
use fedstay_kernels::numerics::slabs::WORTH_EXPECTING;
use serde::{Deserialize, Serialize};

/// Agents, and whether it was by their floor (else by their aim); who was pulled hardest comes first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Bound(Vec<(AgentId, bool)>);

impl Bound {
    /// Lets the next projection begin with those of them who were `heard`, which are the first lines.
    pub(super) fn expect(&self, floors: &mut Floors<'_>, heard: usize) {
        let agents = &floors.agent[..heard];
        let line = |(agent, low): &(AgentId, bool)| {
            agents.binary_search(agent).ok().map(|line| (line, *low))
        };
        let lines: Vec<(usize, bool)> = self.0.iter().filter_map(line).collect();
        floors.bundle.expect(lines);
    }

    /// Takes note of who bound a step: the lines of the first `heard` that pulled.
    pub(super) fn note(&mut self, floors: &Floors<'_>, heard: usize, pulls: &[f64]) {
        let strength = |line: usize| pulls[line].abs() * floors.bundle.lengths()[line];
        let mut lines: Vec<usize> = (0..heard).filter(|line| pulls[*line] != 0.0).collect();
        lines.sort_by(|a, b| strength(*b).total_cmp(&strength(*a)).then(a.cmp(b)));
        self.0.clear();
        if lines.len() >= WORTH_EXPECTING {
            self.0.extend(lines.into_iter().map(|line| (floors.agent[line], pulls[line] > 0.0)));
        }
    }
}
