//! Structured rounds for `fedstay step`: valid reports at scales and in positions that make the
//! arithmetic hard, under every rule and policy, with the state passed back.

use super::draw::Draw;
use super::exact::Sum;
use fedstay::rule::Why;
use fedstay::{Rule, StopReason};
use fedstay_cli::command::step::{Output, answer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A step that takes longer than this counts as hanging.
pub const SLOWEST: Duration = Duration::from_secs(5);

/// All rules that need nothing but reports of losses and directions: groups of rows are told by no step.
fn rules() -> Vec<&'static str> {
    let tells = |name: &&str| Rule::named(name).is_some_and(|rule| !rule.facts().reads_rates);
    Rule::LIST.iter().map(|entry| entry.name).filter(tells).collect()
}

/// What is wrong with an answer, and the input that led to it.
#[derive(Debug, Clone)]
pub struct Fault {
    /// What is wrong.
    pub kind: Kind,
    /// The input.
    pub input: String,
    /// Details about it.
    pub why: String,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The program panicked.
    Panic,
    /// It took too long.
    Slow,
    /// A number in the answer is not finite.
    NotFinite,
    /// An error has more than one line, or none.
    BadError,
    /// The state it returned was refused.
    OwnState,
    /// A rule or a policy that promises to keep everybody takes a step, or shows an agent a model, that is
    /// predicted to lose somebody whom standing still would keep.
    Crossing,
}

/// The outcome of a case.
#[derive(Debug, Default)]
pub struct Played {
    /// How many steps were answered.
    pub accepted: usize,
    /// How many steps were refused, in one line.
    pub refused: usize,
    /// How many agents' predictions were judged, because the rule or the policy promises something.
    pub judged: usize,
    /// How many of these are about what an agent is shown next, under previews.
    pub shown: usize,
    /// How many predictions are at or below the target within what rounding allows, see
    /// [`crossed`].
    pub within_rounding: usize,
    /// The longest time a step took.
    pub slowest: Duration,
    /// The first fault that was found.
    pub fault: Option<Fault>,
}

/// Plays one to three rounds.
pub fn play(draw: &mut Draw<'_>) -> Played {
    let mut played = Played::default();
    let wild = draw.chance(0.5);
    let (rule, policy) = (rule(draw), policy(draw));
    let behind = policy.as_ref().and_then(|policy| behind(draw, policy));
    let step_size = if wild { draw.power(-30.0, 30.0) } else { draw.power(-4.0, 6.0) };
    let dimension = if draw.chance(0.05) { 40 } else { 1 + draw.below(8) };
    let agents = if draw.chance(0.05) { 30 } else { 1 + draw.below(8) };
    let mut state: Option<String> = None;
    let mut benched = Vec::new();
    let mut shown = Previews::default();
    for _ in 0..1 + draw.below(3) {
        let reports = reports(draw, agents, dimension, wild);
        let mut input = json!({ "rule": rule, "step_size": step_size, "reports": reports });
        if let Some(policy) = &policy {
            input["policy"] = match &behind {
                Some(behind) => json!([policy, behind]),
                None => policy.clone(),
            };
        }
        if let Some(state) = &state {
            input["state"] = state.as_str().into();
        }
        let text = input.to_string();
        let begun = Instant::now();
        let answered = std::panic::catch_unwind(|| answer(text.as_bytes()));
        let took = begun.elapsed();
        played.slowest = played.slowest.max(took);
        let fault = |kind, why: String| Some(Fault { kind, input: text.clone(), why });
        played.fault = match answered {
            Err(_) => fault(Kind::Panic, "it panicked".into()),
            _ if took > SLOWEST => fault(Kind::Slow, format!("{took:?}")),
            Ok(Ok(output)) => {
                played.accepted += 1;
                // A landing crosses on purpose: it brings everybody under their target at once.
                let lands = output.stop == Some(StopReason::Landed);
                // So does the way back to weights where all were above their targets, by what they then said.
                let told = output.doubted.iter();
                benched.extend(told.clone().filter(|d| d.why == Why::Benched).map(|d| d.agent.0));
                // What is capped is farther away than it counts as, so the promise holds for it too; a target
                // that moved is not the one that is kept.
                let moved: Vec<u64> =
                    told.filter(|d| d.why == Why::Moved).map(|d| d.agent.0).collect();
                let believed = |report: &&Value| {
                    let agent = agent_of(report);
                    !benched.contains(&agent) && !moved.contains(&agent)
                };
                let believed: Vec<&Value> = reports.iter().filter(believed).collect();
                let lost = match policy.as_ref().filter(|policy| policy["kind"] == "preview") {
                    Some(policy) => shown.judge(policy, &reports, &output, &mut played),
                    None if lands || output.reverted => None,
                    None if promises(&rule, policy.as_ref()) => {
                        judge(&believed, &output.step, &mut played)
                    }
                    None => None,
                };
                let infinite = not_finite(&output).and_then(|why| fault(Kind::NotFinite, why));
                let lost = lost.and_then(|why| fault(Kind::Crossing, why));
                state = Some(output.state);
                infinite.or(lost)
            }
            Ok(Err(error)) => {
                played.refused += 1;
                let said = error.to_string();
                played.fault = if said.is_empty() || said.contains('\n') {
                    fault(Kind::BadError, said)
                } else if said.contains("state") {
                    fault(Kind::OwnState, said)
                } else {
                    None
                };
                return played;
            }
        };
        if played.fault.is_some() {
            return played;
        }
    }
    played
}

