//! A table with owners, from its text to what is told: every owner is an agent under its name.

mod common;

use common::{fedstay, ok};
use std::path::Path;

/// Three hospitals of 12, 18 and 24 rows; a stay is long where the second value is high.
fn write(folder: &Path) {
    let mut text = "hospital,age,fever,stay,days\n".to_owned();
    for row in 0..54_u32 {
        let hospital = match row % 9 {
            0 | 1 => "St Mary",
            2..=4 => "Bergen North",
            _ => "Charite",
        };
        let (age, fever) = (20 + row * 7 % 60, row * 11 % 17);
        let (stay, days) = (if fever > 8 { "long" } else { "short" }, 2 * fever + age / 20);
        text += &format!("{hospital},{age},{fever},{stay},{days}\n");
    }
    std::fs::write(folder.join("table.csv"), text).unwrap();
}

const CLASSES: &str = "rounds = 20\nmodel.kind = \"softmax-regression\"\n[data]\nkind = \"csv\"\n\
    path = \"classes.csv\"\nowner = \"hospital\"\nlabel = \"stay\"\n";
const NUMBER: &str = "rounds = 20\nepsilon = 0.3\nmodel.kind = \"linear-regression\"\n[data]\n\
    kind = \"csv\"\npath = \"numbers.csv\"\nowner = \"hospital\"\nlabel = \"days\"\ntask = \"number\"\n";
const NAMES: [&str; 3] = ["Bergen North", "Charite", "St Mary"];

/// A folder with the table, once without the days and once without the stay, and both experiments.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let text = std::fs::read_to_string(folder.path().join("table.csv")).unwrap();
    for (name, left_out, experiment) in [("classes", 4, CLASSES), ("numbers", 3, NUMBER)] {
        let without = |line: &str| {
            let kept = line.split(',').enumerate().filter(|(column, _)| *column != left_out);
            kept.map(|(_, text)| text).collect::<Vec<_>>().join(",") + "\n"
        };
        let table: String = text.lines().map(without).collect();
        std::fs::write(folder.path().join(format!("{name}.csv")), table).unwrap();
        std::fs::write(folder.path().join(format!("{name}.toml")), experiment).unwrap();
    }
    folder
}

#[test]
fn owners_are_agents_under_their_names() {
    let folder = folder();
    let here = folder.path();
    let shown = ok(here, &["data", "show", "classes.toml"]);
    assert!(NAMES.iter().all(|name| shown.contains(name)), "{shown}");
    ok(here, &["run", "classes.toml", "--out", "run"]);
    let read = |file: &str| std::fs::read_to_string(here.join("run").join(file)).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
    let agents = summary["agents"].as_array().unwrap();
    let names: Vec<&str> = agents.iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, NAMES);
    assert!(read("config.toml").contains("agents = 3\n"));
    let told = ok(here, &["story", "run"]) + &read("report.html");
    assert!(NAMES.iter().all(|name| told.contains(name)), "{told}");
}

