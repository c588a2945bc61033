//! `fedstay plan`, as a coordinator types it.

mod common;

use common::{command, fedstay, words};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// Three owners under one law of 24 features: one with many rows, who needs nobody; one with few, who gains;
/// and one with hardly any, of whom nothing can be told.
fn table(folder: &Path, rows_named: &str, turned: bool) {
    let mut state = 7_u64;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64 - 0.5
    };
    let mut rows = Vec::new();
    for (owner, count) in [("Large General", 700), ("Small Ward", 120), ("Tiny", 12)] {
        for _ in 0..count {
            let features: Vec<f64> = (0..24).map(|_| draw()).collect();
            let leans: f64 = features.iter().take(6).sum::<f64>() + (draw() + draw());
            let mut line = owner.to_owned();
            features.iter().for_each(|feature| write!(line, ",{feature:.4}").unwrap());
            rows.push(format!("{line},{}", if leans > 0.0 { "yes" } else { "no" }));
        }
    }
    if turned {
        rows.rotate_left(700);
    }
    let columns: Vec<String> = (0..24).map(|column| format!("x{column}")).collect();
    let text = format!("site,{},died\n{}\n", columns.join(","), rows.join("\n"));
    std::fs::write(folder.join(rows_named), text).unwrap();
}

/// Fewer rounds, seeds and ways than usual: tests are to be quick.
const QUICK: &[&str] = &[
    "--owner",
    "site",
    "--label",
    "died",
    "--seeds",
    "2",
    "--rules",
    "fedavg+preview",
    "--set",
    "rounds=60",
    "--set",
    "data.test_share=0.5",
    "--set",
    "measure=[\"auroc\"]",
];

fn plan<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["plan", "sites.csv"], QUICK, arguments].concat()
}

fn answer(folder: &Path, arguments: &[&str]) -> Value {
    let output = fedstay(folder, &plan(arguments));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_table_with_owners_is_answered_in_words_numbers_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), "sites.csv", false);
    let answer = answer(folder.path(), &["--json"]);
    let owners = answer["owners"].as_array().unwrap();
    let names: Vec<&str> = owners.iter().map(|owner| owner["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Large General", "Small Ward", "Tiny"]);
    let gains: Vec<&str> = owners.iter().map(|owner| owner["gains"].as_str().unwrap()).collect();
    assert_eq!(gains, ["no", "yes", "unknown"], "{answer:#}");
    assert_eq!(owners[0]["rows"], 700);
    for owner in &owners[..2] {
        for model in ["alone", "together", "pooled"] {
            let auroc = &owner[model]["auroc"];
            let of = |end: &str| auroc[end].as_f64().unwrap();
            assert!(of("low") <= of("value") && of("value") <= of("high"), "{auroc}");
        }
    }
    let ways = answer["ways"].as_array().unwrap();
    let labels: Vec<&str> = ways.iter().map(|way| way["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["fedavg+never", "fedavg", "fedavg+preview"]);
    for way in ways {
        assert!(way["left"].is_array() && way["content"].is_number());
        assert!(way["measures"]["auroc"]["value"].is_number());
    }
    assert!(ways[0]["left"].as_array().unwrap().is_empty(), "nobody leaves the ceiling");
    assert!(answer["recommend"]["label"].is_string());
    let told = answer["recommend"]["words"].as_str().unwrap();
    assert!(told.contains("Small Ward") && told.contains("Large General"), "{told}");
    for file in ["plan.html", "plan.json", "plan.toml", "members.csv", "ways.csv"] {
        assert!(folder.path().join("plan").join(file).exists(), "{file}");
    }
    let page = std::fs::read_to_string(folder.path().join("plan/plan.html")).unwrap();
    assert!(!page.contains("<script") && page.contains("Small Ward") && page.contains("<svg"));
    for jargon in ["agent", "ε", " D "] {
        let prose = page.split("<pre").next().unwrap();
        assert!(!prose.contains(jargon), "{jargon}: {prose}");
    }
}

#[test]
fn the_terminal_has_five_parts_at_80_columns_and_ends_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), "sites.csv", false);
    let output = command(folder.path(), &plan(&[])).env("COLUMNS", "80").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut last = 0;
    for part in
        ["1  What came in", "2  Who gains", "3  What happens", "4  What keeps", "5  What to do"]
    {
        let at = text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(at >= last);
        last = at;
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let said = words(&text);
    for told in ["Large General gains nothing that counts", "Of Tiny it cannot be told"] {
        assert!(said.replace('\n', " ").contains(told), "{told}: {said}");
    }
}

