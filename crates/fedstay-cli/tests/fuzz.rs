//! The bodies of the fuzz targets (`fuzz/`), fed with structured cases: a bounded number here, and
//! any number with `FEDSTAY_FUZZ_CASES`.
//!
//! ```text
//! FEDSTAY_FUZZ_CASES=1000000 cargo test --release -p fedstay-cli --test fuzz -- --nocapture steps
//! ```

// In `fuzz/` it is a library of its own, of which this test needs only a part.
#[path = "../../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, dead_code)]
mod fedstay_fuzz;

use fedstay_fuzz::damage::{self, damaged};
use fedstay_fuzz::draw::Draw;
use fedstay_fuzz::steps::{Fault, Kind, Played, play};
use fedstay_fuzz::{bodies, steps};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRng, TestRunner};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Instant;

/// Runs a body over `cases` seeds, the same ones every time. A failure names the smallest seed that
/// proptest could find.
fn over_seeds(cases: u32, body: impl Fn(&mut Draw<'_>)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let begun = Instant::now();
    runner
        .run(&any::<u64>(), |seed| {
            body(&mut Draw::seeded(seed));
            Ok(())
        })
        .unwrap();
    let each = begun.elapsed() / cases;
    assert!(each.as_secs_f64() < 0.5, "{each:?} for a case: something hangs");
}

#[test]
fn damaged_steps_are_answered_or_refused_in_one_line() {
    bodies::step(damage::STEP.as_bytes());
    over_seeds(2_000, |draw| bodies::step(&damaged(draw, damage::STEP.as_bytes())));
}

#[test]
fn damaged_experiments_are_read_whole_or_refused_in_one_line() {
    bodies::experiment(damage::EXPERIMENT.as_bytes());
    over_seeds(1_000, |draw| bodies::experiment(&damaged(draw, damage::EXPERIMENT.as_bytes())));
}

#[test]
fn damaged_rounds_are_read_line_by_line_or_refused_in_one_line() {
    bodies::rounds(damage::ROUNDS.as_bytes());
    over_seeds(1_000, |draw| bodies::rounds(&damaged(draw, damage::ROUNDS.as_bytes())));
}

#[test]
fn damaged_arrays_and_archives_are_read_whole_or_refused_in_one_line() {
    over_seeds(500, |draw| bodies::npy(&damage::npy(draw)));
    over_seeds(1_000, |draw| {
        let array = damage::npy(draw);
        bodies::npy(&damaged(draw, &array));
    });
    over_seeds(500, |draw| {
        let archive = damage::npz(draw);
        bodies::npz(&archive);
        bodies::npz(&damaged(draw, &archive));
    });
}

#[test]
fn damaged_tables_and_idx_files_are_read_whole_or_refused_in_one_line() {
    bodies::csv(damage::CSV.as_bytes());
    bodies::idx(&damage::idx());
    bodies::trace(damage::TRACE.as_bytes());
    over_seeds(1_000, |draw| bodies::trace(&damaged(draw, damage::TRACE.as_bytes())));
    over_seeds(1_000, |draw| bodies::csv(&damaged(draw, damage::CSV.as_bytes())));
    over_seeds(500, |draw| bodies::table(&damaged(draw, damage::TABLE.as_bytes())));
    over_seeds(500, |draw| bodies::idx(&damaged(draw, &damage::idx())));
}

/// The structured documents are only useful if, undamaged, they are accepted.
#[test]
fn the_documents_that_are_damaged_are_whole_to_begin_with() {
    use fedstay_sim::data::{Load, Mnist, Npz};
    assert!(fedstay_cli::command::step::answer(damage::STEP.as_bytes()).is_ok());
    assert!(fedstay_sim::experiment::Experiment::parse(damage::EXPERIMENT, &[]).is_ok());
    assert!(fedstay::schedule::Trace::read("times.csv", damage::TRACE, 4).is_ok());
    let folder = tempfile::tempdir().unwrap();
    let rounds = folder.path().join("rounds.jsonl");
    std::fs::write(&rounds, damage::ROUNDS).unwrap();
    let recorded = fedstay_sim::run::read_rounds(&rounds).unwrap();
    assert_eq!((recorded.rounds.len(), recorded.unreadable.len()), (3, 0), "{recorded:?}");
    let labels = [damage::npy_header("|u1", "(4,)"), vec![0, 1, 0, 1]].concat();
    let values = [damage::npy_header("|u1", "(4, 2)"), vec![9; 8]].concat();
    let archive = folder.path().join("mine.npz");
    std::fs::write(&archive, damage::stored(&[("x.npy", &values), ("y.npy", &labels)])).unwrap();
    assert_eq!(Npz::new(&archive).load().unwrap().data.len(), 4);
    let mut rest = &damage::idx()[..];
    for name in ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"] {
        let length = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
        std::fs::write(folder.path().join(format!("{name}-ubyte")), &rest[2..2 + length]).unwrap();
        rest = &rest[2 + length..];
    }
    let mnist = Mnist { path: Some(folder.path().to_owned()), check: false };
    assert_eq!(mnist.load().unwrap().data.len(), 4);
}

/// The judge must see what it is meant to see.
#[test]
fn a_step_over_a_target_is_seen_and_one_up_to_it_is_rounding() {
    use steps::{Judged, crossed};
    let report =
        |loss: f64| json!({"agent": 0, "loss": loss, "epsilon": 0.1, "direction": [1.0, 2.0]});
    assert_eq!(crossed(&report(0.5), &[-0.1, -0.1]), Some(Judged::Above));
    assert!(matches!(crossed(&report(0.5), &[-0.2, -0.2]), Some(Judged::Crossed(_))));
    assert_eq!(crossed(&report(0.1), &[-1.0, 0.0]), None);
    // 0.1 + 0.3 is not 0.4 in binary.
    assert!(matches!(
        crossed(&report(0.4), &[-0.1, -0.1]),
        Some(Judged::WithinRounding | Judged::Above)
    ));
}

#[test]
fn structured_steps_never_crash_hang_or_lose_whom_standing_still_would_keep() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = number("FEDSTAY_FUZZ_CASES").unwrap_or(3_000);
    let first = number("FEDSTAY_FUZZ_SEED").unwrap_or(0);
    let mut total = Played::default();
    let mut faults: BTreeMap<Kind, (usize, Option<Fault>)> = BTreeMap::new();
    let begun = Instant::now();
    for seed in first..first + cases {
        let played = play(&mut Draw::seeded(seed));
        total.accepted += played.accepted;
        total.refused += played.refused;
        total.judged += played.judged;
        total.shown += played.shown;
        total.within_rounding += played.within_rounding;
        total.slowest = total.slowest.max(played.slowest);
        if let Some(fault) = played.fault {
            let (count, shortest) = faults.entry(fault.kind).or_default();
            *count += 1;
            // The shortest input is the easiest to think about.
            if shortest.as_ref().is_none_or(|kept| fault.input.len() < kept.input.len()) {
                *shortest = Some(fault);
            }
        }
    }
    println!(
        "{cases} cases in {:.0?}: {} steps answered (slowest {:?}), {} refused, {} predictions judged, \
         {} of them about what is shown, {} at the target within rounding",
        begun.elapsed(),
        total.accepted,
        total.slowest,
        total.refused,
        total.judged,
        total.shown,
        total.within_rounding
    );
    for (kind, (count, shortest)) in &faults {
        println!("{kind:?}: {count} cases, the shortest {shortest:?}");
    }
    assert!(total.accepted > total.refused && total.judged > total.shown && total.shown > 0);
    assert!(faults.is_empty(), "{:?}", faults.keys().collect::<Vec<_>>());
}
