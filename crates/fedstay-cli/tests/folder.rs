//! A run's folder: one writer at a time, and a run whose files were changed is not continued.

mod common;

use common::{all_said, command, fedstay, ok};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Two seconds of rounds on a fast machine: several checkpoints.
const LONG: [&str; 14] = [
    "--set",
    "rule.kind=ada-gd",
    "--set",
    "problem.kind=huber",
    "--set",
    "problem.dim=60",
    "--set",
    "problem.samples=40",
    "--set",
    "step_size=0.0005",
    "--set",
    "rounds=20000",
    "--set",
    "record_gram=true",
];

fn start(folder: &Path, arguments: &[&str]) -> Child {
    command(folder, arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn run_into<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--out", out], more].concat()
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = fedstay(folder, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

fn wait_for_rounds(path: &Path, child: &mut Child) {
    let patience = Instant::now() + Duration::from_secs(60);
    while std::fs::metadata(path.join("rounds.jsonl")).map_or(0, |file| file.len()) < 20_000 {
        assert!(Instant::now() < patience && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// How many bytes of rounds.jsonl, after its header, the checkpoint vouches for.
fn marked(path: &Path) -> u64 {
    let text = std::fs::read_to_string(path.join("checkpoint")).unwrap();
    let body: serde_json::Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    body["rounds"]["bytes"].as_u64().unwrap()
}

/// A run that was killed in the middle, in the folder `cut`, after a checkpoint or two.
fn cut_off(folder: &Path) {
    let mut child = start(folder, &run_into("cut", &LONG));
    wait_for_rounds(&folder.join("cut"), &mut child);
    while marked(&folder.join("cut")) < 10_000 {
        assert!(child.try_wait().unwrap().is_none(), "it was over before its second checkpoint");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!folder.join("cut/summary.json").exists());
}

fn same_files(folder: &Path, one: &str, other: &str) {
    let names = |run: &str| {
        let entries = std::fs::read_dir(folder.join(run)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(one), names(other));
    for name in names(one) {
        let read = |run: &str| std::fs::read(folder.join(run).join(&name)).unwrap();
        assert!(read(one) == read(other), "{name:?} differs");
    }
}

#[test]
fn resuming_beside_a_live_run_is_refused_and_leaves_it_undisturbed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, &run_into("alone", &LONG));
    let mut live = start(folder, &run_into("live", &LONG));
    wait_for_rounds(&folder.join("live"), &mut live);
    for _ in 0..8 {
        let said = refused(folder, &["run", "--resume", "live"]);
        assert!(said.contains("being written by another process"), "{said}");
        assert!(said.contains(&live.id().to_string()), "it names the process: {said}");
        assert!(refused(folder, &run_into("live", &LONG)).contains("by another process"));
    }
    assert!(live.try_wait().unwrap().is_none(), "the run was over before it was disturbed");
    assert!(live.wait().unwrap().success());
    same_files(folder, "alone", "live");
    assert!(refused(folder, &["run", "--resume", "live"]).contains("is over"));
}

#[test]
fn of_processes_that_create_or_resume_one_folder_at_once_exactly_one_wins() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let won = |children: Vec<Child>| {
        let ends: Vec<_> =
            children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        for end in ends.iter().filter(|end| !end.status.success()) {
            let said = String::from_utf8_lossy(&end.stderr);
            assert_eq!(end.status.code(), Some(2), "{said}");
            let known = ["holds a run already", "by another process", "is over"];
            assert!(known.iter().any(|known| said.contains(known)), "{said}");
        }
        ends.iter().filter(|end| end.status.success()).count()
    };
    ok(folder, &run_into("alone", &LONG));
    for attempt in 0..4 {
        let out = format!("made{attempt}");
        let children = (0..3).map(|_| start(folder, &run_into(&out, &LONG))).collect();
        assert_eq!(won(children), 1);
        same_files(folder, "alone", &out);
    }
    cut_off(folder);
    let children = (0..4).map(|_| start(folder, &["run", "--resume", "cut"])).collect();
    assert_eq!(won(children), 1);
    same_files(folder, "alone", "cut");
    // Without --out each takes a folder of its own.
    let children = (0..4).map(|_| start(folder, &["run", "--set", "rounds=3"])).collect();
    assert_eq!(won(children), 4);
    assert_eq!(std::fs::read_dir(folder.join("runs")).unwrap().count(), 4);
}

#[test]
fn what_was_changed_between_a_kill_and_a_resume_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    cut_off(folder);
    let damage = |file: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let path = folder.join("cut").join(file);
        let right = std::fs::read(&path).unwrap();
        let mut changed = right.clone();
        change(&mut changed);
        std::fs::write(&path, &changed).unwrap();
        let said = refused(folder, &["run", "--resume", "cut"]);
        assert!(said.contains(file) && said.contains("fedstay run"), "{file}: {said}");
        assert!(std::fs::read(&path).unwrap() == changed, "{file} is left as it was found");
        std::fs::write(&path, &right).unwrap();
    };
    let swap = |text: &mut Vec<u8>, from: &str, to: &str| {
        let there = String::from_utf8(text.clone()).unwrap();
        assert!(there.contains(from), "{from}");
        *text = there.replacen(from, to, 1).into_bytes();
    };
    damage("config.toml", &|text| swap(text, "step_size = 0.0005", "step_size = 0.0004"));
    damage("config.toml", &|text| text.extend(b"# a remark\n"));
    damage("rounds.jsonl", &|text| swap(text, "\"round\":9,", "\"round\":8,"));
    damage("rounds.jsonl", &|text| text.splice(2000..2000, *b"garbage").for_each(drop));
    damage("rounds.jsonl", &|text| text[10] ^= 1);
    damage("rounds.jsonl", &|text| text.truncate(3000));
    damage("gram.jsonl", &|text| text[5000] ^= 1);
    damage("checkpoint", &|text| text.truncate(text.len() - 2));
    let earlier = "\"schema\":\"fedstay.checkpoint/1\"";
    damage("checkpoint", &|text| swap(text, "\"schema\":\"fedstay.checkpoint/2\"", earlier));
    // A bit of every key and value, wherever they are.
    let length = std::fs::read(folder.join("cut/checkpoint")).unwrap().len();
    for place in (0..length).step_by(length / 60) {
        damage("checkpoint", &|text| text[place] ^= 1 << (place % 8));
    }
    std::fs::rename(folder.join("cut/checkpoint"), folder.join("kept")).unwrap();
    assert!(refused(folder, &["run", "--resume", "cut"]).contains("checkpoint is not there"));
    std::fs::rename(folder.join("kept"), folder.join("cut/checkpoint")).unwrap();

    // What came after the checkpoint is computed again, whatever it was.
    use std::io::Write;
    let rounds = std::fs::OpenOptions::new().append(true).open(folder.join("cut/rounds.jsonl"));
    rounds.unwrap().write_all(b"{\"half a line").unwrap();
    ok(folder, &["run", "--resume", "cut"]);
    ok(folder, &run_into("alone", &LONG));
    same_files(folder, "alone", "cut");
}

#[cfg(unix)]
#[test]
fn the_checkpoint_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), &["run", "--out", "a", "--set", "rounds=3"]);
    let mode = |file: &str| {
        std::fs::metadata(folder.path().join("a").join(file)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("checkpoint"), 0o600);
}