#[test]
fn the_same_question_has_the_same_bytes_whatever_the_threads_and_however_often_it_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), "sites.csv", false);
    let read = |out: &str, file: &str| std::fs::read(folder.path().join(out).join(file)).unwrap();
    let ask = |out: &str, threads: &str| {
        answer(folder.path(), &["--json", "--out", out, "--threads", threads]);
    };
    ask("one", "1");
    ask("two", "2");
    // As if it had been cut off: some runs are there, one is half written.
    let runs = folder.path().join("two/runs");
    let mut kept: Vec<_> =
        std::fs::read_dir(&runs).unwrap().map(|file| file.unwrap().path()).collect();
    kept.sort();
    kept.iter().step_by(2).for_each(|run| std::fs::remove_file(run).unwrap());
    std::fs::write(&kept[1], "{\"models\":[\"AAA").unwrap();
    let whole = std::fs::read(&kept[3]).unwrap();
    let before = std::fs::metadata(&kept[3]).unwrap().modified().unwrap();
    ask("two", "2");
    let after = std::fs::metadata(&kept[3]).unwrap().modified().unwrap();
    assert_eq!((before, whole), (after, std::fs::read(&kept[3]).unwrap()), "not computed again");
    for file in ["plan.json", "plan.html", "plan.toml", "members.csv", "ways.csv"] {
        assert!(read("one", file) == read("two", file), "{file}");
    }
    // plan.toml asks the same.
    let again = fedstay(folder.path(), &["plan", "one/plan.toml", "--out", "three", "--json"]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert!(read("one", "plan.json") == read("three", "plan.json"));
}

#[test]
fn a_table_that_changed_under_its_name_is_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), "sites.csv", false);
    let first = answer(folder.path(), &["--json"]);
    let path = folder.path().join("sites.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("Small Ward,0", "Small Ward,9")).unwrap();
    let second = answer(folder.path(), &["--json"]);
    assert_ne!(first["owners"][1]["alone"], second["owners"][1]["alone"]);
}

/// The order of owners in the file changes the order in which they are told, and whose rows are whose not
/// at all.
#[test]
fn owners_in_another_order_have_as_many_rows_and_gain_alike() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    table(one.path(), "sites.csv", false);
    table(other.path(), "sites.csv", true);
    let of = |folder: &Path| -> std::collections::BTreeMap<String, (Value, Value)> {
        let answer = answer(folder, &["--json"]);
        let owners = answer["owners"].as_array().unwrap().clone();
        let told = owners.into_iter().map(|owner| {
            let name = owner["name"].as_str().unwrap().to_owned();
            (name, (owner["rows"].clone(), owner["gains"].clone()))
        });
        told.collect()
    };
    assert_eq!(of(one.path()), of(other.path()));
}

#[test]
fn what_is_missing_is_named_with_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), "sites.csv", false);
    for (arguments, told) in [
        (&["plan", "nowhere.csv", "--owner", "site"][..], "nowhere.csv"),
        (&["plan", "sites.csv", "--owner", "sight", "--label", "died"], "`sight`"),
        (&["plan", "sites.csv", "--owner", "site", "--seeds", "0"], "ask for 1 to 1000"),
        (&["plan", "sites.csv", "--owner", "site", "--rules", "fedavgg"], "fedavg"),
        (&["plan", "sites.csv", "x.toml"], "not both"),
    ] {
        let output = fedstay(folder.path(), arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(told), "{arguments:?}: {error}");
        assert!(error.lines().count() <= 6, "{error}");
    }
    std::fs::write(folder.path().join("grid.toml"), "[grid]\nrounds = [1, 2]\n").unwrap();
    let output = fedstay(folder.path(), &["plan", "grid.toml"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("grid.rounds"));
}
