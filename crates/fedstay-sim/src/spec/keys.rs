//! The keys of an experiment: the one list that `fedstay list keys` prints, that `--set` is checked
//! against, and that a test holds against the structs.

use super::SpecError;
use super::bounds::Allowed;
use crate::data::Source;
use crate::model::Model;
use crate::partition::Partition;
use fedstay::problem::Problem;
use fedstay::{Behaviour, Policy, Rule};
use toml::{Table, Value};

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Key {
    /// Its full name.
    pub name: &'static str,
    /// A value it may have.
    pub example: &'static str,
    /// What it does.
    pub about: &'static str,
    /// What must be set besides, for the key to have a meaning.
    #[serde(skip)]
    pub with: &'static [(&'static str, &'static str)],
    /// What values it may have.
    #[serde(skip)]
    pub allowed: Allowed,
}

impl Key {
    const fn allows(self, allowed: Allowed) -> Self {
        Self { allowed, ..self }
    }

    const fn count(self, least: u64, most: u64) -> Self {
        self.allows(Allowed::Count(least, most))
    }

    const fn number(self) -> Self {
        self.allows(Allowed::NUMBER)
    }

    const fn switch(self) -> Self {
        self.allows(Allowed::Switch)
    }
}

/// The largest whole number that TOML can write.
const LARGEST: u64 = i64::MAX as u64;
/// The largest that a count of rounds or rows can be.
const COUNT: u64 = u32::MAX as u64;

const fn key(name: &'static str, example: &'static str, about: &'static str) -> Key {
    Key { name, example, about, with: &[], allowed: Allowed::Other }
}

const fn key_with(
    name: &'static str,
    example: &'static str,
    about: &'static str,
    with: &'static [(&'static str, &'static str)],
) -> Key {
    Key { name, example, about, with, allowed: Allowed::Other }
}

