//! What a group of agents is worth in a round, and how to divide it among them.
//!
//! The worth of a group S is by how much the validation loss would fall if only its members' directions
//! made the step: `v(S) = L(w) − L(w − (C/C_S) Σ_{i∈S} c_i d_i)`, with C and C_S the sums of the c over
//! everybody and over S. Of nobody it is zero.
//!
//! | | what agent i gets | evaluations |
//! |---|---|---|
//! | `loo` | v(N) − v(N∖i) | one per agent, and two |
//! | `shapley` | its mean contribution over all orders in which a group can form | 2ᴺ, at most 12 agents |
//! | `gtg` | the same over orders drawn until it settles: each turned so that everybody comes first once, and reversed | a few tens per agent |
//!
//! References: Richardson, Filos-Ratsikas, Faltings, *Budget-Bounded Incentives for Federated
//! Learning*, 2020, for leave-one-out; Wang, Rausch, Zhang, Jia, Song, *A Principled Approach to Data
//! Valuation for Federated Learning*, 2020, for Shapley values round by round; Liu, Chen, Yu, Liu, Cui,
//! *GTG-Shapley: Efficient and Accurate Participant Contribution Evaluation in Federated Learning*, ACM
//! TIST 2022.

use crate::Seed;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;

/// The most agents for which every group is judged.
pub const MOST_FOR_SHAPLEY: usize = 12;
/// GTG: a round that is worth less, and the rest of an order that is, is not looked at.
const NEGLIGIBLE: f64 = 1e-3;
/// GTG: it has settled when the values changed by no more than this share, on average over the last …
const SETTLED: f64 = 0.05;
/// … this number of orders.
const LAST: usize = 10;
/// GTG: the fewest orders. The reference has 30; with an order and its reverse, 60 are needed to
/// be within 5% for six agents.
const FEWEST: usize = 60;
/// GTG: values that do not settle are taken as they are after this many times the fewest.
const MOST: usize = 20;

/// The worth of groups, each judged once. Members are numbered from 0.
pub(super) struct Game<'a, E> {
    n: usize,
    judge: &'a mut dyn FnMut(&[usize]) -> Result<f64, E>,
    known: BTreeMap<Vec<usize>, f64>,
}

impl<'a, E> Game<'a, E> {
    pub(super) fn new(n: usize, judge: &'a mut dyn FnMut(&[usize]) -> Result<f64, E>) -> Self {
        Self { n, judge, known: BTreeMap::new() }
    }

    fn worth(&mut self, group: &[usize]) -> Result<f64, E> {
        if group.is_empty() {
            return Ok(0.0);
        }
        let mut group = group.to_vec();
        group.sort_unstable();
        if let Some(worth) = self.known.get(&group) {
            return Ok(*worth);
        }
        let worth = (self.judge)(&group)?;
        self.known.insert(group, worth);
        Ok(worth)
    }

    fn everybody(&mut self) -> Result<f64, E> {
        self.worth(&(0..self.n).collect::<Vec<_>>())
    }

    /// Leave-one-out.
    pub(super) fn leave_one_out(&mut self) -> Result<Vec<f64>, E> {
        let all = self.everybody()?;
        (0..self.n)
            .map(|out| {
                let others: Vec<usize> = (0..self.n).filter(|other| *other != out).collect();
                Ok(all - self.worth(&others)?)
            })
            .collect()
    }

    /// The worth of every group, by the bits of its members; `None` for too many agents.
    pub(super) fn groups(&mut self) -> Result<Option<Vec<f64>>, E> {
        let n = self.n;
        if n > MOST_FOR_SHAPLEY {
            return Ok(None);
        }
        let mut worths = Vec::with_capacity(1 << n);
        for set in 0..1usize << n {
            let group: Vec<usize> = (0..n).filter(|member| set >> member & 1 == 1).collect();
            worths.push(self.worth(&group)?);
        }
        Ok(Some(worths))
    }

    /// The Shapley value, from every group; `None` for too many agents.
    pub(super) fn shapley(&mut self) -> Result<Option<Vec<f64>>, E> {
        let n = self.n;
        let Some(worths) = self.groups()? else { return Ok(None) };
        // How much a group of k others weighs: k!(n−1−k)!/n!.
        let mut weights = vec![1.0 / n.max(1) as f64; n];
        for k in 1..n {
            weights[k] = weights[k - 1] * k as f64 / (n - k) as f64;
        }
        let value = |own: usize| {
            let without = (0..1usize << n).filter(|set| set >> own & 1 == 0);
            let of = |set: usize| {
                weights[set.count_ones() as usize] * (worths[set | 1 << own] - worths[set])
            };
            without.map(of).sum()
        };
        Ok(Some((0..n).map(value).collect()))
    }

    /// GTG-Shapley.
    pub(super) fn guided(&mut self, round: u32) -> Result<Vec<f64>, E> {
        let n = self.n;
        let all = self.everybody()?;
        let mut values = vec![0.0; n];
        if all.abs() <= NEGLIGIBLE {
            return Ok(values);
        }
        // Whole blocks, in which every agent has been in every place once.
        let fewest = FEWEST.next_multiple_of(2 * n);
        let mut history: Vec<Vec<f64>> = Vec::new();
        let mut sums = vec![0.0; n];
        for turn in 0..fewest * MOST {
            let mut order: Vec<usize> = (0..n).collect();
            let block = turn / n;
            order.shuffle(&mut Seed(0).stream("gtg", u64::from(round), block as u64 / 2));
            if block % 2 == 1 {
                order.reverse();
            }
            order.rotate_left(turn % n);
            let mut before = 0.0;
            for end in 1..=n {
                if (all - before).abs() < NEGLIGIBLE {
                    break;
                }
                let now = self.worth(&order[..end])?;
                sums[order[end - 1]] += now - before;
                before = now;
            }
            values = sums.iter().map(|sum| sum / (turn + 1) as f64).collect();
            history.push(values.clone());
            if turn + 1 >= fewest && (turn + 1) % n == 0 && settled(&history) {
                break;
            }
        }
        let total: f64 = values.iter().sum();
        if total != 0.0 {
            values.iter_mut().for_each(|value| *value *= all / total);
        }
        Ok(values)
    }
}

