//! Sweeps: sharing work changes no bit, only what is missing is computed, and two processes can
//! share the work.

use fedstay_sim::experiment::Experiment;
use fedstay_sim::sweep::{
    Finished, Frame, Options, Outcome, Plan, Store, SweepWatch, Tally, run, run_cell, stats::Mean,
};
use proptest::prelude::*;
use std::path::Path;

fn plan(text: &str) -> Plan {
    Plan::parse(text, Path::new("."), &[]).unwrap()
}

fn options(threads: usize, share: bool) -> Options {
    Options { threads, share, full_losses: false }
}

fn swept(plan: &Plan, path: &Path, options: &Options) -> (Tally, Store) {
    let tally = run(plan, path, options, &()).unwrap();
    (tally, Store::read(path).unwrap())
}

/// A small federation on digits in which agents leave at different rounds.
fn small(extra: &str, grid: &str) -> String {
    format!(
        "rounds = 40\nstep_size = 0.3\n{extra}\n[data]\nper_agent = 24\n[model]\nkind = \"mlp\"\n\
         hidden = [8]\n[grid]\n{grid}\n"
    )
}

/// Asserts that every run of a plan, computed together, is the same as computed by itself.
fn assert_shared_is_alone(text: &str) -> (Tally, Vec<Finished>) {
    let plan = plan(text);
    let folder = tempfile::tempdir().unwrap();
    let (tally, store) = swept(&plan, &folder.path().join("a.db"), &options(2, true));
    assert_eq!((tally.planned, tally.computed), (plan.runs.len(), plan.runs.len()));
    let mut runs = Vec::new();
    for planned in &plan.runs {
        let alone = run_cell(&planned.experiment.to_toml().unwrap()).unwrap();
        let shared = store.get(&planned.key).unwrap().unwrap();
        // As text: a series may hold NaN, which equals nothing.
        let (shared_text, alone) = (shared.to_json().unwrap(), alone.to_json().unwrap());
        assert_eq!(shared_text, alone, "{}", planned.experiment.to_toml().unwrap());
        runs.push(shared);
    }
    (tally, runs)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn shared_prefixes_are_bit_identical_to_independent_runs(
        seed in 0u64..1000,
        rule in prop::sample::select(vec![
            "fedavg", "minibatch-sgd", "q-fedavg", "afl", "fedmgda-plus", "fedfv", "pcgrad", "mifa",
            "uniform", "fedce",
        ]),
        server in prop::sample::select(vec![
            "sgd", "momentum", "adagrad", "adam", "yogi",
        ]),
        delta in prop::sample::select(vec![0.0, 0.05]),
        length in prop::sample::select(vec![
            "steps = 1", "steps = 3", "steps = 4", "epochs = 1", "epochs = 2",
        ]),
        batch in prop::sample::select(vec!["8", "\"full\""]),
        own in any::<bool>(),
        last_stays in any::<bool>(),
        participation in prop::sample::select(vec![1.0, 0.6]),
        agents in 2usize..7,
        eval_every in 1u32..9,
        exact in any::<bool>(),
        epsilon in prop::collection::vec(0.02f64..1.8, 2..6),
        never in prop::bool::weighted(0.1),
        sizes in prop::sample::select(vec!["equal", "power"]),
        by_samples in any::<bool>(),
        measured in prop::sample::select(vec!["\"all\"", "\"none\"", "1", "3"]),
        replace in any::<bool>(),
        asked in prop::sample::select(vec![
            "[\"accuracy\"]", "[\"balanced\", \"accuracy\"]", "[\"auroc\", \"log-loss\"]", "[]",
        ]),
    ) {
        let decides_on = if own { "own" } else { "received" };
        let behaviour = if never { "never" } else { "threshold" };
        let weighs = ["fedavg", "minibatch-sgd", "q-fedavg", "mifa", "uniform"].contains(&rule);
        let weigh = if weighs && by_samples { "weigh = \"samples\"\n" } else { "" };
        let text = small(
            &format!(
                "seed = {seed}\nagents = {agents}\ndecides_on = \"{decides_on}\"\n\
                 last_stays = {last_stays}\nparticipation = {participation}\n\
                 eval_every = {eval_every}\neval_agents = {measured}\nmeasure = {asked}\n[behaviour]\nkind = \"{behaviour}\"\n\
                 [server]\noptimiser = \"{server}\"\n\
                 [rule]\nkind = \"{rule}\"\ndelta = {delta}\n{weigh}\
                 [partition]\nsizes = \"{sizes}\"\nskew = 1.5\n\
                 [local]\n{length}\nbatch = {batch}\nexact_gradient = {exact}"
            ),
            &format!("epsilon = {epsilon:?}"),
        );
        let drawn = format!("[data]\nreplace = {replace}");
        assert_shared_is_alone(&text.replace("[data]", &drawn));
    }
}

