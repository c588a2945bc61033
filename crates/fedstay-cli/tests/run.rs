//! `fedstay run`, `compare`, `check`, `list`: what a newcomer types on the first day.

mod common;

use common::{ok, said};
use serde_json::Value;

fn summary(sets: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = vec!["run", "--json"];
    for set in sets {
        arguments.extend(["--set", set]);
    }
    serde_json::from_str(&ok(folder.path(), &arguments)).unwrap()
}

#[test]
fn the_summary_has_every_key() {
    let summary = summary(&["problem.kind=observation-3", "rule.kind=fedavg"]);
    for key in [
        "rule",
        "seed",
        "rounds",
        "stop",
        "left",
        "verdict",
        "agents",
        "loss",
        "accuracy",
        "population",
        "landed",
        "weights",
    ] {
        assert!(summary.get(key).is_some(), "{key}");
    }
    assert_eq!(summary["rule"], "fedavg");
    assert_eq!(summary["stop"], "everyone-left");
    assert_eq!(summary["left"][0], serde_json::json!({ "agent": 1, "round": 39 }));
    for key in ["id", "epsilon", "loss", "accuracy", "left", "rounds_in_d"] {
        assert!(summary["agents"][0].get(key).is_some(), "{key}");
    }
    assert!(summary["population"].is_null() && summary["landed"].is_null());
    assert_eq!(summary["weights"].as_array().unwrap().len(), 2);
}

#[test]
fn the_default_experiment_ends_well_and_is_the_one_that_is_compared() {
    let default = summary(&["compare_alone=true"]);
    assert_eq!((&default["verdict"], &default["rule"]), (&"retained".into(), &"retain".into()));
    assert_eq!((&default["content"], &default["everybody_content"]), (&10.into(), &true.into()));
    let folder = tempfile::tempdir().unwrap();
    let rules = ["compare", "--rules", "retain,fedavg", "--json"];
    let compared: Vec<Value> = serde_json::from_str(&ok(folder.path(), &rules)).unwrap();
    assert_eq!(compared[0], default);
    assert_eq!(compared[1], summary(&["rule.kind=fedavg", "compare_alone=true"]));
}

/// Of two agents, the one that stays alone reaches its own target, and that is worse for nobody else.
#[test]
fn what_it_costs_the_others_if_an_agent_never_takes_part() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["run", "--json", "--set", "problem.kind=observation-3", "--set", "rule.kind=fedavg"];
    let told = |who: &str| -> Value {
        let words = [&run[..], &["--without", who]].concat();
        serde_json::from_str(&ok(folder.path(), &words)).unwrap()
    };
    let each = told("each");
    let without = each["without"].as_array().unwrap();
    assert_eq!(without.len(), 2);
    for (agent, entry) in without.iter().enumerate() {
        assert_eq!(entry["agent"], agent);
        let other = &each["agents"][1 - agent];
        assert_eq!(entry["loss"]["with"], other["loss"], "there is one other");
        assert_eq!(entry["loss"], entry["worst"]);
        assert!(entry["loss"]["without"].as_f64().unwrap() <= other["epsilon"].as_f64().unwrap());
    }
    assert_eq!(told("1")["without"].as_array().unwrap()[0], without[1]);
    let said = said(folder.path(), &[&run[..], &["--without", "2"]].concat());
    assert!(said.contains("there are 2 agents, numbered from 0"), "{said}");
}

#[test]
fn the_observations_through_the_command() {
    for rule in ["fedavg", "minibatch-sgd", "ada-gd"] {
        let kind = format!("rule.kind={rule}");
        let summary = summary(&["problem.kind=observation-2", &kind, "epsilon=0.3"]);
        assert!(summary["loss"]["mean"].as_f64().unwrap() >= 0.5, "{rule}");
    }
    for alpha in ["0", "0.5", "1", "2"] {
        let alpha = format!("problem.alpha={alpha}");
        let shared = ["problem.kind=observation-3", alpha.as_str()];
        let averaged = summary(&[&shared[..], &["rule.kind=fedavg"]].concat());
        assert_eq!(averaged["verdict"], "harmful");
        let kept = summary(
            &[&shared[..], &["rule.kind=ada-gd", "rule.delta=0.05", "step_size=0.03"]].concat(),
        );
        // ADA-GD stops within its slack of everybody's target loss: all stay, and nobody is
        // content.
        assert_eq!(kept["verdict"], "unsatisfied");
        assert!(kept["left"].as_array().unwrap().is_empty());
    }
    assert_eq!(summary(&["problem.kind=observation-1", "rule.kind=ada-gd"])["stop"], "stalled");
}

