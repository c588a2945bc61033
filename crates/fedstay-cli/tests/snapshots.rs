//! What a person reads, whole: a change to it is seen in the difference of a file, and not through
//! a hundred searches for words. After a change on purpose: `INSTA_UPDATE=always cargo test`, and
//! read the difference.
//!
//! Only named problems are run here: their numbers are in double precision and the same everywhere.

mod common;

use common::{all_said, ok, said};

const OBSERVATION: [&str; 3] = ["run", "--set", "problem.kind=observation-3"];

#[test]
fn a_run_in_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let fedavg = [&OBSERVATION[..], &["--set", "rule.kind=fedavg", "--counterfactual"]].concat();
    insta::assert_snapshot!("run-fedavg", said(folder.path(), &fedavg));
    let ada_gd = [&OBSERVATION[..], &["--set", "rule.kind=ada-gd"]].concat();
    insta::assert_snapshot!("run-ada-gd", said(folder.path(), &ada_gd));
    insta::assert_snapshot!("ls", said(folder.path(), &["ls"]));
    let svg = folder.path().join("runs/observation-3-fedavg-s0/run.svg");
    insta::assert_snapshot!("run-svg", drawn(&std::fs::read_to_string(svg).unwrap()));
}

/// The words of a drawing, one per line: what a person reads in it.
fn drawn(svg: &str) -> String {
    let texts = svg.split("<text").skip(1).filter_map(|part| {
        let inside = part.split_once('>')?.1.split_once("</text>")?.0;
        let mut plain = String::new();
        let mut tag = false;
        for letter in inside.chars() {
            match letter {
                '<' => tag = true,
                '>' => tag = false,
                letter if !tag => plain.push(letter),
                _ => {}
            }
        }
        Some(plain)
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_summary_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let json = [&OBSERVATION[..], &["--set", "rule.kind=fedavg", "--json"]].concat();
    let mut summary: serde_json::Value = serde_json::from_str(&ok(folder.path(), &json)).unwrap();
    round(&mut summary);
    insta::assert_snapshot!("summary", serde_json::to_string_pretty(&summary).unwrap());
}

/// Rounds numbers to six digits: the last bits belong to the machine's logarithms.
fn round(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Number(number) if number.is_f64() => {
            let short = format!("{:.6e}", number.as_f64().unwrap()).parse::<f64>().unwrap();
            *value = serde_json::json!(short);
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(round),
        serde_json::Value::Object(map) => map.values_mut().for_each(round),
        _ => {}
    }
}

#[test]
fn a_comparison_in_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let rules = ["--rules", "fedavg,fedavg+early-stop,ada-gd,retain"];
    let compare = [&["compare", "--set", "problem.kind=observation-3"][..], &rules].concat();
    insta::assert_snapshot!("compare", said(folder.path(), &compare));
    let rules = ["--rules", "fedavg,ada-gd", "--wide"];
    let compare = [&["compare", "--set", "problem.kind=red-blue"][..], &rules].concat();
    insta::assert_snapshot!("compare-red-blue", said(folder.path(), &compare));
    for file in ["figures/compare.svg", "figures/compare.png"] {
        assert!(folder.path().join(file).exists(), "{file}");
    }
}

#[test]
fn what_is_wrong_is_said_like_this() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("value.toml", "rounds = 3\n\n[rule]\ndelta = \"big\"\n");
    write("syntax.toml", "rounds = 3\n[rule]\nkind = ada-gd\n");
    write("kind.toml", "[rule]\nkind = \"fedavg\"\non_settled = \"halve\"\n");
    write("section.toml", "rule = \"fedavg\"\n");
    write("text.toml", "[rulee]\nkind = \"fedavg\"\n");
    std::fs::write(folder.path().join("bytes.toml"), [0xff, 0xfe, 0x00]).unwrap();
    let mut told = String::new();
    for file in ["value", "syntax", "kind", "section", "text", "bytes", "nowhere"] {
        told.push_str(&said(folder.path(), &["run", &format!("{file}.toml")]));
    }
    for set in [
        "rounds=1e3",
        "seed=-1",
        "local.step=0.1",
        "data.kind=csv",
        "behaviour.steps=10",
        "rule=fedavg",
        "rule.kind=adagd",
        "model.hidden=relu",
        "epsilom=1",
        "steps=5",
        "colour=blue",
        "epsilon",
    ] {
        told.push_str(&said(folder.path(), &["run", "--set", set]));
    }
    insta::assert_snapshot!("errors", told);
}