/// Every key there is.
pub const KEYS: &[Key] = &[
    key("seed", "0", "the seed of all randomness").count(0, LARGEST),
    key("rounds", "300", "the most rounds to run").count(1, 100_000_000),
    key("step_size", "0.1", "the server's step size η").allows(Allowed::Positive(1e38)),
    key(
        "epsilon",
        "0.2",
        "the precision at which an agent is content: a number, a list, or \"1.1 * local\"",
    ),
    key(
        "record_gram",
        "true",
        "keep the Gram matrices of the agents' gradients, for `fedstay check`",
    ).switch(),
    key(
        "check_reports",
        "true",
        "flag agents whose reports contradict themselves; for convex losses it is done anyway",
    ).switch(),
    key("rule.kind", "ada-gd", "how the server aggregates: see `fedstay list rules`"),
    key(
        "rule.delta",
        "0.05",
        "the slack δ: how far above its precision an agent counts as about to leave",
    ).number(),
    key(
        "rule.on_settled",
        "halve",
        "ada-gd, when everybody is about to leave: `stop`, or `halve` the step size",
    ),
    key(
        "rule.margin",
        "0.05",
        "ada-gd, retain: added to every precision, against agents that leave a little early",
    ).number(),
    key(
        "rule.horizon",
        "0.5",
        "ada-gd, retain: adds this times ‖g‖² too; J·a holds agents that look J steps of size a ahead",
    ).number(),
    key("rule.projection", "false", "ada-gd: `false` is the control without the projection").switch(),
    key_with(
        "rule.c",
        "4.0",
        "mw-fed: the factor for the weights of agents that are not content",
        &[("rule.kind", "mw-fed")],
    ).number(),
    key_with(
        "rule.variant",
        "load",
        "mw-fed: the weights are those of the answers, `weight`, or set the samples too, `load`",
        &[("rule.kind", "mw-fed")],
    ),
    key_with(
        "rule.reading",
        "sigmoid",
        "maxfl: weigh by σ(x)(1 − σ(x)), `gradient`, or by σ(x), `sigmoid`; x = F − rho",
        &[("rule.kind", "maxfl")],
    ),
    key_with(
        "rule.rho",
        "0.2",
        "maxfl: the requirement of every agent; its epsilon unless given",
        &[("rule.kind", "maxfl")],
    ).number(),
    key_with(
        "rule.e",
        "0.1",
        "fedmgda-plus: how far a weight may be from 1/M; maxfl: added to the sum of the weights",
        &[("rule.kind", "fedmgda-plus")],
    ).number(),
    key_with(
        "rule.q",
        "1.0",
        "q-fedavg: how much more a large loss counts; 0 is fedavg",
        &[("rule.kind", "q-fedavg")],
    ).number(),
    key_with(
        "rule.gamma",
        "0.1",
        "afl: the step size of the mixture; 0 is the plain mean",
        &[("rule.kind", "afl")],
    ).number(),
    key_with(
        "rule.alpha",
        "0.1",
        "fedfv: the share of the agents, those with the largest losses, that do not give way",
        &[("rule.kind", "fedfv")],
    ).number(),
    key_with(
        "rule.tau",
        "1",
        "fedfv: for how many rounds the last gradient of an absent agent counts",
        &[("rule.kind", "fedfv")],
    ).count(0, COUNT),
    key_with(
        "rule.seed",
        "0",
        "pcgrad: the seed of the orders in which conflicts are resolved",
        &[("rule.kind", "pcgrad")],
    ).count(0, LARGEST),
    key_with(
        "rule.base",
        "descent",
        "retain: where to go where no floor is in the way: `level` or `descent`",
        &[("rule.kind", "retain")],
    ),
    key_with(
        "rule.floors",
        "false",
        "retain: whether floors are kept; false is the control, for agents that never leave",
        &[("rule.kind", "retain")],
    ).switch(),
    key_with(
        "rule.trust",
        "auto",
        "retain: keep steps within a radius in which predictions held: `auto`, `region` or `proof`",
        &[("rule.kind", "retain")],
    ),
    key_with(
        "rule.landing",
        "false",
        "retain: whether to bring everybody under their precision at the end",
        &[("rule.kind", "retain")],
    ).switch(),
    key_with(
        "rule.smoothness",
        "1.0",
        "retain: a constant H such that every loss is H-smooth, which certifies the landing",
        &[("rule.kind", "retain")],
    ).number(),
    key(
        "policy.kind",
        "early-stop",
        "what the server does around the rule: see `fedstay list policies`",
    ),
    key_with(
        "policy.margin",
        "0.01",
        "early-stop: stop this much earlier",
        &[("policy.kind", "early-stop")],
    ).number(),
    key_with(
        "policy.delta",
        "0.01",
        "guard: how far above its precision every agent is kept",
        &[("policy.kind", "guard")],
    ).number(),
    key("behaviour.kind", "threshold", "how agents decide: see `fedstay list behaviours`"),
    key_with(
        "behaviour.steps",
        "5",
        "foresight: how many private steps an agent looks ahead",
        &[("behaviour.kind", "foresight")],
    ).count(0, 10_000),
    key_with(
        "behaviour.rate",
        "0.02",
        "foresight: the size of such a step",
        &[("behaviour.kind", "foresight")],
    ).number(),
    key_with(
        "behaviour.value",
        "1.0",
        "utility: what a model under its precision is worth to an agent",
        &[("behaviour.kind", "utility")],
    ).number(),
    key_with(
        "behaviour.cost",
        "0.001",
        "utility: what a round costs it",
        &[("behaviour.kind", "utility")],
    ).number(),
    key_with(
        "behaviour.patience",
        "50",
        "utility: rounds it bears without progress; two-sided: with a model worse than its own",
        &[("behaviour.kind", "utility")],
    ).count(1, 100_000),
    key_with(
        "behaviour.alone",
        "10",
        "two-sided: how many rounds of local work its own model had",
        &[("behaviour.kind", "two-sided")],
    ).count(0, 100_000),
    key_with(
        "behaviour.rise",
        "0.25",
        "returning: comes back when its loss is above ε(1 + rise)",
        &[("behaviour.kind", "returning")],
    ).number(),
    key_with(
        "behaviour.refresh",
        "0",
        "shirking: every how many rounds it works all the same; 0 is never again",
        &[("behaviour.kind", "shirking")],
    ).count(0, COUNT),
    key_with(
        "behaviour.offset",
        "0.5",
        "lying: what an agent adds to the loss it reports",
        &[("behaviour.kind", "lying")],
    ).number(),
    key_with(
        "behaviour.within",
        "0.1",
        "lying: it lies only while its loss is at most this much above its precision",
        &[("behaviour.kind", "lying")],
    ).number(),
    key_with(
        "behaviour.of",
        "[{ kind = \"threshold\", share = 0.7 }, { kind = \"foresight\", share = 0.3, steps = 9 }]",
        "mixed: its parts, each with a `share` or with `agents = [0, 3]`, and its own parameters",
        &[("behaviour.kind", "mixed")],
    ),
    key("privacy.clip", "1.0", "differential privacy: directions are clipped to this length").number(),
    key("privacy.loss_clip", "2.0", "differential privacy: losses are clipped to at most this").number(),
    key(
        "privacy.noise",
        "0.5",
        "differential privacy: the noise's deviation, relative to what is clipped",
    ).number(),
    key("privacy.delta", "1e-5", "differential privacy: the δ for which the budget ε is told").number(),
    key(
        "problem.kind",
        "observation-3",
        "a named problem with exact oracles: see `fedstay list problems`",
    ),
    key_with(
        "problem.alpha",
        "1.0",
        "observation-3: shifts agent 1's zero set",
        &[("problem.kind", "observation-3")],
    ).number(),
    key_with(
        "problem.start",
        "[2.0, 1.0]",
        "where a run begins",
        &[("problem.kind", "observation-3")],
    ).allows(Allowed::Numbers),
    key_with(
        "problem.agents",
        "5",
        "random families: the number of agents",
        &[("problem.kind", "huber")],
    ).count(1, 100_000),
    key_with(
        "problem.dim",
        "20",
        "random families: the number of weights",
        &[("problem.kind", "huber")],
    ).count(1, 100_000),
    key_with(
        "problem.samples",
        "10",
        "random families: the samples of each agent",
        &[("problem.kind", "huber")],
    ).count(1, 100_000),
    key("agents", "10", "how many agents take part").count(1, 1_000_000),
    key(
        "population",
        "20",
        "how many devices there are; those left out serve the population metric",
    ).count(1, 1_000_000),
    key("participation", "1.0", "the share of the agents still in that is asked each round").number(),
    key(
        "decides_on",
        "received",
        "an agent decides on the model it `received`, or on its `own` after its local work",
    ),
    key("last_stays", "false", "whether the last remaining agent goes on training").switch(),
    key("eval_every", "10", "every how many rounds accuracy is measured for everybody").count(1, COUNT),
    key("data.kind", "digits", "the data set: see `fedstay list data`"),
    key(
        "data.per_agent",
        "100",
        "how many samples each agent holds; as many as possible unless given",
    ).count(1, COUNT),
    key("data.classes", "[0, 1, 2]", "use only these classes, by number or name"),
    key("data.test_share", "0.2", "digits, csv, npz: the share of the rows kept for testing").number(),
    key_with(
        "data.path",
        "\"table.csv\"",
        "where the files are; the cache unless given",
        &[("data.kind", "csv")],
    ),
    key_with(
        "data.check",
        "true",
        "cifar10, mnist, fashion-mnist: check the files' checksums",
        &[("data.kind", "cifar10")],
    ).switch(),
    key_with(
        "data.label",
        "\"class\"",
        "csv: the label's column",
        &[("data.kind", "csv"), ("data.path", "t.csv")],
    ),
    key_with(
        "data.header",
        "true",
        "csv: whether the first line names the columns",
        &[("data.kind", "csv"), ("data.path", "t.csv")],
    ).switch(),
    key_with(
        "data.delimiter",
        "\";\"",
        "csv: what separates the columns",
        &[("data.kind", "csv"), ("data.path", "t.csv")],
    ),
    key_with(
        "data.x",
        "\"x\"",
        "npz: the array of inputs",
        &[("data.kind", "npz"), ("data.path", "t.npz")],
    ),
    key_with(
        "data.y",
        "\"y\"",
        "npz: the array of labels",
        &[("data.kind", "npz"), ("data.path", "t.npz")],
    ),
    key(
        "partition.kind",
        "by-class",
        "how rows are dealt to agents: see `fedstay list partitions`",
    ),
    key("partition.q", "0.9", "by-class: heterogeneity; what it means is said by partition.mix").number(),
    key(
        "partition.mix",
        "as-described",
        "by-class: `as-described` keeps the share q of one's own class, `as-printed` the share 1 − q",
    ),
    key(
        "partition.map",
        "[[0], [1], [2], [3], [4], [5], [6], [7], [8], [9]]",
        "by-class: the classes of each device",
    ),
    key_with(
        "partition.alpha",
        "0.5",
        "dirichlet: the concentration; smaller is more different",
        &[("partition.kind", "dirichlet")],
    ).number(),
    key_with(
        "partition.k",
        "2",
        "shards: how many shards each agent gets",
        &[("partition.kind", "shards")],
    ).count(1, COUNT),
    key("model.kind", "mlp", "the model: see `fedstay list models`"),
    key("model.hidden", "[64]", "mlp: the widths of the hidden layers"),
    key("model.activation", "softplus", "mlp: softplus, relu or tanh"),
    key("model.init", "torch", "the first weights: torch, he, zero-output or small"),
    key("local.steps", "5", "local steps K of an agent in a round").count(1, 1_000_000),
    key("local.step", "eta", "the size of a local step: `eta`, or `eta/K` as the paper prints it"),
    key("local.batch", "64", "samples in a local step, or `full`"),
    key("local.mu", "0.0", "FedProx: the pull μ back to the received model").allows(Allowed::Number(0.0, 1e30)),
    key(
        "local.exact_gradient",
        "true",
        "also report the full gradient at the received model, when local.steps is above 1",
    ).switch(),
];

