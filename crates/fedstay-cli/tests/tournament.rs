//! `fedstay tournament`, `story` and what departures cost, as a stranger types them.

mod common;

use common::{command, fedstay, ok, words};
use fedstay_sim::sweep::Store;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How many runs a store has; none where there is no store yet.
fn stored(path: &Path) -> usize {
    Store::read(path).and_then(|store| store.keys()).map_or(0, |keys| keys.len())
}

/// Starts a tournament and kills it when it has stored some runs; whether any were missing then.
fn killed_within(folder: &Path, arguments: &[&str], store: &str) -> bool {
    let mut child = command(folder, arguments).stdout(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while stored(&folder.join(store)) < 2 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    (2..12).contains(&stored(&folder.join(store)))
}

#[test]
fn a_tournament_is_one_table_and_one_picture_and_loses_no_finished_run() {
    let folder = tempfile::tempdir().unwrap();
    let whole =
        ["tournament", "--rules", "fedavg,ada-gd+halve", "--seeds", "0,1", "--set", "rounds=90"];
    let behaviours = ["--behaviours", "threshold,shirking,mixed"];
    let said = ok(folder.path(), &[&whole[..], &behaviours, &["--out", "a"]].concat());
    insta::assert_snapshot!("table", words(&said));
    let read = |path: &str| std::fs::read(folder.path().join(path)).unwrap();
    let table = String::from_utf8(read("a/tournament.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 2 * 3 * 2);
    for file in ["tournament.md", "tournament.svg", "tournament.png"] {
        assert!(!read(&format!("a/{file}")).is_empty());
    }
    // Killed when some runs were stored: the same command goes on, and nothing tells.
    let [b, store] = (0..9)
        .map(|attempt| [format!("b{attempt}"), format!("b{attempt}/tournament.sqlite")])
        .find(|[b, store]| {
            let words = [&whole[..], &behaviours, &["--threads", "1", "--out", b]].concat();
            killed_within(folder.path(), &words, store)
        })
        .expect("the tournament was always over before it could be killed");
    let stored = || stored(&folder.path().join(&store));
    ok(folder.path(), &[&whole[..], &behaviours, &["--threads", "1", "--out", &b]].concat());
    for file in ["tournament.csv", "tournament.svg", "tournament.md"] {
        assert!(read(&format!("a/{file}")) == read(&format!("{b}/{file}")), "{file}");
    }
    // Fewer runs come from the store, without computing; the table has those that were asked for.
    ok(folder.path(), &[&whole[..], &["--behaviours", "shirking", "--out", &b]].concat());
    let part = String::from_utf8(read(&format!("{b}/tournament.csv"))).unwrap();
    let lines: Vec<&str> = table.lines().filter(|line| !line.contains("threshold")).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.contains(",mixed,")).collect();
    assert_eq!(part.lines().collect::<Vec<_>>(), lines);
    assert_eq!(stored(), 12);
    // A table that is something else is not overwritten.
    std::fs::write(folder.path().join("a/tournament.csv"), "mine").unwrap();
    let refused = fedstay(folder.path(), &[&whole[..], &["--out", "a"]].concat());
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(read("a/tournament.csv"), b"mine");
}

#[test]
fn a_tournament_is_a_sweep_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/tournament.toml");
    let set = ["--set", "rounds=20", "--set", "behaviour.kind=shirking", "--set", "seed=0..2"];
    let rules = ["--set", "label=[\"fedavg\", \"retain+horizon\"]"];
    let said =
        ok(folder.path(), &[&["tournament", "--json", "--out", "a"], &set[..], &rules].concat());
    let outcomes: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(outcomes.as_array().unwrap().len(), 4);
    let ask = |what: &str, more: &[&str]| {
        let store = ["--store", "a/tournament.sqlite"];
        let words = [&["sweep", what, file], &store[..], &set, &rules, more].concat();
        ok(folder.path(), &words)
    };
    let status = ask("status", &[]);
    let means = ask("query", &["--by", "label", "--of", "accuracy.mean,left"]);
    insta::assert_snapshot!("as-a-sweep", words(&format!("{status}{means}")));
    ask("export", &["--out", "runs.csv"]);
    let runs = std::fs::read_to_string(folder.path().join("runs.csv")).unwrap();
    let labels = runs.lines().next().unwrap().split(',').position(|name| name == "label").unwrap();
    let of = |line: &str| line.split(',').nth(labels).unwrap() == "retain+horizon";
    assert_eq!(runs.lines().filter(|line| of(line)).count(), 2, "{runs}");
    ask("extract", &["--where", "label=retain+horizon", "--where", "seed=1", "--out", "one"]);
    let summary = std::fs::read_to_string(folder.path().join("one/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert!(summary["agents"][0]["alone"].is_object(), "{summary}");
    // What diverges is told with the reason.
    let far = ["tournament", "--out", "b", "--set", "step_size=1e30", "--rules", "fedavg"];
    let said = ok(folder.path(), &[&far[..], &["--seeds", "0", "--behaviours", "never"]].concat());
    insta::assert_snapshot!("diverged", words(&said));
}

#[test]
fn what_departures_cost_and_every_agents_story_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["run", "--set", "rule.kind=fedavg", "--set", "step_size=0.2", "--set", "rounds=120"];
    let said =
        ok(folder.path(), &[&run[..], &["--counterfactual", "--story", "--out", "a"]].concat());
    // Who gained and who lost is in the numbers; one story shows how all of them are told.
    let other = |line: &&str| line.starts_with("  agent ") && !line.starts_with("  agent 0 ");
    let shown: Vec<&str> = said.lines().filter(|line| !other(line)).collect();
    insta::assert_snapshot!("story", words(&shown.join("\n")));
    let read = |file: &str| std::fs::read_to_string(folder.path().join("a").join(file)).unwrap();
    assert!(read("report.html").contains("What the departures cost"));
    let summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
    let mean = |value: &Value| value["accuracy"]["mean"].as_f64().unwrap();
    assert!(mean(&summary["counterfactual"]) > mean(&summary) + 0.02);
    assert!(summary["agents"][0]["alone"]["loss"].is_f64());
    // The same story from the folder.
    let told = ok(folder.path(), &["story", "a"]);
    let story = told.split("What the departures").next().unwrap();
    let story = story.split_once("Every agent's story").unwrap().1.trim();
    assert!(said.contains(story), "{told}");
    let json: Value = serde_json::from_str(&ok(folder.path(), &["story", "a", "--json"])).unwrap();
    assert_eq!(json["counterfactual"], summary["counterfactual"]);
    // Where nobody leaves it says so.
    let kept = ["run", "--set", "problem.kind=observation-3", "--counterfactual", "--out", "b"];
    insta::assert_snapshot!("cost-nothing", ok(folder.path(), &kept));
}
