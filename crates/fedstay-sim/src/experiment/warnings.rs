//! What somebody who starts an experiment should know, though it may be just what they intend.

use super::{Epsilon, Experiment, Work};
use crate::text::quoted;

/// How much of a name a warning tells.
const LONGEST_NAME: usize = 40;

impl Experiment {
    /// Sentences for the summary and the terminal; none for most experiments.
    pub fn warnings(&self) -> Vec<String> {
        self.out_of_reach().into_iter().collect()
    }

    /// Agents whose target loss is lower than any possible loss. This is not an error: with ε = 0
    /// nobody leaves, which is how a step size is tuned.
    fn out_of_reach(&self) -> Option<String> {
        let can_reach = |epsilon: f64| match &self.work {
            Work::Problem(problem) => problem.can_reach(epsilon),
            // A cross entropy is a sum of logarithms of shares below one.
            Work::Training(_) => epsilon > 0.0,
        };
        let losses = match can_reach(0.0) {
            true => "never below zero",
            false => "always above zero",
        };
        // A loss may come so near zero that it is rounded to it.
        let unless = |least: f64| match least < 0.0 {
            true => "can never be content",
            false => "can be content only where a loss is rounded to zero; set epsilon above 0",
        };
        match &self.epsilon {
            Epsilon::One(epsilon) if !can_reach(*epsilon) => Some(format!(
                "`epsilon` is {epsilon} and losses are {losses} here, so agents {}",
                unless(*epsilon)
            )),
            Epsilon::Each(list) => {
                let never = list.iter().enumerate().filter(|(_, epsilon)| !can_reach(**epsilon));
                let least = never.clone().map(|(_, epsilon)| *epsilon).fold(0.0, f64::min);
                let never: Vec<String> =
                    never.map(|(agent, epsilon)| format!("{agent} (ε = {epsilon})")).collect();
                let noun = if never.len() == 1 { "agent" } else { "agents" };
                (!never.is_empty()).then(|| {
                    let never = never.join(", ");
                    format!("losses are {losses} here, so {noun} {never} {}", unless(least))
                })
            }
            Epsilon::Named(table) => {
                let never: Vec<String> = table
                    .iter()
                    .filter(|(_, epsilon)| !can_reach(**epsilon))
                    .map(|(name, epsilon)| {
                        format!("{} (ε = {epsilon})", quoted(name, LONGEST_NAME))
                    })
                    .collect();
                let least = table.values().copied().fold(0.0, f64::min);
                (!never.is_empty()).then(|| {
                    format!("losses are {losses} here, so {} {}", never.join(", "), unless(least))
                })
            }
            Epsilon::One(_) | Epsilon::Relative(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(keys: &[(&str, &str)]) -> Vec<String> {
        let set: Vec<(String, String)> =
            keys.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        Experiment::parse("", &set).unwrap().warnings()
    }

    #[test]
    fn a_target_that_no_loss_can_reach_is_told() {
        let said = warnings(&[("epsilon", "-1")]);
        assert!(
            said[0].contains("always above zero") && said[0].contains("can never be"),
            "{said:?}"
        );
        let said = warnings(&[("problem.kind", "observation-3"), ("epsilon", "-0.1")]);
        assert!(said[0].contains("never below zero"), "{said:?}");
        let each = [("problem.kind", "observation-3"), ("epsilon", "[0.1, -0.5]")];
        assert!(warnings(&each)[0].contains("agent 1 (ε = -0.5)"), "{:?}", warnings(&each));
    }

    /// A run in single precision with `epsilon = 0` may well end with agents that are content.
    #[test]
    fn what_rounding_can_reach_is_not_called_impossible() {
        for keys in
            [[("epsilon", "0")].as_slice(), &[("problem.kind", "red-blue"), ("epsilon", "[0, 1]")]]
        {
            let said = warnings(keys);
            assert_eq!(said.len(), 1, "{keys:?}");
            assert!(said[0].contains("only where a loss is rounded to zero"), "{said:?}");
            assert!(!said[0].contains("never"), "{said:?}");
        }
    }

    #[test]
    fn a_target_within_reach_is_not() {
        for keys in [
            &[][..],
            &[("epsilon", "1e-9")],
            &[("epsilon", "1.1 * local")],
            // These losses are exactly zero where an agent is served perfectly.
            &[("problem.kind", "observation-3"), ("epsilon", "0")],
            &[("problem.kind", "huber"), ("epsilon", "[0, 0, 0, 0, 0]")],
        ] {
            assert_eq!(warnings(keys), Vec::<String>::new(), "{keys:?}");
        }
        assert_eq!(warnings(&[("problem.kind", "red-blue"), ("epsilon", "0")]).len(), 1);
    }
}
