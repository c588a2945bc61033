//! `fedstay tournament`, `story` and what departures cost, as a stranger types them.

mod common;

use common::{fedstay, ok};
use serde_json::Value;

#[test]
fn a_tournament_is_one_table_and_one_picture_and_loses_no_finished_run() {
    let folder = tempfile::tempdir().unwrap();
    let whole =
        ["tournament", "--rules", "fedavg,ada-gd+halve", "--seeds", "0,1", "--set", "rounds=90"];
    let behaviours = ["--behaviours", "threshold,shirking,mixed"];
    let said = ok(folder.path(), &[&whole[..], &behaviours, &["--out", "a"]].concat());
    assert!(said.contains("everybody stays under ada-gd+halve"), "{said}");
    assert!(said.contains("harmful") && said.contains("welfare"), "{said}");
    let read = |path: &str| std::fs::read(folder.path().join(path)).unwrap();
    let table = String::from_utf8(read("a/tournament.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 2 * 3 * 2);
    for file in ["tournament.md", "tournament.svg", "tournament.png"] {
        assert!(!read(&format!("a/{file}")).is_empty());
    }
    // Cut off in the middle of a line, with one behaviour missing: the same command goes on.
    std::fs::create_dir(folder.path().join("b")).unwrap();
    let mut kept: Vec<&str> = table.lines().filter(|line| !line.contains(",mixed,")).collect();
    let half = table.lines().last().unwrap();
    kept.push(&half[..half.len() / 2]);
    std::fs::write(folder.path().join("b/tournament.csv"), kept.join("\n")).unwrap();
    let threads = ["--threads", "1", "--out", "b"];
    ok(folder.path(), &[&whole[..], &behaviours, &threads].concat());
    for file in ["tournament.csv", "tournament.svg", "tournament.md"] {
        assert!(read(&format!("a/{file}")) == read(&format!("b/{file}")), "{file}");
    }
    // A table that is something else is not overwritten.
    std::fs::write(folder.path().join("b/tournament.csv"), "mine").unwrap();
    let refused = fedstay(folder.path(), &[&whole[..], &["--out", "b"]].concat());
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(read("b/tournament.csv"), b"mine");
}

#[test]
fn a_tournament_says_what_it_cannot_do() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&["tournament", "--rules", "fedavg+slowly"][..], "+slowly"),
        (&["tournament", "--behaviours", "forsight"], "`foresight`"),
        (&["tournament", "--set", "rounds=0"], "rounds"),
        (&["story", "nowhere"], "folder of a run"),
    ] {
        let output = fedstay(folder.path(), arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn what_departures_cost_and_every_agents_story_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["run", "--set", "rule.kind=fedavg", "--set", "step_size=0.2", "--set", "rounds=120"];
    let said =
        ok(folder.path(), &[&run[..], &["--counterfactual", "--story", "--out", "a"]].concat());
    assert!(said.contains("What the departures cost") && said.contains("points"), "{said}");
    assert!(said.contains("alone it would have"), "{said}");
    let read = |file: &str| std::fs::read_to_string(folder.path().join("a").join(file)).unwrap();
    assert!(read("report.html").contains("What the departures cost"));
    let summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
    let mean = |value: &Value| value["accuracy"]["mean"].as_f64().unwrap();
    assert!(mean(&summary["counterfactual"]) > mean(&summary) + 0.05);
    assert!(summary["agents"][0]["alone"]["loss"].is_f64());
    // The same story from the folder.
    let told = ok(folder.path(), &["story", "a"]);
    let story = told.split("What the departures").next().unwrap().trim();
    assert!(said.contains(story), "{told}");
    let json: Value = serde_json::from_str(&ok(folder.path(), &["story", "a", "--json"])).unwrap();
    assert_eq!(json["counterfactual"], summary["counterfactual"]);
    // Where nobody leaves it says so.
    let kept = ["run", "--set", "problem.kind=observation-3", "--counterfactual", "--out", "b"];
    assert!(ok(folder.path(), &kept).contains("departures cost nothing"));
}