#[test]
fn precisions_of_single_agents_share_too() {
    let grid = "epsilon = [0.1, [0.5, 0.2, 0.9, 0.1], [0.5, 0.2, 0.9, 0.3], 0.9]";
    let text = small("agents = 4\n[rule]\nkind = \"fedavg\"", grid);
    let (tally, runs) = assert_shared_is_alone(&text);
    assert!(tally.work.shared() > 0.2, "{:?}", tally.work);
    // The converse: it matters who leaves, otherwise this would show nothing.
    let left: Vec<_> = runs.iter().map(|run| &run.summary().unwrap().left).collect();
    assert!(left.windows(2).all(|pair| pair[0] != pair[1]), "{left:?}");
}

#[test]
fn one_that_diverges_does_so_as_it_would_alone_and_the_others_live() {
    let text = small(
        "agents = 3\n[rule]\nkind = \"fedavg\"\n[local]\nsteps = 3",
        "step_size = 1e30\nepsilon = [0.1, 1e9]",
    );
    let (_, runs) = assert_shared_is_alone(&text);
    assert!(matches!(&runs[0].outcome, Outcome::Diverged(why) if !why.is_empty()));
    // Content with anything, everybody leaves before that happens.
    assert_eq!(runs[1].summary().unwrap().left.len(), 3);
}

#[test]
fn a_sweep_of_rules_that_share_nothing_is_the_same_as_its_runs() {
    let text =
        small("agents = 3", "rule.kind = [\"ada-gd\", \"retain\", \"fedavg\"]\nepsilon = 0.3");
    let (tally, _) = assert_shared_is_alone(&text);
    assert_eq!(tally.work.taken, tally.work.alone);
    let problem = "[problem]\nkind = \"observation-3\"\n[grid]\nproblem.alpha = [0.5, 2]\n\
                   rule.kind = [\"fedavg\", \"ada-gd\"]";
    assert_shared_is_alone(problem);
}

#[test]
fn only_what_is_missing_is_computed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let grid = |epsilon: &str, seeds: &str| {
        plan(&small(
            "agents = 3\n[rule]\nkind = \"fedavg\"",
            &format!("epsilon = {epsilon}\nseed = \"{seeds}\""),
        ))
    };
    let (tally, _) = swept(&grid("[0.2, 0.6]", "0..2"), &path, &options(2, true));
    assert_eq!((tally.there, tally.computed), (0, 4));
    let whole = grid("[0.2, 0.4, 0.6]", "0..3");
    let (tally, store) = swept(&whole, &path, &options(2, true));
    assert_eq!((tally.there, tally.computed), (4, 5));
    let (tally, _) = swept(&whole, &path, &options(1, true));
    assert_eq!((tally.there, tally.computed, tally.share), (9, 0, 1.0));
    // The same as in one go, with other threads, without sharing, with losses in full.
    for (name, options) in [
        ("one thread", options(1, true)),
        ("alone", options(3, false)),
        ("full", Options { full_losses: true, ..options(2, true) }),
    ] {
        let (_, other) = swept(&whole, &folder.path().join(name), &options);
        if name == "full" {
            // Losses in full reveal more about who is about to leave; results are the same.
            let means = |store: &Store| {
                let frame = Frame::of_plan(&whole, store).unwrap();
                frame.records.iter().map(|r| r.result("accuracy.mean")).collect::<Vec<_>>()
            };
            assert_eq!(means(&other), means(&store));
        } else {
            assert_eq!(other.dump().unwrap(), store.dump().unwrap(), "{name}");
        }
    }
}

