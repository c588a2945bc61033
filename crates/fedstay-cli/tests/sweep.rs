//! What a newcomer types: a sweep from its starter file to tables, and kills at random moments.

mod common;

use common::{all_said, command, fedstay, kills, moments, ok, said, words};
use fedstay_sim::sweep::{Outcome, Plan, Store, run_cell};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Three target losses, two rules and some seeds on digits: a second or two of work.
const STUDY: &str = r#"
rounds = 40
step_size = 0.3
agents = 5
eval_every = 5
[grid]
epsilon = [0.1, 0.4, 0.9]
rule.kind = ["fedavg", "ada-gd"]
seed = "0..12"
[data]
per_agent = 60
[model]
kind = "mlp"
hidden = [24]
[local]
steps = 3
batch = 16
"#;

fn study(folder: &Path) {
    std::fs::write(folder.join("study.toml"), STUDY).unwrap();
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    command(folder, arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn killed_and_restarted_20_times_the_store_holds_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    study(folder);
    let before = Instant::now();
    ok(folder, &["sweep", "study.toml", "--store", "whole.db"]);
    let takes = before.elapsed();
    let whole = Store::read(&folder.join("whole.db")).unwrap().dump().unwrap();
    assert_eq!(whole.lines().count(), 72);

    // Twenty kills per store, and as many stores as it takes: in a full store there is nothing to
    // kill.
    let (mut left, mut hit, mut moments) = (kills(20), 0, moments());
    let all = left;
    while left > 0 {
        let now = left.min(20);
        left -= now;
        let name = format!("cut{left}.db");
        let arguments = ["sweep", "study.toml", "--store", &name];
        let mut progress = Vec::new();
        for _ in 0..now {
            let mut child = start(folder, &arguments);
            std::thread::sleep(takes.mul_f64(moments() / 10.0) + Duration::from_millis(5));
            hit += u32::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
            let there = Store::read(&folder.join(&name)).and_then(|store| store.keys());
            progress.push(there.map_or(0, |keys| keys.len()));
        }
        assert!(progress.is_sorted(), "a kill lost finished runs: {progress:?}");
        assert!(progress.last() > Some(&0), "nothing was finished between kills: {progress:?}");
        println!("{now} kills; runs there after each: {progress:?}");
        ok(folder, &arguments);
        let cut = Store::read(&folder.join(&name)).unwrap();
        assert!(cut.dump().unwrap() == whole, "the stores differ");
        cut.verify().unwrap();
    }
    println!("{all} kills, {hit} of them of a running sweep");
    assert!(hit >= all / 2, "only {hit} of {all} kills hit a running sweep");
}

#[test]
fn two_processes_on_one_store_do_everything_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    study(folder);
    let arguments = ["sweep", "study.toml", "--store", "both.db", "--threads", "1"];
    let children = [start(folder, &arguments), start(folder, &arguments)];
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let store = Store::read(&folder.join("both.db")).unwrap();
    assert_eq!((store.keys().unwrap().len(), store.work().unwrap().runs), (72, 72));
    let claims = store.ask("SELECT * FROM claims").unwrap();
    assert!(claims.rows.is_empty(), "{claims:?}");
}