#[test]
fn a_run_is_kept_in_a_folder_with_everything_in_it() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), &["run", "--set", "rounds=12", "--out", "a"]);
    let files = [
        "config.toml",
        "rounds.jsonl",
        "checkpoint",
        "model.safetensors",
        "summary.json",
        "run.svg",
        "report.html",
        "run.png",
    ];
    for file in files {
        assert!(folder.path().join("a").join(file).exists(), "{file}");
    }
    // Its own configuration gives the same run, byte for byte.
    ok(folder.path(), &["run", "a/config.toml", "--out", "b"]);
    for file in files {
        let read = |run: &str| std::fs::read(folder.path().join(run).join(file)).unwrap();
        assert_eq!(read("a"), read("b"), "{file}");
    }
    // A second run does not overwrite the first.
    insta::assert_snapshot!("again", said(folder.path(), &["run", "--out", "a"]));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for threads in ["1", "2", "8"] {
        let out = format!("t{threads}");
        ok(
            folder.path(),
            &[
                "run",
                "--set",
                "rounds=15",
                "--set",
                "local.steps=3",
                "--set",
                "local.batch=16",
                "--set",
                "participation=0.7",
                "--threads",
                threads,
                "--out",
                &out,
            ],
        );
    }
    for file in ["rounds.jsonl", "summary.json", "checkpoint", "model.safetensors"] {
        let read = |run: &str| std::fs::read(folder.path().join(run).join(file)).unwrap();
        assert!(read("t1") == read("t2") && read("t1") == read("t8"), "{file}");
    }
}

/// The README's first claim, on the default experiment.
#[test]
fn by_default_averaging_loses_all_retain_nobody_and_most_members_gain() {
    let folder = tempfile::tempdir().unwrap();
    let said = ok(folder.path(), &["compare", "--rules", "fedavg,ada-gd+halve,retain", "--json"]);
    let runs: Vec<Value> = serde_json::from_str(&said).unwrap();
    let [averaging, ada_gd, retain] = &runs[..] else { panic!("{} runs", runs.len()) };
    assert_eq!(averaging["left"].as_array().unwrap().len(), 10);
    assert_eq!((&retain["left"], &retain["stop"]), (&serde_json::json!([]), &"landed".into()));
    let worst = |run: &Value| run["accuracy"]["min"].as_f64().unwrap();
    assert!(worst(retain) > worst(averaging) + 0.1, "{} {}", worst(retain), worst(averaging));
    let unseen = |run: &Value| run["population"]["accuracy"].as_f64().unwrap();
    assert!(unseen(retain) > unseen(averaging) + 0.02, "{} {}", unseen(retain), unseen(averaging));
    for run in [averaging, ada_gd, retain] {
        let better = &run["better_than_alone"];
        assert!(better.as_u64().unwrap() > 5, "{}: {better}", run["rule"]);
    }
}

/// With one digit per agent departures cost most, and nobody gains by taking part.
#[test]
fn in_the_extreme_case_retain_loses_nobody_and_the_worst_agent_is_best_off() {
    let folder = tempfile::tempdir().unwrap();
    let extreme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/extreme.toml");
    let said = ok(folder.path(), &["compare", extreme, "--json"]);
    let runs: Vec<Value> = serde_json::from_str(&said).unwrap();
    let worst = |run: &Value| run["accuracy"]["min"].as_f64().unwrap();
    let name = |run: &Value| format!("{} {} {}", run["rule"], run["policy"], run["behaviour"]);
    let is_retain = |run: &&Value| run["rule"] == "retain";
    let retain = runs.iter().find(is_retain).unwrap();
    assert_eq!(retain["left"], serde_json::json!([]));
    assert_eq!(retain["stop"], "landed");
    let others = runs.iter().filter(|run| !is_retain(run) && run["behaviour"] == "threshold");
    let others: Vec<&Value> = others.collect();
    assert!(others.len() >= 6, "{}", others.len());
    for other in others {
        assert!(worst(retain) > worst(other), "{}: {}", name(other), worst(other));
        // One image is 0.7% of an agent's data: losses do not have that granularity.
        let loss = |run: &Value| run["loss"]["max"].as_f64().unwrap();
        assert!(loss(retain) < loss(other), "{}: {}", name(other), loss(other));
    }
    let averaging = runs.iter().find(|run| run["verdict"] == "harmful").unwrap();
    assert!(worst(averaging) < 0.5, "{}: {}", name(averaging), worst(averaging));
    assert!(retain["better_than_alone"].as_u64().unwrap() < 5, "{}", retain["better_than_alone"]);
}