#[test]
fn two_workers_on_one_store_do_everything_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("both.db");
    let plan = plan(&small(
        "agents = 4\n[rule]\nkind = \"fedavg\"\n[local]\nsteps = 3",
        "epsilon = [0.1, 0.3, 0.6]\nseed = \"0..12\"",
    ));
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let sweeps: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| run(&plan, &path, &options(1, true), &()).unwrap()))
            .collect();
        sweeps.into_iter().map(|sweep| sweep.join().unwrap()).collect()
    });
    let store = Store::read(&path).unwrap();
    assert_eq!(store.keys().unwrap().len(), 36);
    let computed: usize = tallies.iter().map(|tally| tally.computed).sum();
    assert_eq!(computed, 36, "{tallies:?}");
    assert!(tallies.iter().all(|tally| tally.computed > 0), "{tallies:?}");
    let (_, alone) = swept(&plan, &folder.path().join("one.db"), &options(2, true));
    assert_eq!(alone.dump().unwrap(), store.dump().unwrap());
}

#[test]
fn a_frame_tells_means_and_paired_differences() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&small(
        "agents = 4\n[rule]\nkind = \"fedavg\"",
        "epsilon = [0.01, 1.2]\nseed = \"0..4\"",
    ));
    let (_, store) = swept(&plan, &folder.path().join("a.db"), &options(2, true));
    let frame = Frame::of_plan(&plan, &store).unwrap();
    let cells = frame.by(&["epsilon".to_owned()]);
    assert_eq!(cells.len(), 2);
    let mean = cells[0].1.mean("accuracy.mean").unwrap();
    let values: Vec<f64> =
        cells[0].1.records.iter().map(|record| record.result("accuracy.mean").unwrap()).collect();
    assert_eq!(Some(mean), Mean::of(&values));
    let difference = cells[1].1.difference(&cells[0].1, "left").unwrap();
    assert_eq!((difference.mean.n, difference.mean.mean), (4, 4.0));
    let difference = cells[1].1.difference(&cells[0].1, "accuracy.mean").unwrap();
    assert!(difference.mean.mean < 0.0, "{difference:?}");
}

#[test]
fn what_cannot_be_set_up_is_told_and_what_was_finished_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let text = "rounds = 2\n[rule]\nkind = \"fedavg\"\n[model]\nhidden = [4]\n[grid]\n\
                data.per_agent = [5, 99999]";
    let error = run(&plan(text), &path, &options(1, true), &()).unwrap_err().to_string();
    assert!(error.contains("per_agent") || error.contains("99999"), "{error}");
    assert_eq!(Store::read(&path).unwrap().keys().unwrap().len(), 1);
    let experiment = Experiment::parse("rounds = 2\n[data]\nper_agent = 100000", &[]).unwrap();
    assert!(run_cell(&experiment.to_toml().unwrap()).is_err());
}

/// The number is raised by hand. Where one of these runs gives another result, results that were
/// stored before are no longer valid: raise `RESULTS` in `sweep/key.rs`, and put the new result
/// here. (Numbers have six digits, so that no machine's last bit matters.)
#[test]
fn the_results_number_goes_with_what_is_computed() {
    let outcome = |rule: &str, problem: &str| {
        let text = format!(
            "rounds = 200\nstep_size = 0.1\n[rule]\nkind = \"{rule}\"\n[problem]\nkind = \"{problem}\""
        );
        let finished = run_cell(&text).unwrap();
        let summary = finished.summary().unwrap();
        let (left, rounds) = (summary.left.len(), summary.rounds);
        format!("{rule} on {problem}: {left} left, {rounds} rounds, {:.6}", summary.score.loss.mean)
    };
    let mut outcomes = vec![format!("results {}", fedstay_sim::sweep::RESULTS)];
    for rule in ["fedavg", "ada-gd"] {
        outcomes.extend(["observation-3", "huber"].map(|problem| outcome(rule, problem)));
    }
    let expected = [
        "results 10",
        "fedavg on observation-3: 2 left, 48 rounds, 0.550000",
        "fedavg on huber: 0 left, 200 rounds, 0.332663",
        "ada-gd on observation-3: 0 left, 50 rounds, 0.275000",
        "ada-gd on huber: 0 left, 200 rounds, 0.332663",
    ];
    assert_eq!(outcomes, expected);
}

