//! Absurd and hostile settings: each is answered within seconds, by a run or by one sentence that
//! names the key and says what is allowed, before memory is allocated or threads are started for
//! it.

mod common;

use common::command;
use fedstay_sim::experiment::{Allowed, Experiment, KEYS, Key};
use fedstay_sim::run::Trial;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Anybody who waits longer thinks that it hangs.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the command; `None` if it does not answer in time.
fn answered(folder: &Path, arguments: &[&str]) -> Option<Output> {
    let mut child = command(folder, arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if child.try_wait().unwrap().is_some() {
            return Some(child.wait_with_output().unwrap());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

/// Asserts exit code 2 and one sentence that contains all of `says`; under it may be the line of the
/// file, drawn with carets.
fn refused(folder: &Path, arguments: &[&str], says: &[&str]) {
    let output = answered(folder, arguments).unwrap_or_else(|| panic!("{arguments:?} hangs"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(said.lines().filter(|line| !line.starts_with(' ')).count(), 1, "{said}");
    assert!(says.iter().all(|part| said.contains(part)), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

/// Settings that used to panic, abort or hang, and similar ones.
const REFUSED: &[(&str, &str)] = &[
    ("data.classes=[]", "data.classes"),
    ("partition.map=[]", "partition.map"),
    ("partition.map=[[]]", "partition.map"),
    ("model.hidden=[1000000000]", "at most 67108864"),
    ("model.hidden=1000000000", "at most 67108864"),
    ("model.hidden=[50000,50000]", "at most 67108864"),
    ("model.hidden=[4294967296,4294967296]", "at most 67108864"),
    (
        "model.hidden=[9223372036854775807,9223372036854775807,9223372036854775807]",
        "at most 67108864",
    ),
    ("model.hidden=[0]", "hidden unit"),
    ("model.hidden=[-1]", "model.hidden"),
    ("model.hidden=\"wide\"", "model.hidden"),
    (
        "agents=1000000000000",
        "`agents` is 1000000000000, but must be a whole number from 1 to 1000000",
    ),
    ("agents=0", "from 1 to 1000000"),
    ("agents=1000000", "training rows"),
    ("population=1000000000000", "from 1 to 1000000"),
    ("population=1000000", "training rows"),
    ("rounds=0", "from 1 to 100000000"),
    ("rounds=99999999999999999999", "`rounds` is 99999999999999999999"),
    ("step_size=0", "above zero"),
    ("step_size=1e300", "at most 1e38"),
    ("step_size=nan", "`step_size` is nan"),
    ("epsilon=nan", "epsilon"),
    ("epsilon=[]", "epsilon"),
    ("seed=-1", "`seed` is -1, but must be a whole number from 0 to 9223372036854775807"),
    ("seed=9223372036854775808", "`seed` is 9223372036854775808"),
    ("seed=18446744073709551615", "from 0 to 9223372036854775807"),
    ("seed=0.5", "a whole number"),
    ("local.steps=1000000000", "from 1 to 1000000"),
    ("local.batch=-1", "local.batch"),
    ("local.batch=0", "local.batch"),
    ("local.mu=1e300", "from 0 to 1e30"),
    ("participation=inf", "`participation` is inf"),
    ("eval_every=0", "from 1"),
    ("data.per_agent=0", "data.per_agent"),
    ("data.test_share=1", "data.test_share"),
    ("last_stays=3", "true or false"),
];

#[test]
fn absurd_settings_are_refused_within_seconds_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (set, says) in REFUSED {
        refused(folder.path(), &["run", "--json", "--set", set], &[says]);
    }
    let deep = format!("model.hidden=[{}]", vec!["1"; 20_000].join(","));
    refused(folder.path(), &["run", "--json", "--set", &deep], &["20000 layers", "at most 100"]);
    let kinds = [
        ("behaviour.kind=two-sided", "behaviour.alone=4294967295", "from 0 to 100000"),
        ("behaviour.kind=foresight", "behaviour.steps=4294967295", "from 0 to 10000"),
        ("partition.kind=shards", "partition.k=4294967295", "partition.k"),
        ("partition.kind=dirichlet", "partition.alpha=0", "partition.alpha"),
        ("problem.kind=huber", "problem.dim=1000000000000", "from 1 to 100000"),
        ("problem.kind=huber", "problem.samples=100000", "lower problem.samples"),
        ("problem.kind=observation-3", "problem.start=[1e300, 0]", "problem.start"),
    ];
    for (kind, set, says) in kinds {
        refused(folder.path(), &["run", "--json", "--set", kind, "--set", set], &[says]);
    }
    let sets = ["data.per_agent=140", "local.steps=1000000", "local.batch=140"];
    let drawn = [&["run", "--json"][..], &sets.map(|set| ["--set", set]).concat()].concat();
    refused(folder.path(), &drawn, &["local.steps"]);
    let nested = "behaviour.of=[{kind='two-sided', share=1.0, alone=4294967295}]";
    let mixed = ["run", "--json", "--set", "behaviour.kind=mixed", "--set", nested];
    refused(folder.path(), &mixed, &["behaviour.alone"]);
    // Many agents, each with its own copy of a large model.
    let many = ["run", "--json", "--set", "agents=100", "--set", "model.hidden=[500000]"];
    refused(folder.path(), &many, &["`agents` × weights"]);
}

#[test]
fn absurd_numbers_of_threads_are_refused_before_one_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("s.toml"), "rounds = 2\n[grid]\nseed = [0, 1]\n").unwrap();
    for threads in ["1000000", "513", "0"] {
        for arguments in [
            &["run", "--json", "--threads", threads][..],
            &["compare", "--json", "--threads", threads],
            &["tournament", "--json", "--threads", threads],
            &["figure", "2", "--threads", threads],
            &["sweep", "s.toml", "--threads", threads],
        ] {
            refused(path, arguments, &["threads", "from 1 to 512"]);
        }
    }
}

#[test]
fn every_command_that_takes_an_experiment_refuses_alike() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let sets = ["agents=1000000000000", "data.classes=[]", "model.hidden=[4294967296,4294967296]"];
    for set in sets {
        for arguments in [
            &["run", "--json", "--set", set][..],
            &["compare", "--json", "--set", set],
            &["tournament", "--json", "--set", set],
            &["check", "--set", set],
            &["data", "show", "--set", set],
        ] {
            let key = set.split_once('=').unwrap().0;
            // Where the message is that the model is too large, it says which key to lower.
            refused(path, arguments, &[key]);
        }
        std::fs::write(path.join("one.toml"), set.replace("hidden=[", "hidden = [")).unwrap();
        refused(path, &["run", "--json", "one.toml"], &["one.toml"]);
        let grid = format!("{set}\n[grid]\nseed = [0, 1]\n");
        std::fs::write(path.join("sweep.toml"), grid).unwrap();
        refused(path, &["sweep", "sweep.toml"], &["sweep.toml"]);
    }
    // A grid can ask for absurd values too, and for too many runs.
    let grids = [
        ("agents = [2, 1000000000000]", "agents"),
        ("seed = \"0..9223372036854775807\"", "seed"),
        ("seed = [-1]", "seed"),
    ];
    for (grid, says) in grids {
        std::fs::write(path.join("sweep.toml"), format!("rounds = 2\n[grid]\n{grid}\n")).unwrap();
        refused(path, &["sweep", "sweep.toml"], &[says]);
    }
}

/// What is tried with every key whose value is a number.
const TRIED: [&str; 16] = [
    "0",
    "-1",
    "1",
    "-0.5",
    "0.5",
    "1e-300",
    "1e30",
    "1e300",
    "-1e300",
    "nan",
    "inf",
    "-inf",
    "4294967295",
    "9223372036854775807",
    "18446744073709551616",
    "[]",
];

/// The outcome of an experiment, in a word: it ends, it is refused, or it leaves the floating-point
/// range.
fn tried(key: &str, value: &str, with: &[(String, &str)]) -> Result<(), String> {
    let mut set = vec![("rounds", "2"), ("step_size", "0.01")];
    if !with.iter().any(|(key, _)| key.starts_with("problem.")) && !key.starts_with("problem.") {
        set.extend([("data.per_agent", "10"), ("agents", "3"), ("model.hidden", "[4]")]);
    }
    set.extend(with.iter().map(|(key, value)| (key.as_str(), *value)));
    set.push((key, value));
    let set: Vec<(String, String)> =
        set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let refusal = |why: String| {
        let fine = !why.is_empty() && !why.contains('\n');
        if fine { Ok(()) } else { Err(format!("a refusal of more than one line: {why}")) }
    };
    let experiment = match Experiment::parse("", &set) {
        Ok(experiment) => experiment,
        Err(error) => return refusal(error.to_string()),
    };
    // This many rounds are allowed, and may be what somebody wants.
    let experiment = Experiment { rounds: experiment.rounds.min(2), ..experiment };
    let mut trial = match Trial::new(experiment) {
        Ok(trial) => trial,
        Err(error) => return refusal(error.to_string()),
    };
    match trial.run(&mut []) {
        Ok(Some(summary)) if trial.server().delivered().iter().all(|weight| weight.is_finite()) => {
            summary.warnings.iter().try_for_each(|warning| refusal(warning.clone()))
        }
        Ok(_) => Err("weights that are not finite are delivered".into()),
        Err(error) => refusal(error.to_string()),
    }
}

#[test]
fn every_number_of_an_experiment_is_taken_or_refused_within_seconds() {
    let tried_with_numbers =
        |key: &&Key| key.allowed.takes_numbers() || key.allowed == Allowed::Switch;
    let numeric = KEYS.iter().filter(tried_with_numbers);
    let mut count = 0;
    for key in numeric {
        for value in TRIED {
            let (name, with) = (key.name, key.with());
            let (send, receive) = channel();
            std::thread::spawn(move || send.send(tried(name, value, &with)));
            match receive.recv_timeout(PATIENCE) {
                Ok(Ok(())) => count += 1,
                Ok(Err(why)) => panic!("{name} = {value}: {why}"),
                Err(error) => panic!("{name} = {value}: it panicked or hangs ({error})"),
            }
        }
    }
    assert!(count > 700, "{count} settings were tried");
}

#[test]
fn a_target_out_of_reach_is_warned_of_and_not_refused() {
    let folder = tempfile::tempdir().unwrap();
    let why = "agents can be content only where a loss is rounded to zero";
    let arguments = ["run", "--out", "a", "--set", "epsilon=0", "--set", "rounds=2"];
    let said = common::ok(folder.path(), &arguments);
    assert!(said.contains("WARNING") && said.contains(why), "{said}");
    let text = std::fs::read_to_string(folder.path().join("a/summary.json")).unwrap();
    assert!(text.contains(why), "{text}");
    let arguments = ["run", "--out", "b", "--set", "rounds=2"];
    assert!(!common::ok(folder.path(), &arguments).contains(why));
}
