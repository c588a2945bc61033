use super::{
    advice, averaging, came_in, chance, gaining, member, members_table, method, way, ways_table,
};
use fedstay_sim::plan::{Action, PlanAnswer, recommend};
use serde_json::{Value, json};

fn around(value: f64, by: f64) -> Value {
    json!({ "value": value, "low": value - by, "high": value + by })
}

/// An owner with a gain, and when it leaves under averaging.
fn owner(name: &str, gain: f64, gains: &str, leaves: Value) -> Value {
    let of = |value: f64| json!({ "auroc": around(value, 0.05) });
    json!({
        "name": name, "rows": 200, "test_rows": 40, "alone": of(0.7), "together": of(0.7 + gain),
        "pooled": of(0.75), "constant": of(0.5), "gain": around(gain, 0.02), "gains": gains,
        "leaves": leaves, "cost": around(0.03, 0.01), "still_gains": around(gain - 0.03, 0.02),
    })
}

fn way_found(label: &str, left: &[&str], behind: f64) -> Value {
    let leaver =
        |name: &&str| json!({ "name": name, "share": 1.0, "first": 4, "median": 7, "last": 9 });
    json!({
        "label": label, "may_leave": label != "fedavg+never", "left": left,
        "leavers": left.iter().map(leaver).collect::<Vec<_>>(), "mean_left": left.len(),
        "kept_all": if left.is_empty() { 5 } else { 0 }, "content": 2.0,
        "measures": { "auroc": around(0.75 - behind, 0.02) }, "of_gainers": around(0.75, 0.02),
        "behind": if label == "fedavg+never" { Value::Null } else { around(behind, 0.004) },
        "worst": ["va", 0.6], "delivered": { "auroc": 0.8 }, "rounds": 51.4, "bytes": 20480.0,
        "diverged": 0, "dominated": label == "retain",
    })
}

fn answered(owners: Vec<Value>, ways: Vec<Value>) -> PlanAnswer {
    let found = json!({
        "schema": "fedstay.plan/1", "version": "0", "on": "heart", "owner": "site",
        "method": {
            "seeds": [0, 1, 2, 3, 4], "model": "logistic regression", "weights": 25, "features": 24,
            "rounds": 200, "step_size": 0.5, "epsilon": "1 * alone", "decides_on_rows": "held-back",
            "resamples": 500,
        },
        "rows": { "read": 400, "dealt": 320, "drawn": false, "held_out": 0, "test": 80, "unused": [] },
        "measure": { "name": "auroc", "label": "AUROC", "better": "higher", "unit": "number" },
        "least": 0.01, "owners": owners, "mean_gain": around(0.03, 0.02),
        "without": { "names": ["cleveland"], "cost": around(0.02, 0.01) }, "ways": ways, "notes": [],
    });
    let found: fedstay_sim::plan::Findings = serde_json::from_value(found).unwrap();
    PlanAnswer { recommend: recommend(&found), found }
}

fn usual() -> PlanAnswer {
    let leaves = json!({ "share": 0.6, "first": 4, "median": 7, "last": 9 });
    answered(
        vec![owner("cleveland", -0.015, "no", leaves), owner("va", 0.06, "yes", Value::Null)],
        vec![
            way_found("fedavg+never", &[], 0.0),
            way_found("fedavg", &["cleveland"], 0.03),
            way_found("stay+preview", &[], 0.001),
            way_found("retain", &[], 0.02),
        ],
    )
}

#[test]
fn a_recommendation_says_what_why_how_sure_and_at_what_price() {
    let PlanAnswer { found, recommend } = usual();
    assert_eq!(
        advice(&found, &recommend),
        "Run stay under preview. It keeps all 2 members on 5 of 5 seeds; under plain averaging departures \
         cost those who gain 0.030 AUROC [+0.026, +0.034]. Gains in AUROC: va +0.060 [+0.040, +0.080]. Its \
         price: 51 rounds and 20 KB for each member. cleveland gains nothing that counts: no rule should \
         hold it. Pay it, or let it go (cost to those who gain: 0.020 [+0.010, +0.030])."
    );
}

#[test]
fn members_leave_on_some_seeds_and_cost_others() {
    let PlanAnswer { found, .. } = usual();
    let told = averaging(&found).join(" ");
    assert_eq!(
        told,
        "cleveland leaves on 3 of 5 seeds, in round 7 (4 to 9). va always stays. That costs AUROC cleveland \
         −0.030 [−0.040, −0.020] and va −0.030 [−0.040, −0.020]. Still better off than alone, in spite of \
         it: va."
    );
    assert!(member(&found, &found.owners[0]).contains("gains nothing that counts"));
    assert!(
        member(&found, &found.owners[1])
            .ends_with("it stays to the end. Departures cost it 0.030 [+0.020, +0.040].")
    );
}

#[test]
fn every_recommendation_is_said_in_short_plain_sentences() {
    for action in [
        Action::Alone,
        Action::RaiseTarget,
        Action::NobodyGains,
        Action::NotShown,
        Action::Average,
        Action::LetGo,
        Action::Keep,
        Action::Pay,
    ] {
        let PlanAnswer { found, recommend } = usual();
        let told = advice(&found, &fedstay_sim::plan::Advice { action, ..recommend });
        let do_not = matches!(
            action,
            Action::Alone | Action::RaiseTarget | Action::NobodyGains | Action::NotShown
        );
        assert_eq!(told.starts_with("Do not"), do_not, "{told}");
        for sentence in told.split(". ") {
            assert!(sentence.split_whitespace().count() <= 36, "{sentence}");
        }
        for jargon in ["agent", "ε", "ceiling", " D "] {
            assert!(!told.contains(jargon), "{jargon}: {told}");
        }
    }
}

#[test]
fn what_another_way_beats_is_named_and_not_shown() {
    let PlanAnswer { found, .. } = usual();
    let (table, folded) = ways_table(&found);
    let ways: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(ways, ["ceiling (nobody may leave)", "averaging", "stay under preview"]);
    assert!(folded.unwrap().ends_with("in everything: retain."));
    assert_eq!(way("fedavg+adam+preview"), "averaging with adam under preview");
}

#[test]
fn tables_and_texts_have_something_to_say_of_everything() {
    let PlanAnswer { found, .. } = usual();
    let table = members_table(&found);
    assert!(table.rows.iter().all(|row| row.len() == table.headings.len()));
    assert_eq!(table.rows[1].last().unwrap(), "yes");
    assert_eq!(
        gaining(&found),
        "va gains; cleveland gains nothing that counts. On average over the members the gain is +0.030 \
         AUROC [+0.010, +0.050]."
    );
    assert!(chance(&found).is_none(), "two members are no long list");
    assert!(came_in(&found).iter().chain(&method(&found)).all(|told| told.ends_with(['.', ';'])));
}