#[test]
fn a_run_that_cannot_be_set_up_is_an_error_and_never_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let text = "rounds = 3\n[data]\nkind = \"csv\"\npath = \"nowhere.csv\"\n[grid]\nseed = [0, 1]";
    let error = run(&plan(text), &path, &options(1, true), &()).unwrap_err().to_string();
    assert!(error.contains("nowhere.csv"), "{error}");
    assert!(Store::read(&path).unwrap().keys().unwrap().is_empty());
}

#[test]
fn only_runs_that_ask_have_the_column_better_than_alone() {
    for asked in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(&small(&format!("agents = 3\ncompare_alone = {asked}"), "seed = [0, 1]"));
        let (_, store) = swept(&plan, &folder.path().join("a.db"), &options(1, true));
        let columns = Frame::of_plan(&plan, &store).unwrap().columns(&plan);
        let column = columns.iter().find(|column| column.name == "better_than_alone");
        assert_eq!(column.is_some(), asked);
        let cells = column.map(|column| (column.values.cell(0), column.values.cell(1)));
        assert!(cells.is_none_or(|(a, b)| a.parse::<u32>().is_ok() && b.parse::<u32>().is_ok()));
    }
}

#[test]
fn a_store_with_any_bit_flipped_gives_the_same_results_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let plan = plan(&small("agents = 3\n[rule]\nkind = \"fedavg\"", "seed = \"0..4\""));
    let (_, store) = swept(&plan, &path, &options(2, true));
    let read = |store: &Store| -> Result<_, fedstay_sim::sweep::StoreError> {
        let frame = Frame::of_plan(&plan, store)?;
        // As text: a series may hold NaN, which equals nothing.
        let results = format!("{:?}", (frame.columns(&plan), frame.series_columns(&plan)));
        Ok((results, store.dump()?))
    };
    let right = read(&store).unwrap();
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let (mut same, mut refused) = (0, 0);
    let mut place = 0;
    while place < whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1 << (place % 8);
        let copy = folder.path().join("damaged.db");
        std::fs::write(&copy, &damaged).unwrap();
        match Store::read(&copy).and_then(|store| read(&store)) {
            Ok(now) => {
                assert!(now == right, "byte {place}: other results");
                same += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains("damaged.db"), "byte {place}: {error}");
                refused += 1;
            }
        }
        for extra in ["damaged.db-wal", "damaged.db-shm"] {
            let _ = std::fs::remove_file(folder.path().join(extra));
        }
        // Every byte of the beginning, where the tables are described; after that, a prime stride.
        place += if place < 200 { 1 } else { 53 };
    }
    println!("{refused} refused, {same} the same");
    assert!(refused > 150, "{refused} refused, {same} the same");
}

