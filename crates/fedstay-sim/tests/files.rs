//! `docs/files.md` names every field that a run writes.

use fedstay::record::RoundLine;
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::{DepartureWeights, Trial};
use serde_json::Value;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../docs/files.md");

/// The keys of a value, those inside of it included.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                found.insert(key.clone());
                keys(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

fn written(set: &[(&str, &str)]) -> BTreeSet<String> {
    let set: Vec<(String, String)> =
        set.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let mut trial = Trial::new(Experiment::parse("", &set).unwrap()).unwrap();
    let (mut lines, mut parting): (Vec<RoundLine>, DepartureWeights) = Default::default();
    let mut summary = trial.run(&mut [&mut lines, &mut parting]).unwrap().unwrap();
    trial.compare_with_alone(&mut summary, &parting).unwrap();
    let mut found = BTreeSet::new();
    keys(&serde_json::to_value(trial.header()).unwrap(), &mut found);
    lines.iter().for_each(|line| keys(&serde_json::to_value(line).unwrap(), &mut found));
    // The budget's own fields are described in docs/privacy.md.
    summary.privacy = None;
    keys(&serde_json::to_value(summary).unwrap(), &mut found);
    found
}

#[test]
fn the_page_names_every_field_that_runs_write() {
    let problem = [("problem.kind", "observation-3"), ("rule.kind", "fedavg")];
    let digits = [("rounds", "30"), ("step_size", "0.3"), ("epsilon", "1.2"), ("population", "12")];
    let retain = [("problem.kind", "huber"), ("rule.kind", "retain"), ("policy.kind", "guard")];
    let lying =
        [("problem.kind", "huber"), ("behaviour.kind", "lying"), ("behaviour.within", "0.5")];
    let mut found = written(&problem);
    found.extend(written(&digits));
    found.extend(written(&retain));
    found.extend(written(&lying));
    assert!(found.len() > 40, "{found:?}");
    let missing: Vec<&String> =
        found.iter().filter(|key| !PAGE.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "docs/files.md says nothing about {missing:?}");
}