#[test]
fn a_comparison_for_programs_has_one_summary_per_rule() {
    let folder = tempfile::tempdir().unwrap();
    let json = ok(folder.path(), &["compare", "--set", "rounds=3", "--rules", "fedavg", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap().as_array().unwrap().len(), 1);
}

#[test]
fn a_comparison_counts_who_is_better_off_than_alone_as_the_story_does() {
    let folder = tempfile::tempdir().unwrap();
    let small = "partition.q=0.7 data.per_agent=40 rounds=60 epsilon=0.4 step_size=0.4";
    let set: Vec<&str> = small.split(' ').flat_map(|pair| ["--set", pair]).collect();
    let compare = [&["compare", "--rules", "fedavg,retain"][..], &set].concat();
    let told = ok(folder.path(), &compare);
    assert!(told.lines().any(|line| line.ends_with("  better than alone")), "{told}");
    assert!(told.contains("60 rounds of the same work without the others"), "{told}");
    let json = ok(folder.path(), &[&compare[..], &["--json"]].concat());
    let compared: Vec<Value> = serde_json::from_str(&json).unwrap();
    let alone = |run: &Value| -> Vec<Value> {
        run["agents"].as_array().unwrap().iter().map(|agent| agent["alone"].clone()).collect()
    };
    // What agents make alone is the same under every rule, however early it stops.
    assert_eq!(alone(&compared[0]), alone(&compared[1]));
    let rounds = |run: &Value| run["rounds"].as_u64().unwrap();
    assert!(rounds(&compared[1]) < 60, "{}", rounds(&compared[1]));
    for (rule, run) in ["fedavg", "retain"].into_iter().zip(&compared) {
        let better = run["better_than_alone"].as_u64().unwrap();
        let row = told.lines().find(|line| line.starts_with(&format!("{rule} "))).unwrap();
        assert!(row.ends_with(&format!("  {better} of 10")), "{row}");
        let kind = format!("rule.kind={rule}");
        let run = [&["run", "--out", rule, "--set", kind.as_str()][..], &set].concat();
        ok(folder.path(), &run);
        let story = ok(folder.path(), &["story", rule]);
        assert!(story.contains(&format!("\n  {better} of 10 end with a better model")), "{story}");
    }
}

#[test]
fn check_reads_a_recorded_run_as_it_reads_the_problem() {
    let folder = tempfile::tempdir().unwrap();
    let problem = ["--set", "problem.kind=huber", "--set", "rounds=200"];
    let live = ok(folder.path(), &[&["check", "--json"], &problem[..]].concat());
    ok(
        folder.path(),
        &[&["run", "--out", "kept", "--set", "record_gram=true"], &problem[..]].concat(),
    );
    let recorded = ok(folder.path(), &["check", "kept", "--json"]);
    assert_eq!(live, recorded);
    let findings: Value = serde_json::from_str(&live).unwrap();
    assert!(
        findings["lipschitz_seen"].as_f64().unwrap() <= findings["lipschitz"].as_f64().unwrap()
    );
    assert!(findings["smallest_angle"].as_f64().unwrap() > 0.0);
}

/// One of the two is content with the start and never reports.
#[test]
fn check_counts_agents_that_never_report() {
    let folder = tempfile::tempdir().unwrap();
    let problem = ["--set", "problem.kind=observation-2", "--set", "record_gram=true"];
    ok(folder.path(), &[&["run", "--out", "kept"], &problem[..]].concat());
    for checked in [&[&["check"], &problem[..]].concat()[..], &["check", "kept"]] {
        let said = ok(folder.path(), checked);
        assert!(said.starts_with("2 agents, "), "{said}");
        assert!(said.contains("no two agents reported in one round"), "{said}");
        assert!(said.contains("content with the start   agent 1"), "{said}");
        // The rule has no such key.
        assert!(!said.contains("rule.on_settled"), "{said}");
    }
    ok(folder.path(), &["report", "kept", "-o", "report.html"]);
    let report = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(!report.contains("rule.on_settled"));
}

#[test]
fn lists_are_complete_and_machine_readable() {
    let folder = tempfile::tempdir().unwrap();
    for (list, entry) in [
        ("rules", "ada-gd"),
        ("policies", "keep-best"),
        ("behaviours", "never"),
        ("problems", "red-blue"),
        ("data", "cifar10"),
        ("partitions", "dirichlet"),
        ("models", "mlp"),
        ("figures", "6"),
        ("keys", "rule.delta"),
    ] {
        let json = ok(folder.path(), &["list", list, "--json"]);
        let entries: Vec<Value> = serde_json::from_str(&json).unwrap();
        assert!(entries.iter().any(|e| e["name"] == entry), "{list}");
    }
}

#[test]
fn numbers_that_differ_are_told_apart_and_no_warning_contradicts_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let run = |set: &[&str]| {
        let set = set.iter().flat_map(|set| ["--set", *set]);
        let all: Vec<&str> = ["run", "-q"].into_iter().chain(set).collect();
        ok(folder.path(), &all)
    };
    // A target loss that four decimals would call zero, and losses that single precision rounds to it.
    let tiny = run(&["epsilon=1e-300", "rule.kind=fedavg", "rounds=2", "model.hidden=4"]);
    assert!(tiny.contains("where ε is 1.0e-300") && !tiny.contains("ε is 0.0000"), "{tiny}");
    let told = ["epsilon=1e-300", "rounds=2", "agents=2", "data.per_agent=10", "model.hidden=4"];
    let told: Vec<&str> = told.iter().flat_map(|set| ["--set", *set]).collect();
    ok(folder.path(), &[&["run", "-q", "--out", "told"], &told[..]].concat());
    let story = ok(folder.path(), &["story", "told"]);
    assert!(story.contains("agent 1 (threshold, ε = 1e-300): "), "{story}");
    let diverged =
        run(&["epsilon=0", "rule.kind=fedavg", "step_size=500", "rounds=30", "partition.q=1"]);
    assert!(diverged.contains("of 10 left") && diverged.contains("the losses ROSE"), "{diverged}");
    assert!(!diverged.contains("hardly moved"), "{diverged}");
    assert!(!diverged.contains("can never be content"), "some were: {diverged}");
    // Quiet is about what is printed: the run is kept.
    assert!(folder.path().join("runs").read_dir().unwrap().count() == 2);
    assert!(!ok(folder.path(), &["run", "--help"]).contains("no files written"));
}