#[test]
fn from_the_starter_file_to_tables_and_a_run_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let short = ["--set", "rounds=20", "--set", "seed=0..3", "--set", "data.per_agent=30"];
    let mut told = all_said(folder, &[&["sweep", "new", "s.toml"], &["sweep", "new", "s.toml"]]);
    let mut say = |command: &str, more: &[&str]| {
        let words: Vec<&str> =
            command.split(' ').chain(short).chain(more.iter().copied()).collect();
        told.push_str(&said(folder, &words));
    };
    say("sweep s.toml", &["--dry-run"]);
    assert!(!folder.join("sweeps").exists(), "a dry run leaves nothing behind");
    say("sweep status s.toml", &[]);
    say("sweep s.toml", &["-q"]);
    say("sweep s.toml", &[]);
    say("sweep status s.toml", &[]);
    say("sweep query s.toml", &["--by", "epsilon", "--of", "left,loss.mean"]);
    let against = ["--where", "local.steps=1", "--of", "accuracy.mean", "--against", "epsilon=0.1"];
    say("sweep query s.toml", &against);
    say("sweep query s.toml", &["--sql", "SELECT count(*) AS number FROM runs WHERE seed = 1"]);
    say("sweep query s.toml", &["--sql", "DELETE FROM runs"]);
    say("sweep export s.toml", &["--out", "runs.csv"]);
    say("sweep export s.toml", &["--out", "rounds.parquet", "--series"]);
    say("sweep export s.toml", &["--out", "x.xls"]);
    let which = ["--where", "epsilon=0.8", "--where", "seed=2"];
    let one = [&which[..], &["--where", "local.steps=5", "--out", "one"]].concat();
    say("sweep extract s.toml", &one);
    say("sweep extract s.toml", &["--where", "seed=2", "--out", "two"]);
    say("sweep extract s.toml", &[&which[..], &["--all", "--out", "all"]].concat());
    for counted in ["\n36 runs (", "in 9 families", " 36 already there, 0 ", "36 of 36 runs done"] {
        assert!(told.contains(counted), "{counted}: {told}");
    }
    insta::assert_snapshot!("session", words(&told));

    let mut csv = csv::Reader::from_path(folder.join("runs.csv")).unwrap();
    assert!(csv.headers().unwrap().iter().any(|name| name == "accuracy.mean"));
    assert_eq!(csv.records().count(), 36);
    let parquet = std::fs::read(folder.join("rounds.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    for file in ["summary.json", "rounds.jsonl", "report.html", "model.safetensors"] {
        assert!(folder.join("one").join(file).exists(), "{file}");
    }
    let mut names: Vec<String> = std::fs::read_dir(folder.join("all"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() > 1 && names.iter().all(|name| name.contains("epsilon=0.8")), "{names:?}");
    let one = std::fs::read(folder.join("one/rounds.jsonl")).unwrap();
    let same = names.iter().find(|name| name.contains("local.steps=5")).unwrap();
    assert_eq!(std::fs::read(folder.join("all").join(same).join("rounds.jsonl")).unwrap(), one);
}

#[test]
fn a_damaged_store_exports_the_same_or_is_refused_by_name_and_a_sweep_mends_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let short = STUDY.replace("rounds = 40", "rounds = 6").replace("0..12", "0..2");
    std::fs::write(folder.join("study.toml"), short).unwrap();
    let sweep = ["sweep", "study.toml", "--store", "a.db"];
    ok(folder, &sweep);
    let export = |out: &str| {
        fedstay(folder, &["sweep", "export", "study.toml", "--store", "a.db", "--out", out])
    };
    assert!(export("right.csv").status.success());
    let right = std::fs::read(folder.join("right.csv")).unwrap();
    let whole = std::fs::read(folder.join("a.db")).unwrap();
    let (mut refused, mut same) = (0, 0);
    for place in (0..whole.len()).step_by(whole.len() / 60) {
        let mut damaged = whole.clone();
        damaged[place] ^= 1 << (place % 8);
        std::fs::write(folder.join("a.db"), &damaged).unwrap();
        let output = export("now.csv");
        if output.status.success() {
            let now = std::fs::read(folder.join("now.csv")).unwrap();
            assert!(now == right, "byte {place}: other numbers");
            same += 1;
        } else {
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.contains("a.db") && said.lines().count() == 1, "byte {place}: {said}");
            refused += 1;
        }
        for extra in ["a.db-wal", "a.db-shm"] {
            let _ = std::fs::remove_file(folder.join(extra));
        }
    }
    assert!(refused > 20, "{refused} refused, {same} the same");

    // One row that says something else: it is named, not exported, and computed again.
    std::fs::write(folder.join("a.db"), &whole).unwrap();
    let store = Store::open(&folder.join("a.db")).unwrap();
    store.ask("UPDATE runs SET loss_mean = 0 WHERE seed = 1").unwrap();
    drop(store);
    let output = export("now.csv");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("fedstay sweep"), "{said}");
    let sql = ["sweep", "query", "study.toml", "--store", "a.db", "--sql", "SELECT * FROM runs"];
    assert!(!fedstay(folder, &sql).status.success());
    assert!(ok(folder, &sweep).contains("6 rows of the store were damaged"));
    assert!(export("now.csv").status.success());
    assert!(std::fs::read(folder.join("now.csv")).unwrap() == right);
}

