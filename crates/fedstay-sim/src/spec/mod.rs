//! An experiment: what a TOML file says, checked and completed.
//!
//! A file says only what differs from the defaults; [`Experiment`] is the whole, as it is written
//! back to a run's folder. Keys are checked against one list ([`KEYS`]), so that a typing error is
//! answered with the nearest keys there are.

pub(crate) mod bounds;
mod default;
mod epsilon;
mod keys;
mod warnings;

pub use bounds::{Allowed, MOST_THREADS, check_threads};
pub use default::{DEFAULT, default_under, differences};
pub use epsilon::Epsilon;
pub use keys::{KEYS, Key};

use crate::data::Data;
use crate::local_work::Local;
use crate::model::{Architecture, Model};
use crate::partition::Partition;
use crate::simulator::DecidesOn;
use crate::text::one_line;
use fedstay::problem::{Instance, Problem};
use fedstay::{Aggregator, Behaviour, Decide, Policy, Privacy, Rule, Seed};
use keys::check_keys;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// What is wrong with an experiment's file or keys. The message names the key and says what to
/// type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);

/// A whole experiment: every key has its value.
///
/// Unknown keys are refused before this is read (see [`KEYS`]); serde could not, because the keys of
/// [`Training`] stand on the same level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The seed of all randomness.
    pub seed: u64,
    /// The most rounds to run.
    pub rounds: u32,
    /// The server's step size η.
    pub step_size: f64,
    /// The precision at which an agent is content: one for all, one an agent, or relative.
    pub epsilon: Epsilon,
    /// Keep the Gram matrices of the agents' gradients, for `fedstay check`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub record_gram: bool,
    /// Flag agents whose reports contradict themselves; where that is a proof, if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_reports: Option<bool>,
    /// How the server aggregates.
    pub rule: Rule,
    /// What the server does around the rule.
    #[serde(default)]
    pub policy: Policy,
    /// How agents decide.
    #[serde(default)]
    pub behaviour: Behaviour,
    /// What agents do to their reports before they send them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Privacy>,
    /// A named problem with exact oracles …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// … or training on data.
    #[serde(flatten, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub training: Option<Training>,
}

/// What is trained, on what, by whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// How many agents take part.
    pub agents: usize,
    /// How many devices there are; those that do not take part serve the population metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<usize>,
    /// The share of the agents still in that is asked each round.
    pub participation: f64,
    /// On which loss an agent decides.
    pub decides_on: DecidesOn,
    /// Whether the last remaining agent goes on training.
    pub last_stays: bool,
    /// Every how many rounds loss and accuracy of all agents and the population are measured.
    pub eval_every: u32,
    /// The data.
    pub data: Data,
    /// How they are dealt to the agents.
    pub partition: Partition,
    /// The model.
    pub model: Model,
    /// The agents' local work.
    pub local: Local,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            agents: 10,
            population: None,
            participation: 1.0,
            decides_on: DecidesOn::Received,
            last_stays: false,
            eval_every: 10,
            data: Data::default(),
            partition: Partition::default(),
            model: Model::Mlp(Default::default()),
            local: Local::default(),
        }
    }
}

/// The keys that belong to training on data.
const TRAINING: [&str; 10] = [
    "agents",
    "population",
    "participation",
    "decides_on",
    "last_stays",
    "eval_every",
    "data",
    "partition",
    "model",
    "local",
];

impl Experiment {
    /// Reads a file's text, with keys set from outside on top, and completes it.
    ///
    /// # Errors
    /// With a message that names the key and the nearest valid ones.
    pub fn parse(text: &str, set: &[(String, String)]) -> Result<Self, SpecError> {
        let mut table = read_table(text)?;
        for (key, value) in set {
            insert(&mut table, key, value)?;
        }
        Self::from_table(table)
    }

