//! `preview` on real digits: it survives a checkpoint bit for bit, however previews are made and
//! whoever is asked, and it keeps everybody with and without exact gradients.

use fedstay::record::{RoundLine, Summary};
use fedstay::{BetweenRounds, Book, Error, RoundRecord};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Trial;
use std::ops::ControlFlow;

const BASE: &[(&str, &str)] = &[
    ("rounds", "120"),
    ("step_size", "0.2"),
    ("model.hidden", "16"),
    ("eval_every", "120"),
    ("epsilon", "0.8"),
    ("rule.kind", "fedavg"),
    ("policy.kind", "preview"),
];

fn trial(sets: &[(&str, &str)]) -> Trial {
    let sets = BASE.iter().chain(sets).map(|(key, value)| ((*key).into(), (*value).into()));
    Trial::new(Experiment::parse("", &sets.collect::<Vec<_>>()).unwrap()).unwrap()
}

/// Keeps the lines of all rounds; stops after some of them, and then keeps the state as a checkpoint
/// would.
#[derive(Default)]
struct Watch {
    lines: Vec<RoundLine>,
    stop_after: Option<usize>,
    state: Option<String>,
}

impl Watch {
    fn stops(&self) -> bool {
        self.stop_after == Some(self.lines.len())
    }
}

impl Book for Watch {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.lines.push(record.line.clone());
        Ok(if self.stops() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn between(&mut self, moment: &BetweenRounds<'_>) -> Result<(), Error> {
        if self.stops() {
            self.state = Some(serde_json::to_string(&(moment.state)()?).unwrap());
        }
        Ok(())
    }
}

fn play(sets: &[(&str, &str)]) -> (Summary, Watch) {
    let mut watch = Watch::default();
    let summary = trial(sets).run(&mut [&mut watch]).unwrap().unwrap();
    (summary, watch)
}

/// Ways to make previews, with local work for which they are made.
const WAYS: &[&[(&str, &str)]] = &[
    &[("policy.by", "cut")],
    &[("policy.by", "rewind"), ("local.steps", "5"), ("local.batch", "32")],
    &[("policy.by", "stale")],
    &[("policy.by", "noise"), ("policy.margin", "0.5")],
    &[("local.steps", "5"), ("local.batch", "32"), ("local.exact_gradient", "true")],
];

#[test]
fn a_resumed_run_is_the_same_run_however_previews_are_made_and_whoever_is_asked() {
    for way in WAYS {
        for participation in ["1.0", "0.5"] {
            let sets = [*way, &[("participation", participation)]].concat();
            let (expected, whole) = play(&sets);
            let shown = whole.lines.iter().filter(|line| !line.shown.is_empty()).count();
            assert!(shown > 0, "{sets:?}");
            let rounds = expected.rounds as usize;
            for after in [2, 40, 90].into_iter().filter(|after| *after < rounds) {
                let mut cut = Watch { stop_after: Some(after), ..Watch::default() };
                assert_eq!(trial(&sets).run(&mut [&mut cut]).unwrap(), None);
                let mut resumed = trial(&sets);
                resumed.resume(serde_json::from_str(&cut.state.unwrap()).unwrap()).unwrap();
                let mut rest = Watch::default();
                let summary = resumed.run(&mut [&mut rest]).unwrap().unwrap();
                assert_eq!(summary, expected, "{sets:?} after {after}");
                assert_eq!(whole.lines[after..], rest.lines, "{sets:?} after {after}");
            }
        }
    }
}

#[test]
fn everybody_stays_by_cut_and_by_rewind_and_nobody_by_noise_or_without() {
    for (sets, stay) in [
        (WAYS[0], true),
        (WAYS[1], true),
        (WAYS[4], true),
        (&[("policy.by", "noise")], false),
        (&[("policy.kind", "none")], false),
    ] {
        let (summary, _) = play(sets);
        assert_eq!(summary.left.is_empty(), stay, "{sets:?}: {:?}", summary.left);
    }
}

#[test]
fn a_cap_that_binds_is_recorded_and_said() {
    let (free, _) = play(&[]);
    assert!(free.warnings.iter().all(|warning| !warning.contains("policy.cap")));
    let (tight, watch) = play(&[("policy.cap", "0.001")]);
    assert_eq!(tight.left, []);
    assert!(watch.lines.iter().any(|line| line.shown.iter().any(|shown| shown.capped)));
    assert!(tight.agents.iter().any(|agent| agent.entry.capped > 0));
    assert!(tight.warnings.iter().any(|warning| warning.contains("policy.cap")));
}
