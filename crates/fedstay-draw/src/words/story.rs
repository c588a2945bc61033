//! A run in plain words: every agent's story, and what the departures cost.

use super::count;
use fedstay::record::{AgentSummary, Counterfactual, Extra, Score, Summary, as_written, briefly};

/// One or two sentences for every agent.
pub fn story(summary: &Summary) -> String {
    let mut text = String::from("Every agent's story\n\n");
    for agent in &summary.agents {
        text.push_str(&format!("  {}\n", of(agent, summary)));
    }
    if let Some((better, of)) = summary.against_alone() {
        text.push_str(&format!(
            "\n  {better} of {of} end with a better model than they would have made alone{}.\n",
            if summary.left.is_empty() {
                ""
            } else {
                ", those that left with the one they took away"
            }
        ));
    }
    text
}

fn of(agent: &AgentSummary, summary: &Summary) -> String {
    let behaviour = agent.behaviour.as_deref().unwrap_or(&summary.behaviour);
    let epsilon = as_written(agent.epsilon);
    let mut text = format!("{} ({behaviour}, ε = {epsilon}): ", agent.called());
    if summary.content_at_start.contains(&agent.id) {
        text.push_str("content with the starting model, so it never took part");
        text.push_str(&ending(agent));
        return text;
    }
    let end = agent.entry.left.unwrap_or(summary.rounds);
    text.push_str(&match agent.entry.first_in_d {
        Some(first) => {
            let waited = end.saturating_sub(first);
            let waited = count(waited, "round");
            format!("about to leave from round {first} on, waited {waited}, ")
        }
        None => "never about to leave as far as the server saw, ".to_owned(),
    });
    if agent.entry.previewed > 0 {
        let shown = agent.entry.last_shown.map_or(String::new(), |shown| {
            format!(" (at last shown {}, real {})", briefly(shown), briefly(agent.loss))
        });
        let rounds = count(agent.entry.previewed, "round");
        text.push_str(&format!("shown previews in {rounds}{shown}, "));
    }
    if agent.entry.absent > 0 {
        text.push_str(&format!("absent in {}, ", count(agent.entry.absent, "round")));
    }
    let back = summary.returned.iter().filter(|back| back.agent == agent.id).count();
    if back > 0 {
        text.push_str(&format!("left and came back {back}×, "));
    }
    text.push_str(&match agent.entry.left {
        Some(round) => format!("left in round {round}"),
        None => format!("stayed to the end ({})", count(agent.entry.reports, "report")),
    });
    text.push_str(&ending(agent));
    text
}

/// What an agent has in the end, and what it gave and got.
fn ending(agent: &AgentSummary) -> String {
    let mut text = String::new();
    if let (Some(ends), Some(alone)) = (agent.ends_with, agent.alone) {
        // There are two models to tell apart: the delivered one, and the one that it left with.
        text.push_str(&match agent.entry.left {
            Some(_) => format!(". It took away a model with {}{}", words(&ends), delivered(agent)),
            None => format!(". It ends with the delivered model, {}", words(&ends)),
        });
        text.push_str(&format!("; alone it would have {}: {}", words(&alone), gain(&ends, &alone)));
    }
    if let Some(worth) = agent.worth
        && let (Some(given), Some(got)) = (worth.given, worth.got)
    {
        text.push_str(&format!(
            ". Its directions took {given:.3} off the others' losses, theirs took {got:.3} off its own"
        ));
    }
    text.push('.');
    text
}

/// How good the delivered model is for an agent that left, on its own rows, if it was asked.
fn delivered(agent: &AgentSummary) -> String {
    if !agent.is_asked() {
        return String::new();
    }
    let accuracy =
        agent.accuracy.map(|share| format!(" and {:.1}% on its own rows", 100.0 * share));
    let loss = briefly(agent.loss);
    format!("; the delivered one has loss {loss}{} for it", accuracy.unwrap_or_default())
}

fn words(score: &Score) -> String {
    let loss = briefly(score.loss);
    match (score.unseen, score.accuracy) {
        (Some(unseen), _) => format!("loss {loss} and {:.1}% on unseen rows", 100.0 * unseen),
        (None, Some(accuracy)) => format!("loss {loss} and {:.1}%", 100.0 * accuracy),
        (None, None) => format!("loss {loss}"),
    }
}

fn gain(ends: &Score, alone: &Score) -> String {
    let points = match (ends.unseen.or(ends.accuracy), alone.unseen.or(alone.accuracy)) {
        (Some(ends), Some(alone)) => 100.0 * (ends - alone),
        _ => {
            let less = alone.loss - ends.loss;
            let word = if less >= 0.0 { "gained" } else { "lost" };
            return format!("it {word} {} of loss", briefly(less.abs()));
        }
    };
    let word = if points >= 0.0 { "gained" } else { "lost" };
    format!("it {word} {:.1} points", points.abs())
}

/// What the departures cost, in words; `None` if it was not asked for.
pub fn harm(summary: &Summary) -> Option<String> {
    let without = summary.counterfactual.as_ref()?;
    if summary.left.is_empty() {
        return Some("Nobody left, so departures cost nothing.".to_owned());
    }
    let Counterfactual { rounds, .. } = without;
    let mut parts = Vec::new();
    match (summary.accuracy, without.accuracy) {
        (Some(now), Some(then)) => {
            parts.push(points("the average agent", now.mean, then.mean));
            parts.push(points("the worst agent", now.min, then.min));
        }
        _ => {
            let (now, then) = (&summary.loss, &without.loss);
            let change = |then: f64, now: f64| format!("{} → {}", briefly(then), briefly(now));
            parts.push(format!("the average agent's loss {}", change(then.mean, now.mean)));
            parts.push(format!("the worst agent's {}", change(then.max, now.max)));
        }
    }
    let accuracy = |score: Option<fedstay::record::Population>| score.and_then(|s| s.accuracy);
    if let (Some(now), Some(then)) = (accuracy(summary.population), accuracy(without.population)) {
        parts.push(points("the population", now, then));
    }
    parts.extend(summary.extra_work().filter(|extra| extra.rounds != 0).map(extra_words));
    Some(format!(
        "What the departures cost, against the same run with nobody leaving ({}): {}.",
        count(*rounds, "round"),
        parts.join("; ")
    ))
}

/// What those who stayed did beyond what they would have done.
fn extra_words(extra: Extra) -> String {
    let more = if extra.rounds > 0 { "more" } else { "fewer" };
    let megabytes = extra.bytes.unsigned_abs() as f64 / 1e6;
    format!(
        "the {} who stayed worked {} {more} rounds together ({megabytes:.1} MB)",
        extra.stayers,
        extra.rounds.unsigned_abs()
    )
}

fn points(who: &str, now: f64, then: f64) -> String {
    let (now, then) = (100.0 * now, 100.0 * then);
    format!("{who} {then:.1}% → {now:.1}% ({:+.1} points)", now - then)
}