#[test]
fn what_is_wrong_is_told_with_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    study(folder);
    std::fs::write(folder.join("one.toml"), "rounds = 3").unwrap();
    let told = all_said(
        folder,
        &[
            &["sweep", "one.toml"],
            &["run", "study.toml"],
            &["sweep", "none.toml"],
            &["sweep", "status", "study.toml"],
            &["sweep", "study.toml", "--set", "epsilom=[1]"],
        ],
    );
    assert_eq!(told.matches("\n[2]\n").count(), 5);
    insta::assert_snapshot!("errors", told);
}

#[test]
fn a_figure_from_an_exported_table_is_the_one_from_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let study = "rounds = 20\nstep_size = 0.3\nagents = 4\neval_every = 5\n[grid]\n\
                 partition.q = [0.5, 0.9]\nlocal.steps = [1, 3]\nepsilon = [0.4, 2.0]\nseed = [0, 1]\n\
                 [rule]\nkind = \"fedavg\"\n[data]\nper_agent = 30\n[local]\nbatch = 8\n";
    std::fs::write(folder.join("study.toml"), study).unwrap();
    ok(folder, &["sweep", "study.toml", "--store", "study.db"]);
    ok(folder, &["sweep", "export", "study.toml", "--store", "study.db", "--out", "study.csv"]);
    let from = ["--from", "study.toml"];
    for figure in ["3", "10", "11", "12"] {
        ok(folder, &[&["figure", figure, "--out", "a", "--store", "study.db"], &from[..]].concat());
        ok(
            folder,
            &[&["figure", figure, "--out", "b", "--table", "study.csv"], &from[..]].concat(),
        );
        for ending in ["svg", "json"] {
            let read = |of: &str| {
                std::fs::read_to_string(folder.join(format!("{of}/figure-{figure}.{ending}")))
            };
            assert_eq!(read("a").unwrap(), read("b").unwrap(), "{figure}.{ending}");
        }
    }
    // What is not such a table is refused by line and column.
    let table = std::fs::read_to_string(folder.join("study.csv")).unwrap();
    let figure = ["figure", "3", "--from", "study.toml", "--table", "wrong.csv"];
    let cases = [
        (table.replacen(",0.5,", ",0.6,", 1), "line 2 is not a run of this sweep"),
        (table.replacen("accuracy.mean", "accuracy", 1), "`accuracy.mean` is ``"),
        (table.lines().take(1).collect(), "has no rows"),
    ];
    for (text, wanted) in cases {
        std::fs::write(folder.join("wrong.csv"), text).unwrap();
        let output = fedstay(folder, &figure);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(wanted), "{wanted}: {error}");
    }
    let both = ["figure", "2", "--table", "study.csv"];
    assert!(said(folder, &both).contains("not drawn from a sweep"));
}

#[test]
fn a_run_that_comes_out_differently_here_is_refused_and_kept_if_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "rounds = 5\n[problem]\nkind = \"observation-3\"\n[grid]\nseed = [0]\n";
    std::fs::write(folder.join("s.toml"), text).unwrap();
    // What another machine computed.
    let plan = Plan::read(&folder.join("s.toml"), &[]).unwrap();
    let mut finished = run_cell(&plan.runs[0].experiment.to_toml().unwrap()).unwrap();
    let Outcome::Finished(summary) = &mut finished.outcome else { panic!("it diverged") };
    summary.score.loss.mean += 1e-7;
    Store::open(&folder.join("s.db")).unwrap().insert(&finished).unwrap();
    let extract = |more: &[&'static str]| {
        let first = ["sweep", "extract", "s.toml", "--store", "s.db", "--where", "seed=0"];
        fedstay(folder, &[&first[..], more].concat())
    };
    let refused = extract(&["--out", "a"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("--anyway"), "{said}");
    let kept = extract(&["--out", "b", "--anyway"]);
    let said = String::from_utf8(kept.stdout).unwrap();
    assert!(kept.status.success() && said.contains("not as it is stored"), "{said}");
    let summary = std::fs::read_to_string(folder.join("b/summary.json")).unwrap();
    assert!(summary.contains("not as it is stored"), "the run itself says so");
}