#[test]
fn what_is_not_there_is_said_like_this() {
    let folder = tempfile::tempdir().unwrap();
    let told = all_said(
        folder.path(),
        &[
            &["run", "--set", "rule.detla=1"],
            &["run", "--set", "rule.kind=ada"],
            &["run", "--resume", "nowhere"],
            &["run", "--set", "data.kind=csv", "--set", "data.path=nowhere.csv"],
            &["run", "--set", "epsilon=[1,2]"],
            &["compare", "--rules", "ada-gd+halv"],
            &["tournament", "--rules", "fedavg+slowly"],
            &["tournament", "--behaviours", "forsight"],
            &["tournament", "--set", "rounds=0"],
            &["tournament", "--set", "problem.kind=huber"],
            &["story", "nowhere"],
            &["figure", "99"],
            &["figure", "3"],
            &["data", "fetch", "imagenet"],
            &["check", "."],
            &["new", "w.toml", "--set", "agnets=2"],
        ],
    );
    assert_eq!(told.matches("\nerror: ").count(), told.matches("$ fedstay ").count());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    insta::assert_snapshot!("absent", told);
}

#[test]
fn lists_are_written_like_this() {
    let folder = tempfile::tempdir().unwrap();
    // All are made alike; what they say is in the files of their entries.
    let lists = ["problems", "models"];
    let lists = lists.map(|list| said(folder.path(), &["list", list]));
    insta::assert_snapshot!("lists", lists.concat());
    let check = ["check", "--set", "problem.kind=observation-2"];
    insta::assert_snapshot!("check", said(folder.path(), &check));
    insta::assert_snapshot!("help", said(folder.path(), &["--help"]));
}

#[test]
fn a_starter_has_every_key() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), &["new"]);
    let text = std::fs::read_to_string(folder.path().join("experiment.toml")).unwrap();
    // The rest is made of the keys' descriptions alike; `docs/keys.md` shows changes to them.
    let (head, _) = text.split_once("\n# == How the server aggregates").unwrap();
    insta::assert_snapshot!("new", head);
    // It can be run, and says what it comes to.
    let whole = ok(folder.path(), &["run", "experiment.toml", "--dry-run"]);
    assert_eq!(whole, ok(folder.path(), &["run", "--dry-run"]));
    assert!(!folder.path().join("runs").exists());
    // A key that is set, and a table of one's own.
    std::fs::write(folder.path().join("t.csv"), "a,b\n1,x\n2,y\n3,x\n4,y\n").unwrap();
    ok(folder.path(), &["new", "t.toml", "--csv", "t.csv", "--set", "agents=2"]);
    let shown = ok(folder.path(), &["data", "show", "t.toml", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["classes"], serde_json::json!(["x", "y"]));
    insta::assert_snapshot!("new-again", said(folder.path(), &["new"]));
    // A table whose columns are separated by something else, and one that is not there.
    std::fs::write(folder.path().join("s.csv"), "a;b,c;d\n1;2;x\n2;3;y\n3;4;x\n4;5;y\n").unwrap();
    let commands: [&[&str]; 3] = [
        &["new", "s.toml", "--csv", "s.csv"],
        &["data", "show", "s.toml", "--set", "agents=2"],
        &["new", "n.toml", "--csv", "nowhere.csv"],
    ];
    insta::assert_snapshot!("new-csv", all_said(folder.path(), &commands));
}

#[test]
fn folders_are_named_by_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let runs = [
        (&["--set", "rule.kind=fedavg"][..], "observation-3-fedavg-s0"),
        (
            &["--set", "rule.kind=fedavg", "--set", "epsilon=0.3"],
            "observation-3-fedavg-epsilon0.3-s0",
        ),
        (
            &["--set", "rule.kind=ada-gd", "--set", "seed=4", "--guard"],
            "observation-3-ada-gd+guard-s4",
        ),
        (&["--set", "rule.kind=fedavg"], "observation-3-fedavg-s0-2"),
    ];
    for (more, name) in runs {
        let said = ok(folder.path(), &[&OBSERVATION[..], more].concat());
        let written = format!("written to runs/{name}");
        assert!(said.lines().any(|line| line == written), "{name}: {said}");
    }
}

#[test]
fn shells_and_manuals_know_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ok(folder.path(), &["completions", shell]);
        assert!(script.contains("tournament") && script.contains("counterfactual"), "{shell}");
    }
    assert!(ok(folder.path(), &["man"]).contains(".SH NAME"));
    ok(folder.path(), &["man", "--out", "pages"]);
    for page in ["fedstay.1", "fedstay-run.1", "fedstay-sweep-query.1"] {
        assert!(folder.path().join("pages").join(page).is_file(), "{page}");
    }
}