/// Judges the step for everybody and says whom it loses.
fn judge(reports: &[&Value], step: &[f64], played: &mut Played) -> Option<String> {
    let judged = reports.iter().filter_map(|report| crossed(report, step));
    judged.fold(None, |lost, judged| played.count(judged).or(lost))
}

impl Played {
    /// Counts a prediction, and says whom it loses.
    fn count(&mut self, judged: Judged) -> Option<String> {
        self.judged += 1;
        match judged {
            Judged::Above => None,
            Judged::WithinRounding => {
                self.within_rounding += 1;
                None
            }
            Judged::Crossed(why) => Some(why),
        }
    }
}

/// What agents were shown under previews.
#[derive(Default)]
struct Previews {
    /// Where the weights are, from where they began.
    here: Vec<f64>,
    /// What was added to them for an agent.
    offsets: BTreeMap<u64, Vec<f64>>,
}

impl Previews {
    /// Judges what everybody is shown next, where it is made from the gradient that the agent sent.
    fn judge(
        &mut self,
        policy: &Value,
        reports: &[Value],
        output: &Output,
        played: &mut Played,
    ) -> Option<String> {
        let dimension = output.step.len();
        let none = vec![0.0; dimension];
        self.here.resize(dimension, 0.0);
        let next: BTreeMap<u64, Vec<f64>> =
            output.shown.iter().map(|shown| (shown.agent.0, shown.offset.clone())).collect();
        let by = policy["by"].as_str().unwrap_or("auto");
        let mut lost = None;
        for report in reports {
            let agent = agent_of(report);
            let by_cut = by == "cut" || (by == "auto" && report.get("gradient").is_some());
            // At the end everybody is given the weights themselves.
            if !by_cut || output.stop.is_some() {
                continue;
            }
            let [before, after] =
                [&self.offsets, &next].map(|offsets| offsets.get(&agent).unwrap_or(&none));
            let way = Way {
                parts: [(1.0, &output.step), (1.0, after), (-1.0, before)],
                from: &self.here,
            };
            if let Some(judged) = way.crossed(report) {
                played.shown += 1;
                lost = played.count(judged).or(lost);
            }
        }
        self.here.iter_mut().zip(&output.step).for_each(|(here, step)| *here += step);
        self.offsets = next;
        lost
    }
}

fn agent_of(report: &Value) -> u64 {
    report["agent"].as_u64().unwrap_or(u64::MAX)
}

fn not_finite(output: &Output) -> Option<String> {
    let offsets = output.shown.iter().map(|shown| ("an offset", &shown.offset));
    let deliver = output.deliver.iter().map(|deliver| ("deliver", deliver));
    for (what, vector) in [("step", &output.step)].into_iter().chain(offsets).chain(deliver) {
        if let Some(index) = vector.iter().position(|value| !value.is_finite()) {
            return Some(format!("{what}[{index}] is {}", vector[index]));
        }
    }
    let state: Value = serde_json::from_str(&output.state).ok()?;
    // JSON has no infinities: one would be written as null.
    let null = ["step_size", "initial_step_size", "last_step"]
        .into_iter()
        .find(|key| state.get(key).is_none_or(Value::is_null));
    null.map(|key| format!("{key} of the state is not a number"))
}

/// Whether the rule or the policy promises to keep everybody, as far as gradients tell.
fn promises(rule: &Value, policy: Option<&Value>) -> bool {
    let guard = policy.is_some_and(|policy| policy["kind"] == "guard");
    let ada_gd = rule["kind"] == "ada-gd" && rule["projection"] != false;
    guard || ada_gd || rule["kind"] == "retain" && rule["floors"] != false
}

/// How an agent's prediction `F + ⟨g, s⟩` compares with its target.
#[derive(Debug, PartialEq)]
pub enum Judged {
    /// It is above the target.
    Above,
    /// It is not above, by less than arithmetic in `f64` can tell.
    WithinRounding,
    /// It is not above, and the sentence says by how much.
    Crossed(String),
}

