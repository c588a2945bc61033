//! The least core: would any group gain by leaving together?
//!
//! Over the whole run a group S is worth `v(S)`, the sum of its worths in the rounds; whoever did not
//! report in a round added nothing to any group there. A division x of v(N) is stable if no group has
//! more by itself than together, `Σ_{i∈S} x_i ≥ v(S)`. Where there is none, the least core is the
//! division under which the largest complaint is smallest:
//!
//! ```text
//! min e  such that  Σ_N x_i = v(N),   Σ_{i∈S} x_i ≥ v(S) − e  for every other group S
//! ```
//!
//! With e ≤ 0 nobody gains by leaving with anybody; with e > 0 some group would gain e, however v(N) is
//! divided, and `group` is one of them. Which of several such divisions is found follows from the order
//! of the agents.
//!
//! It is a linear programme in as many variables as agents, with a constraint for every group. With
//! x_i = v(N)/n + y_i and e = e₀ − t, e₀ the largest complaint at y = 0, the point y = 0, t = 0 is
//! feasible, so that the simplex method needs no first phase; the smallest index enters and leaves
//! (R. G. Bland, *New Finite Pivoting Rules for the Simplex Method*, 1977), which cannot cycle.
//!
//! Reference: M. Maschler, B. Peleg, L. S. Shapley, *Geometric Properties of the Kernel, Nucleolus, and
//! Related Solution Concepts*, 1979.

use super::game::MOST_FOR_SHAPLEY;
use crate::run::record::worth::Core;
use crate::{AgentId, packed};
use serde::{Deserialize, Serialize};

/// What is smaller than this, of worths of at most one, is rounding.
const ROUNDING: f64 = 1e-11;
/// Pivots are far fewer; this ends a method that rounding keeps from ending.
const MOST_PIVOTS: usize = 20_000;

/// What every group was worth so far, by the bits of its members.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Groups {
    agents: Vec<AgentId>,
    #[serde(with = "packed")]
    worths: Vec<f64>,
}

impl Groups {
    /// Adds a round: the worths of all groups of those who reported. Returns whether they are few
    /// enough.
    pub(super) fn add(&mut self, reported: &[AgentId], worths: &[f64]) -> bool {
        for agent in reported {
            match self.agents.contains(agent) {
                true => {}
                false if self.agents.len() == MOST_FOR_SHAPLEY => return false,
                false => self.agents.push(*agent),
            }
        }
        // A newcomer has added nothing to any group.
        let before = self.worths.len().max(1);
        self.worths.resize(1 << self.agents.len(), 0.0);
        for set in before..self.worths.len() {
            self.worths[set] = self.worths[set % before];
        }
        let place = |agent: &AgentId| self.agents.iter().position(|known| known == agent);
        let places: Vec<Option<usize>> = reported.iter().map(place).collect();
        for set in 0..self.worths.len() {
            let has = |place: &Option<usize>| place.is_some_and(|place| set >> place & 1 == 1);
            let bits = places.iter().enumerate().filter(|(_, place)| has(place));
            self.worths[set] += worths[bits.map(|(bit, _)| 1 << bit).sum::<usize>()];
        }
        true
    }

    /// The least core of everything so far, and every agent's part; `None` for fewer than two agents.
    pub(super) fn least(&self) -> Option<(Core, Vec<(AgentId, f64)>)> {
        let (parts, complains) = solve(self.agents.len(), &self.worths)?;
        let excess = complaint(&parts, complains, &self.worths);
        let members = self.agents.iter().enumerate().filter(|(bit, _)| complains >> bit & 1 == 1);
        let mut group: Vec<AgentId> = members.map(|(_, agent)| *agent).collect();
        group.sort_unstable();
        Some((Core { excess, group }, self.agents.iter().copied().zip(parts).collect()))
    }
}

/// By how much a group has more by itself.
fn complaint(parts: &[f64], set: usize, worths: &[f64]) -> f64 {
    let own = parts.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1);
    worths[set] - own.map(|(_, part)| part).sum::<f64>()
}