#[test]
fn a_number_has_a_loss_and_no_accuracy_whatever_the_threads() {
    let folder = folder();
    let here = folder.path();
    let mut files = Vec::new();
    for threads in ["1", "2"] {
        let out = format!("run{threads}");
        let said = ok(here, &["run", "numbers.toml", "--out", &out, "--threads", threads]);
        assert!(!said.contains("0%") && !said.contains("0.0%"), "{said}");
        files.push(std::fs::read(here.join(&out).join("model.safetensors")).unwrap());
    }
    assert_eq!(files[0], files[1]);
    let text = std::fs::read_to_string(here.join("run1/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    for agent in summary["agents"].as_array().unwrap() {
        let loss = agent["loss"].as_f64().unwrap();
        assert!(loss < 0.6 && agent["accuracy"].is_null(), "{agent}");
    }
}

#[test]
fn owners_are_told_how_good_the_model_is_on_their_own_held_back_rows() {
    let folder = folder();
    let here = folder.path();
    let asked = "measure=[\"auroc\", \"accuracy\"]";
    let said = ok(here, &["run", "classes.toml", "--out", "run", "--story", "--set", asked]);
    assert!(said.contains("held back   AUROC min"), "{said}");
    let read = |file: &str| std::fs::read_to_string(here.join("run").join(file)).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
    for (agent, rows) in summary["agents"].as_array().unwrap().iter().zip([2, 4, 2]) {
        let own = &agent["held_back"];
        assert_eq!(own["rows"], rows, "{agent}");
        let auroc = &own["measures"]["auroc"];
        assert!(auroc["low"].as_f64() <= auroc["value"].as_f64(), "{auroc}");
    }
    let told = ok(here, &["story", "run"]);
    let report = read("report.html");
    for text in [&told, &report] {
        assert!(text.contains("on its own held-back rows"), "{text}");
    }
}

#[test]
fn sweeps_have_columns_of_held_back_rows() {
    let folder = folder();
    let here = folder.path();
    let study = format!("{NUMBER}\n[grid]\nseed = [0, 1]\n");
    std::fs::write(here.join("study.toml"), study).unwrap();
    ok(here, &["sweep", "study.toml"]);
    let of = "held_back.rmse.max,held_back.rmse.median,held_back.loss.mean";
    let told = ok(here, &["sweep", "query", "study.toml", "--of", of, "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&told).unwrap();
    let text = rows.to_string();
    assert!(text.contains("held_back.rmse.max") && !text.contains("null"), "{text}");
}

#[test]
fn what_owners_contradict_is_refused_by_name() {
    let folder = folder();
    let refused = |file: &str, set: &str| {
        let output = fedstay(folder.path(), &["data", "show", file, "--set", set]);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let told = refused("classes.toml", "agents=5");
    assert!(told.contains("agents: 5 are asked for, but data.owner names 3"), "{told}");
    let told = refused("classes.toml", "data.per_agent=4");
    assert!(told.contains("data.per_agent: every owner has the rows it has"), "{told}");
    let told = refused("numbers.toml", "model.kind=softmax-regression");
    assert!(told.contains("\"softmax-regression\" learns classes"), "{told}");
    let told = refused("numbers.toml", "measure=[\"accuracy\"]");
    assert!(told.contains("measure: `accuracy` is measured of classes"), "{told}");
    assert!(told.contains("choose of rmse, mae, r2"), "{told}");
    let told = refused("classes.toml", "measure=[\"r2\"]");
    assert!(told.contains("`r2` is measured of a number") && told.contains("auroc"), "{told}");
    let told = refused("numbers.toml", "data.classes=[0]");
    assert!(told.contains("data.classes: asks for classes"), "{told}");
}

/// Beside the rules stand the baselines, and a column of rows that nobody trained on.
#[test]
fn a_real_federation_is_compared_with_its_baselines() {
    let folder = folder();
    for (experiment, measure) in [("classes.toml", "worst"), ("numbers.toml", "RMSE")] {
        let args = ["compare", experiment, "--rules", "fedavg+never,fedavg", "--set", "rounds=3"];
        let said = ok(folder.path(), &args);
        let row = |name: &str| {
            let mut lines =
                said.lines().filter(|line| line.split_whitespace().next() == Some(name));
            lines.next().unwrap_or_else(|| panic!("no row `{name}`:\n{said}")).to_owned()
        };
        for name in ["constant", "alone", "pooled"] {
            assert!(row(name).matches('–').count() >= 2, "{said}");
        }
        assert!(
            said.contains("held back") && said.contains(measure) || measure == "RMSE",
            "{said}"
        );
        assert!(said.contains("Baselines: `constant`"), "{said}");
    }
    // Nobody's rows are held back on digits, so nothing is said of baselines.
    let digits = ok(folder.path(), &["compare", "--rules", "fedavg", "--set", "rounds=2"]);
    assert!(!digits.contains("pooled"), "{digits}");
}