/// Judges the step for one agent, in exact arithmetic; `None` for an agent that is already content,
/// which standing still would not keep either, or does not tell its loss.
///
/// A dot product of n terms in `f64` may be off by n·u of the sum of the terms' sizes, with
/// u = 2⁻⁵³. Up to four times that, with both ends of the inequality counted as terms, is rounding.
pub fn crossed(report: &Value, step: &[f64]) -> Option<Judged> {
    Way { parts: [(1.0, step), (0.0, &[]), (0.0, &[])], from: &[] }.crossed(report)
}

/// The way from what an agent received to what it receives next, as a sum of vectors.
struct Way<'a> {
    /// How often each of them counts.
    parts: [(f64, &'a [f64]); 3],
    /// The weights it begins at, to whose digits what is shown is rounded.
    from: &'a [f64],
}

impl Way<'_> {
    fn crossed(&self, report: &Value) -> Option<Judged> {
        let number = |key: &str| report.get(key).and_then(Value::as_f64);
        let (loss, epsilon) = (number("loss")?, number("epsilon")?);
        if loss <= epsilon {
            return None;
        }
        let slope = report.get("gradient").or_else(|| report.get("direction"))?.as_array()?;
        let (mut room, mut size) = (Sum::default(), loss.abs() + epsilon.abs());
        room.add(loss);
        room.add(-epsilon);
        for (index, slope) in slope.iter().enumerate() {
            let slope = slope.as_f64()?;
            for (times, part) in self.parts {
                let part = times * part.get(index).copied().unwrap_or(0.0);
                room.add_product(slope, part);
                size += (slope * part).abs();
            }
            size += (slope * self.from.get(index).copied().unwrap_or(0.0)).abs();
        }
        let room = room.value();
        let rounding = 4.0 * (slope.len() + 2) as f64 * (f64::EPSILON / 2.0) * size;
        Some(match room {
            _ if room > 0.0 => Judged::Above,
            _ if room >= -rounding => Judged::WithinRounding,
            _ => Judged::Crossed(format!(
                "agent {}: F − ε = {:e} becomes {room:e} (rounding {rounding:e})",
                report["agent"],
                loss - epsilon
            )),
        })
    }
}

fn small(draw: &mut Draw<'_>) -> f64 {
    if draw.chance(0.3) { 0.0 } else { draw.power(-9.0, 2.0) }
}

fn rule(draw: &mut Draw<'_>) -> Value {
    // Half of the cases go to the rule that promises something.
    let kind = if draw.chance(0.5) { "ada-gd" } else { draw.of(&rules()) };
    let mut rule = json!({ "kind": kind });
    let set: Vec<(&str, Value)> = match kind {
        "ada-gd" => vec![
            ("on_settled", draw.of(&["stop", "halve"]).into()),
            ("projection", (!draw.chance(0.03)).into()),
            ("margin", small(draw).into()),
            ("horizon", small(draw).into()),
        ],
        "retain" => vec![
            ("base", draw.of(&["level", "descent"]).into()),
            ("trust", draw.of(&["auto", "region", "proof"]).into()),
            ("floors", (!draw.chance(0.1)).into()),
            ("landing", draw.chance(0.7).into()),
            ("margin", small(draw).into()),
            ("smoothness", draw.power(-6.0, 6.0).into()),
        ],
        "stay" => vec![
            ("share", small(draw).into()),
            ("price", draw.power(-3.0, 6.0).into()),
            ("watch", draw.chance(0.7).into()),
        ],
        "mw-fed" => vec![
            ("c", (1.0 + draw.power(-3.0, 2.0)).into()),
            ("variant", draw.of(&["weight", "load"]).into()),
        ],
        "maxfl" => vec![
            ("reading", draw.of(&["gradient", "sigmoid"]).into()),
            ("rho", draw.power(-9.0, 9.0).into()),
            ("e", small(draw).into()),
        ],
        "q-fedavg" => vec![("q", (5.0 * draw.share()).into())],
        "afl" => vec![("gamma", small(draw).into())],
        "fedmgda-plus" => vec![("e", draw.share().into())],
        "fedfv" => vec![("alpha", draw.share().into()), ("tau", draw.below(4).into())],
        "pcgrad" => vec![("seed", draw.below(1000).into())],
        "uniform" => vec![
            ("nu", draw.of(&["one", "unit", "clipped", "polyak"]).into()),
            ("level", small(draw).into()),
        ],
        "fedce" => vec![("mode", draw.of(&["times", "plus", "gradient"]).into())],
        _ => Vec::new(),
    };
    for (key, value) in set {
        if draw.chance(0.6) {
            rule[key] = value;
        }
    }
    if draw.chance(0.6) {
        rule["delta"] = small(draw).into();
    }
    rule
}

