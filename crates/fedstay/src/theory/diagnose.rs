//! Diagnostics: how close a problem, or a recorded run, comes to breaking the theorem's
//! assumptions.
//!
//! The theorem wants losses that are L-Lipschitz and H-smooth, gradients that stay linearly
//! independent (minimal heterogeneity), a start with which nobody is content, and a step size of at
//! most `min(δ/L, √(δ/2H), 1/(MH))`. All of this can be seen, or estimated from below, in the Gram
//! matrices of a run.

use crate::record::{GramLine, Header, called, called_together};
use crate::{AgentId, Book, Error, RoundRecord};
use fedstay_kernels::numerics::Cholesky;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Angles below this many degrees are called nearly parallel.
const NARROW: f64 = 5.0;

/// The theorem's step size `min(δ/L, √(δ/2H), 1/(MH))`. `None` if neither constant is known.
pub(crate) fn theorem_step(
    delta: f64,
    lipschitz: Option<f64>,
    smoothness: Option<f64>,
    agents: f64,
) -> Option<f64> {
    let by_lipschitz = lipschitz.filter(|l| *l > 0.0).map(|l| delta / l);
    let by_smoothness =
        smoothness.filter(|h| *h > 0.0).map(|h| (delta / (2.0 * h)).sqrt().min(1.0 / (agents * h)));
    match (by_lipschitz, by_smoothness) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// The smallest angle, in radians, between one of `n` vectors and the span of the others, from
/// their Gram matrix (full, row by row). Zero vectors do not count. `None` for fewer than two.
pub(crate) fn smallest_angle(gram: &[f64], n: usize) -> Option<f64> {
    let seen: Vec<usize> = (0..n).filter(|i| gram[i * n + i] > 0.0).collect();
    let k = seen.len();
    if k < 2 {
        return None;
    }
    let cosine = |i: usize, j: usize| {
        let (i, j) = (seen[i], seen[j]);
        gram[i * n + j] / (gram[i * n + i] * gram[j * n + j]).sqrt()
    };
    // The sine of the angle between vector m and the others' span is 1/√(inverse_mm).
    let dependent = 1e-15 * k as f64;
    let pivot = |left: f64| if left <= dependent { None } else { Some(left) };
    let Some(factor) = Cholesky::new(k, cosine, pivot) else { return Some(0.0) };
    let largest = factor.inverse_diagonal().into_iter().fold(1.0, f64::max);
    Some((1.0 / largest.sqrt()).min(1.0).asin())
}

/// What the rounds of a run show. It is a [`Book`], or is fed the lines of a recorded run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diagnosis {
    lipschitz: f64,
    smoothness: f64,
    angle: Option<(f64, u32)>,
    content_at_start: Vec<AgentId>,
    agents: usize,
    names: BTreeMap<AgentId, String>,
    rounds: u32,
    previous: Option<GramLine>,
}

/// What is known about a run from elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunConstants {
    /// The Lipschitz constant L, if the problem gives it.
    pub lipschitz: Option<f64>,
    /// The smoothness H, if the problem gives it.
    pub smoothness: Option<f64>,
    /// The step size in use.
    pub step_size: f64,
    /// The slack in use; `None` for a rule that does not keep agents by a slack, of which the
    /// theorem says nothing. See [`Rule::slack`](crate::Rule::slack).
    pub delta: Option<f64>,
    /// Whether the rule is one whose end the theorem's step size decides, ADA-GD, and so can halve its own
    /// (`on_settled`). See [`Rule::halves`](crate::Rule::halves).
    pub halves: bool,
}