fn settled(history: &[Vec<f64>]) -> bool {
    let Some((now, before)) = history.split_last() else { return false };
    if before.len() < LAST {
        return false;
    }
    let changes = before[before.len() - LAST..].iter().flat_map(|then| {
        now.iter().zip(then).map(|(now, then)| ((now - then) / now.abs().max(1e-12)).abs())
    });
    let (sum, count) = changes.fold((0.0, 0), |(sum, count), change| (sum + change, count + 1));
    sum / f64::from(count.max(1)) <= SETTLED
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    /// A table of worths, one for each group by its bits.
    fn table(worths: &[f64]) -> impl FnMut(&[usize]) -> Result<f64, Infallible> + '_ {
        |group| Ok(worths[group.iter().map(|member| 1 << member).sum::<usize>()])
    }

    fn shapley(n: usize, worths: &[f64]) -> Vec<f64> {
        Game::new(n, &mut table(worths)).shapley().unwrap().unwrap()
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-10
    }

    /// The mean over all orders, one after the other.
    fn over_orders(n: usize, worths: &[f64]) -> Vec<f64> {
        fn orders(rest: &[usize], order: &mut Vec<usize>, each: &mut dyn FnMut(&[usize])) {
            if rest.is_empty() {
                each(order);
            }
            for member in rest {
                order.push(*member);
                let rest: Vec<usize> = rest.iter().copied().filter(|m| m != member).collect();
                orders(&rest, order, each);
                order.pop();
            }
        }
        let (mut sums, mut count) = (vec![0.0; n], 0.0);
        orders(&(0..n).collect::<Vec<_>>(), &mut Vec::new(), &mut |order| {
            let mut set = 0;
            for member in order {
                sums[*member] += worths[set | 1 << member] - worths[set];
                set |= 1 << member;
            }
            count += 1.0;
        });
        sums.iter().map(|sum| sum / count).collect()
    }

    proptest! {
        #[test]
        fn shapley_is_the_mean_over_all_orders_and_obeys_its_axioms(
            n in 1usize..6,
            worths in prop::collection::vec(-1.0..1.0f64, 64),
        ) {
            let mut worths = worths[..1 << n].to_vec();
            worths[0] = 0.0;
            let values = shapley(n, &worths);
            for (value, expected) in values.iter().zip(over_orders(n, &worths)) {
                prop_assert!(near(*value, expected));
            }
            prop_assert!(near(values.iter().sum(), worths[(1 << n) - 1]), "efficiency");
            // A member that adds nothing to any group, appended, has nothing and changes nothing.
            let null: Vec<f64> = worths.iter().chain(&worths).copied().collect();
            let with_null = shapley(n + 1, &null);
            prop_assert!(near(with_null[n], 0.0), "null player");
            prop_assert!(values.iter().zip(&with_null).all(|(a, b)| near(*a, *b)));
        }

        /// Two members that may be exchanged in every group have the same.
        #[test]
        fn symmetric_members_have_the_same(worths in prop::collection::vec(-1.0..1.0f64, 16)) {
            let mut worths = worths;
            worths[0] = 0.0;
            for set in 0..16usize {
                if set & 3 == 1 {
                    worths[set + 1] = worths[set];
                }
            }
            let values = shapley(4, &worths);
            prop_assert!(near(values[0], values[1]));
            let loo = Game::new(4, &mut table(&worths)).leave_one_out().unwrap();
            prop_assert!(near(loo[0], loo[1]) && near(loo[0], worths[15] - worths[14]));
        }
    }

    #[test]
    fn gtg_is_within_five_percent_of_exact_for_six() {
        for seed in 0..20 {
            use rand::Rng;
            let rng = &mut Seed(seed).stream("gtg test", 0, 0);
            let mut draw = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            // Returns that diminish, as those of more data do.
            let own: Vec<f64> = (0..6).map(|_| 0.1 + draw()).collect();
            let worths: Vec<f64> = (0..64usize)
                .map(|set| {
                    let sum: f64 = (0..6).filter(|m| set >> m & 1 == 1).map(|m| own[m]).sum();
                    1.0 - (-sum).exp()
                })
                .collect();
            let exact = shapley(6, &worths);
            let guided = Game::new(6, &mut table(&worths)).guided(1).unwrap();
            assert!(near(guided.iter().sum(), worths[63]), "efficiency");
            let off = exact.iter().zip(&guided).map(|(e, g)| (e - g).powi(2)).sum::<f64>().sqrt();
            let size = exact.iter().map(|e| e * e).sum::<f64>().sqrt();
            assert!(off < 0.05 * size, "seed {seed}: {exact:?}, {guided:?}");
        }
    }

    #[test]
    fn a_round_worth_nothing_is_skipped_and_too_many_are_not_enumerated() {
        let mut asked = 0;
        let mut judge = |_: &[usize]| {
            asked += 1;
            Ok::<_, Infallible>(1e-4)
        };
        assert_eq!(Game::new(5, &mut judge).guided(1).unwrap(), [0.0; 5]);
        assert_eq!(Game::new(13, &mut judge).shapley().unwrap(), None);
        assert_eq!(asked, 1);
    }
}