fn policy(draw: &mut Draw<'_>) -> Option<Value> {
    let kind =
        draw.of(&["", "", "guard", "guard", "early-stop", "keep-best", "preview", "preview"]);
    let mut policy = json!({ "kind": kind });
    match kind {
        "" => return None,
        "guard" if draw.chance(0.7) => policy["delta"] = small(draw).into(),
        "preview" => {
            for key in ["delta", "margin", "pace", "cap"] {
                if draw.chance(0.4) {
                    policy[key] = small(draw).into();
                }
            }
            policy["by"] = draw.of(&["auto", "cut", "cut", "rewind", "stale", "noise"]).into();
            policy["until"] = draw.of(&["rounds", "content"]).into();
        }
        "early-stop" if draw.chance(0.5) => policy["margin"] = small(draw).into(),
        _ => {}
    }
    Some(policy)
}

/// Another policy that goes behind this one, which takes nothing from what the first promises.
fn behind(draw: &mut Draw<'_>, first: &Value) -> Option<Value> {
    let last = first["kind"] == "keep-best" || first["until"] == "content";
    if last || !draw.chance(0.3) {
        return None;
    }
    let stops = first["kind"] != "early-stop" && draw.chance(0.5);
    Some(if stops { json!({ "kind": "early-stop" }) } else { json!("keep-best") })
}

fn reports(draw: &mut Draw<'_>, agents: usize, dimension: usize, wild: bool) -> Vec<Value> {
    let shape = draw.below(8);
    let vector =
        |draw: &mut Draw<'_>| -> Vec<f64> { (0..dimension).map(|_| draw.signed()).collect() };
    let base = vector(draw);
    // How far from parallel the gradients are, where they are nearly so.
    let tilt = draw.power(-17.0, 0.0);
    (0..agents)
        .map(|agent| {
            let size = match wild {
                true => draw.power(-30.0, 30.0),
                false => draw.power(-3.0, 3.0),
            };
            let own = vector(draw);
            let near = |scale: f64| -> Vec<f64> {
                base.iter().zip(&own).map(|(base, own)| scale * (base + tilt * own)).collect()
            };
            let mut direction: Vec<f64> = match shape {
                0 => near(size),
                1 => near(if draw.chance(0.5) { size } else { -size }),
                2 => base.iter().map(|value| value * size).collect(),
                3 if draw.chance(0.3) => vec![0.0; dimension],
                4 if draw.chance(0.3) => own.iter().map(|value| value * 1e-310).collect(),
                5 => (0..dimension)
                    .map(|axis| if axis == agent % dimension { size } else { 0.0 })
                    .collect(),
                6 => own.iter().map(|value| (4.0 * value).round()).collect(),
                _ => own.iter().map(|value| value * size).collect(),
            };
            if draw.chance(0.05) {
                direction.iter_mut().for_each(|value| *value *= draw.power(-10.0, 10.0));
            }
            report(draw, agent, &direction, wild)
        })
        .collect()
}

fn report(draw: &mut Draw<'_>, agent: usize, direction: &[f64], wild: bool) -> Value {
    let mut report = json!({ "agent": agent, "direction": direction });
    if draw.chance(0.03) {
        report["tau"] = draw.power(-9.0, 9.0).into();
        return report;
    }
    let epsilon = match draw.below(6) {
        0 => 0.0,
        1 => -draw.power(-3.0, 3.0),
        2 if wild => draw.power(-30.0, 30.0),
        _ => draw.power(-3.0, 1.0),
    };
    // Far above its target, close to it, at it, or below it.
    let gap = match draw.below(10) {
        0 => 0.0,
        1 => -draw.power(-12.0, 2.0),
        2 | 3 => draw.power(-16.0, -6.0),
        4 if wild => draw.power(-30.0, 30.0),
        _ => draw.power(-4.0, 4.0),
    };
    report["epsilon"] = epsilon.into();
    report["loss"] = (epsilon + gap).into();
    if draw.chance(0.15) {
        report["standard_error"] = small(draw).into();
    }
    if draw.chance(0.1) {
        let gradient: Vec<f64> =
            direction.iter().map(|value| value * (1.0 + 0.1 * draw.signed())).collect();
        report["gradient"] = gradient.into();
    }
    if draw.chance(0.2) {
        report["reach"] = draw.power(-6.0, 6.0).into();
    }
    if draw.chance(0.3) {
        report["samples"] = (1 + draw.below(1000)).into();
    }
    report
}