/// Checks every key of a table against the list, and every `kind` against its own.
pub(super) fn check_keys(table: &Table) -> Result<(), SpecError> {
    let mut found = Vec::new();
    walk(table, "", &mut found);
    for (name, value) in &found {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            let inside = name.rsplit_once('.').map_or("", |(section, _)| section);
            let names = KEYS.iter().map(|key| key.name);
            return Err(SpecError(format!(
                "there is no key `{name}`{}",
                suggestion(name, inside, names)
            )));
        };
        key.allowed.check(name, value)?;
        if let (Some(section), Some(kind)) = (name.strip_suffix(".kind"), value.as_str()) {
            let names = kinds(section);
            let alias = section == "rule" && Rule::ALIASES.contains(&kind);
            if !names.is_empty() && !names.contains(&kind) && !alias {
                let hint = suggestion(kind, "", names.iter().copied());
                return Err(SpecError(format!("there is no {section} `{kind}`{hint}")));
            }
        }
    }
    Ok(())
}

fn walk(table: &Table, prefix: &str, found: &mut Vec<(String, Value)>) {
    for (name, value) in table {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(inner) => walk(inner, &name, found),
            _ => found.push((name, value.clone())),
        }
    }
}

fn kinds(section: &str) -> Vec<&'static str> {
    let names =
        |list: &'static [fedstay::list::Entry]| list.iter().map(|entry| entry.name).collect();
    match section {
        "rule" => names(Rule::LIST),
        "policy" => names(Policy::LIST),
        "behaviour" => names(Behaviour::LIST),
        "problem" => names(Problem::LIST),
        "data" => Source::KINDS.iter().map(|(name, _)| *name).collect(),
        "partition" => Partition::KINDS.iter().map(|(name, _)| *name).collect(),
        "model" => Model::KINDS.iter().map(|(name, _)| *name).collect(),
        _ => Vec::new(),
    }
}

