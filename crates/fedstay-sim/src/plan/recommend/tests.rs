use super::super::answer::{
    CEILING, Findings, Gains, Leaver, Method, OwnerFinding, WayFinding, WhenLeaves,
};
use super::{AVERAGING, Action, DO_NOT, PREFERRED, recommend};
use fedstay::record::DataRows;
use fedstay::{Interval, Measure};
use std::collections::BTreeMap;

fn around(value: f64, by: f64) -> Interval {
    Interval { value, low: value - by, high: value + by }
}

fn owner(name: &str, gain: Interval) -> OwnerFinding {
    let none = BTreeMap::new;
    OwnerFinding {
        name: name.to_owned(),
        rows: 100,
        test_rows: 20,
        alone: none(),
        together: none(),
        pooled: none(),
        constant: none(),
        gain: Some(gain),
        gains: Gains::of(gain, 0.01),
        leaves: None,
        cost: None,
        still_gains: None,
    }
}

fn leaving(first: u32, last: u32, share: f64) -> WhenLeaves {
    WhenLeaves { share, first, median: first, last }
}

/// A way under which these leave on every seed, so far behind the ceiling for those who gain.
fn way(label: &str, left: &[&str], behind: f64) -> WayFinding {
    let leaver = |name: &&str| Leaver { name: (*name).to_owned(), when: leaving(5, 9, 1.0) };
    WayFinding {
        label: label.to_owned(),
        may_leave: label != CEILING,
        left: left.iter().map(|name| (*name).to_owned()).collect(),
        leavers: left.iter().map(leaver).collect(),
        mean_left: left.len() as f64,
        kept_all: if left.is_empty() { 5 } else { 0 },
        content: 2.0,
        measures: BTreeMap::from([("accuracy".to_owned(), around(0.8 - behind, 0.02))]),
        of_gainers: None,
        behind: Some(around(behind, 0.002)).filter(|_| label != CEILING),
        worst: Some(("a".to_owned(), 0.7 - behind)),
        delivered: BTreeMap::new(),
        rounds: 50.0,
        bytes: 1e5,
        diverged: 0,
        dominated: false,
    }
}

fn found(owners: Vec<OwnerFinding>, ways: Vec<WayFinding>) -> Findings {
    Findings {
        schema: Findings::SCHEMA.to_owned(),
        version: "0".to_owned(),
        on: "wards".to_owned(),
        owner: None,
        method: Method {
            seeds: (0..5).collect(),
            model: "logistic regression".to_owned(),
            weights: 4,
            features: 3,
            rounds: 200,
            step_size: 0.5,
            epsilon: "1 * alone".to_owned(),
            decides_on_rows: "held-back".to_owned(),
            resamples: 500,
        },
        rows: DataRows {
            read: 200,
            dealt: 160,
            drawn: false,
            held_out: 0,
            test: 40,
            unused: vec![],
        },
        measure: Measure::ACCURACY,
        least: 0.01,
        owners,
        mean_gain: Some(around(0.02, 0.05)),
        without: None,
        ways,
        notes: Vec::new(),
    }
}

fn gains(name: &str) -> OwnerFinding {
    owner(name, around(0.06, 0.03))
}

fn nothing(name: &str) -> OwnerFinding {
    owner(name, around(0.0, 0.005))
}

fn unclear(name: &str) -> OwnerFinding {
    owner(name, around(0.02, 0.05))
}

#[test]
fn a_gain_is_told_where_its_interval_allows_and_else_left_open() {
    let of = |low, high| Gains::of(Interval { value: 0.5 * (low + high), low, high }, 0.01);
    assert_eq!(of(0.001, 0.02), Gains::Yes);
    assert_eq!(of(-0.02, 0.01), Gains::No, "no more than what counts");
    assert_eq!(of(-0.05, -0.01), Gains::No, "it loses");
    assert_eq!(of(-0.02, 0.02), Gains::Unknown);
    assert_eq!(of(0.001, 0.005), Gains::Yes, "small, and certain");
}

#[test]
fn one_owner_has_nobody_to_federate_with() {
    let advice = recommend(&found(vec![gains("a")], vec![way(AVERAGING, &[], 0.0)]));
    assert_eq!((advice.action, advice.label.as_str()), (Action::Alone, DO_NOT));
}

#[test]
fn nobody_should_federate_where_nobody_gains() {
    let ways = || vec![way(CEILING, &[], 0.0), way(AVERAGING, &[], 0.0)];
    let advice = recommend(&found(vec![nothing("a"), nothing("b")], ways()));
    assert_eq!((advice.action, advice.label.as_str()), (Action::NobodyGains, DO_NOT));
    assert_eq!(advice.nothing, ["a", "b"]);
    let advice = recommend(&found(vec![nothing("a"), unclear("b")], ways()));
    assert_eq!((advice.action, advice.label.as_str()), (Action::NotShown, DO_NOT));
    assert_eq!((advice.nothing.len(), advice.unknown.len()), (1, 1));
}

