//! An experiment: what a TOML file says, checked and completed.
//!
//! A file says only what differs from the defaults; [`Experiment`] is the whole, as it is written
//! back to a run's folder. Keys are checked against one list ([`KEYS`]), so that a typing error is
//! answered with the nearest keys there are.

pub(crate) mod bounds;
mod complete;
mod default;
mod epsilon;
mod error;
mod keys;
mod label;
mod locate;
mod plan_error;
pub(crate) mod table;
mod warnings;
mod work;
mod written;

pub use bounds::{MOST_THREADS, check_threads};
pub use default::{DEFAULT, default_under, differences};
pub use epsilon::{Epsilon, Members, Relative, Yardstick};
pub use error::SpecError;
pub(crate) use keys::may_share;
pub use keys::{Allowed, KEYS, Key, Kinds, On, SECTIONS, Section, check_section, page, starter};
pub use label::under;
pub(crate) use plan_error::MOST_RUNS;
pub use plan_error::PlanError;
pub use table::read_table;
pub use work::{Training, Work};
pub use written::{from_toml, to_table};

use crate::data::DataError;
use crate::training::{DecidesOn, DecidesOnRows, EvalAgents, ExactGradient};
use fedstay::problem::Problem;
use fedstay::schedule::Trace;
use fedstay::worth::Method;
use fedstay::{
    Behaviour, Forgetting, Losses, Optimiser, Policies, Privacy, Rule, Schedule, Server,
};
use keys::{check_keys, training_key};
use serde::{Deserialize, Serialize};
use toml::Table;

/// A whole experiment: every key has its value.
///
/// Unknown keys are refused before this is read (see [`KEYS`]); serde could not do so, because the
/// keys of [`Training`] stand on the same level. [`from_table`](Self::from_table) completes a table
/// first, since serde's own reader needs it whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The seed of all randomness.
    pub seed: u64,
    /// The most rounds to run.
    pub rounds: u32,
    /// The server's step size η.
    pub step_size: f64,
    /// The target loss at which an agent is content: one for all, one per agent, or relative.
    pub epsilon: Epsilon,
    /// Whether to keep the Gram matrices of the agents' gradients, for `fedstay check`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub record_gram: bool,
    /// Whether to flag agents whose reports contradict themselves; by default, where that is a
    /// proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_reports: Option<bool>,
    /// Tell of every agent what it ends with, what it would have made alone, and how often it idled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compare_alone: bool,
    /// How the server aggregates.
    pub rule: Rule,
    /// What becomes of the rule's step before the policies act.
    #[serde(default)]
    pub server: Optimiser,
    /// What the server does around the rule, in order.
    #[serde(default)]
    pub policy: Policies,
    /// How agents decide.
    #[serde(default)]
    pub behaviour: Behaviour,
    /// When agents can be reached.
    #[serde(default)]
    pub schedule: Schedule,
    /// What agents do to their reports before they send them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Privacy>,
    /// What the server does about agents that ask to be forgotten when they leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forget: Option<Forgetting>,
    /// What is booked about what agents give and get.
    #[serde(default, skip_serializing_if = "Booked::is_nothing")]
    pub worth: Booked,
    /// What it works on: a named problem, or training on data.
    #[serde(flatten)]
    pub work: Work,
}

/// What is booked about what agents give and get.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Booked {
    /// The ways to say what an agent is worth.
    pub methods: Vec<Method>,
}

impl Booked {
    /// Whether nothing is asked for.
    pub fn is_nothing(&self) -> bool {
        self.methods.is_empty()
    }
}

/// The trace that is built in: its name, and its lines. A run with it means the same everywhere.
const SHIFTS: (&str, &str) = ("shifts", include_str!("shifts.csv"));

/// The lines of the built-in trace that are about the first agents.
fn of_first(agents: usize) -> String {
    let is_about = |line: &&str| {
        line.split(',')
            .next()
            .and_then(|agent| agent.parse().ok())
            .is_none_or(|own: usize| own < agents)
    };
    SHIFTS.1.lines().filter(is_about).map(|line| format!("{line}\n")).collect()
}

impl Experiment {
    /// Reads a file's text, with keys set from outside on top, and completes it.
    ///
    /// # Errors
    /// With a message that names the key and the nearest valid ones.
    pub fn parse(text: &str, set: &[(String, String)]) -> Result<Self, SpecError> {
        let mut table = read_table(text)?;
        set_keys(&mut table, set)?;
        Self::from_table(table).map_err(|error| match error.key() {
            Some(key) if set.iter().any(|(set, _)| *set == key) => error,
            _ => locate::locate(error, text),
        })
    }

