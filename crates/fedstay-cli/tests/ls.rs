//! `fedstay ls`: what became of every run, and what to type next.

mod common;

use common::ok;
use std::path::Path;
use std::time::{Duration, SystemTime};

const HEADER: &str = r#"{"schema":"fedstay.rounds/1","version":"0","rule":"fedavg","on":"digits","seed":0,"rounds":9,"agents":[{"id":0,"epsilon":0.5},{"id":1,"epsilon":0.5}]}"#;
const CONFIG: &str = "[rule]\nkind = \"fedavg\"\n";

fn line(round: u32, loss: [f64; 2], left: &str) -> String {
    format!(
        r#"{{"round":{round},"agents":[0,1],"loss":[{},{}],"left":{left},"step_size":0.1,"step_norm":0.1}}"#,
        loss[0], loss[1]
    )
}

/// A run without a summary that wrote its last line some seconds ago.
fn write(folder: &Path, name: &str, lines: &[String], seconds: u64) {
    let place = folder.join("runs").join(name);
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("config.toml"), CONFIG).unwrap();
    std::fs::write(place.join("rounds.jsonl"), format!("{}\n", lines.join("\n"))).unwrap();
    let rounds = std::fs::File::options().append(true).open(place.join("rounds.jsonl")).unwrap();
    rounds.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

#[test]
fn every_state_of_a_run_has_its_own_word_its_rule_and_its_next_command() {
    let folder = tempfile::tempdir().unwrap();
    let header = HEADER.to_owned();
    let round = || line(1, [1.0, 2.0], "[]");
    write(folder.path(), "running", &[header.clone(), round()], 0);
    write(folder.path(), "waiting", std::slice::from_ref(&header), 0);
    let left = line(2, [0.4, 1.9], "[0]");
    write(folder.path(), "stopped", &[header.clone(), round(), left], 90);
    std::fs::write(folder.path().join("runs/stopped/checkpoint"), "x").unwrap();
    write(folder.path(), "diverged", &[header, round(), line(2, [1e6, 8e6], "[]")], 90);
    write(folder.path(), "garbage", &["what is this".to_owned()], 90);
    let listed: Vec<serde_json::Value> =
        serde_json::from_str(&ok(folder.path(), &["ls", "--json"])).unwrap();
    for (name, next) in [
        ("diverged", "fedstay run runs/diverged/config.toml --set step_size=SMALLER"),
        ("garbage", "fedstay run runs/garbage/config.toml --out runs/garbage-again"),
        ("running", ""),
        ("stopped", "fedstay run --resume runs/stopped"),
        ("waiting", ""),
    ] {
        let run = listed.iter().find(|run| run["name"] == name).unwrap();
        let wanted = if name == "garbage" { "unreadable" } else { name };
        assert_eq!(run["status"], wanted, "{run}");
        assert!(run["next"].as_str().unwrap_or_default().starts_with(next), "{run}");
        assert_eq!(run["next"].is_null(), next.is_empty(), "{run}");
        assert_eq!(run["rule"].as_str(), (name != "garbage").then_some("fedavg"), "{run}");
    }
    let said = ok(folder.path(), &["ls"]);
    let row = |name: &str| said.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    for part in ["fedavg", "stopped", "1 of 2"] {
        assert!(row("stopped").contains(part), "{said}");
    }
    assert!(row("garbage").contains("unreadable") && !said.contains("not over"), "{said}");
    assert!(said.contains("\nTo continue it: fedstay run --resume runs/stopped\n"), "{said}");
    assert!(said.contains("not the header of a run"), "{said}");
}

#[test]
fn a_loss_never_stands_in_a_column_of_accuracies() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let problem = ["run", "--set", "problem.kind=observation-3", "--set", "rounds=5"];
    ok(here, &[&problem[..], &["--out", "runs/problem"]].concat());
    let digits = ["run", "--set", "rounds=2", "--set", "agents=2", "--set", "data.per_agent=10"];
    ok(here, &[&digits[..], &["--out", "runs/digits"]].concat());
    let said = ok(here, &["ls", "--wide"]);
    let heads = said.lines().next().unwrap();
    for head in ["mean acc.", "worst acc.", "mean loss", "worst loss"] {
        assert!(heads.contains(head), "{said}");
    }
    // Under the heading, which is aligned right, stands its own kind of number or a dash.
    let under = |name: &str, head: &str| {
        let end = heads.find(head).unwrap() + head.len();
        let row = said.lines().find(|line| line.starts_with(name)).unwrap();
        let cell: String = row.chars().take(end).collect();
        cell.split_whitespace().last().unwrap().to_owned()
    };
    for head in ["mean acc.", "worst acc."] {
        assert_eq!(under("problem", head), "–", "{said}");
        assert!(under("digits", head).ends_with('%'), "{said}");
    }
    for head in ["mean loss", "worst loss"] {
        assert!(under("problem", head).parse::<f64>().is_ok(), "{said}");
        assert_eq!(under("digits", head), "–", "{said}");
    }
    // With runs of one kind there are columns of one kind.
    std::fs::remove_dir_all(here.join("runs/problem")).unwrap();
    assert!(!ok(here, &["ls", "--wide"]).contains("loss"));
}