/// The findings, as data and in words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// The rounds that were looked at.
    pub rounds: u32,
    /// The number of agents.
    pub agents: usize,
    /// The steepest gradient seen: a lower bound on L.
    pub lipschitz_seen: f64,
    /// The Lipschitz constant L, if the problem gives it.
    pub lipschitz: Option<f64>,
    /// The strongest curvature seen along a step: a lower bound on H.
    pub smoothness_seen: f64,
    /// The smoothness H, if the problem gives it.
    pub smoothness: Option<f64>,
    /// The step size in use.
    pub step_size: f64,
    /// The theorem's step size, from the constants that are known or else seen.
    pub theorem_step: Option<f64>,
    /// The smallest angle, in degrees, between an agent's gradient and the span of the others'.
    pub smallest_angle: Option<f64>,
    /// The round in which that angle was seen.
    pub smallest_angle_round: Option<u32>,
    /// The agents that are content with the start.
    pub content_at_start: Vec<AgentId>,
    /// What they are called.
    #[serde(skip)]
    pub content_at_start_called: Vec<String>,
    /// What to change, in plain words.
    pub advice: Vec<String>,
}

impl Diagnosis {
    /// Adds a round.
    pub fn add(&mut self, line: GramLine) {
        let n = line.agents.len();
        let mut full = vec![0.0; n * n];
        let mut entries = line.gram.iter();
        for row in 0..n {
            for column in 0..=row {
                let value = entries.next().copied().unwrap_or(0.0);
                full[row * n + column] = value;
                full[column * n + row] = value;
            }
            self.lipschitz = self.lipschitz.max(full[row * n + row].max(0.0).sqrt());
        }
        if let Some(angle) = smallest_angle(&full, n)
            && self.angle.is_none_or(|(smallest, _)| angle < smallest)
        {
            self.angle = Some((angle, line.round));
        }
        if let Some(before) = &self.previous {
            self.smoothness = self.smoothness.max(curvature(before, &line));
        }
        self.agents = self.agents.max(n);
        self.rounds = line.round;
        self.previous = Some(line);
    }

    /// Takes note of the agents that take part, whether they report or not.
    pub fn take_part(&mut self, header: &Header) {
        self.agents = self.agents.max(header.count());
        let named = header.agents.iter().filter_map(|agent| Some((agent.id, agent.name.clone()?)));
        self.names.extend(named);
    }

    fn name(&self, agent: AgentId) -> Option<&str> {
        self.names.get(&agent).map(String::as_str)
    }

    /// Takes note of the agents that were content with the start and so never reported.
    pub fn content_at_start(&mut self, agents: &[AgentId]) {
        self.content_at_start = agents.to_vec();
    }

    /// The findings, with advice.
    pub fn findings(&self, known: RunConstants) -> Findings {
        let lipschitz = known.lipschitz.unwrap_or(self.lipschitz);
        let smoothness = known.smoothness.unwrap_or(self.smoothness);
        let agents = self.agents as f64;
        let theorem_step = known
            .delta
            .and_then(|delta| theorem_step(delta, Some(lipschitz), Some(smoothness), agents));
        let mut findings = Findings {
            rounds: self.rounds,
            agents: self.agents,
            lipschitz_seen: self.lipschitz,
            lipschitz: known.lipschitz,
            smoothness_seen: self.smoothness,
            smoothness: known.smoothness,
            step_size: known.step_size,
            theorem_step,
            smallest_angle: self.angle.map(|(angle, _)| angle.to_degrees()),
            smallest_angle_round: self.angle.map(|(_, round)| round),
            content_at_start: self.content_at_start.clone(),
            content_at_start_called: Vec::new(),
            advice: Vec::new(),
        };
        let content = || self.content_at_start.iter().map(|agent| (*agent, self.name(*agent)));
        findings.content_at_start_called = content().map(|(id, name)| called(id, name)).collect();
        findings.advice = content_words(&called_together(content()), self.content_at_start.len());
        findings.advice.extend(advice(&findings, known));
        if findings.advice.is_empty() {
            findings.advice.push(
                "Nothing to change: the theorem's assumptions hold as far as can be seen.".into(),
            );
        }
        findings
    }
}

impl Book for Diagnosis {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.take_part(record.header);
        if record.line.round == 1 {
            self.content_at_start(record.reports.goodbyes());
        }
        self.add(GramLine::new(record));
        Ok(ControlFlow::Continue(()))
    }
}

