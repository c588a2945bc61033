//! What a run's verdict, end and state are called: here once, for the list and for the page, which
//! both receive words. Every variant must have them, or this does not compile.

use crate::delivered::Delivered;
use crate::history::{History, state};
use crate::run::Status;
use fedstay::StopReason;
use fedstay::verdict::Verdict;
use serde::Serialize;
use serde_json::Value;

/// The colour in which something is said. Each verdict has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tone {
    /// Green: as it should be.
    Good,
    /// Blue: not as wished for, and harmless.
    Fair,
    /// Amber: something is amiss.
    Warn,
    /// Red: somebody is harmed.
    Bad,
    /// Grey: nobody can say.
    Open,
}

/// What became of a run, or becomes of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Words {
    tone: Tone,
    /// One or two words, for a badge.
    head: String,
    /// One sentence.
    text: String,
    /// Why it ended, if it did: a clause that begins with "it".
    stop: Option<String>,
}

/// The same for a line of the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Brief {
    tone: Tone,
    text: String,
}

/// Tone, badge, and a sentence that always says how many are content.
fn verdict(verdict: Verdict, told: &Delivered) -> (Tone, &'static str, String) {
    let Delivered { left, agents, failed, .. } = told;
    let content = told.content_words();
    match verdict {
        Verdict::Retained => (Tone::Good, "Retained", format!("All stayed; {content}.")),
        Verdict::Unsatisfied => (
            Tone::Warn,
            "Unsatisfied",
            format!("All stayed, but the model satisfies nobody; {content}."),
        ),
        Verdict::Benign => {
            let text = format!("{left} of {agents} left, and it harmed nobody; {content}.");
            (Tone::Fair, "Benign", text)
        }
        Verdict::Harmful => {
            let whom = if *failed == 1 { "1 agent".to_owned() } else { format!("{failed} agents") };
            let text = format!("{left} of {agents} left, and the model fails {whom}; {content}.");
            (Tone::Bad, "Harmful", text)
        }
        Verdict::Unknown => {
            let text = format!(
                "{left} of {agents} left; {} could not be asked about the model, which satisfies all \
                 others; {content}.",
                told.unasked
            );
            (Tone::Open, "Unknown", text)
        }
    }
}

/// Why a run ended.
fn stop(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Settled => "it stopped: everybody is within reach of their target loss",
        StopReason::Landed => "it landed: everybody was brought under their target loss at once",
        StopReason::Stalled => {
            "it stalled: no direction helps somebody and leaves those about to leave alone"
        }
        StopReason::EveryoneLeft => "it ended because everyone had left",
        StopReason::EarlyStop => "it stopped before a predicted departure",
        StopReason::RoundLimit => "it ended after the rounds asked for",
        StopReason::TooFew => "it stopped: fewer agents answered than it was told to continue with",
    }
}

/// A value of ours by its name in JSON; none for a name that only another version knows.
fn named<T: serde::de::DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

fn stop_of(value: &Value) -> Option<String> {
    let name = value.as_str()?;
    Some(named(value).map_or_else(|| format!("it ended: {name}"), |reason| stop(reason).to_owned()))
}

/// About a run that is over.
pub(crate) fn of_summary(summary: &Value) -> Words {
    let told = Delivered::of(summary);
    let (tone, head, text) = match named::<Verdict>(&summary["verdict"]) {
        Some(known) => verdict(known, &told),
        None => (Tone::Open, "Finished", format!("{}.", told.content_words())),
    };
    Words { tone, head: head.to_owned(), text, stop: stop_of(&summary["stop"]) }
}