#[test]
fn a_run_whose_agents_are_in_python_is_said_not_to_be_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir(folder.join("flower")).unwrap();
    let config = "seed = 0\nrounds = 5\nstep_size = 0.1\non = \"flower\"\n[flower]\nagents = 3\n";
    std::fs::write(folder.join("flower/config.toml"), config).unwrap();
    let commands: [&[&str]; 3] =
        [&["story", "flower"], &["check", "flower"], &["run", "--resume", "flower"]];
    insta::assert_snapshot!("agents-in-python", all_said(folder, &commands));
}

/// What was booked in Python is told all the same.
#[test]
fn the_story_of_a_run_in_python_is_told_as_it_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let problem = ["--set", "problem.kind=observation-3", "--set", "worth.methods=[\"help\"]"];
    ok(folder, &[&["run", "--set", "rule.kind=fedavg", "--out", "a"], &problem[..]].concat());
    let config = "seed = 0\nrounds = 5\nstep_size = 0.1\non = \"python\"\nepsilon = [0.1, 0.1]\n";
    std::fs::write(folder.join("a/config.toml"), config).unwrap();
    let told = ok(folder, &["story", "a"]);
    assert!(told.contains("off the others' losses, theirs took"), "{told}");
    assert!(
        told.contains("and they are in Python") && !told.contains("alone it would have"),
        "{told}"
    );
}

#[test]
fn class_names_from_a_file_cannot_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut rows = String::from("x,y,class\n");
    for row in 0..40 {
        rows.push_str(&format!("{row},{},\u{1b}[31m{}\n", row % 7, row % 2));
    }
    std::fs::write(folder.join("t.csv"), rows).unwrap();
    let data = ["--set", "data.kind=csv", "--set", "data.path=t.csv", "--set", "agents=2"];
    let data = [&data[..], &["--set", "partition.kind=iid", "--set", "rounds=2"]].concat();
    let shown = ok(folder, &[&["data", "show"], &data[..]].concat());
    assert!(shown.contains("\\u{1b}[31m"), "{shown}");
    let ran = ok(folder, &[&["run", "--story"], &data[..]].concat());
    for text in [shown, ran] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
}

