//! How close a run comes to breaking the theorem's assumptions, as far as its folder shows.

use fedstay::diagnose::{Diagnosis, Findings, RunConstants};
use fedstay::problem::Instance;
use fedstay::record::{GramLine, Header};
use fedstay::{AgentId, Rule, Seed};
use fedstay_sim::experiment::Experiment;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use toml::{Table, Value};

/// A problem with larger parameters is not built just to look at it.
const LARGEST_PROBLEM: f64 = 1e7;
/// After a large Gram matrix this many times the time it took is left for other things; matrices
/// that arrive meanwhile are skipped. The angles of 200 gradients take some milliseconds.
const SHARE: u32 = 4;

/// What is known about a run in terms of the theory.
#[derive(Debug, Default)]
pub(crate) struct Theory {
    diagnosis: Diagnosis,
    looked: u32,
    passed: u32,
    /// The time after which the next matrix may be looked at.
    rest: Option<Instant>,
    known: RunConstants,
    /// Who takes part.
    header: Option<Header>,
    own: bool,
    instance: Option<ConfiguredProblem>,
}

/// A problem that was built from the configuration.
pub(crate) struct ConfiguredProblem {
    pub(crate) instance: Instance,
}

impl std::fmt::Debug for ConfiguredProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ConfiguredProblem({} agents)", self.instance.oracles.len())
    }
}

/// What the page is told about the theory.
#[derive(Debug, Serialize)]
pub(crate) struct TheoryCard {
    /// What the Gram matrices show, if there are any.
    findings: Option<Findings>,
    /// The number of matrices that were skipped to save time.
    passed: u32,
    /// The slack; `None` for a rule that keeps nobody by one.
    delta: Option<f64>,
    /// The step size of the first round; the rule may shorten it.
    step_size: Option<f64>,
    lipschitz: Option<f64>,
    smoothness: Option<f64>,
    /// The theorem's step from known constants alone.
    theorem_step: Option<f64>,
}

impl Theory {
    pub(crate) fn restart(&mut self) {
        (self.diagnosis, self.looked, self.passed) = (Diagnosis::default(), 0, 0);
        self.header.iter().for_each(|header| self.diagnosis.take_part(header));
    }

    /// Looks at a Gram matrix, unless the last ones took so long that others would have to wait.
    pub(crate) fn add(&mut self, line: GramLine) {
        if line.agents.len() > 40 && self.rest.is_some_and(|until| Instant::now() < until) {
            self.passed += 1;
            return;
        }
        let since = Instant::now();
        self.diagnosis.add(line);
        self.looked += 1;
        self.rest = Some(Instant::now() + since.elapsed() * SHARE);
    }

    /// Takes note of the agents that take part: those that never report are agents too.
    pub(crate) fn take_part(&mut self, header: &Header) {
        self.header = Some(header.clone());
        self.diagnosis.take_part(header);
    }

    /// Takes note of who left before the first step.
    pub(crate) fn content_at_start(&mut self, agents: &[AgentId]) {
        self.diagnosis.content_at_start(agents);
    }

    /// Takes note of the configuration.
    pub(crate) fn configure(&mut self, config: Option<&str>) {
        let table: Table = config.and_then(|text| toml::from_str(text).ok()).unwrap_or_default();
        let number = |value: Option<&Value>| value.and_then(Value::as_float);
        self.instance = config
            .and_then(|text| build(text, &table))
            .map(|instance| ConfiguredProblem { instance });
        let instance = self.problem();
        let rule = table.get("rule").and_then(|rule| Rule::deserialize(rule.clone()).ok());
        self.known = RunConstants {
            lipschitz: instance.and_then(|instance| instance.lipschitz),
            smoothness: instance.and_then(|instance| instance.smoothness),
            step_size: number(table.get("step_size")).unwrap_or(f64::NAN),
            delta: rule.as_ref().and_then(slack),
            halves: rule.is_some_and(|rule| rule.halves()),
        };
        self.own = table.get("decides_on").and_then(Value::as_str) == Some("own");
    }

    /// Whether agents decide on their own model rather than on the one they received.
    pub(crate) fn decides_on_own(&self) -> bool {
        self.own
    }

    /// The named problem the run is on.
    pub(crate) fn problem(&self) -> Option<&Instance> {
        self.instance.as_ref().map(|problem| &problem.instance)
    }

    pub(crate) fn told(&self) -> TheoryCard {
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let delta = self.known.delta;
        TheoryCard {
            findings: (self.looked > 0).then(|| self.diagnosis.findings(self.known)),
            passed: self.passed,
            delta,
            step_size: finite(self.known.step_size),
            lipschitz: self.known.lipschitz,
            smoothness: self.known.smoothness,
            theorem_step: delta.and_then(|delta| self.problem()?.theorem_step(delta)),
        }
    }
}

/// The slack of a configured rule, if it keeps agents by one.
fn slack(rule: &Rule) -> Option<f64> {
    rule.slack().filter(|delta| delta.is_finite())
}

fn build(text: &str, table: &Table) -> Option<Instance> {
    let problem = table.get("problem")?.as_table()?;
    let size: f64 = problem
        .values()
        .filter_map(Value::as_integer)
        .map(|value| (value as f64).max(1.0))
        .product();
    if size > LARGEST_PROBLEM {
        return None;
    }
    let experiment = Experiment::parse(text, &[]).ok()?;
    experiment.problem()?.build(Seed(experiment.seed)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(config: &str) -> TheoryCard {
        let mut theory = Theory::default();
        theory.configure(Some(config));
        let gram =
            r#"{"round":1,"agents":[0],"loss":[1.0],"gram":[1.0],"slope":[0.0],"step_norm":0.1}"#;
        theory.add(serde_json::from_str(gram).unwrap());
        theory.told()
    }

    #[test]
    fn agents_that_never_report_count_also_when_the_matrices_are_read_again() {
        let mut theory = Theory::default();
        let agents = [0, 1].map(fedstay::AgentId);
        let agent = |id| fedstay::record::HeaderAgent { id, epsilon: 0.1, name: None };
        let about = fedstay::About::default();
        theory.take_part(&Header::new(&about, 1, agents.map(agent).to_vec()));
        theory.restart();
        let gram =
            r#"{"round":1,"agents":[0],"loss":[1.0],"gram":[1.0],"slope":[0.0],"step_norm":0.1}"#;
        theory.add(serde_json::from_str(gram).unwrap());
        assert_eq!(theory.told().findings.unwrap().agents, 2);
    }

    #[test]
    fn averaging_is_not_told_to_set_a_slack() {
        let averaging = told("step_size = 0.1\n[rule]\nkind = \"fedavg\"\ndelta = 0.0\n");
        assert_eq!(averaging.delta, None);
        let advice = averaging.findings.unwrap().advice.join(" ");
        assert!(!advice.contains("rule.delta"), "{advice}");
        let ada_gd = told("step_size = 0.1\n[rule]\nkind = \"ada-gd\"\ndelta = 0.0\n");
        assert_eq!(ada_gd.delta, Some(0.0));
        assert!(ada_gd.findings.unwrap().advice.join(" ").contains("rule.delta is zero"));
    }
}
