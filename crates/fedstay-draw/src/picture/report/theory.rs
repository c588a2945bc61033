//! What the theory says about a run.

use super::html::paragraph;
use crate::markup::escape;
use crate::picture::{Subject, map};
use crate::words::{guarantee, sentence, unrealizable};
use fedstay::Rule;
use fedstay::diagnose::{Diagnosis, Findings, RunConstants};
use serde::Deserialize;

/// The section about the theorem: step size, angles, advice, guarantee and landing.
pub(super) fn theory(subject: &Subject) -> String {
    let landed = subject.summary.as_ref().and_then(|summary| summary.landed);
    let landed = landed.map(|landed| format!("Landed: {}.", name_of(&landed)));
    let mut html = "<h2>What the theory says</h2>\n".to_owned();
    match findings(subject) {
        None => html.push_str(&paragraph(
            "faint",
            "Gradients were not recorded. With --set record_gram=true a run keeps what is needed to see the \
             angle between them, and fedstay check tells which of the theorem's assumptions hold.",
        )),
        Some(findings) => {
            html.push_str(&paragraph("", &step_words(subject, &findings)));
            html.push_str("<ul>");
            findings.advice.iter().for_each(|advice| html.push_str(&format!("<li>{}</li>", escape(advice))));
            html.push_str("</ul>\n");
        }
    }
    let sure = subject.summary.as_ref().and_then(guarantee);
    let cannot = subject.summary.as_ref().and_then(unrealizable);
    html.extend(sure.into_iter().chain(cannot).map(|text| paragraph("", &sentence(&text))));
    html.extend(landed.map(|text| paragraph("", &text)));
    html
}

/// The step sizes a run had, against the theorem's bound where the rule has one.
fn step_words(subject: &Subject, findings: &Findings) -> String {
    let known = findings.lipschitz.is_some() || findings.smoothness.is_some();
    let bound = match findings.theorem_step {
        Some(bound) if known => {
            format!("; the theorem's bound is {bound:.2e}, from known constants")
        }
        Some(bound) => format!("; the theorem's bound is about {bound:.2e}, as far as was seen"),
        None => String::new(),
    };
    let last = subject.recorded.rounds.last().filter(|line| line.step_size != findings.step_size);
    let last = last.map_or(String::new(), |line| {
        format!(" at the start, {:.2e} in round {}", line.step_size, line.round)
    });
    let angle =
        findings.smallest_angle.map_or("none to see".into(), |angle| format!("{angle:.2}°"));
    format!(
        "Step size {}{last}{bound}. Smallest angle between a gradient and the span of the others: {angle}.",
        findings.step_size
    )
}

/// What the Gram matrices say, where they are recorded.
fn findings(subject: &Subject) -> Option<Findings> {
    let lines = subject.gram.as_ref()?;
    let config = subject.config_table()?;
    let number = |value: Option<&toml::Value>| value.and_then(toml::Value::as_float);
    let instance = map::instance(subject.config.as_deref()?);
    let rule = rule(config.get("rule")?);
    let mut diagnosis = Diagnosis::default();
    diagnosis.take_part(&subject.recorded.header);
    lines.iter().for_each(|line| diagnosis.add(line.clone()));
    if let Some(first) = subject.recorded.rounds.first() {
        diagnosis.content_at_start(&first.left);
    }
    Some(diagnosis.findings(RunConstants {
        lipschitz: instance.as_ref().and_then(|instance| instance.lipschitz),
        smoothness: instance.as_ref().and_then(|instance| instance.smoothness),
        step_size: number(config.get("step_size"))?,
        delta: rule.as_ref().and_then(Rule::slack),
        halves: rule.is_some_and(|rule| rule.halves()),
    }))
}

/// A rule as a configuration has it.
fn rule(configured: &toml::Value) -> Option<Rule> {
    Rule::deserialize(configured.clone()).ok()
}

/// The name a value has in JSON.
fn name_of(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| Some(value.as_str()?.to_owned()))
        .unwrap_or_default()
}