#[test]
fn a_certified_run_does_not_say_that_it_kept_an_agent_that_left_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let set = [
        "problem.kind=huber",
        "rule.kind=retain",
        "seed=75286",
        "step_size=1",
        "epsilon=0.6",
        "problem.agents=9",
        "problem.dim=40",
        "problem.samples=3",
        "rule.delta=0.2",
    ];
    let set = set.iter().flat_map(|set| ["--set", *set]);
    let all: Vec<&str> = ["run", "-q"].into_iter().chain(set).collect();
    let said = ok(folder.path(), &all);
    assert!(said.contains("guarantee   certified"), "the test needs a proof: {said}");
    assert!(
        said.contains("1 of 9 was content with the starting model and never took part"),
        "{said}"
    );
    assert!(said.contains("every step was proved to keep everybody who took part"), "{said}");
}

#[test]
fn the_model_that_an_agent_took_away_is_told_apart_from_the_delivered_one() {
    let folder = tempfile::tempdir().unwrap();
    let averaging = ["problem.kind=observation-3", "rule.kind=fedavg"];
    let set: Vec<&str> = averaging.iter().flat_map(|set| ["--set", *set]).collect();
    let run = ok(folder.path(), &[&["run", "-q", "--out", "a"], &set[..]].concat());
    assert!(run.contains("the delivered model fails"), "{run}");
    assert!(run.contains("left and keep"), "what is said of leavers that keep a model: {run}");
    assert!(run.contains("Losses and accuracies are the delivered model's"), "{run}");
    let story = ok(folder.path(), &["story", "a"]);
    assert!(story.contains("It took away a model with loss"), "{story}");
    assert!(
        story.contains("; the delivered one has loss") && story.contains("took away."),
        "{story}"
    );
    assert!(!story.contains("It ends with"), "nobody stayed: {story}");
    let report = std::fs::read_to_string(folder.path().join("a/report.html")).unwrap();
    assert!(report.contains("each keeps the model of the round in which it left"), "{report}");
    // Where nobody left there is one model.
    let kept = ["problem.kind=observation-3", "rule.kind=ada-gd"];
    let set: Vec<&str> = kept.iter().flat_map(|set| ["--set", *set]).collect();
    let run = ok(folder.path(), &[&["run", "-q", "--out", "b"], &set[..]].concat());
    assert!(!run.contains("Losses and accuracies are"), "{run}");
    assert!(ok(folder.path(), &["story", "b"]).contains("It ends with the delivered model, loss"));
}

/// A table in which one class has few rows: `small` of them, and 100 of each of two others.
fn uneven(folder: &std::path::Path, small: usize) {
    let mut table = "a,b,kind\n".to_owned();
    for row in 0..200 {
        table.push_str(&format!("{row},{},{}\n", row % 7, ["x", "y"][row % 2]));
    }
    (0..small).for_each(|row| table.push_str(&format!("{row},3,z\n")));
    std::fs::write(folder.join("table.csv"), table).unwrap();
}