    /// Completes a table.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn from_table(table: Table) -> Result<Self, SpecError> {
        // A key or a value may be quoted, and may hold anything.
        Self::complete(table).map_err(|error| SpecError(one_line(&error.0)))
    }

    fn complete(mut table: Table) -> Result<Self, SpecError> {
        if table.contains_key("grid") {
            return Err(SpecError(
                "there is a [grid]: this is a sweep of many runs, start it with `fedstay sweep`"
                    .into(),
            ));
        }
        check_keys(&table)?;
        if table.contains_key("problem") {
            if let Some(key) = TRAINING.iter().find(|key| table.contains_key(**key)) {
                return Err(SpecError(format!(
                    "`{key}` belongs to training on data, but the experiment has a [problem], which \
                     brings its own agents and losses; remove one of the two"
                )));
            }
            complete_problem(&mut table)?;
        } else {
            complete_training(&mut table)?;
        }
        let unreadable = |error: toml::de::Error| SpecError(plain(&error));
        let mut experiment: Self = table.clone().try_into().map_err(unreadable)?;
        if experiment.problem.is_none() {
            experiment.training = Some(table.try_into().map_err(unreadable)?);
        }
        experiment.check()?;
        Ok(experiment)
    }

    /// The text of a file that says all of it.
    ///
    /// # Errors
    /// Never, for an experiment that was parsed.
    pub fn to_toml(&self) -> Result<String, SpecError> {
        toml::to_string(self).map_err(|error| SpecError(error.to_string()))
    }

    /// What is trained, in a word.
    pub fn on(&self) -> &str {
        match (&self.problem, &self.training) {
            (Some(problem), _) => problem.name(),
            (None, Some(training)) => training.data.source.kind(),
            (None, None) => "nothing",
        }
    }

    /// Whether agents decide on, and report, the loss of their own model.
    pub fn decides_on_own(&self) -> bool {
        self.training.as_ref().is_some_and(|training| training.decides_on == DecidesOn::Own)
    }

    /// How many vectors and numbers a report consists of, for the accounting of privacy.
    pub fn parts_of_a_report(&self) -> u32 {
        let both =
            |training: &Training| training.local.exact_gradient && !training.local.is_exact();
        if self.training.as_ref().is_some_and(both) { 3 } else { 2 }
    }

    /// Whether honest agents report exact losses and gradients of convex functions, both at the
    /// weights they received: inequalities between them are then proofs.
    pub fn is_convex(&self) -> bool {
        let sets_loads = self.rule.facts().sets_loads;
        let convex = match (&self.problem, &self.training) {
            (Some(problem), _) => problem.is_convex(),
            (None, Some(training)) => {
                let exact = training.local.is_exact() || training.local.exact_gradient;
                let received = training.decides_on == DecidesOn::Received;
                exact && received && !sets_loads && training.model.is_convex()
            }
            (None, None) => false,
        };
        convex && self.privacy.is_none()
    }

    /// The rule with what was added to it: `fedavg+early-stop`, `ada-gd+halve`.
    pub fn rule_label(&self) -> String {
        rule_label(&self.rule, &self.policy, &self.behaviour)
    }

    fn check(&self) -> Result<(), SpecError> {
        let checked = self.behaviour.check().and_then(|()| match &self.privacy {
            Some(privacy) => privacy.check(),
            None => Ok(()),
        });
        checked.map_err(|error| SpecError(error.to_string()))?;
        if let Some(training) = &self.training {
            training.check()?;
        }
        Ok(())
    }
}

/// A rule with what was added to it: `fedavg+early-stop`, `ada-gd+halve`.
pub fn rule_label(rule: &Rule, policy: &Policy, behaviour: &Behaviour) -> String {
    let mut label = rule.name().to_owned();
    for change in rule.facts().label {
        label.push('+');
        label.push_str(change);
    }
    if *policy != Policy::None {
        label.push('+');
        label.push_str(policy.name());
    }
    if behaviour.name() != "threshold" {
        label.push('+');
        label.push_str(behaviour.name());
    }
    label
}

impl Training {
    fn check(&self) -> Result<(), SpecError> {
        if !(self.participation > 0.0 && self.participation <= 1.0) {
            let value = self.participation;
            return Err(SpecError(format!(
                "`participation` is {value}, but is the share of the agents asked each round: above 0, \
                 at most 1"
            )));
        }
        self.data.check().map_err(|error| SpecError(error.to_string()))?;
        self.model.check().map_err(|error| SpecError(error.to_string()))?;
        self.local.check().map_err(SpecError)
    }
}

/// Reads TOML. What is wrong with it is told in one line, with the place.
pub(crate) fn read_table(text: &str) -> Result<Table, SpecError> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let why = one_line(&error.message().replace('\n', ", "));
        let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
            return SpecError(why);
        };
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        SpecError(format!("line {line}, column {column}: {why}"))
    })
}

