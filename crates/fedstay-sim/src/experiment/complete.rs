//! Completing a table: filling in what a file leaves out and serde's defaults do not know.

use super::SpecError;
use super::keys::name_kinds;
use super::written;
use fedstay::problem::{Instance, Problem};
use fedstay::{Policy, Rule, Seed};
use toml::{Table, Value};

/// Fills in what depends on whether there is a problem, and on which one.
pub(super) fn complete(table: &mut Table) -> Result<(), SpecError> {
    table.entry("rule".to_owned()).or_insert_with(|| Value::Table(Table::new()));
    name_owners(table);
    name_kinds(table);
    name_policy(table)?;
    match table.get("problem").cloned() {
        Some(problem) => complete_problem(table, problem),
        None => {
            name_measures(table);
            complete_training(table);
            Ok(())
        }
    }
}

/// A rule that is made for a policy runs under it, unless the file names another or `none`. Of one of the same kind
/// the rule knows what the file leaves unsaid.
fn name_policy(table: &mut Table) -> Result<(), SpecError> {
    let kind = table.get("rule").and_then(|rule| rule.get("kind")).and_then(Value::as_str);
    let made_for = kind.and_then(Rule::named).and_then(|rule| rule.facts().policy);
    let Some(made_for) = made_for else { return Ok(()) };
    let options: Table = super::read_table(made_for)?;
    let named = table.entry("policy").or_insert_with(|| Value::Table(options.clone()));
    for policy in several(named) {
        if policy.get("kind") == options.get("kind") {
            options.iter().for_each(|(key, value)| default(policy, key, value.clone()));
        }
    }
    Ok(())
}

/// The tables of one policy, or of a list in which some are only named.
fn several(policies: &mut Value) -> Vec<&mut Table> {
    let each = match policies {
        Value::Array(several) => &mut several[..],
        one => std::slice::from_mut(one),
    };
    each.iter_mut().filter_map(as_table).collect()
}

/// The table of a policy, also of one that is only named.
fn as_table(policy: &mut Value) -> Option<&mut Table> {
    if let Value::String(kind) = policy {
        let kind = Value::from(kind.as_str());
        *policy = Value::Table(Table::from_iter([("kind".to_owned(), kind)]));
    }
    policy.as_table_mut()
}

/// Rows with an owner are their owner's unless the file says otherwise, and every owner is an agent.
fn name_owners(table: &mut Table) {
    let section = |name: &str| table.get(name).and_then(Value::as_table);
    let built_in = |data: &Table| data.get("kind").and_then(Value::as_str) == Some(CLINICS);
    let owned = section("data").is_some_and(|data| data.contains_key("owner") || built_in(data));
    let kind = section("partition").and_then(|partition| partition.get("kind"));
    let kind = kind.and_then(Value::as_str).or(owned.then_some(OWNER));
    if kind != Some(OWNER) {
        return;
    }
    let partition = table.entry("partition").or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(partition) = partition {
        default(partition, "kind", OWNER);
    }
    default(table, "agents", 0);
}

/// Of a number the usual measure is the RMSE.
fn name_measures(table: &mut Table) {
    let data = table.get("data").and_then(Value::as_table);
    let task = data.and_then(|data| data.get("task")).and_then(Value::as_str);
    if task == Some("number") {
        default(table, "measure", vec!["rmse"]);
    }
}

/// The data set that is built in and has owners.
const CLINICS: &str = "clinics";
/// The kind of partition in which every owner is an agent.
const OWNER: &str = "owner";

fn default(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.entry(key.to_owned()).or_insert_with(|| value.into());
}

fn complete_problem(table: &mut Table, problem: Value) -> Result<(), SpecError> {
    let problem: Problem = written::from_toml(problem)?;
    default(table, "seed", 0);
    let seed = table["seed"].as_integer().unwrap_or(0);
    let instance: Instance = problem.build(Seed(seed as u64))?;
    default(table, "rounds", 10_000);
    default(table, "step_size", instance.step_size);
    default(table, "epsilon", instance.epsilon);
    if let Some(Value::Table(rule)) = table.get_mut("rule") {
        complete_rule(rule, &instance, problem.is_convex());
    }
    complete_policy(table, &instance);
    Ok(())
}

fn complete_training(table: &mut Table) {
    default(table, "seed", 0);
    default(table, "rounds", 300);
    default(table, "step_size", 0.1);
    default(table, "epsilon", 0.2);
}

/// Gives policies what they take from the problem unless the file says otherwise.
fn complete_policy(table: &mut Table, instance: &Instance) {
    let Some(policies) = table.get_mut("policy") else { return };
    for policy in several(policies) {
        let named = policy.get("kind").and_then(Value::as_str).and_then(Policy::named);
        if named.is_some_and(|policy| policy.facts().takes_problem) {
            default(policy, "delta", instance.delta);
            if let Some(smoothness) = instance.smoothness {
                default(policy, "smoothness", smoothness);
            }
        }
    }
}

/// Gives the rule what it takes from the problem unless the file says otherwise.
fn complete_rule(rule: &mut Table, instance: &Instance, convex: bool) {
    let kind = rule.get("kind").and_then(Value::as_str);
    let Some(facts) = kind.and_then(Rule::named).map(|rule| rule.facts()) else { return };
    if facts.slack.is_some() {
        default(rule, "delta", instance.delta);
    }
    if let Some(smoothness) = instance.smoothness.filter(|_| facts.takes_smoothness) {
        default(rule, "smoothness", smoothness);
    }
    if convex && facts.takes_convexity {
        default(rule, "convex", true);
    }
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Experiment, under};
    use fedstay::Policy;
    use toml::Table;

    fn with(pairs: &[(&str, &str)]) -> Experiment {
        let set: Vec<(String, String)> =
            pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let experiment = Experiment::parse("", &set).unwrap();
        let again = Experiment::parse(&experiment.to_toml().unwrap(), &[]).unwrap();
        assert_eq!(experiment, again, "it survives its own file");
        experiment
    }

    #[test]
    fn a_rule_that_is_made_for_a_policy_runs_under_it_unless_another_or_none_is_named() {
        let alone = with(&[("rule.kind", "stay")]);
        assert_eq!(alone.rule_label(), "stay+preview");
        let Some(Policy::Preview(preview)) = alone.policy.first(fedstay::policy::Place::Shows)
        else {
            panic!("{:?}", alone.policy)
        };
        assert!(preview.relative && preview.pace == 0.0 && preview.delta == 0.02);
        // What is named is kept; what is left unsaid the rule knows.
        let named = with(&[("rule.kind", "stay"), ("policy.kind", "preview")]);
        assert_eq!(named.policy, alone.policy);
        let paced = [("rule.kind", "stay"), ("policy", "['preview', 'keep-best']")];
        assert_eq!(with(&paced).rule_label(), "stay+preview+keep-best");
        assert_eq!(with(&paced).policy[0], alone.policy[0]);
        let other = with(&[("rule.kind", "stay"), ("policy.kind", "guard")]);
        assert_eq!(other.rule_label(), "stay+guard");
        assert_eq!(with(&[("rule.kind", "stay"), ("policy.kind", "none")]).rule_label(), "stay");
        let labelled = Experiment::from_table(under(Table::new(), "stay").unwrap()).unwrap();
        assert_eq!(labelled.policy, alone.policy);
        // Other rules run under nothing, and their previews are what they were.
        assert_eq!(with(&[("rule.kind", "level")]).rule_label(), "level");
        let averaged = with(&[("rule.kind", "fedavg"), ("policy.kind", "preview")]);
        assert_eq!(averaged.policy, Policy::named("preview").unwrap().into());
    }
}