/// The strongest `2(F(w + s) − F(w) − ⟨g, s⟩)/‖s‖²` over the agents of both rounds.
fn curvature(before: &GramLine, after: &GramLine) -> f64 {
    let square = before.step_norm * before.step_norm;
    if square <= 0.0 {
        return 0.0;
    }
    let mut strongest: f64 = 0.0;
    for (index, agent) in before.agents.iter().enumerate() {
        let later = after.agents.iter().position(|other| other == agent);
        let losses = (before.loss[index], later.and_then(|later| after.loss[later]));
        if let (Some(from), Some(to)) = losses {
            // Below the rounding of the losses themselves nothing can be said.
            let bend = to - from - before.slope[index];
            let noise = 8.0 * f64::EPSILON * from.abs().max(to.abs());
            if bend > noise {
                strongest = strongest.max(2.0 * bend / square);
            }
        }
    }
    strongest
}

fn advice(findings: &Findings, known: RunConstants) -> Vec<String> {
    let RunConstants { delta, halves, .. } = known;
    let mut advice = Vec::new();
    match findings.theorem_step {
        _ if delta.is_none() => advice.push(
            "The theorem is about rules that keep agents, ada-gd and retain. This rule lets them go, \
             and has nothing to set for it."
                .to_owned(),
        ),
        _ if delta.is_some_and(|delta| delta <= 0.0) => advice.push(
            "rule.delta is zero, so the theorem does not apply: set it above zero, at most epsilon."
                .to_owned(),
        ),
        // How far the other rules step, and where they end, does not follow from the step size.
        _ if !halves => {}
        Some(bound) if findings.step_size > bound => advice.push(format!(
            "step_size {} is above the theorem's {bound:.2e}. For convex losses nobody leaves all the \
             same; but agents may end farther from their target loss than 2δ. Lower step_size, or \
             keep it and set rule.on_settled = \"halve\".",
            findings.step_size
        )),
        Some(bound) if findings.step_size < 0.2 * bound => advice.push(format!(
            "step_size {} is far below the theorem's {bound:.2e}: it may be raised to that.",
            findings.step_size
        )),
        _ => {}
    }
    match findings.smallest_angle {
        Some(angle) if angle < 1e-4 => advice.push(format!(
            "In round {} an agent's gradient lay in the span of the others': minimal heterogeneity \
             is violated, and ADA-GD stalls when such an agent is about to leave. Fewer agents than \
             weights, or agents with more different data, help.",
            findings.smallest_angle_round.unwrap_or(0)
        )),
        Some(angle) if angle < NARROW => advice.push(format!(
            "Gradients come within {angle:.2}° of linear dependence (round {}): progress beside agents \
             that are held will be slow.",
            findings.smallest_angle_round.unwrap_or(0)
        )),
        _ => {}
    }
    advice
}