#[test]
fn what_agents_make_alone_is_shared_and_changes_no_bit() {
    let grid = "label = [\"fedavg\", \"minibatch-sgd\", \"retain\"]\nbehaviour.kind = [\"threshold\", \
                \"shirking\"]\nlocal.steps = [1, 3]\nstep_size = [0.2, 0.3]\nseed = [0, 1]";
    let extra = "epsilon = 1.2\ncompare_alone = true";
    let (_, runs) = assert_shared_is_alone(&small(extra, grid));
    let mut idle = 0;
    for run in &runs {
        let summary = run.summary().unwrap();
        assert!(summary.agents.iter().all(|a| a.ends_with.is_some() && a.alone.is_some()));
        let better = summary.agents.iter().filter(|a| a.is_better_than_alone() == Some(true));
        assert_eq!(summary.better_than_alone, Some(better.count() as u32));
        idle += summary.agents.iter().map(|agent| agent.idle).sum::<u32>();
        // One that stays ends with what is delivered.
        for agent in summary.agents.iter().filter(|agent| agent.entry.left.is_none()) {
            assert_eq!(agent.ends_with.as_ref().unwrap().loss, agent.score.loss);
        }
    }
    assert!(idle > 0, "nobody shirked");
    let alone = |key: &str, value: serde_json::Value| {
        let told = runs.iter().filter(|run| run.config[key]["kind"] == value);
        let told =
            told.map(|run| run.summary().unwrap().agents.iter().map(|agent| agent.alone.clone()));
        told.map(Iterator::collect::<Vec<_>>).collect::<Vec<_>>()
    };
    // The same for every behaviour; not for a rule that stands still while it steps, nor for others'
    // step sizes and seeds.
    assert_eq!(alone("behaviour", "threshold".into()), alone("behaviour", "shirking".into()));
    assert_eq!(alone("rule", "fedavg".into()), alone("rule", "retain".into()));
    assert_ne!(alone("rule", "fedavg".into()), alone("rule", "minibatch-sgd".into()));
    let fedavg = alone("rule", "fedavg".into());
    assert!((1..fedavg.len() / 2).all(|other| fedavg[0] != fedavg[other]));
}

/// Deletes the store as soon as some runs are finished.
struct Deletes {
    path: std::path::PathBuf,
    after: usize,
    seen: std::sync::atomic::AtomicUsize,
}

impl SweepWatch for Deletes {
    fn finished(&self, _: &Finished) {
        if self.seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1 == self.after {
            std::fs::remove_file(&self.path).unwrap();
        }
    }
}

#[cfg(unix)]
#[test]
fn a_store_that_is_deleted_under_a_sweep_ends_it_with_an_error() {
    let text = "rounds = 5\n[problem]\nkind = \"observation-3\"\n[grid]\nseed = [0, 1, 2, 3]";
    // In between, and after the last result.
    for after in [1, 4] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let watch = Deletes { path: path.clone(), after, seen: 0.into() };
        let error = run(&plan(text), &path, &options(1, true), &watch).unwrap_err().to_string();
        assert!(error.contains("a.db: was deleted or replaced"), "{after}: {error}");
        assert!(error.contains("type the same command again"), "{error}");
    }
}

/// Target losses by name and by a baseline share too, and so do decisions by rows that are held back.
#[test]
fn owners_who_decide_by_rows_that_are_held_back_share_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let row = |row: u32| {
        let (a, b) = (f64::from(row * 37 % 101), f64::from(row * 53 % 89));
        format!("{},{a},{b},{}\n", ["x", "y", "z"][row as usize % 3], u8::from(a + b > 90.0))
    };
    let rows: String = (0..240).map(row).collect();
    std::fs::write(&path, format!("owner,a,b,y\n{rows}")).unwrap();
    let grid = "epsilon = [0.4, { x = 0.5, \"*\" = 0.3 }, \"1.3 * alone\", \"1.5 * pooled\", \"1.2 * local\"]";
    let text = format!(
        "rounds = 30\nstep_size = 0.5\ndecides_on_rows = \"held-back\"\n[rule]\nkind = \"fedavg\"\n\
         [data]\nkind = \"csv\"\npath = {:?}\nowner = \"owner\"\nlabel = \"y\"\n\
         [model]\nkind = \"logistic-regression\"\n[grid]\n{grid}\n",
        path.to_str().unwrap()
    );
    let (tally, runs) = assert_shared_is_alone(&text);
    assert!(tally.work.shared() > 0.2, "{:?}", tally.work);
    assert!(runs.iter().any(|run| !run.summary().unwrap().left.is_empty()));
}
