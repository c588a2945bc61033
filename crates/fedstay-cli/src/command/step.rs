//! `fedstay step`: the language-neutral interface, one JSON object in, one out.

use anyhow::Result;
use fedstay::record::called;
use fedstay::{
    AgentId, Loss, Policies, Progress, Report, Reports, Rule, Server, Split, Standing, Vector,
};
use fedstay_sim::experiment::check_section;
use fedstay_sim::text::one_line;
use fedstay_terminal::Usage;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{Read, Write};

const EXAMPLES: &str = r#"Example:
  echo '{"rule": {"kind": "ada-gd", "delta": 0.05}, "step_size": 0.1, "reports": [
    {"agent": 0, "loss": 0.2, "epsilon": 0.1, "direction": [1, 0]},
    {"agent": 1, "loss": 3.0, "epsilon": 0.1, "direction": [1, 1]}]}' |
  fedstay step

Reads {rule, policy?, step_size, reports: [{agent, loss, direction, epsilon, reach?, samples?, gradient?, standard_error?}], state?} and writes {split: {d, nd}, case, stop, doubted?, reverted?, step, shown?, deliver?, state}. `step` is what to add to the weights; pass `state` back with the next round's reports. `policy` is what the server does around the rule, as in {"kind": "guard"}, or a list, as in ["guard", {"kind": "early-stop", "margin": 0.1}]; under {"kind": "preview"} each agent in `shown` receives the new weights plus its `offset`, the others the weights themselves. Where `deliver` is there, the model to hand out if the run ends here is the new weights plus that. An agent in privacy mode sends `tau` instead of `loss` and `epsilon`. Bad input: exit code 2 and one line."#;

/// One server step.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Step {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    rule: Value,
    #[serde(default)]
    policy: Option<Value>,
    step_size: f64,
    reports: Vec<InputReport>,
    #[serde(default)]
    state: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputReport {
    agent: AgentId,
    direction: Vec<f64>,
    loss: Option<f64>,
    epsilon: Option<f64>,
    standard_error: Option<f64>,
    tau: Option<f64>,
    gradient: Option<Vec<f64>>,
    reach: Option<f64>,
    samples: Option<u64>,
}

/// What to pass back with the next round's reports.
#[derive(Serialize, Deserialize)]
struct State {
    #[serde(flatten)]
    progress: Progress,
    /// How far the weights have moved since the first step: what rules and policies remember of weights is
    /// measured from where they were then.
    #[serde(default, with = "fedstay::packed")]
    moved: Vec<f64>,
}

/// What an agent receives instead of the weights.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown {
    /// Who.
    pub agent: AgentId,
    /// What to add to the new weights for it.
    pub offset: Vec<f64>,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Output {
    /// Who is about to leave, and who is not.
    pub split: Split,
    /// The paper's case, for rules that act on the prediction.
    pub case: Option<u8>,
    /// Why the run ends here, if it does.
    pub stop: Option<fedstay::StopReason>,
    /// Whose reports were not taken at their word, and what was done about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubted: Vec<fedstay::rule::Doubted>,
    /// Whether the step leads back to the best weights so far.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reverted: bool,
    /// What to add to the weights.
    pub step: Vec<f64>,
    /// Who receives something else than the new weights.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<Shown>,
    /// What to add to the new weights to get the model that is handed out if the run ends here, where that is
    /// another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver: Option<Vec<f64>>,
    /// What to pass back with the next round's reports.
    pub state: String,
}

impl Step {
    pub(super) fn run(self) -> Result<()> {
        let mut text = Vec::new();
        std::io::stdin().lock().read_to_end(&mut text)?;
        let output = answer(&text)?;
        let mut out = std::io::stdout().lock();
        serde_json::to_writer(&mut out, &output)?;
        Ok(writeln!(out)?)
    }
}

/// Answers one input: all that `fedstay step` does between reading and writing.
///
/// # Errors
/// In one line, for input that is not a step or asks for what cannot be.
pub fn answer(text: &[u8]) -> Result<Output, Usage> {
    // What is refused may be quoted, and may hold anything.
    decide(text).map_err(|Usage(why)| Usage(one_line(&why)))
}