    /// Completes a table.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn from_table(mut table: Table) -> Result<Self, SpecError> {
        if table.contains_key("grid") {
            return Err(SpecError::IsSweep);
        }
        check_keys(&table)?;
        if let Some(key) = training_key(&table) {
            return Err(SpecError::TrainingOnProblem { key });
        }
        complete::complete(&mut table)?;
        let experiment: Self = written::from_toml(table)?;
        experiment.check()?;
        Ok(experiment)
    }

    /// The text of a file that gives every key.
    ///
    /// # Errors
    /// Never, for an experiment that was parsed.
    pub fn to_toml(&self) -> Result<String, SpecError> {
        written::to_text(self)
    }

    /// The server before its first round, with everything the file says about it; it starts at these
    /// weights.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn server(&self, start: Vec<f64>) -> Result<Server, SpecError> {
        let server = Server::new(start, self.rule.clone(), self.step_size)?
            .with_optimiser(self.server.clone())?
            .with_policy(self.policy.clone())?;
        Ok(match &self.forget {
            Some(forget) => server.with_forgetting(forget.clone())?,
            None => server,
        })
    }

    /// The problem, if the experiment is on one.
    pub fn problem(&self) -> Option<&Problem> {
        match &self.work {
            Work::Problem(problem) => Some(problem),
            Work::Training(_) => None,
        }
    }

    /// What is trained, if the experiment trains on data.
    pub fn training(&self) -> Option<&Training> {
        match &self.work {
            Work::Problem(_) => None,
            Work::Training(training) => Some(training),
        }
    }

    /// What is trained, in a word.
    pub fn on(&self) -> &str {
        match &self.work {
            Work::Problem(problem) => problem.name(),
            Work::Training(training) => training.data.source.name(),
        }
    }

    /// Whether agents decide on, and report, the loss of their own model.
    pub fn decides_on_own(&self) -> bool {
        self.training().is_some_and(|training| training.decides_on == DecidesOn::Own)
    }

    /// Whether agents decide on, and report, the loss on rows that they hold back.
    pub fn decides_held_back(&self) -> bool {
        self.training().is_some_and(|training| training.decides_on_rows == DecidesOnRows::HeldBack)
    }

    /// The schedule, with its file read where it has one.
    ///
    /// # Errors
    /// When the file cannot be read, or a line of it does not fit this many agents.
    pub fn schedule_for(&self, agents: usize) -> Result<Schedule, SpecError> {
        let Schedule::Trace(Trace { path, .. }) = &self.schedule else {
            return Ok(self.schedule.clone());
        };
        if path == SHIFTS.0 {
            return Ok(Schedule::Trace(Trace::read(path, &of_first(agents), agents as u64)?));
        }
        let text = std::fs::read_to_string(path).map_err(|source| {
            DataError::io(path.as_ref(), "set schedule.path to the file you want to read", source)
        })?;
        Ok(Schedule::Trace(Trace::read(path, &text, agents as u64)?))
    }

    /// Whether agents whose work is not one step on all rows report the gradient at the received weights as
    /// well. Where the file leaves that to itself (`auto`), they do if the rule or a policy predicts losses
    /// from it; but not where that is another model's loss (`decides_on = "own"`), nor where every vector
    /// that is sent needs its share of the noise.
    pub fn asks_for_gradients(&self) -> bool {
        let Some(training) = self.training() else { return false };
        match training.local.exact_gradient {
            ExactGradient::Told(told) => told,
            ExactGradient::Auto => {
                let reads = self.rule.facts().reads_gradients;
                let policies = self.policy.iter();
                let predicts = reads || policies.into_iter().any(|p| p.facts().reads_gradients);
                predicts && training.decides_on == DecidesOn::Received && self.privacy.is_none()
            }
        }
    }

    /// Whether honest agents report the exact gradient at the weights they received.
    pub(crate) fn reports_gradients(&self) -> bool {
        let exact = self.training().is_none_or(|t| t.local.is_exact() || self.asks_for_gradients());
        exact && self.privacy.is_none()
    }

    /// How many vectors and numbers a report consists of, for the accounting of privacy.
    pub fn parts_of_a_report(&self) -> u32 {
        let whole = self.training().is_none_or(|training| training.local.is_exact());
        if self.asks_for_gradients() && !whole { 3 } else { 2 }
    }

    /// Whether honest agents report exact losses and gradients of convex functions, both at the
    /// weights they received and of the same rows. Inequalities between them are then proofs.
    pub fn is_convex(&self) -> bool {
        let sets_loads = self.rule.facts().sets_loads;
        let convex = match &self.work {
            Work::Problem(problem) => problem.is_convex(),
            Work::Training(training) => {
                let exact = training.local.is_exact() || self.asks_for_gradients();
                let received = training.decides_on == DecidesOn::Received;
                let same = exact && received && training.decides_on_rows == DecidesOnRows::Training;
                same && !sets_loads && training.model.is_convex()
            }
        };
        convex && self.privacy.is_none()
    }

    /// Whether the losses of agents that never leave are read by nobody: no rule, no policy, no check,
    /// and no record, where everybody's would be part of it.
    pub(crate) fn nobody_reads_losses(&self) -> bool {
        let measured = |training: &Training| training.eval_agents != EvalAgents::All;
        let watched = self.rule.losses(self.step_size, 0.0) != Losses::Exact;
        self.training().is_some_and(measured)
            && watched
            && !self.rule.facts().reads_epsilon
            && self.policy.is_empty()
            && self.privacy.is_none()
            && self.worth.is_nothing()
            && !self.check_reports.unwrap_or(self.is_convex())
    }

    /// The rule with what was added to it: `fedavg+early-stop`, `ada-gd+halve`.
    pub fn rule_label(&self) -> String {
        label_of(&self.rule, &self.server, &self.policy, &self.behaviour)
    }

    /// Checks what depends on several keys, or what only another part knows.
    fn check(&self) -> Result<(), SpecError> {
        self.server.check()?;
        self.policy.check()?;
        self.behaviour.check()?;
        self.schedule.check()?;
        if let Some(privacy) = &self.privacy {
            privacy.check()?;
        }
        if let Some(forget) = &self.forget {
            forget.check()?;
        }
        if let Some(training) = self.training() {
            training.data.check()?;
            training.check_measures()?;
            training.model.check()?;
        }
        if self.check_reports == Some(true) && self.decides_held_back() {
            let why = "compares what agents say of their loss with their gradients, and with decides_on_rows = \
                       \"held-back\" these are of different rows: leave one of the two out";
            return Err(DataError::setting("check_reports", why).into());
        }
        Ok(())
    }
}