/// The division of the least core, and a group that complains most under it.
fn solve(n: usize, worths: &[f64]) -> Option<(Vec<f64>, usize)> {
    if n < 2 {
        return None;
    }
    let all = (1 << n) - 1;
    let scale = worths.iter().fold(0.0f64, |largest, worth| largest.max(worth.abs()));
    let scale = if scale > 0.0 && scale.is_finite() { scale } else { 1.0 };
    let equal = vec![worths[all] / n as f64; n];
    let largest = |parts: &[f64]| {
        let groups = 1..all;
        groups.max_by(|a, b| complaint(parts, *a, worths).total_cmp(&complaint(parts, *b, worths)))
    };
    let most = complaint(&equal, largest(&equal)?, worths);
    // Columns: y₁ … y_{n−1} up and down, and t; the last agent has what the others leave.
    let columns = 2 * (n - 1) + 1;
    let mut tableau = Tableau::new(columns);
    for set in 1..all {
        let last = f64::from(u8::from(set >> (n - 1) & 1 == 1));
        let mut row = vec![0.0; columns];
        for member in 0..n - 1 {
            let change = f64::from(u8::from(set >> member & 1 == 1)) - last;
            (row[member], row[n - 1 + member]) = (-change, change);
        }
        row[columns - 1] = 1.0;
        tableau.rows.push(row);
        tableau.bounds.push((most - complaint(&equal, set, worths)).max(0.0) / scale);
    }
    let solved = tableau.maximise();
    let change = |member: usize| scale * (solved[member] - solved[n - 1 + member]);
    let mut parts: Vec<f64> = (0..n - 1).map(|member| equal[member] + change(member)).collect();
    parts.push(worths[all] - parts.iter().sum::<f64>());
    let complains = largest(&parts)?;
    Some((parts, complains))
}

/// A linear programme with non-negative variables, rows · x ≤ bounds with bounds of zero or more: the
/// last variable is made as large as possible.
struct Tableau {
    rows: Vec<Vec<f64>>,
    bounds: Vec<f64>,
    columns: usize,
}

impl Tableau {
    fn new(columns: usize) -> Self {
        Self { rows: Vec::new(), bounds: Vec::new(), columns }
    }

    /// The variables at the optimum. Variables are numbered before slacks.
    fn maximise(mut self) -> Vec<f64> {
        let columns = self.columns;
        let mut outside: Vec<usize> = (0..columns).collect();
        let mut inside: Vec<usize> = (columns..columns + self.rows.len()).collect();
        let mut gains = vec![0.0; columns];
        gains[columns - 1] = 1.0;
        for _ in 0..MOST_PIVOTS {
            let enters = (0..columns).filter(|column| gains[*column] > ROUNDING);
            let Some(column) = enters.min_by_key(|column| outside[*column]) else { break };
            let limits = (0..self.rows.len()).filter(|row| self.rows[*row][column] > ROUNDING);
            let ratio = |row: usize| self.bounds[row] / self.rows[row][column];
            let leaves = limits
                .min_by(|a, b| ratio(*a).total_cmp(&ratio(*b)).then(inside[*a].cmp(&inside[*b])));
            let Some(row) = leaves else { break };
            self.pivot(row, column, &mut gains);
            std::mem::swap(&mut inside[row], &mut outside[column]);
        }
        let mut solved = vec![0.0; columns];
        for (row, variable) in inside.into_iter().enumerate().filter(|(_, v)| *v < columns) {
            solved[variable] = self.bounds[row];
        }
        solved
    }