#[test]
fn members_of_whom_none_can_be_told_may_gain_together() {
    let owners = vec![unclear("a"), unclear("b")];
    let sure = Findings {
        mean_gain: Some(around(0.03, 0.01)),
        ..found(owners, vec![way(CEILING, &[], 0.0), way(AVERAGING, &[], 0.0)])
    };
    assert_eq!(recommend(&sure).action, Action::Average);
}

#[test]
fn nothing_is_needed_where_all_gain_and_nobody_leaves() {
    let ways = vec![way(CEILING, &[], 0.0), way(AVERAGING, &[], 0.0), way(PREFERRED, &[], 0.0)];
    let advice = recommend(&found(vec![gains("a"), gains("b")], ways));
    assert_eq!((advice.action, advice.label.as_str()), (Action::Average, AVERAGING));
    assert_eq!((advice.kept_all, advice.seeds), (5, 5));
}

#[test]
fn a_target_that_everybody_has_at_the_start_asks_for_nothing() {
    let at_start = |name| OwnerFinding { leaves: Some(leaving(1, 1, 1.0)), ..gains(name) };
    let ways = vec![way(CEILING, &[], 0.0), way(AVERAGING, &["a", "b"], 0.3)];
    let advice = recommend(&found(vec![at_start("a"), at_start("b")], ways));
    assert_eq!((advice.action, advice.label.as_str()), (Action::RaiseTarget, DO_NOT));
}

#[test]
fn who_leaves_without_harm_may_go() {
    let leaves = OwnerFinding { leaves: Some(leaving(5, 9, 1.0)), ..nothing("b") };
    let harmless = way(AVERAGING, &["b"], 0.001);
    let ways = vec![way(CEILING, &[], 0.0), harmless, way(PREFERRED, &[], 0.0)];
    let advice = recommend(&found(vec![gains("a"), leaves], ways));
    assert_eq!((advice.action, advice.label.as_str()), (Action::LetGo, AVERAGING));
    assert_eq!(advice.leavers, ["b"]);
}

#[test]
fn departures_that_cost_call_for_what_keeps_the_most() {
    let owners = || {
        let leaves = OwnerFinding { leaves: Some(leaving(5, 9, 1.0)), ..nothing("b") };
        vec![gains("a"), leaves]
    };
    let averaging = || way(AVERAGING, &["b"], 0.05);
    let of = |others: Vec<WayFinding>| {
        let mut ways = vec![way(CEILING, &[], 0.0), averaging()];
        ways.extend(others);
        recommend(&found(owners(), ways))
    };
    // The preferred way, unless another is better by what counts.
    let advice = of(vec![way("retain", &[], 0.0), way(PREFERRED, &[], 0.005)]);
    assert_eq!((advice.action, advice.label.as_str()), (Action::Keep, PREFERRED));
    assert_eq!(advice.price.map(|price| price.value), Some(0.005));
    assert_eq!(advice.cost_of_leaving.map(|cost| cost.value), Some(0.05));
    let advice = of(vec![way("retain", &[], 0.0), way(PREFERRED, &[], 0.02)]);
    assert_eq!(advice.label, "retain");
    // Who keeps more comes first.
    let advice = of(vec![way("retain", &[], 0.0), way(PREFERRED, &["b"], 0.0)]);
    assert_eq!(advice.label, "retain");
}

#[test]
fn who_cannot_be_kept_without_loss_is_paid() {
    let leaves = || OwnerFinding { leaves: Some(leaving(5, 9, 1.0)), ..nothing("b") };
    let of = |other: WayFinding| {
        let ways = vec![way(CEILING, &[], 0.0), way(AVERAGING, &["b"], 0.05), other];
        recommend(&found(vec![gains("a"), leaves()], ways))
    };
    // It keeps everybody, and costs those who gain more than departures do.
    let advice = of(way(PREFERRED, &[], 0.2));
    assert_eq!((advice.action, advice.label.as_str()), (Action::Pay, AVERAGING));
    // It keeps nobody.
    assert_eq!(of(way(PREFERRED, &["b"], 0.0)).action, Action::Pay);
    // Its numbers went beyond all bounds on a seed.
    assert_eq!(of(WayFinding { diverged: 1, ..way(PREFERRED, &[], 0.0) }).action, Action::Pay);
}

#[test]
fn a_way_is_dominated_only_by_what_is_better_in_something_and_worse_in_nothing() {
    let (good, bad) = (way("retain", &[], 0.0), way(PREFERRED, &["b"], 0.1));
    assert!(bad.is_dominated_by(&good, &Measure::ACCURACY));
    assert!(!good.is_dominated_by(&bad, &Measure::ACCURACY));
    assert!(!good.is_dominated_by(&good, &Measure::ACCURACY), "equals stand beside each other");
    let quick = WayFinding { rounds: 1.0, ..bad };
    assert!(!quick.is_dominated_by(&good, &Measure::ACCURACY));
}
