//! The experiment that is meant when no file is named.

use super::table::{leaves, look_up};
use super::{Experiment, SpecError, read_table, to_table};
use toml::Value;

/// The text of `experiments/default.toml`.
pub const DEFAULT: &str = include_str!("../../../../experiments/default.toml");

/// What remains of a default experiment under keys that are set on top of it, as the text of a
/// file.
///
/// Keys may choose another kind of something: `partition.kind=iid`. What the default says about its
/// own kind (`partition.q`) does not belong to that one and is left out. How many images each of its ten
/// agents has does not belong to another number of agents, who have as many as can be dealt. Where the
/// data say who holds a row, nothing is dealt to a number of agents. A named problem brings everything it
/// needs, so nothing remains.
///
/// # Errors
/// When `default` is not TOML.
pub fn default_under(default: &str, set: &[(String, String)]) -> Result<String, SpecError> {
    let mut table = read_table(default)?;
    for (key, value) in set {
        match key.split_once('.').unwrap_or((key, "")) {
            ("problem", _) => return Ok(String::new()),
            ("agents", "") => {
                let data = table.get_mut("data").and_then(Value::as_table_mut);
                data.map(|data| data.remove("per_agent"));
            }
            // Its rows have owners.
            ("data", "kind") if value.trim_matches(['"', '\'']) == "clinics" => {
                for key in ["data", "partition", "agents"] {
                    table.remove(key);
                }
            }
            ("data", "owner") => {
                table.remove("partition");
                table.remove("agents");
            }
            ("local", "epochs") => {
                let local = table.get_mut("local").and_then(Value::as_table_mut);
                local.map(|local| local.remove("steps"));
            }
            (section, "kind") => {
                let kind = table.get(section).and_then(|section| section.get("kind"));
                let named = value.trim_matches(['"', '\'']);
                if kind.and_then(Value::as_str).is_some_and(|kind| kind != named) {
                    table.remove(section);
                }
            }
            _ => {}
        }
    }
    Ok(toml::to_string(&table)?)
}

/// What two experiments disagree on, as `key = value (value of the other)`. Keys that only one of
/// them has are left out.
///
/// # Errors
/// Never, for experiments that were parsed.
pub fn differences(one: &Experiment, other: &Experiment) -> Result<Vec<String>, SpecError> {
    let (one, other) = (Value::from(to_table(one)?), Value::from(to_table(other)?));
    let differing = leaves(&one).into_iter().filter_map(|(key, value)| {
        let other = look_up(&other, &key).filter(|other| *other != value)?;
        Some(format!("{key} = {value} ({other})"))
    });
    Ok(differing.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::Rule;

    fn with(pairs: &[(&str, &str)]) -> Experiment {
        let set: Vec<(String, String)> =
            pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        Experiment::parse(&default_under(DEFAULT, &set).unwrap(), &set).unwrap()
    }

    #[test]
    fn the_default_is_retain_and_another_kind_brings_its_own_parameters() {
        assert!(matches!(with(&[]).rule, Rule::Retain(_)));
        let other = with(&[("rule.kind", "ada-gd"), ("rule.on_settled", "halve")]);
        assert_eq!(
            (other.rule_label().as_str(), other.epsilon.clone()),
            ("ada-gd+halve", with(&[]).epsilon)
        );
        with(&[("partition.kind", "iid")]);
        with(&[("model.kind", "\"softmax-regression\"")]);
        with(&[("data.kind", "digits"), ("partition.kind", "by-class"), ("partition.q", "0.5")]);
    }

    #[test]
    fn a_file_that_names_no_rule_has_the_rule_of_fedstay_run() {
        let named_none = Experiment::parse("seed = 1", &[]).unwrap();
        assert_eq!(named_none.rule, with(&[]).rule);
        let problem = Experiment::parse("[problem]\nkind = \"huber\"", &[]).unwrap();
        assert_eq!(problem.rule.name(), "retain");
    }

    #[test]
    fn a_slack_that_a_file_leaves_out_is_the_cores() {
        let of = |text: &str| Experiment::parse(text, &[]).unwrap();
        for rule in ["ada-gd", "retain", "level"] {
            let experiment = of(&format!("rule.kind = \"{rule}\""));
            assert_eq!(experiment.rule, Rule::named(rule).unwrap(), "{rule}");
        }
        for policy in ["guard", "preview"] {
            let text = of(&format!("policy.kind = \"{policy}\"")).to_toml().unwrap();
            let table: toml::Table = toml::from_str(&text).unwrap();
            let said = table["policy"]["delta"].as_float();
            assert_eq!(said, Some(fedstay::SLACK), "{policy}");
        }
        assert_eq!(with(&[]).rule.slack(), Some(fedstay::SLACK), "the default experiment");
    }

    #[test]
    fn differences_are_told_by_key_with_both_values() {
        let set = [("rounds", "250"), ("model.hidden", "[16]"), ("rule.kind", "fedavg")];
        let told = differences(&with(&set), &with(&[])).unwrap();
        let expected = [
            "rounds = 250 (280)",
            "rule.kind = \"fedavg\" (\"retain\")",
            "model.hidden = [16] ([32])",
        ];
        assert!(expected.iter().all(|one| told.iter().any(|told| told == one)), "{told:?}");
        assert!(differences(&with(&[]), &with(&[])).unwrap().is_empty());
    }

    #[test]
    fn another_number_of_agents_is_dealt_all_the_images() {
        let each = |pairs: &[(&str, &str)]| with(pairs).training().unwrap().data.per_agent;
        assert_eq!(each(&[]), Some(40));
        assert_eq!(each(&[("agents", "50")]), None);
        assert_eq!(each(&[("agents", "20"), ("data.per_agent", "60")]), Some(60));
        assert_eq!(each(&[("data.kind", "cifar10")]), None, "of other data, all there are");
    }

    #[test]
    fn rows_with_an_owner_are_not_dealt_to_the_agents_of_the_default() {
        let table = [("data.kind", "csv"), ("data.path", "h.csv"), ("data.owner", "hospital")];
        let dealing = |set: &[(&str, &str)]| {
            let experiment = with(set);
            let training = experiment.training().unwrap();
            (training.partition.name(), training.agents)
        };
        assert_eq!(dealing(&table), ("owner", 0), "as many as there are owners");
        let dealt = [&table[..], &[("partition.kind", "iid"), ("agents", "7")]].concat();
        assert_eq!(dealing(&dealt), ("iid", 7));
    }

    #[test]
    fn a_named_problem_brings_everything_it_needs() {
        let problem = with(&[("problem.kind", "huber")]);
        assert!(problem.problem().is_some() && problem.training().is_none());
    }
}