    /// Exchanges the variable of a row for that of a column.
    fn pivot(&mut self, row: usize, column: usize, gains: &mut [f64]) {
        let by = self.rows[row][column];
        self.rows[row].iter_mut().for_each(|value| *value /= by);
        self.rows[row][column] = 1.0 / by;
        self.bounds[row] /= by;
        let (entering, bound) = (self.rows[row].clone(), self.bounds[row]);
        let clear = |values: &mut [f64]| {
            let factor = values[column];
            for (place, (value, entering)) in values.iter_mut().zip(&entering).enumerate() {
                *value = if place == column { -factor / by } else { *value - factor * entering };
            }
            factor
        };
        for (other, values) in self.rows.iter_mut().enumerate().filter(|(other, _)| *other != row) {
            let factor = clear(values);
            self.bounds[other] = (self.bounds[other] - factor * bound).max(0.0);
        }
        clear(gains);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn excess(n: usize, worths: &[f64]) -> f64 {
        let (parts, group) = solve(n, worths).unwrap();
        assert!((parts.iter().sum::<f64>() - worths[(1 << n) - 1]).abs() < 1e-9);
        complaint(&parts, group, worths)
    }

    #[test]
    fn known_games() {
        // Two of three suffice: a third each, and every pair complains about a third.
        let majority = [0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0];
        assert!((excess(3, &majority) - 1.0 / 3.0).abs() < 1e-12);
        assert!(solve(3, &majority).unwrap().0.iter().all(|x| (x - 1.0 / 3.0).abs() < 1e-9));
        // Everybody brings their own: nobody gains or loses by leaving.
        let own = [0.5, 2.0, 1.0, 0.25];
        let additive: Vec<f64> = (0..16usize)
            .map(|set| (0..4).filter(|m| set >> m & 1 == 1).map(|m| own[m]).sum())
            .collect();
        let (parts, _) = solve(4, &additive).unwrap();
        assert!(excess(4, &additive).abs() < 1e-12);
        assert!(parts.iter().zip(own).all(|(x, own)| (x - own).abs() < 1e-9), "{parts:?}");
        // Only all together are worth something: every group would lose a share by leaving.
        let unanimous: Vec<f64> = (0..8).map(|set| f64::from(u8::from(set == 7))).collect();
        assert!((excess(3, &unanimous) + 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(solve(1, &[0.0, 1.0]), None);
        assert!(excess(12, &vec![0.0; 4096]).abs() < 1e-12);
    }

    #[test]
    fn whoever_was_not_there_added_nothing_and_thirteen_are_too_many() {
        let mut groups = Groups::default();
        let (a, b, c) = (AgentId(7), AgentId(2), AgentId(5));
        assert!(groups.add(&[a, b], &[0.0, 1.0, 2.0, 4.0]));
        assert!(groups.add(&[b, c], &[0.0, 10.0, 20.0, 50.0]));
        // Bits: a, b, c.
        assert_eq!(groups.worths, [0.0, 1.0, 12.0, 14.0, 20.0, 21.0, 52.0, 54.0]);
        let (core, parts) = groups.least().unwrap();
        assert!(core.excess < 0.0, "together they are worth more: {core:?}");
        assert!((parts.iter().map(|(_, part)| part).sum::<f64>() - 54.0).abs() < 1e-9);
        let many: Vec<AgentId> = (0..13).map(AgentId).collect();
        assert!(!Groups::default().add(&many, &[]));
    }

    proptest! {
        /// Against the largest complaint, lowered step by step from many starts; and the bounds that a
        /// group and its complement give.
        #[test]
        fn no_division_leaves_a_smaller_complaint(
            n in 2usize..6,
            worths in prop::collection::vec(-1.0..1.0f64, 32),
        ) {
            let mut worths = worths[..1 << n].to_vec();
            worths[0] = 0.0;
            let all = (1usize << n) - 1;
            let found = excess(n, &worths);
            for set in 1..all {
                let bound = 0.5 * (worths[set] + worths[all - set] - worths[all]);
                prop_assert!(found >= bound - 1e-9);
            }
            let mut parts = vec![worths[all] / n as f64; n];
            let mut lowest = f64::INFINITY;
            for turn in 1..4000 {
                let worst = (1..all)
                    .max_by(|a, b| {
                        complaint(&parts, *a, &worths).total_cmp(&complaint(&parts, *b, &worths))
                    })
                    .unwrap();
                lowest = lowest.min(complaint(&parts, worst, &worths));
                // Give to those who complain, and take from the others.
                let members = worst.count_ones() as f64;
                for (bit, part) in parts.iter_mut().enumerate() {
                    let inside = worst >> bit & 1 == 1;
                    let share = if inside { 1.0 / members } else { -1.0 / (n as f64 - members) };
                    *part += share * 0.5 / f64::from(turn).sqrt() * 0.2;
                }
            }
            prop_assert!(found <= lowest + 1e-9, "{found} is above {lowest}");
            prop_assert!(lowest - found < 0.05, "{found} is far below {lowest}");
        }
    }
}