/// `; did you mean …`, with the nearest names; those of the same section first.
fn suggestion(name: &str, section: &str, names: impl Iterator<Item = &'static str>) -> String {
    let mut near: Vec<(f64, &str)> = names
        .map(|candidate| {
            let same = !section.is_empty() && candidate.starts_with(section);
            let bonus = if same { 0.1 } else { 0.0 };
            (strsim::jaro_winkler(name, candidate) + bonus, candidate)
        })
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<String> = near
        .iter()
        .take(3)
        .filter(|(likeness, _)| *likeness > 0.5)
        .map(|(_, candidate)| format!("`{candidate}`"))
        .collect();
    if near.is_empty() { String::new() } else { format!("; the nearest are {}", near.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_of_every_behaviour_is_in_the_list() {
        for entry in Behaviour::LIST {
            let behaviour: Table = toml::from_str(&format!("kind = \"{}\"", entry.name)).unwrap();
            let behaviour: Behaviour = behaviour.try_into().unwrap();
            let behaviour = Table::try_from(&behaviour).unwrap();
            let table = Table::from_iter([("behaviour".to_owned(), Value::Table(behaviour))]);
            check_keys(&table).unwrap();
        }
    }

    #[test]
    fn every_parameter_of_every_rule_is_in_the_list() {
        let names = Rule::LIST.iter().map(|entry| entry.name).chain(Rule::ALIASES.iter().copied());
        for name in names {
            let rule: Table = toml::from_str(&format!("kind = \"{name}\"")).unwrap();
            let rule: Rule = rule.try_into().unwrap();
            let rule = Table::try_from(&rule).unwrap();
            let table = Table::from_iter([("rule".to_owned(), Value::Table(rule))]);
            check_keys(&table).unwrap();
        }
        let alias = Table::from_iter([("kind".to_owned(), Value::from("fedmgda+"))]);
        check_keys(&Table::from_iter([("rule".to_owned(), Value::Table(alias))])).unwrap();
    }
}
