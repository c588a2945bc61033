//! What the list and the page say of a run: both receive words, which are those of every drawing
//! and report (`fedstay_draw::words`).

use crate::delivered::Delivered;
use crate::history::History;
use fedstay::StopReason;
use fedstay::privacy::Budget;
use fedstay::record::{AsJson, Guarantee, Summary};
use fedstay::rule::Landing;
use fedstay::verdict::Verdict;
use fedstay_draw::words::{self, Standing, State, Tone, VerdictWords, sentence};
use serde::Serialize;
use serde_json::Value;

/// What came of a run, or how it is going.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RunWords {
    tone: Tone,
    /// One or two words, for a badge.
    head: String,
    /// One sentence.
    text: String,
    /// Why it ended, if it did: a clause that begins with "it".
    stop: Option<String>,
}

/// What a line of the list says of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ListWords {
    tone: Tone,
    text: String,
}

/// A value of ours by its name in JSON; `None` for a name that only another version knows.
fn named<T: serde::de::DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

fn stop_of(value: &Value) -> Option<String> {
    let name = value.as_str()?;
    let words = named::<StopReason>(value).map(words::stop);
    Some(words.map_or_else(|| format!("it ended: {name}"), ToOwned::to_owned))
}

/// Whether a run landed, by its summary or, before there is one, by its last round.
pub(crate) fn landing(summary: Option<&Value>, last: Option<Landing>) -> Option<&'static str> {
    let landed = summary.and_then(|summary| named::<Landing>(&summary["landed"])).or(last);
    landed.map(words::landing)
}

/// How sure it is that everybody is kept, by the summary or, before there is one, by the last round. Of a run that
/// somebody has left it cannot be said any more.
pub(crate) fn keeping(
    summary: Option<&Value>,
    last: Option<bool>,
    (left, all): (usize, usize),
) -> String {
    let sure = summary.and_then(|summary| named::<Guarantee>(&summary["guarantee"]));
    let told = sure.map_or_else(|| words::keeping(last), words::sureness);
    match (left, summary) {
        (0, _) => told.to_owned(),
        (left, Some(_)) => format!("no: {left} of {all} left"),
        (left, None) => format!("{left} of {all} left before; of the others: {told}"),
    }
}

/// What the departures cost, where the same run with nobody leaving was computed too.
pub(crate) fn harm(summary: &Value) -> Option<String> {
    let summary = Summary::from_json(&serde_json::to_vec(summary).ok()?);
    summary.ok().as_ref().and_then(words::harm)
}

/// What the reports gave away, where agents add noise to them.
pub(crate) fn privacy(summary: &Value) -> Option<String> {
    named::<Budget>(&summary["privacy"]).as_ref().map(words::privacy)
}

/// One of the numbers at the head of the page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Counter {
    key: &'static str,
    label: &'static str,
}

/// What is counted at the head of the page while a run is under way, and of what it delivered once
/// it is over. What `mean` and `worst` are of, the page says.
pub(crate) fn counters(over: bool) -> Vec<Counter> {
    let left = ("left", State::Left.brief());
    let headline = [("mean", "mean"), ("worst", "worst")];
    let (first, last) = match over {
        true => (vec![left, ("content", "content")], ("rounds", "rounds")),
        false => {
            let (near, faults) = (State::InD.brief(), State::Fault.brief());
            let first = vec![("in", "still in"), ("near", near), left, ("faults", faults)];
            (first, ("step", "step size η"))
        }
    };
    let all = first.into_iter().chain(headline).chain([last]);
    all.map(|(key, label)| Counter { key, label }).collect()
}

/// The words for a state on the page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct StateWords {
    name: &'static str,
    brief: &'static str,
    text: &'static str,
}

/// Every state's words, at the place of the number that the series have for it.
pub(crate) fn states() -> [StateWords; State::ALL.len()] {
    State::ALL.map(|state| StateWords {
        name: state.name(),
        brief: state.brief(),
        text: state.text(),
    })
}

/// The words about a run that is over.
pub(crate) fn of_summary(summary: &Value) -> RunWords {
    let told = Delivered::of(summary);
    let VerdictWords { tone, head, text } = match named::<Verdict>(&summary["verdict"]) {
        Some(known) => words::verdict(known, &told.counts),
        None => {
            let text = format!("{}.", told.counts.content_words());
            VerdictWords { tone: Tone::Open, head: "Finished", text }
        }
    };
    RunWords { tone, head: head.to_owned(), text, stop: stop_of(&summary["stop"]) }
}

/// The words about a run that is not over, or has no summary.
pub(crate) fn of_history(history: &History, status: Standing) -> RunWords {
    let count = |wanted: State| history.agents.iter().filter(|agent| agent.state == wanted).count();
    if history.rounds.is_empty() {
        return of_standing(status);
    }
    let live = status.is_live();
    let (left, near, faults) = (count(State::Left), count(State::InD), count(State::Fault));
    let near_words = match (near, live) {
        (0, true) => "Nobody is about to leave".to_owned(),
        (0, false) => "nobody was about to leave".to_owned(),
        (near, true) => format!("{} about to leave", are(near)),
        (near, false) => format!("{} about to leave", were(near)),
    };
    let left_words = match (left, live) {
        (0, true) => "all are still in".to_owned(),
        (0, false) => "all were still in".to_owned(),
        (left, true) => format!("{left} of {} left", history.everybody()),
        (left, false) => format!("{left} of {} had left", history.everybody()),
    };
    let fault_words = match faults {
        0 => String::new(),
        faults => format!("; {} did not answer", words::count(faults as u64, "agent")),
    };
    let before = if live { "" } else { " In its last round " };
    let said = if live { "" } else { status.text() };
    // What came of it nobody knows before it is over: green is for verdicts.
    let tone = match (live, left, near) {
        (false, ..) => status.tone(),
        (true, 0, 0) => Tone::Open,
        (true, 0, _) => Tone::Warn,
        (true, ..) => Tone::Bad,
    };
    let last = history.last.as_ref().and_then(|line| line.stop);
    RunWords {
        tone,
        head: head_of(status),
        text: format!("{said}{before}{near_words}; {left_words}{fault_words}."),
        stop: last.map(|reason| words::stop(reason).to_owned()),
    }
}

