//! Labels: a rule with what is changed about it, such as `ada-gd+halve` or `fedavg+early-stop`.

use crate::command::Usage;
use toml::{Table, Value};

/// The experiment under another rule: `ada-gd+halve`, `fedavg+early-stop`. What the file says about
/// the rule is kept where it is the same one.
pub(crate) fn under(mut table: Table, label: &str) -> Result<Table, Usage> {
    let mut parts = label.split('+');
    let kind = parts.next().unwrap_or_default();
    let entry = table.entry("rule").or_insert_with(|| Value::Table(Table::new()));
    let rule = entry.as_table_mut().ok_or_else(|| Usage("`rule` must be a table".into()))?;
    let delta = rule.get("delta").cloned();
    if rule.get("kind").and_then(Value::as_str) != Some(kind) {
        rule.clear();
        rule.insert("kind".into(), kind.into());
        // The slack means the same for every rule that acts on a prediction.
        if let (Some(delta), false) = (delta, matches!(kind, "fedavg" | "minibatch-sgd")) {
            rule.insert("delta".into(), delta);
        }
    }
    for change in parts {
        match change {
            "halve" => rule.insert("on_settled".into(), "halve".into()),
            "stop" => rule.insert("on_settled".into(), "stop".into()),
            "no-projection" => rule.insert("projection".into(), false.into()),
            _ => None,
        };
    }
    for change in label.split('+').skip(1) {
        let (section, kind) = match change {
            "early-stop" | "keep-best" | "guard" => ("policy", change),
            "never" | "threshold" => ("behaviour", change),
            "halve" | "stop" | "no-projection" => continue,
            _ => {
                return Err(Usage(format!(
                    "`{label}`: a rule can carry +halve, +stop, +no-projection, +early-stop, \
                     +keep-best, +guard, +never or +threshold, not +{change}"
                )));
            }
        };
        let kind = Table::from_iter([("kind".to_owned(), Value::from(kind))]);
        table.insert(section.into(), Value::Table(kind));
    }
    Ok(table)
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
    fn the_slack_survives_a_change_of_rule_that_has_one() {
        let start = table("[rule]\nkind = \"ada-gd\"\ndelta = 0.02");
        let averaged = under(start.clone(), "minibatch-sgd").unwrap();
        assert!(averaged["rule"].get("delta").is_none());
        let same = under(start, "ada-gd").unwrap();
        assert_eq!(same["rule"]["delta"].as_float(), Some(0.02));
    }

    #[test]
    fn what_no_rule_can_carry_is_refused() {
        let error = under(Table::new(), "fedavg+slowly").unwrap_err();
        assert!(error.to_string().contains("not +slowly"), "{error}");
    }
}
