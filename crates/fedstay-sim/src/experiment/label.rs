//! Labels: a rule with what is changed about it, such as `ada-gd+halve`, `fedavg+early-stop` or
//! `fedavg+adam+preview`, `fedavg+guard+keep-best`.

use super::SpecError;
use fedstay::{Behaviour, Optimiser, Policy, Rule};
use toml::{Table, Value};

/// The experiment under another rule: `ada-gd+halve`, `fedavg+early-stop`. What the file says about
/// the rule is kept if it is the same one.
///
/// # Errors
/// When the label carries something that a rule cannot.
pub fn under(mut table: Table, label: &str) -> Result<Table, SpecError> {
    let (kind, changes) = rule_of(label);
    let entry = table.entry("rule").or_insert_with(|| Value::Table(Table::new()));
    let rule =
        entry.as_table_mut().ok_or(SpecError::NotASection { section: "rule", kind: None })?;
    let delta = rule.get("delta").cloned();
    if rule.get("kind").and_then(Value::as_str) != Some(kind) {
        rule.clear();
        rule.insert("kind".into(), kind.into());
        let takes = Rule::named(kind).is_none_or(|rule| !rule.facts().drops_delta);
        if let Some(delta) = delta.filter(|_| takes) {
            rule.insert("delta".into(), delta);
        }
    }
    let own = Rule::named(kind).map_or(&[][..], |rule| rule.facts().changes);
    let mut others = Vec::new();
    for change in changes {
        let Some(known) = own.iter().find(|known| known.name == change) else {
            others.push(change);
            continue;
        };
        let set: Table = super::read_table(known.set)?;
        rule.extend(set);
    }
    let mut policies = Vec::new();
    for change in others {
        let (section, kind) = match change {
            _ if optimisers().any(|name| name == change) => ("server", change),
            _ if self::policies().any(|name| name == change) => {
                policies.push(Value::from(change));
                continue;
            }
            _ if behaviours().any(|name| name == change) => ("behaviour", change),
            _ => {
                let plus = |names: &mut dyn Iterator<Item = &'static str>| {
                    names.map(|name| format!("+{name}")).collect::<Vec<_>>().join(", ")
                };
                let own = own.iter().map(|change| change.name);
                let mut known = own.chain(self::policies()).chain(optimisers());
                let can =
                    format!("{} or a behaviour ({})", plus(&mut known), plus(&mut behaviours()));
                let [label, kind, change] = [label, kind, change].map(str::to_owned);
                return Err(SpecError::Label { label, kind, can, change });
            }
        };
        let key = if section == "server" { "optimiser" } else { "kind" };
        table.insert(section.into(), kind_of(key, kind.into()));
    }
    // In the order of the label, with default options; of a label without one, what the file says.
    match &policies[..] {
        [] => {}
        [one] => drop(table.insert("policy".into(), kind_of("kind", one.clone()))),
        _ => drop(table.insert("policy".into(), Value::Array(policies))),
    }
    Ok(table)
}

/// A section that says only its kind.
fn kind_of(key: &str, kind: Value) -> Value {
    Value::Table(Table::from_iter([(key.to_owned(), kind)]))
}

/// What averaging under a server optimiser is called elsewhere.
const OTHER_NAMES: [(&str, &str); 4] =
    [("fedavgm", "momentum"), ("fedadagrad", "adagrad"), ("fedadam", "adam"), ("fedyogi", "yogi")];

/// The rule of a label and what is changed about it. Some rules have a `+` in their name.
fn rule_of(label: &str) -> (&str, Vec<&str>) {
    let (first, rest) = label.split_once('+').unwrap_or((label, ""));
    if let Some((_, optimiser)) = OTHER_NAMES.iter().find(|(name, _)| *name == first) {
        let rest = rest.split('+').filter(|change| !change.is_empty());
        return ("fedavg", std::iter::once(*optimiser).chain(rest).collect());
    }
    let named = Rule::ALIASES.iter().find(|alias| {
        label.strip_prefix(**alias).is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
    });
    let end = named.map_or_else(|| label.find('+').unwrap_or(label.len()), |alias| alias.len());
    let (kind, rest) = label.split_at(end);
    (kind, rest.split('+').skip(1).collect())
}

/// The optimisers a label can carry: those that change the rule's step.
fn optimisers() -> impl Iterator<Item = &'static str> {
    Optimiser::LIST.iter().map(|entry| entry.name).filter(|name| *name != "sgd")
}

/// The policies a label can carry.
fn policies() -> impl Iterator<Item = &'static str> {
    Policy::LIST.iter().map(|entry| entry.name)
}