/// What to do about agents that are content with the start.
fn content_words(who: &str, count: usize) -> Vec<String> {
    let who = who.strip_prefix("agent ").map_or(who.into(), |ids| format!("Agent {ids}"));
    let (are, leave) = if count == 1 { ("is", "leaves") } else { ("are", "leave") };
    let words = format!(
        "{who} {are} content with the start and {leave} before the first step, whatever the rule: \
         choose another start, or a smaller epsilon."
    );
    if count == 0 { Vec::new() } else { vec![words] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_angle_of_known_vectors() {
        // Two vectors at 30°.
        let c = 30f64.to_radians().cos();
        let angle = smallest_angle(&[1.0, 2.0 * c, 2.0 * c, 4.0], 2).unwrap();
        assert!((angle.to_degrees() - 30.0).abs() < 1e-9);
        // Orthogonal: 90°; parallel: 0; one alone: nothing to compare.
        assert!(
            (smallest_angle(&[1.0, 0.0, 0.0, 1.0], 2).unwrap().to_degrees() - 90.0).abs() < 1e-9
        );
        assert_eq!(smallest_angle(&[1.0, 1.0, 1.0, 1.0], 2), Some(0.0));
        assert_eq!(smallest_angle(&[1.0, 0.0, 0.0, 0.0], 2), None);
        // e1, e2 and their sum: dependent although no two are parallel.
        assert_eq!(smallest_angle(&[1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 2.0], 3), Some(0.0));
    }

    fn header(names: &[Option<&str>]) -> Header {
        let agent = |(id, name): (usize, &Option<&str>)| crate::record::HeaderAgent {
            id: AgentId(id as u64),
            epsilon: 0.1,
            name: name.map(str::to_owned),
        };
        let agents = names.iter().enumerate().map(agent).collect();
        Header::new(&crate::About::default(), 1, agents)
    }

    /// Of two agents one is content with the start: there is one gradient, and there are two agents.
    #[test]
    fn agents_that_never_report_are_agents() {
        let mut diagnosis = Diagnosis::default();
        diagnosis.take_part(&header(&[None, Some("St Mary")]));
        diagnosis.content_at_start(&[AgentId(1)]);
        let line = r#"{"round":1,"agents":[0],"loss":[1],"gram":[4],"slope":[-1],"step_norm":1}"#;
        diagnosis.add(serde_json::from_str(line).unwrap());
        let findings =
            diagnosis.findings(RunConstants { delta: Some(0.1), ..RunConstants::default() });
        assert_eq!((findings.agents, findings.smallest_angle), (2, None));
        assert_eq!(findings.content_at_start_called, ["St Mary"]);
        let said = &findings.advice[0];
        assert!(said.starts_with("St Mary is content with the start and leaves"), "{said}");
        diagnosis.content_at_start(&[AgentId(0), AgentId(3)]);
        let said = diagnosis.findings(RunConstants::default()).advice.swap_remove(0);
        assert!(said.starts_with("Agent 0, 3 are content with the start and leave "), "{said}");
    }

    #[test]
    fn only_a_rule_that_keeps_agents_is_told_to_set_its_slack() {
        let advice = |rule: crate::Rule| {
            let known =
                RunConstants { step_size: 0.1, delta: rule.slack(), ..RunConstants::default() };
            Diagnosis::default().findings(known).advice.join(" ")
        };
        let ada_gd = crate::AdaGd { delta: 0.0, ..crate::AdaGd::default() };
        assert!(advice(ada_gd.into()).contains("rule.delta is zero"));
        let averaging = advice(crate::Mean::default().into());
        assert!(!averaging.contains("delta") && averaging.contains("lets them go"), "{averaging}");
        assert!(!averaging.contains("Nothing to change"), "{averaging}");
    }

    #[test]
    fn only_the_rule_that_can_halve_its_step_size_is_told_about_it() {
        let advice = |rule: crate::Rule, step_size: f64| {
            let (delta, halves) = (rule.slack(), rule.halves());
            let known = RunConstants {
                step_size,
                delta,
                halves,
                lipschitz: Some(1.0),
                ..RunConstants::default()
            };
            Diagnosis::default().findings(known).advice.join(" ")
        };
        let of = |rule: crate::Rule| (advice(rule.clone(), 10.0), advice(rule, 1e-9));
        let (above, below) = of(crate::AdaGd::default().into());
        assert!(above.contains("on_settled") && above.contains("target loss"), "{above}");
        assert!(below.contains("may be raised"), "{below}");
        // It has no such key, and lands at any step size.
        let (above, below) = of(crate::Retain::default().into());
        assert!(!(above + &below).contains("step_size"));
    }

    #[test]
    fn the_theorem_step_binds_where_it_should() {
        assert_eq!(theorem_step(0.1, Some(2.0), None, 2.0), Some(0.05));
        assert_eq!(theorem_step(0.1, None, Some(5.0), 10.0), Some(0.02));
        assert_eq!(theorem_step(0.1, None, None, 2.0), None);
    }
}