fn decide(text: &[u8]) -> Result<Output, Usage> {
    let input: Input = serde_json::from_slice(text)
        .map_err(|error| Usage(format!("standard input is not a valid step: {error}")))?;
    let refused = |error: fedstay::Error| Usage(error.to_string());
    let state: Option<State> = match &input.state {
        Some(text) => Some(serde_json::from_str(text).map_err(|error| {
            Usage(format!("`state` is not what an earlier step returned: {error}"))
        })?),
        None => None,
    };
    let told = input.reports.first().map(|report| report.direction.len());
    let (progress, moved) = state.map_or((None, Vec::new()), |s| (Some(s.progress), s.moved));
    let dimension = told.unwrap_or(moved.len());
    if !moved.is_empty() && moved.len() != dimension {
        let of = moved.len();
        return Err(Usage(format!("`state` is of {of} weights, the directions have {dimension}")));
    }
    let here = if moved.is_empty() { vec![0.0; dimension] } else { moved };
    let rule: Rule = section("rule", "ada-gd", input.rule)?;
    let policy: Option<Policies> =
        input.policy.map(|policy| section("policy", "guard", policy)).transpose()?;
    let mut server = Server::new(here, rule, input.step_size)
        .and_then(|server| server.with_policy(policy.unwrap_or_default()))
        .map_err(refused)?;
    if let Some(progress) = progress {
        server.resume(progress).map_err(refused)?;
    }
    let reports: Result<Vec<Report<'_>>, Usage> =
        input.reports.iter().map(InputReport::read).collect();
    let reports = Reports::new(dimension, reports?).map_err(refused)?;
    let decision = server.step(&reports).map_err(refused)?;
    let progress = server.progress().map_err(refused)?;
    let broadcast = server.broadcast();
    let weights = server.weights();
    let offset = |to: &[f64]| to.iter().zip(weights).map(|(to, here)| to - here).collect();
    let heard = input.reports.iter().map(|report| report.agent);
    let shown = heard.filter_map(|agent| {
        let own = broadcast.personal(agent)?;
        Some(Shown { agent, offset: offset(&own) })
    });
    let shown: Vec<Shown> = shown.collect();
    let deliver = (server.delivered() != weights).then(|| offset(server.delivered()));
    let state = State { progress, moved: weights.to_vec() };
    let state = serde_json::to_string(&state).map_err(|error| Usage(error.to_string()))?;
    Ok(Output {
        split: decision.split,
        case: decision.case,
        stop: decision.stop,
        doubted: decision.doubted,
        reverted: decision.reverted,
        step: server.displacement().to_vec(),
        shown,
        deliver,
        state,
    })
}

/// A rule or policies, checked as in an experiment's file.
fn section<T: DeserializeOwned>(name: &str, kind: &str, value: Value) -> Result<T, Usage> {
    let several = name == "policy" && (value.is_array() || value.is_string());
    if !value.is_object() && !several {
        return Err(Usage(format!("`{name}` must be an object, as in {{\"kind\": \"{kind}\"}}")));
    }
    check_section(name, &value).map_err(|error| Usage(error.to_string()))?;
    serde_json::from_value(value).map_err(|error| Usage(format!("`{name}`: {error}")))
}

impl InputReport {
    fn read(&self) -> Result<Report<'_>, Usage> {
        let agent = self.agent;
        let standing = match (self.loss, self.epsilon, self.tau) {
            (Some(mean), Some(epsilon), None) => {
                let loss = match self.standard_error {
                    Some(standard_error) => Loss::Sampled { mean, standard_error },
                    None => Loss::Exact(mean),
                };
                Standing::Open { loss, epsilon }
            }
            (None, None, Some(tau)) => Standing::Private { tau },
            _ => {
                return Err(Usage(format!(
                    "{}: a report has either `loss` and `epsilon`, or `tau` alone",
                    called(agent, None)
                )));
            }
        };
        Ok(Report {
            agent,
            standing,
            direction: Vector::F64(&self.direction),
            gradient: self.gradient.as_deref().map(Vector::F64),
            reach: self.reach,
            samples: self.samples.unwrap_or(1),
            length: None,
            rates: None,
        })
    }
}