/// An experiment on that table, dealt out to three agents.
fn on_the_table(partition: &str) -> String {
    format!(
        "agents = 3\nrounds = 3\nepsilon = 0.1\n[data]\nkind = \"csv\"\npath = \"table.csv\"\n\
         [model]\nkind = \"softmax-regression\"\n[partition]\n{partition}\n"
    )
}

#[test]
fn every_row_is_accounted_for_in_the_first_line_and_many_unused_ones_are_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    uneven(folder, 10);
    std::fs::write(folder.join("t.toml"), on_the_table("kind = \"by-class\"\nq = 1.0")).unwrap();
    std::fs::write(folder.join("iid.toml"), on_the_table("kind = \"iid\"")).unwrap();
    let line = "210 rows read: 24 dealt to 3 agents, 42 for testing and 144 unused (class `z` has no more \
                rows, and all get equally many)";
    let warning = "144 of 168 training rows (86%) are not used";
    let shown = ok(folder, &["data", "show", "t.toml"]);
    let run = ok(folder, &["run", "t.toml", "--out", "a"]);
    let dry = ok(folder, &["run", "t.toml", "--dry-run"]);
    for (said, first) in [(&shown, line), (&run, line), (&dry, &format!("# {line}")[..])] {
        assert_eq!(said.lines().next(), Some(first), "{said}");
        assert!(said.contains(&format!("WARNING  {warning}")), "{said}");
        assert!(said.contains("data.per_agent = 8"), "it says what to type: {said}");
    }
    // What is checked can be run, and the records have the same numbers.
    std::fs::write(folder.join("checked.toml"), &dry).unwrap();
    ok(folder, &["run", "checked.toml", "--out", "b"]);
    let json = |file: &str| {
        let text = std::fs::read_to_string(folder.join("a").join(file)).unwrap();
        let text = if file == "rounds.jsonl" { text.lines().next().unwrap() } else { &text };
        serde_json::from_str::<Value>(text).unwrap()["rows"].clone()
    };
    let (header, summary) = (json("rounds.jsonl"), json("summary.json"));
    assert_eq!(header, summary);
    assert_eq!(
        (&summary["read"], &summary["dealt"], &summary["test"]),
        (&210.into(), &24.into(), &42.into())
    );
    assert_eq!(summary["unused"][0]["rows"], 144);
    let report = std::fs::read_to_string(folder.join("a/report.html")).unwrap();
    let rows = report.find("210 rows read: 24 dealt").unwrap();
    assert!(rows < report.find("class=\"verdict").unwrap(), "before the verdict");
    assert!(report.contains(warning));

    // A limit that the experiment states is told and is no warning.
    let stated = ok(folder, &["data", "show", "t.toml", "--set", "data.per_agent=8"]);
    assert!(stated.starts_with("210 rows read: 24 dealt to 3 agents"), "{stated}");
    assert!(
        stated.contains("144 unused (data.per_agent = 8)") && !stated.contains("WARNING"),
        "{stated}"
    );
    let iid = ok(folder, &["data", "show", "iid.toml"]);
    assert!(iid.contains("168 dealt to 3 agents, 42 for testing and none unused"), "{iid}");
    let shown = ok(folder, &["run", "--set", "problem.kind=observation-3", "--dry-run"]);
    assert!(!shown.contains("rows read"), "a problem has no rows: {shown}");
}

#[test]
fn a_run_with_no_room_for_open_files_ends_without_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    // With fewer, the system cannot load the program.
    for most in 4..24 {
        let command = format!(
            "ulimit -n {most} && exec \"$0\" run --set problem.kind=observation-3 --set rounds=5 --out em{most}"
        );
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &command, env!("CARGO_BIN_EXE_fedstay")]).current_dir(folder.path());
        let output = shell.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(0..=2)), "{most}: {:?} {said}", output.status);
        assert!(!said.contains("panicked") && said.lines().count() <= 1, "{most}: {said}");
        // What the signals' own files took is there for the run.
        assert!(most < 8 || output.status.success(), "{most}: {said}");
    }
}

#[cfg(unix)]
#[test]
fn a_small_stack_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    // In kB; eight thousand are usual.
    for most in [64, 128] {
        let command =
            format!("ulimit -s {most} && exec \"$0\" run --story --set rounds=5 --out small{most}");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &command, env!("CARGO_BIN_EXE_fedstay")]).current_dir(folder.path());
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{most}: {:?} {said}", output.status);
    }
}
