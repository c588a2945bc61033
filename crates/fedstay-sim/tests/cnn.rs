//! The convolutional net in the simulator: rules, policies, early exit, threads, checkpoints, sweeps and
//! the exported model treat it like any other.

use fedstay::record::Summary;
use fedstay::{BetweenRounds, Book, Error, RoundRecord};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Trial;
use fedstay_sim::sweep::{Options, Plan, Store, run, run_cell};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Writes 160 grey images of 16×18 pixels in four classes: one quarter of each is brighter.
fn images(folder: &Path) -> PathBuf {
    let npy = |shape: &str, values: &[u8]| {
        let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.bytes());
        file.extend(values);
        file
    };
    let labels: Vec<u8> = (0..160).map(|row| row % 4).collect();
    let mut noise = 1u32;
    let mut pixels = Vec::new();
    for label in &labels {
        for at in 0..16 * 18 {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let quarter = (at / (8 * 18)) * 2 + (at % 18) / 9;
            let bright = if quarter == usize::from(*label) { 60 } else { 0 };
            pixels.push((noise >> 24) as u8 / 2 + bright);
        }
    }
    let path = folder.join("images.npz");
    let mut archive = ZipWriter::new(std::fs::File::create(&path).unwrap());
    for (name, array) in
        [("x.npy", npy("(160, 16, 18)", &pixels)), ("y.npy", npy("(160,)", &labels))]
    {
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        archive.write_all(&array).unwrap();
    }
    archive.finish().unwrap();
    path
}

/// A small federation that learns within thirty rounds, so that agents leave under averaging.
fn text(path: &Path) -> String {
    format!(
        "rounds = 30\nstep_size = 0.1\nepsilon = 0.5\nagents = 4\neval_every = 10\n[data]\n\
         kind = \"npz\"\npath = {path:?}\n[partition]\nq = 0.4\n[model]\nkind = \"cnn\"\nchannels = [3, 5]\n\
         hidden = [8]\n[local]\nsteps = 3\nbatch = 9\n"
    )
}

fn trial(path: &Path, sets: &[(&str, &str)]) -> Trial {
    let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    Trial::new(Experiment::parse(&text(path), &sets).unwrap()).unwrap()
}

/// The weights of every round, bit for bit; ends a run after some rounds with its state.
#[derive(Default)]
struct Trace {
    weights: Vec<Vec<u64>>,
    end_after: Option<usize>,
    state: Option<String>,
}

impl Book for Trace {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.weights.push(record.received.iter().map(|value| value.to_bits()).collect());
        let over = self.end_after == Some(self.weights.len());
        Ok(if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn between(&mut self, moment: &BetweenRounds<'_>) -> Result<(), Error> {
        if self.end_after == Some(self.weights.len()) {
            self.state = Some(serde_json::to_string(&(moment.state)()?).unwrap());
        }
        Ok(())
    }
}

fn play(make: impl FnOnce() -> Trial + Send, threads: usize) -> (Summary, Vec<Vec<u64>>) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut trace = Trace::default();
        let summary = make().run(&mut [&mut trace]).unwrap().unwrap();
        (summary, trace.weights)
    })
}

#[test]
fn early_exit_and_threads_change_no_bit_under_any_of_these_rules() {
    let folder = tempfile::tempdir().unwrap();
    let path = images(folder.path());
    let mut left = 0;
    for sets in [
        &[("rule.kind", "fedavg")][..],
        &[("rule.kind", "fedavg"), ("policy.kind", "preview")],
        &[("rule.kind", "ada-gd"), ("local.exact_gradient", "true")],
        &[("rule.kind", "retain"), ("local.exact_gradient", "true")],
        &[("rule.kind", "minibatch-sgd"), ("participation", "0.6")],
        &[("rule.kind", "fedavg"), ("local.mu", "0.1"), ("local.batch", "full")],
    ] {
        let (early, weights) = play(|| trial(&path, sets), 2);
        let full = || {
            let mut full = trial(&path, sets);
            full.simulator_mut().unwrap().set_full_losses(true);
            full
        };
        let (full, full_weights) = play(full, 1);
        assert_eq!(weights, full_weights, "{sets:?}");
        assert_eq!(early.left, full.left, "{sets:?}");
        let losses = |summary: &Summary| -> Vec<f64> {
            summary.agents.iter().map(|agent| agent.score.loss).collect()
        };
        assert_eq!(losses(&early), losses(&full), "{sets:?}");
        left += early.left.len();
    }
    assert!(left > 0, "nobody ever left: the exit was never decided the other way");
}

#[test]
fn it_learns_and_continues_from_a_checkpoint_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = images(folder.path());
    let never = [("behaviour.kind", "never"), ("rounds", "60")];
    let (summary, weights) = play(|| trial(&path, &never), 2);
    assert!(summary.score.get("accuracy").unwrap().mean > 0.9, "{:?}", summary.score);
    let mut cut = Trace { end_after: Some(11), ..Trace::default() };
    assert_eq!(trial(&path, &never).run(&mut [&mut cut]).unwrap(), None);
    let state = cut.state.unwrap();
    let resumed = || {
        let mut resumed = trial(&path, &never);
        resumed.resume(serde_json::from_str(&state).unwrap()).unwrap();
        resumed
    };
    let (again, rest) = play(resumed, 1);
    assert_eq!(again, summary);
    assert_eq!(rest, weights[11..]);
}

#[test]
fn a_sweep_over_epsilon_shares_work_and_changes_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = images(folder.path());
    let grid = format!("{}\n[grid]\nepsilon = [0.3, 0.6]\nseed = [0, 1]\n", text(&path));
    let plan = Plan::parse(&grid, folder.path(), &[]).unwrap();
    let store = folder.path().join("a.db");
    let options = Options { threads: 2, share: true, full_losses: false };
    run(&plan, &store, &options, &()).unwrap();
    let store = Store::read(&store).unwrap();
    for planned in &plan.runs {
        let alone = run_cell(&planned.experiment.to_toml().unwrap()).unwrap();
        let shared = store.get(&planned.key).unwrap().unwrap();
        assert_eq!(shared.to_json().unwrap(), alone.to_json().unwrap());
    }
}

#[test]
fn data_that_are_not_images_are_refused_with_what_to_do() {
    let refused = |sets: &[(&str, &str)]| {
        let sets: Vec<_> = sets.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        Trial::new(Experiment::parse("", &sets).unwrap()).err().unwrap().to_string()
    };
    let told = refused(&[("model.kind", "cnn")]);
    assert!(told.contains("at least 16×16 pixels, the data have 8×8"), "{told}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    std::fs::write(&path, "1,2,a\n3,4,b\n5,6,a\n7,8,b\n".repeat(20)).unwrap();
    let path = format!("{path:?}");
    let told = refused(&[
        ("model.kind", "cnn"),
        ("data.kind", "csv"),
        ("data.path", &path),
        ("agents", "2"),
    ]);
    assert!(told.contains("rows of 2 numbers without a shape"), "{told}");
}
