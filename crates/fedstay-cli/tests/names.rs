//! A run has one name wherever one reads about it: terminal, list, story, picture, report, header.

mod common;

use common::ok;
use std::path::Path;

/// A run of a rule with a change, an optimiser, a policy and a behaviour.
fn run(folder: &Path, out: &str, more: &[&str]) -> String {
    let set = ["--set", "problem.kind=observation-3", "--set", "rounds=30"];
    ok(folder, &[&["run", "--out", out], &set[..], more].concat())
}

const CHANGED: [&str; 8] = [
    "--set",
    "rule.kind=ada-gd",
    "--set",
    "rule.on_settled=halve",
    "--set",
    "policy.kind=keep-best",
    "--set",
    "behaviour.kind=returning",
];
const OPTIMISED: [&str; 6] = [
    "--set",
    "rule.kind=fedavg",
    "--set",
    "server.optimiser=adam",
    "--set",
    "policy.kind=keep-best",
];

#[test]
fn a_run_has_one_name_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let (here, read) =
        (folder.path(), |path: &str| std::fs::read_to_string(folder.path().join(path)).unwrap());
    let cases = [
        ("changed", &CHANGED[..], "ada-gd+halve+keep-best+returning"),
        ("optimised", &OPTIMISED[..], "fedavg+adam+keep-best"),
    ];
    for (name, set, label) in cases {
        let (out, title) = (format!("runs/{name}"), format!("{label} on observation-3, seed 0"));
        let said = run(here, &out, set);
        assert!(said.starts_with(&format!("{title}: ")), "{said}");
        let header: serde_json::Value =
            serde_json::from_str(read(&format!("{out}/rounds.jsonl")).lines().next().unwrap())
                .unwrap();
        assert_eq!(header["rule"], label);
        assert!(read(&format!("{out}/run.svg")).contains(&format!("<title>{title}</title>")));
        assert!(read(&format!("{out}/report.html")).contains(&format!("<h1>{title}</h1>")));
        assert!(ok(here, &["story", &out]).starts_with(&format!("{title}\n")));
    }
    let listed: Vec<serde_json::Value> =
        serde_json::from_str(&ok(here, &["ls", "--json"])).unwrap();
    assert_eq!(
        listed.iter().map(|run| run["rule"].as_str().unwrap()).collect::<Vec<_>>(),
        [cases[0].2, cases[1].2]
    );
    let table = ok(here, &["ls"]);
    assert!(cases.iter().all(|(.., label)| table.contains(label)), "{table}");
}

#[test]
fn runs_in_one_report_are_told_apart_by_their_folders() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (out, seed) in [("a/one", "seed=0"), ("b/two", "seed=1"), ("b/one", "seed=2")] {
        run(here, out, &["--set", "rule.kind=fedavg", "--set", seed]);
    }
    let report = |runs: [&str; 2]| {
        ok(here, &["report", runs[0], runs[1], "-o", "report.html"]);
        std::fs::read_to_string(here.join("report.html")).unwrap()
    };
    let named = report(["a/one", "b/two"]);
    for text in ["<td>one</td><td>fedavg</td>", "<td>two</td><td>fedavg</td>"] {
        assert!(named.contains(text), "{text}");
    }
    assert!(named.contains("<h2>two: fedavg on observation-3, seed 1</h2>"));
    // In the drawing as well, each by its own name.
    assert!(named.contains(">one</text>") && named.contains(">two</text>"));
    let alike = report(["a/one", "b/one"]);
    assert!(alike.contains("<td>a/one</td>") && alike.contains("<td>b/one</td>"));
}

/// Agents in Python have names: here the run of a problem is given some, as if it were one of theirs.
#[test]
fn an_agents_name_stands_in_story_report_and_picture() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    ok(
        here,
        &["run", "--out", "a", "--set", "problem.kind=observation-3", "--set", "rule.kind=fedavg"],
    );
    let before =
        ok(here, &["report", "a"]) + &std::fs::read_to_string(here.join("a/report.html")).unwrap();
    assert!(before.contains("agent 0 is content") && !before.contains("NSW"));
    let names = ["NSW", "St Mary"];
    let name = |value: &mut serde_json::Value| {
        for (agent, name) in value["agents"].as_array_mut().unwrap().iter_mut().zip(names) {
            agent["name"] = name.into();
        }
    };
    let change = |file: &str, change: &dyn Fn(&str) -> String| {
        let path = here.join("a").join(file);
        std::fs::write(&path, change(&std::fs::read_to_string(&path).unwrap())).unwrap();
    };
    change("summary.json", &|text| {
        let mut summary = serde_json::from_str(text).unwrap();
        name(&mut summary);
        summary.to_string()
    });
    change("rounds.jsonl", &|text| {
        let (header, rounds) = text.split_once('\n').unwrap();
        let mut header = serde_json::from_str(header).unwrap();
        name(&mut header);
        format!("{header}\n{rounds}")
    });
    // While the configuration is that of the problem there is a map of the losses too.
    ok(here, &["report", "a", "-o", "a/report.html"]);
    let with_map = std::fs::read_to_string(here.join("a/report.html")).unwrap();
    assert!(
        names.iter().all(|name| with_map.contains(&format!("{name} is content"))),
        "{with_map}"
    );
    assert!(!with_map.contains("agent 0") && !with_map.contains("agent 1"));
    change("config.toml", &|_| {
        "seed = 0\nrounds = 5\nstep_size = 0.1\non = \"python\"\n".to_owned()
    });
    let story = ok(here, &["story", "a"]);
    assert!(names.iter().all(|name| story.contains(&format!("  {name} (threshold"))), "{story}");
    ok(here, &["report", "a", "-o", "a/report.html"]);
    let report = std::fs::read_to_string(here.join("a/report.html")).unwrap();
    for name in names {
        assert!(report.contains(&format!("<td>{name}</td>")), "in the table: {report}");
        assert!(report.contains(&format!(">{name}</text>")), "in the picture: {report}");
    }
    for said in [report, story] {
        assert!(!said.contains("agent 0") && !said.contains("agent 1"), "{said}");
    }
}