fn are(agents: usize) -> String {
    let verb = if agents == 1 { "is" } else { "are" };
    format!("{} {verb}", words::count(agents as u64, "agent"))
}

fn were(agents: usize) -> String {
    let verb = if agents == 1 { "was" } else { "were" };
    format!("{} {verb}", words::count(agents as u64, "agent"))
}

fn head_of(status: Standing) -> String {
    sentence(status.name()).trim_end_matches('.').to_owned()
}

/// The words about a run of which no round is known.
pub(crate) fn of_standing(status: Standing) -> RunWords {
    RunWords {
        tone: status.tone(),
        head: head_of(status),
        text: status.text().to_owned(),
        stop: None,
    }
}

/// The words for the list: a verdict with its count, or how far the run is.
pub(crate) fn brief(summary: Option<&Value>, status: Standing) -> ListWords {
    let Some(summary) = summary else {
        return ListWords { tone: status.tone(), text: status.name().to_owned() };
    };
    let words = of_summary(summary);
    let content = Delivered::of(summary).counts.content_words();
    ListWords { tone: words.tone, text: format!("{}, {content}", words.head.to_lowercase()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn summary(verdict: &str, stop: &str) -> Value {
        json!({ "verdict": verdict, "stop": stop, "agents": [
            { "id": 0, "epsilon": 0.5, "loss": 0.4 }, { "id": 1, "epsilon": 0.5, "loss": 0.6 } ] })
    }

    #[test]
    fn every_verdict_and_stop_reason_is_known_by_its_name_in_json() {
        for verdict in Verdict::ALL.map(Verdict::name) {
            let words = of_summary(&summary(verdict, "settled"));
            assert_eq!(words.head.to_lowercase(), verdict);
            let brief = brief(Some(&summary(verdict, "settled")), Standing::Finished);
            assert_eq!(brief.text, format!("{verdict}, 1 of 2 content"));
        }
        let stop = |name: &str| of_summary(&summary("retained", name)).stop.unwrap();
        for reason in StopReason::ALL {
            assert_eq!(stop(reason.name()), words::stop(reason));
        }
        assert_eq!(stop("nobody-left"), stop("everyone-left"), "the old name is still read");
    }

    #[test]
    fn the_page_says_who_was_content_at_the_start_who_keeps_a_model_and_why_one_is_empty() {
        let mut summary = summary("at-start", "settled");
        summary["left"] = json!([{ "agent": 1, "round": 1 }]);
        summary["content_at_start"] = json!([1]);
        let text = of_summary(&summary).text;
        assert!(text.starts_with("1 of 2 was content with the starting model and never"), "{text}");
        summary["verdict"] = json!("harmful");
        let text = of_summary(&summary).text;
        assert!(
            text.contains("fails 1 agent, which left and keeps the model of its round"),
            "{text}"
        );
        summary["verdict"] = json!("empty");
        summary["empty"] = json!("no-step");
        let said = of_summary(&summary);
        assert!(said.text.starts_with("No step was taken") && said.tone == Tone::Bad, "{said:?}");
    }

    #[test]
    fn a_summary_says_whether_it_landed_and_before_it_the_last_round_does() {
        let over = json!({ "landed": "certified" });
        let said = landing(Some(&over), Some(Landing::No));
        assert_eq!(said, Some(words::landing(Landing::Certified)));
        assert_eq!(landing(None, Some(Landing::No)), Some(words::landing(Landing::No)));
        assert_eq!(landing(Some(&json!({ "landed": null })), None), None);
    }

    #[test]
    fn a_summary_says_how_sure_it_is_and_before_it_the_last_round_does() {
        let over = json!({ "guarantee": "estimated" });
        let said = keeping(Some(&over), Some(true), (0, 3));
        assert_eq!(said, words::sureness(Guarantee::Estimated));
        for unknown in [None, Some(&json!({ "guarantee": "sworn" }))] {
            assert_eq!(keeping(unknown, Some(false), (0, 3)), words::keeping(Some(false)));
        }
    }

    #[test]
    fn nobody_is_told_that_everybody_is_kept_of_a_run_that_somebody_left() {
        let over = json!({ "guarantee": "estimated" });
        assert_eq!(keeping(Some(&over), Some(true), (2, 3)), "no: 2 of 3 left");
        assert!(keeping(None, Some(true), (2, 3)).starts_with("2 of 3 left before"));
    }

    #[test]
    fn the_words_of_a_state_are_at_its_number() {
        for state in State::ALL {
            assert_eq!(states()[state as usize].name, state.name());
        }
    }

    #[test]
    fn what_another_version_wrote_is_passed_on_as_it_is() {
        let words = of_summary(&summary("marvellous", "bored"));
        assert_eq!(words.head, "Finished");
        assert_eq!(words.stop.as_deref(), Some("it ended: bored"));
        assert_eq!(words.text, "1 of 2 content.");
    }
}