#[test]
fn a_run_whose_files_are_deleted_while_it_runs_ends_in_an_error_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, whole) in [("all", true), ("one", false)] {
        let path = folder.join(name);
        let mut live = start(folder, &run_into(name, &LONG));
        wait_for_rounds(&path, &mut live);
        match whole {
            // The folder as a whole, at once: the run may be making a file in it just now.
            true => std::fs::rename(&path, folder.join("elsewhere")).unwrap(),
            false => std::fs::remove_file(path.join("rounds.jsonl")).unwrap(),
        }
        let end = live.wait_with_output().unwrap();
        let said = String::from_utf8(end.stderr).unwrap();
        assert_eq!(end.status.code(), Some(1), "{said}");
        assert!(
            said.contains("rounds.jsonl was deleted") && said.contains("start the run again"),
            "{said}"
        );
        assert!(!path.join("summary.json").exists());
    }
}

/// Replaces the first `from` in a file of a run.
fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{} has no {from}", path.display());
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn a_finished_run_whose_files_were_changed_is_shown_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let set = ["problem.kind=observation-3", "rule.kind=fedavg", "record_gram=true"];
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", *set]).collect();
    ok(folder, &run_into("runs/a", &set));
    let everything = || {
        let commands: [&[&str]; 4] =
            [&["ls"], &["story", "runs/a"], &["check", "runs/a"], &["report", "runs/a"]];
        let said: String = commands.iter().map(|arguments| ok(folder, arguments)).collect();
        said + &std::fs::read_to_string(folder.join("report.html")).unwrap()
    };
    let counted = |file: &str| everything().matches(&format!("{file} changed since")).count();
    assert!(!everything().contains("changed since"));
    let sums = std::fs::read_to_string(folder.join("runs/a/SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), 5, "{sums}");
    for (file, from, to) in [
        ("summary.json", "\"rounds\": 48", "\"rounds\": 47"),
        ("rounds.jsonl", "\"round\":2,", "\"round\":3,"),
        ("config.toml", "alpha = 1.0", "alpha = 1.5"),
    ] {
        let path = folder.join("runs/a").join(file);
        let whole = std::fs::read(&path).unwrap();
        edit(&path, from, to);
        // `ls`, the story, the check, what `report` says, and the page.
        assert_eq!(counted(file), 5, "{file}");
        let listed = ok(folder, &["ls", "--json"]);
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed[0]["changed"], serde_json::json!([file]));
        std::fs::write(&path, whole).unwrap();
    }
    let model = folder.join("runs/a/model.safetensors");
    let mut bytes = std::fs::read(&model).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&model, bytes).unwrap();
    assert_eq!(counted("model.safetensors"), 5);
    // A folder of an earlier version has no hashes and is read as ever.
    std::fs::remove_file(folder.join("runs/a/SHA256SUMS")).unwrap();
    assert!(!everything().contains("changed since"));
}

#[test]
fn a_report_does_not_write_over_a_file_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, &run_into("a", &["--set", "problem.kind=observation-3"]));
    for file in ["summary.json", "rounds.jsonl", "config.toml", "model.safetensors", "checkpoint"] {
        let path = folder.join("a").join(file);
        let before = std::fs::read(&path).unwrap();
        let said = refused(folder, &["report", "a", "-o", &format!("a/{file}")]);
        assert!(said.contains("is a file of a run") && said.contains("report.html"), "{said}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
    // Its own report may be written again, and so may a file of such a name that is no run's.
    ok(folder, &["report", "a", "-o", "a/report.html"]);
    ok(folder, &["report", "a", "-o", "summary.json"]);
}

#[test]
fn a_file_in_the_place_of_a_folder_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("f"), "mine").unwrap();
    let said = refused(folder, &run_into("f", &["--set", "problem.kind=observation-3"]));
    assert!(said.contains("f is a file") && said.contains("choose another --out"), "{said}");
    assert_eq!(std::fs::read(folder.join("f")).unwrap(), b"mine");
}

#[cfg(unix)]
#[test]
fn a_name_with_a_line_end_stays_on_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let said = ok(folder.path(), &run_into("n\nx", &["--set", "problem.kind=observation-3"]));
    assert!(said.contains("written to n\\nx\n"), "{said}");
    assert!(said.lines().all(|line| line != "x" && !line.starts_with("x/")), "{said}");
}

/// As where the disk is full: what cannot be written here is a picture whose name a folder has.
#[test]
fn a_picture_that_cannot_be_written_says_how_to_end_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir_all(folder.join("a/run.svg")).unwrap();
    let set = ["--set", "problem.kind=observation-3", "--set", "rule.kind=fedavg"];
    let output = fedstay(folder, &run_into("a", &set));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("`fedstay run --resume a` ends the run") && said.contains("run.svg"),
        "{said}"
    );
    std::fs::remove_dir(folder.join("a/run.svg")).unwrap();
    ok(folder, &["run", "--resume", "a"]);
    ok(folder, &run_into("b", &set));
    same_files(folder, "a", "b");
}
