//! Who is asked in a round.

use super::Simulator;
use fedstay::AgentId;
use fedstay::schedule::When;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Up to this number, agents are shuffled to draw some of them, which takes a step for each; of more, only
/// those that are asked are drawn.
const SHUFFLED: usize = 4096;

/// Who is asked in a round, and who is not.
pub(super) struct Cohort {
    /// The agents that are asked, in order: some of those that are in, and those that have left and
    /// look at the model by themselves.
    pub(super) asked: Vec<usize>,
    /// How many agents are in.
    pub(super) present: usize,
    /// How many of them are not asked.
    pub(super) unasked: usize,
    /// The agents that are in and cannot be reached, in order.
    pub(super) unreachable: Vec<AgentId>,
}

impl Simulator {
    /// Whether an agent can be reached in a round.
    pub(super) fn is_there(&self, index: usize, round: u32) -> bool {
        let (agent, agents) = (index as u64, self.roster.len() as u64);
        let kept_out = self.without.contains(&AgentId(agent));
        !kept_out && self.schedule.is_there(When { round, agent, agents, seed: self.seed })
    }

    /// Whether everybody can be reached in every round.
    pub(super) fn all_are_there(&self) -> bool {
        self.schedule.is_always() && self.without.is_empty()
    }

    /// Who is asked in a round: the agents still in that can be reached, or a share of them. Where
    /// everybody can be reached, it takes no longer for more agents that are not asked.
    pub(super) fn cohort(&self, round: u32) -> Cohort {
        let roster = &self.roster;
        let present = roster.len() - roster.gone().len();
        let mut unreachable = Vec::new();
        let reachable: Option<Vec<usize>> = (!self.all_are_there()).then(|| {
            let (there, away): (Vec<usize>, Vec<usize>) = (0..roster.len())
                .filter(|index| roster.is_in(*index))
                .partition(|index| self.is_there(*index, round));
            unreachable = away.into_iter().map(|index| AgentId(index as u64)).collect();
            there
        });
        let count = reachable.as_ref().map_or(present, Vec::len);
        let mut rng = self.seed.stream("participation", u64::from(round), 0);
        let ranks = draw(count, self.training.participation, &mut rng);
        let agent = |rank: usize| match &reachable {
            Some(reachable) => reachable[rank],
            None => roster.present(rank),
        };
        let mut asked: Vec<usize> = ranks.into_iter().map(agent).collect();
        let unasked = present - asked.len();
        let looks = |index: &&usize| roster.looks(**index) && self.is_there(**index, round);
        asked.extend(roster.gone().iter().filter(looks));
        asked.sort_unstable();
        Cohort { asked, present, unasked, unreachable }
    }
}

/// Draws a share of this number of agents, at least one if there is any, by their ranks.
fn draw(count: usize, share: f64, rng: &mut ChaCha8Rng) -> Vec<usize> {
    if share >= 1.0 || count == 0 {
        return (0..count).collect();
    }
    let wanted = ((share * count as f64).round() as usize).clamp(1, count);
    if count > SHUFFLED {
        return rand::seq::index::sample(rng, count, wanted).into_vec();
    }
    let mut ranks: Vec<usize> = (0..count).collect();
    ranks.shuffle(rng);
    ranks.truncate(wanted);
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::Seed;
    use std::collections::BTreeSet;

    #[test]
    fn a_draw_has_the_wanted_number_of_different_agents_and_reaches_all_of_them() {
        for (count, share, wanted) in [
            (0, 0.5, 0),
            (1, 0.01, 1),
            (10, 0.25, 3),
            (10, 1.0, 10),
            (5_000, 0.01, 50),
            (1_000_000, 1e-4, 100),
            (1_000_000, 1e-9, 1),
        ] {
            let mut seen = BTreeSet::new();
            for round in 0..40 {
                let drawn = draw(count, share, &mut Seed(1).stream("participation", round, 0));
                let different: BTreeSet<usize> = drawn.iter().copied().collect();
                assert_eq!((drawn.len(), different.len()), (wanted, wanted), "{count} {share}");
                assert!(different.iter().all(|rank| *rank < count));
                seen.extend(different);
            }
            if count <= 10 && share < 1.0 {
                assert_eq!(seen.len(), count, "everybody has a turn");
            }
            if count >= 5_000 {
                // Different rounds ask different agents, from all over the range.
                let expected = count as f64 * (1.0 - (1.0 - share).powi(40));
                let spread = seen.iter().sum::<usize>() as f64 / seen.len() as f64 / count as f64;
                assert!(seen.len() as f64 > 0.8 * expected, "{count}: {}", seen.len());
                assert!((0.4..0.6).contains(&spread) || seen.len() < 100, "{count}: {spread}");
            }
        }
    }
}