/// The behaviours a label can carry: those that need no further keys.
fn behaviours() -> impl Iterator<Item = &'static str> {
    Behaviour::LIST.iter().map(|entry| entry.name).filter(|name| *name != "mixed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_label_says_rule_policy_and_behaviour() {
        let table = table("seed = 3\n[rule]\nkind = \"ada-gd\"\ndelta = 0.02");
        let halved = under(table.clone(), "ada-gd+halve+no-projection").unwrap();
        assert_eq!(halved["rule"]["delta"].as_float(), Some(0.02));
        assert_eq!(halved["rule"]["on_settled"].as_str(), Some("halve"));
        assert_eq!(halved["rule"]["projection"].as_bool(), Some(false));
        let never = under(table, "fedavg+keep-best+never").unwrap();
        assert_eq!(never["rule"].as_table().unwrap().len(), 1);
        assert_eq!(never["policy"]["kind"].as_str(), Some("keep-best"));
        assert_eq!(never["behaviour"]["kind"].as_str(), Some("never"));
        assert_eq!(never["seed"].as_integer(), Some(3));
    }

    #[test]
    fn an_optimiser_stands_between_the_rule_and_the_policy() {
        for label in ["fedadam+preview", "fedavg+adam+preview", "fedavg+preview+adam"] {
            let table = under(Table::new(), label).unwrap();
            assert_eq!(table["rule"]["kind"].as_str(), Some("fedavg"));
            assert_eq!(table["server"]["optimiser"].as_str(), Some("adam"));
            assert_eq!(table["policy"]["kind"].as_str(), Some("preview"));
            let whole = crate::experiment::Experiment::from_table(table).unwrap();
            assert_eq!(whole.rule_label(), "fedavg+adam+preview");
        }
        for (name, optimiser) in OTHER_NAMES {
            assert_eq!(
                under(Table::new(), name).unwrap()["server"]["optimiser"].as_str(),
                Some(optimiser)
            );
            assert!(optimisers().any(|listed| listed == optimiser) && Rule::named(name).is_none());
        }
        // A rule without one runs without one, whatever the last label said.
        let plain = crate::experiment::Experiment::parse("", &[]).unwrap();
        assert_eq!(plain.rule_label(), "retain");
    }

    #[test]
    fn several_policies_act_in_the_order_of_the_label() {
        let file = table("[policy]\nkind = \"guard\"\ndelta = 0.1");
        let changed = under(file.clone(), "fedavg+guard+early-stop+keep-best+never").unwrap();
        let names = ["guard", "early-stop", "keep-best"].map(Value::from);
        assert_eq!(changed["policy"].as_array().unwrap(), &names);
        let whole = crate::experiment::Experiment::from_table(changed).unwrap();
        assert_eq!(whole.rule_label(), "fedavg+guard+early-stop+keep-best+never");
        assert_eq!(under(file.clone(), "fedavg").unwrap()["policy"], file["policy"]);
        let reversed = under(file, "fedavg+keep-best+guard").unwrap();
        let refused = crate::experiment::Experiment::from_table(reversed).unwrap_err();
        assert!(refused.to_string().contains("write `guard` first"), "{refused}");
    }

    #[test]
    fn the_slack_survives_a_change_of_rule_that_has_one() {
        let start = table("[rule]\nkind = \"ada-gd\"\ndelta = 0.02");
        let averaged = under(start.clone(), "minibatch-sgd").unwrap();
        assert!(averaged["rule"].get("delta").is_none());
        let same = under(start, "ada-gd").unwrap();
        assert_eq!(same["rule"]["delta"].as_float(), Some(0.02));
    }

    #[test]
    fn a_rule_with_a_plus_in_its_name_is_found() {
        let plain = under(Table::new(), "fedmgda+").unwrap();
        assert_eq!(plain["rule"]["kind"].as_str(), Some("fedmgda+"));
        let changed = under(Table::new(), "fedmgda++keep-best+two-sided").unwrap();
        assert_eq!(changed["rule"]["kind"].as_str(), Some("fedmgda+"));
        assert_eq!(changed["policy"]["kind"].as_str(), Some("keep-best"));
        assert_eq!(changed["behaviour"]["kind"].as_str(), Some("two-sided"));
    }

    #[test]
    fn what_a_rule_says_a_label_may_change_can_be_changed() {
        for entry in Rule::LIST {
            for change in Rule::named(entry.name).unwrap().facts().changes {
                let label = format!("{}+{}", entry.name, change.name);
                let changed = under(Table::new(), &label).unwrap();
                let changed: Rule = changed["rule"].clone().try_into().unwrap();
                // What is printed is what was asked for; not everything is printed.
                let printed = changed.facts().label;
                assert!(printed.is_empty() || printed == [change.name], "{label}: {printed:?}");
                assert_eq!(printed.is_empty(), matches!(change.name, "stop" | "horizon"));
            }
        }
    }

    #[test]
    fn what_no_rule_can_carry_is_refused() {
        let error = under(Table::new(), "fedavg+slowly").unwrap_err();
        assert!(error.to_string().contains("not +slowly"), "{error}");
        let error = under(Table::new(), "retain+halve").unwrap_err().to_string();
        assert!(error.contains("retain can carry +horizon, +early-stop"), "{error}");
        let horizon = under(Table::new(), "retain+horizon+guard").unwrap();
        assert_eq!(horizon["rule"]["horizon"].as_float(), Some(0.1));
        assert_eq!(horizon["policy"]["kind"].as_str(), Some("guard"));
    }
}
