//! What somebody who starts an experiment should know, though it may be just what they intend.

use super::{Epsilon, Experiment, Work};

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
        match &self.epsilon {
            Epsilon::One(epsilon) if !can_reach(*epsilon) => Some(format!(
                "`epsilon` is {epsilon} and losses are {losses} here, so nobody can ever be content"
            )),
            Epsilon::Each(list) => {
                let never = list.iter().enumerate().filter(|(_, epsilon)| !can_reach(**epsilon));
                let never: Vec<String> =
                    never.map(|(agent, epsilon)| format!("{agent} (ε = {epsilon})")).collect();
                let noun = if never.len() == 1 { "agent" } else { "agents" };
                (!never.is_empty()).then(|| {
                    let never = never.join(", ");
                    format!("losses are {losses} here, so {noun} {never} can never be content")
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
        for epsilon in ["0", "-1"] {
            let said = warnings(&[("epsilon", epsilon)]);
            assert_eq!(said.len(), 1, "{epsilon}");
            assert!(said[0].contains("always above zero") && said[0].contains("nobody can ever"));
        }
        let said = warnings(&[("problem.kind", "observation-3"), ("epsilon", "-0.1")]);
        assert!(said[0].contains("never below zero"), "{said:?}");
        let each = [("problem.kind", "observation-3"), ("epsilon", "[0.1, -0.5]")];
        assert!(warnings(&each)[0].contains("agent 1 (ε = -0.5)"), "{:?}", warnings(&each));
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