/// Sets `a.b.c` in a table to a value written as in TOML; what is no TOML value is a string.
pub(crate) fn insert(table: &mut Table, key: &str, value: &str) -> Result<(), SpecError> {
    let parsed = toml::from_str::<Table>(&format!("value = {value}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(value.to_owned()));
    let mut table = table;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        if part.is_empty() {
            return Err(SpecError(format!("`{key}` is no key; keys look like `rule.delta`")));
        }
        if parts.peek().is_none() {
            table.insert(part.to_owned(), parsed);
            return Ok(());
        }
        let entry = table.entry(part.to_owned()).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(inner) = entry else {
            return Err(SpecError(format!("`{key}` cannot be set: `{part}` is not a table")));
        };
        table = inner;
    }
    Ok(())
}

/// A TOML error without the source snippet, which shows a file that nobody wrote.
fn plain(error: &toml::de::Error) -> String {
    error.message().to_owned()
}

fn default(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.entry(key.to_owned()).or_insert_with(|| value.into());
}

fn section<'a>(table: &'a mut Table, key: &str) -> Result<&'a mut Table, SpecError> {
    let entry = table.entry(key.to_owned()).or_insert_with(|| Value::Table(Table::new()));
    entry.as_table_mut().ok_or_else(|| SpecError(format!("`{key}` must be a table, [{key}]")))
}

fn complete_problem(table: &mut Table) -> Result<(), SpecError> {
    default(section(table, "problem")?, "kind", "observation-3");
    let problem: Problem = table["problem"]
        .clone()
        .try_into()
        .map_err(|error: toml::de::Error| SpecError(format!("[problem]: {}", plain(&error))))?;
    default(table, "seed", 0);
    let seed = table["seed"].as_integer().unwrap_or(0);
    let instance: Instance =
        problem.build(Seed(seed as u64)).map_err(|error| SpecError(error.to_string()))?;
    default(table, "rounds", 10_000);
    default(table, "step_size", instance.step_size);
    default(table, "epsilon", instance.epsilon);
    complete_rule(table, instance.delta, instance.smoothness)
}

fn complete_training(table: &mut Table) -> Result<(), SpecError> {
    let training = Training::default();
    let whole = Table::try_from(&training).map_err(|error| SpecError(error.to_string()))?;
    default(table, "seed", 0);
    default(table, "rounds", 300);
    default(table, "step_size", 0.1);
    default(table, "epsilon", 0.2);
    for key in TRAINING {
        let Some(value) = whole.get(key) else { continue };
        default(table, key, value.clone());
        if let Value::Table(defaults) = value {
            let kind = defaults.get("kind").cloned();
            let given = section(table, key)?;
            if let Some(kind) = &kind {
                default(given, "kind", kind.clone());
            }
            // Parameters of the default kind do not belong to another.
            if kind.is_none() || given.get("kind") == kind.as_ref() {
                for (name, value) in defaults {
                    default(given, name, value.clone());
                }
            }
        }
    }
    complete_rule(table, 0.02, None)
}

/// Gives the rule what it takes from the problem unless the file says otherwise.
fn complete_rule(table: &mut Table, delta: f64, smoothness: Option<f64>) -> Result<(), SpecError> {
    let rule = section(table, "rule")?;
    default(rule, "kind", "ada-gd");
    let kind = rule.get("kind").and_then(Value::as_str);
    let Some(facts) = kind.and_then(Rule::named).map(|rule| rule.facts()) else { return Ok(()) };
    if facts.slack.is_some() {
        default(rule, "delta", delta);
    }
    if let Some(smoothness) = smoothness.filter(|_| facts.takes_smoothness) {
        default(rule, "smoothness", smoothness);
    }
    Ok(())
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
    fn every_key_of_the_list_can_be_set_and_every_field_is_in_the_list() {
        for key in KEYS {
            let mut pairs = vec![(key.name.to_owned(), key.example.to_owned())];
            pairs.extend(key.with.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
            Experiment::parse("", &pairs)
                .unwrap_or_else(|error| panic!("{} = {}: {error}", key.name, key.example));
        }
        for experiment in [set(&[]).unwrap(), set(&[("problem.kind", "huber")]).unwrap()] {
            let table = Table::try_from(&experiment).unwrap();
            check_keys(&table).unwrap();
        }
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
            let given = rule["delta"].as_float() == Some(0.02);
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
            if doubtful.0.starts_with("privacy") {
                pairs.extend([("privacy.clip", "1.0"), ("privacy.loss_clip", "2.0")]);
            }
            assert!(!convex(&pairs), "{doubtful:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_in_one_line_with_the_place() {
        let said = |text: &str| Experiment::parse(text, &[]).unwrap_err().to_string();
        assert!(said("rounds = 3\nseed = = 4").starts_with("line 2, column 8: "));
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