/// Sets keys in a table, as `--set` does.
///
/// # Errors
/// For a name that no key can have.
pub fn set_keys(table: &mut Table, set: &[(String, String)]) -> Result<(), SpecError> {
    set.iter().try_for_each(|(key, value)| table::put(table, key, table::parse_value(value)))
}

/// A rule with what was added to it: `fedavg+early-stop`, `ada-gd+halve`.
pub fn rule_label(rule: &Rule, policies: &Policies, behaviour: &Behaviour) -> String {
    label_of(rule, &Optimiser::default(), policies, behaviour)
}

/// The same for a server with an optimiser: `fedavg+adam`, `fedavg+adam+preview`.
fn label_of(rule: &Rule, server: &Optimiser, policies: &Policies, behaviour: &Behaviour) -> String {
    let mut label = rule.name().to_owned();
    for change in rule.facts().label {
        label.push('+');
        label.push_str(change);
    }
    if !server.is_plain() {
        label.push('+');
        label.push_str(server.name());
    }
    for policy in policies.iter() {
        label.push('+');
        label.push_str(policy.name());
    }
    if behaviour.name() != "threshold" {
        label.push('+');
        label.push_str(behaviour.name());
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> Result<Experiment, SpecError> {
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        Experiment::parse("", &pairs)
    }

    #[test]
    fn an_experiment_survives_its_own_file() {
        for pairs in [
            &[][..],
            &[("problem.kind", "observation-3"), ("problem.alpha", "2")],
            &[("problem.kind", "huber"), ("epsilon", "[0.1, 0.2, 0.1, 0.1, 0.3]")],
            &[("data.kind", "digits"), ("rule.kind", "fedavg"), ("epsilon", "1.1 * local")],
            &[("model.kind", "softmax-regression"), ("policy.kind", "early-stop")],
            &[("server.optimiser", "yogi"), ("server.beta2", "0.9"), ("policy.kind", "preview")],
            &[("policy", "['guard', { kind = 'early-stop', margin = 0.1 }, 'keep-best']")],
            &[("problem.kind", "huber"), ("policy", "['preview', 'keep-best']")],
            &[
                ("behaviour.kind", "mixed"),
                (
                    "behaviour.of",
                    "[{kind='lying', agents=[2], within=0.1}, {kind='utility', share=1.0}]",
                ),
            ],
        ] {
            let experiment = set(pairs).unwrap();
            let text = experiment.to_toml().unwrap();
            assert_eq!(Experiment::parse(&text, &[]).unwrap(), experiment, "{text}");
        }
    }

    #[test]
    fn typing_errors_are_answered_with_the_nearest_names() {
        let message = |pairs: &[(&str, &str)]| set(pairs).unwrap_err().to_string();
        assert!(message(&[("rule.detla", "1")]).contains("`rule.delta`"));
        assert!(message(&[("rule.kind", "ada-dg")]).contains("`ada-gd`"));
        assert!(message(&[("problem.kind", "observation3")]).contains("`observation-3`"));
        assert!(message(&[("sed", "1")]).contains("`seed`"));
        assert!(
            message(&[("problem.kind", "observation-2"), ("problem.alpha", "1")]).contains("alpha")
        );
        assert!(
            message(&[("problem.kind", "observation-2"), ("agents", "3")]).contains("[problem]")
        );
    }

    #[test]
    fn a_configuration_has_no_memory_and_cannot_have_one() {
        for text in [
            "[rule]\nkind = \"afl\"\nmemory = []",
            "[rule]\nkind = \"afl\"\nmemory = [[0, 1.0]]",
            "[rule]\nkind = \"afl\"\nmemory = {}",
            "[rule]\nkind = \"retain\"\nmemory = {}",
            "[rule]\nkind = \"retain\"\nmemory = { radius = 1.0, predicted = [], curvature = 0.0 }",
            "[policy]\nkind = \"keep-best\"\nmemory = {}",
            "[policy]\nkind = \"keep-best\"\nmemory = { somebody_left = true, epsilons = [] }",
            "[rule]\nkind = \"custom\"",
        ] {
            assert!(Experiment::parse(text, &[]).is_err(), "{text}");
        }
        for entry in Rule::LIST {
            let text = set(&[("rule.kind", entry.name)]).unwrap().to_toml().unwrap();
            assert!(!text.contains("memory"), "{text}");
        }
    }

    #[test]
    fn what_a_rule_takes_from_the_problem_is_given_to_it_and_to_no_other() {
        for entry in Rule::LIST {
            let pairs = [("problem.kind", "huber"), ("rule.kind", entry.name)];
            let rule = Table::try_from(set(&pairs).unwrap().rule).unwrap();
            let facts = Rule::named(entry.name).unwrap().facts();
            assert_eq!(rule.contains_key("smoothness"), facts.takes_smoothness, "{}", entry.name);
            assert_eq!(rule.contains_key("convex"), facts.takes_convexity, "{}", entry.name);
            // This problem's slack is not the usual one.
            let pairs = [("problem.kind", "observation-1"), ("rule.kind", entry.name)];
            let rule = Table::try_from(set(&pairs).unwrap().rule).unwrap();
            let given = rule.get("delta").and_then(toml::Value::as_float) == Some(0.05);
            assert_eq!(given, facts.slack.is_some(), "{}", entry.name);
        }
    }

    #[test]
    fn only_exact_reports_of_a_convex_model_or_problem_are_proofs() {
        let convex = |pairs: &[(&str, &str)]| set(pairs).unwrap().is_convex();
        assert!(convex(&[("model.kind", "softmax-regression")]));
        assert!(convex(&[("problem.kind", "observation-3")]));
        assert!(!convex(&[]), "the default is a net");
        for doubtful in [
            ("local.steps", "5"),
            ("local.batch", "10"),
            ("decides_on", "own"),
            ("privacy.noise", "0.5"),
        ] {
            let mut pairs = vec![("model.kind", "softmax-regression"), doubtful];
            pairs.push(("local.exact_gradient", "false"));
            if doubtful.0.starts_with("privacy") {
                pairs.extend([("privacy.clip", "1.0"), ("privacy.loss_clip", "2.0")]);
            }
            assert!(!convex(&pairs), "{doubtful:?}");
        }
        // A rule that reads gradients is sent them; averaging is not.
        let steps = [("model.kind", "softmax-regression"), ("local.steps", "5")];
        assert!(convex(&[&steps[..], &[("rule.kind", "ada-gd")]].concat()));
        assert!(!convex(&[&steps[..], &[("rule.kind", "fedavg")]].concat()));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_in_one_line_with_the_place() {
        let said = |text: &str| Experiment::parse(text, &[]).unwrap_err().to_string();
        assert!(said("rounds = 3\nseed = = 4").starts_with("line 2, column 8: "));
        assert!(said("rounds = 3\nsede = 4").starts_with("line 2: there is no key `sede`"));
        for text in ["[", "a = \"\n\"", "seed = 18446744073709551616", "x = {\n", "\u{feff}= 1"] {
            assert!(!said(text).contains('\n'), "{}", said(text));
        }
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for (key, value) in [
            ("rounds", "0"),
            ("rounds", "-1"),
            ("rounds", "99999999999999999999"),
            ("step_size", "0"),
            ("step_size", "nan"),
            ("participation", "0"),
            ("eval_every", "0"),
            ("agents", "0"),
            ("epsilon", "\"soon\""),
            ("seed", "-1"),
            ("rule", "3"),
            ("behaviour.kind", "mixed"),
            ("a..b", "1"),
        ] {
            let error = set(&[(key, value)]).unwrap_err().to_string();
            assert!(!error.is_empty() && !error.contains('\n'), "{key} = {value}: {error}");
        }
    }
}
