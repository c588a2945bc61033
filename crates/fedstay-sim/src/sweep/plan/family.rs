//! Runs that differ only in their ε, and whether they provably share work.
//!
//! Two runs that differ only in ε are the same run until the first departure under the larger one,
//! *if* nothing but departures depends on ε. That holds where
//!
//! - the rule's step is a function of the directions and losses alone: the averaging rules and the
//!   baselines that only watch departures. ADA-GD, `retain`, MW-Fed and MaxFL compute with ε;
//! - there is no policy: early stop, keep-best and the guard compute with ε;
//! - an agent leaves iff its loss is at most ε, or never, and is always there;
//! - ε is a number, not a multiple of something that has to be trained first;
//! - nobody compares an agent's reports with each other, bounds included (`check_reports`).
//!
//! What is not known is not shared: an experiment runs alone if it says a key that is not marked as
//! sharing in the tables of keys (`.shares()`).

use crate::experiment::{Experiment, SpecError, may_share};
use crate::sweep::Planned;
use fedstay::Rule;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs that are computed together.
#[derive(Debug, Clone)]
pub struct Family {
    /// The first run's key with what is shared, so that the same missing runs have the same name.
    pub name: String,
    /// The runs; more than one only where they share work.
    pub runs: Vec<Arc<Planned>>,
}

impl Family {
    /// Its experiments as text, for [`run_family`](crate::sweep::run_family) on another machine.
    ///
    /// # Errors
    /// Never, for experiments that were parsed.
    pub fn to_toml(&self) -> Result<Vec<String>, SpecError> {
        self.runs.iter().map(|run| run.experiment.to_toml()).collect()
    }

    /// Local steps that its runs take together if each is computed alone and nobody leaves.
    pub fn steps(&self) -> u64 {
        self.runs.iter().map(|run| steps(&run.experiment)).sum()
    }
}

/// Local steps of a run in which nobody leaves; for a problem, gradients.
pub(in crate::sweep) fn steps(experiment: &Experiment) -> u64 {
    u64::from(experiment.rounds) * round_steps(experiment)
}

/// The same in one round.
pub(in crate::sweep) fn round_steps(experiment: &Experiment) -> u64 {
    match experiment.training() {
        Some(training) => training.agents.max(1) as u64 * training.usual_steps(),
        None => 1,
    }
}

/// The slack of the rule's forecast, if its step depends on ε in no way.
pub(in crate::sweep) fn margin(rule: &Rule) -> Option<f64> {
    let facts = rule.facts();
    (!facts.reads_epsilon).then_some(facts.margin)
}

/// Whether runs of this experiment with other ε share its trajectory until somebody leaves.
fn shares(experiment: &Experiment, config: &Value) -> bool {
    experiment.problem().is_none()
        && margin(&experiment.rule).is_some()
        && experiment.policy.is_empty()
        && experiment.schedule.is_always()
        && experiment.behaviour.is_plain()
        && !experiment.check_reports.unwrap_or(experiment.is_convex())
        && may_share(config)
}

/// Puts runs that share work together, in the order in which the first of each came.
pub fn families(runs: &[Arc<Planned>], share: bool) -> Vec<Family> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut families: Vec<Family> = Vec::new();
    for run in runs {
        if !(share && shares(&run.experiment, &run.config)) {
            families.push(Family { name: run.key.clone(), runs: vec![Arc::clone(run)] });
            continue;
        }
        let mut common = run.config.clone();
        common["epsilon"] = Value::Null;
        let name = crate::sweep::plan::key::hash(&common);
        let place = *places.entry(name.clone()).or_insert_with(|| {
            families.push(Family { name, runs: Vec::new() });
            families.len() - 1
        });
        families[place].runs.push(Arc::clone(run));
    }
    families
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Plan;
    use std::path::Path;

    fn sizes(text: &str) -> Vec<usize> {
        let plan = Plan::parse(text, Path::new("."), &[]).unwrap();
        families(&plan.runs, true).iter().map(|family| family.runs.len()).collect()
    }

    #[test]
    fn only_what_provably_shares_is_put_together() {
        let grid = "[grid]\nepsilon = [0.1, 0.2]\nseed = \"0..2\"\n";
        let compared = format!("compare_alone = true\n[rule]\nkind = \"fedavg\"\n{grid}");
        assert_eq!(sizes(&compared), [1; 4], "what agents end with depends on ε");
        let with = |text: &str| sizes(&format!("{text}\n{grid}"));
        assert_eq!(with("[rule]\nkind = \"fedavg\""), [2, 2]);
        assert_eq!(with("[rule]\nkind = \"q-fedavg\""), [2, 2]);
        assert_eq!(with("[rule]\nkind = \"ada-gd\""), [1; 4]);
        assert_eq!(with("[rule]\nkind = \"maxfl\""), [1; 4]);
        assert_eq!(with("[rule]\nkind = \"fedavg\"\n[policy]\nkind = \"keep-best\""), [1; 4]);
        assert_eq!(with("[rule]\nkind = \"fedavg\"\n[problem]\nkind = \"huber\""), [1; 4]);
        let relative = "[rule]\nkind = \"fedavg\"\n[grid]\nepsilon = [\"1.1 * local\", 0.2]";
        assert_eq!(sizes(relative), [2]);
    }

    #[test]
    fn a_key_nobody_has_thought_about_is_not_shared() {
        let text = "[rule]\nkind = \"fedavg\"\n[grid]\nepsilon = [0.1, 0.2]";
        let plan = Plan::parse(text, Path::new("."), &[]).unwrap();
        let run = &plan.runs[0];
        assert!(shares(&run.experiment, &run.config));
        let mut config = run.config.clone();
        config["surprise"] = Value::from(1);
        assert!(!shares(&run.experiment, &config));
    }
}