/// About a run that is not over, or has no summary.
pub(crate) fn of_history(history: &History, status: Status) -> Words {
    let count = |wanted: u8| history.agents.iter().filter(|agent| agent.state == wanted).count();
    let (left, near, faults) = (count(state::LEFT), count(state::IN_D), count(state::FAULT));
    let near_words = match near {
        0 => "Nobody is about to leave".to_owned(),
        1 => "1 agent is about to leave".to_owned(),
        near => format!("{near} agents are about to leave"),
    };
    let left_words = match left {
        0 => "all are still in".to_owned(),
        left => format!("{left} of {} left", history.agents.len()),
    };
    let fault_words = match faults {
        0 => String::new(),
        1 => "; 1 agent did not answer".to_owned(),
        faults => format!("; {faults} agents did not answer"),
    };
    let tone = match (left, near) {
        (0, 0) => Tone::Good,
        (0, _) => Tone::Warn,
        _ => Tone::Bad,
    };
    let last = history.last.as_ref().and_then(|line| line.stop);
    Words {
        tone,
        head: status_words(status).to_owned(),
        text: format!("{near_words}; {left_words}{fault_words}."),
        stop: last.map(|reason| stop(reason).to_owned()),
    }
}

fn status_words(status: Status) -> &'static str {
    match status {
        Status::Running => "Running",
        Status::Silent => "Stopped writing",
        Status::Finished => "Finished",
    }
}

/// For the list: a verdict with its count, or how far the run is.
pub(crate) fn brief(summary: Option<&Value>, status: Status) -> Brief {
    let Some(summary) = summary else {
        return Brief { tone: Tone::Open, text: status_words(status).to_lowercase() };
    };
    let words = of_summary(summary);
    let content = Delivered::of(summary).content_words();
    Brief { tone: words.tone, text: format!("{}, {content}", words.head.to_lowercase()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::HashSet;

    fn summary(verdict: &str, stop: &str) -> Value {
        json!({ "verdict": verdict, "stop": stop, "agents": [
            { "id": 0, "epsilon": 0.5, "loss": 0.4 }, { "id": 1, "epsilon": 0.5, "loss": 0.6 } ] })
    }

    #[test]
    fn every_verdict_has_its_own_word_and_colour_and_says_how_many_are_content() {
        let all = Verdict::ALL.map(|verdict| of_summary(&summary(verdict.name(), "settled")));
        let heads: HashSet<&str> = all.iter().map(|words| words.head.as_str()).collect();
        let tones: HashSet<Tone> = all.iter().map(|words| words.tone).collect();
        assert_eq!((heads.len(), tones.len()), (all.len(), all.len()), "{all:?}");
        assert!(!heads.contains("Finished"), "{heads:?}");
        for (words, verdict) in all.iter().zip(Verdict::ALL.map(Verdict::name)) {
            assert_eq!(words.head.to_lowercase(), verdict);
            assert!(words.text.contains("1 of 2 content"), "{verdict}: {}", words.text);
            assert!(!words.text.to_lowercase().contains("nobody left"), "{}", words.text);
            let brief = brief(Some(&summary(verdict, "settled")), Status::Finished);
            assert_eq!(brief.text, format!("{verdict}, 1 of 2 content"));
        }
    }

    #[test]
    fn every_stop_reason_has_words() {
        let words = |stop: &str| of_summary(&summary("retained", stop)).stop.unwrap();
        let said: HashSet<String> =
            StopReason::ALL.iter().map(|reason| words(reason.name())).collect();
        assert_eq!(said.len(), StopReason::ALL.len(), "each its own: {said:?}");
        assert!(said.iter().all(|words| !words.contains("it ended: ")), "{said:?}");
        assert_eq!(words("nobody-left"), words("everyone-left"), "the old name is still read");
        assert!(words("everyone-left").contains("everyone had left"));
    }

    #[test]
    fn what_another_version_wrote_is_passed_on_as_it_is() {
        let words = of_summary(&summary("marvellous", "bored"));
        assert_eq!(words.head, "Finished");
        assert_eq!(words.stop.as_deref(), Some("it ended: bored"));
        assert_eq!(words.text, "1 of 2 content.");
    }
}
