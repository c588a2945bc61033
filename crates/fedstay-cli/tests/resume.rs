//! A run that is killed at any moment continues to the same bytes.
//!
//! `FEDSTAY_KILLS=100 cargo test --test resume -- --nocapture` kills more often than CI has time
//! for, and prints how often.

mod common;

use common::{kills, moments};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn start(folder: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_fedstay"))
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn finish(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Every file of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.map(|entry| (name(&entry.path()), std::fs::read(entry.path()).unwrap())).collect()
}

fn killed_and_resumed(more: &[&str], sets: &[&str], kills: u32) {
    let folder = tempfile::tempdir().unwrap();
    let start = |arguments: &[String]| {
        start(folder.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let run = |out: &str| {
        let mut arguments = vec!["run", "--out", out];
        arguments.extend(more);
        sets.iter().for_each(|set| arguments.extend(["--set", set]));
        arguments.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let resume = |out: &str| ["run", "--resume", out].map(str::to_owned);
    finish(start(&run("whole")));
    let whole = files(&folder.path().join("whole"));
    let length = |out: &str| {
        let file = std::fs::metadata(folder.path().join(out).join("rounds.jsonl"));
        file.map_or(0, |file| file.len())
    };
    let whole_length = length("whole");
    let (mut cut_off, mut while_resuming) = (0, 0);
    let mut moments = moments();
    for kill in 0..kills {
        let out = format!("cut{kill}");
        let mut child = start(&run(&out));
        // Spread over the whole run by how far it has come, whatever else the machine is doing,
        // plus a delay that has nothing to do with its rounds.
        let share = whole_length * u64::from(kill * 37 % kills) / u64::from(kills + 1);
        let patience = Instant::now() + Duration::from_secs(120);
        while length(&out) < share && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < patience, "kill {kill}: {out} stands still");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros((moments() * 4_000.0) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        let path = folder.path().join(&out);
        if !path.join("config.toml").exists() {
            // Killed before the folder existed: nothing had begun, and the same command starts it.
            finish(start(&run(&out)));
        } else if !path.join("summary.json").exists() {
            cut_off += 1;
            // Every finished round is readable as it stands.
            let text = std::fs::read_to_string(path.join("rounds.jsonl")).unwrap();
            let complete = text.lines().count() - usize::from(!text.ends_with('\n'));
            for line in text.lines().take(complete) {
                serde_json::from_str::<serde_json::Value>(line).unwrap();
            }
            // Every third run is killed again while it resumes.
            if kill % 3 == 0 {
                let mut child = start(&resume(&out));
                std::thread::sleep(Duration::from_micros((moments() * 200_000.0) as u64));
                while_resuming += u32::from(child.try_wait().unwrap().is_none());
                child.kill().unwrap();
                child.wait().unwrap();
            }
            if !path.join("summary.json").exists() {
                finish(start(&resume(&out)));
            }
        }
        let resumed = files(&path);
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&whole), names(&resumed), "kill {kill}");
        for (name, bytes) in &whole {
            assert!(resumed[name] == *bytes, "kill {kill}: {name} differs");
        }
        std::fs::remove_dir_all(path).unwrap();
    }
    println!(
        "{kills} runs killed, {cut_off} of them running, {while_resuming} again while resuming"
    );
    assert!(cut_off >= kills / 2, "only {cut_off} of {kills} kills hit a running run");
}

#[test]
fn a_problem_killed_at_20_moments_resumes_to_identical_bytes() {
    killed_and_resumed(
        &[],
        &[
            "problem.kind=huber",
            "problem.dim=60",
            "problem.samples=40",
            "problem.agents=12",
            "step_size=0.0005",
            "rounds=12000",
            "record_gram=true",
        ],
        kills(20),
    );
}

#[test]
fn training_on_data_killed_at_8_moments_resumes_to_identical_bytes() {
    killed_and_resumed(
        &[],
        &[
            "rule.kind=fedavg",
            "local.steps=4",
            "local.batch=32",
            "rounds=250",
            "step_size=0.05",
            "participation=0.8",
            "policy.kind=keep-best",
            "model.hidden=64",
        ],
        kills(8),
    );
}

/// What was asked for when the run was begun is in the summary of the resumed run, though nobody
/// asks again; an agent that had left before the kill ends with what it left with.
#[test]
fn a_story_and_a_counterfactual_asked_for_once_survive_6_kills() {
    killed_and_resumed(
        &["--story", "--counterfactual"],
        &["rule.kind=fedavg", "rounds=150", "step_size=0.05", "epsilon=0.9", "data.per_agent=60"],
        kills(6),
    );
}

#[test]
fn a_damaged_folder_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    finish(start(folder.path(), &["run", "--out", "a", "--set", "rounds=5"]));
    let path = folder.path().join("a");
    std::fs::remove_file(path.join("summary.json")).unwrap();
    let refused = |expected: &str| {
        let output = start(folder.path(), &["run", "--resume", "a"]).wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    let checkpoint = std::fs::read(path.join("checkpoint")).unwrap();
    std::fs::write(path.join("checkpoint"), &checkpoint[..checkpoint.len() / 2]).unwrap();
    refused("checkpoint");
    std::fs::write(path.join("checkpoint"), &checkpoint).unwrap();
    let rounds = std::fs::read(path.join("rounds.jsonl")).unwrap();
    std::fs::write(path.join("rounds.jsonl"), &rounds[..rounds.len() / 2]).unwrap();
    refused("rounds.jsonl");
    std::fs::write(path.join("rounds.jsonl"), &rounds).unwrap();
    finish(start(folder.path(), &["run", "--resume", "a"]));
    std::thread::sleep(Duration::from_millis(1));
    refused("is over");
}
