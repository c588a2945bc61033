//! A run in plain words: every agent's story, and what the departures cost.

use super::count;
use super::measure::{clause, first, first_held_back, within, worst};
use fedstay::record::{
    AgentSummary, Counterfactual, Estimate, Extra, HeldBack, Spread, Summary, as_written, briefly,
};
use fedstay::{Measure, Score};
use std::borrow::Cow;

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
        text.push_str(&ending(agent, &summary.measures));
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
            format!(" (at last shown {}, real {})", briefly(shown), briefly(agent.score.loss))
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
    text.push_str(&ending(agent, &summary.measures));
    text
}

/// What an agent has in the end, and what it gave and got.
fn ending(agent: &AgentSummary, measures: &[Measure]) -> String {
    let mut text = String::new();
    if let (Some(ends), Some(alone)) = (&agent.ends_with, &agent.alone) {
        // There are two models to tell apart: the delivered one, and the one that it left with.
        let own = agent.held_back.as_ref().and_then(HeldBack::against_alone);
        let own = own.and_then(|(ends, alone)| {
            Some((on_held_back(ends, measures)?, on_held_back(alone, measures)?))
        });
        let (ends_in_words, alone_in_words, gain) = match own {
            Some(((measure, ends, told), (_, alone, other))) => {
                (told, other, gained(measure, alone, ends))
            }
            None => (words(ends, measures), words(alone, measures), gain(ends, alone, measures)),
        };
        text.push_str(&match agent.entry.left {
            Some(_) => {
                format!(". It took away a model with {ends_in_words}{}", delivered(agent, measures))
            }
            None => format!(". It ends with the delivered model, {ends_in_words}"),
        });
        text.push_str(&format!("; alone it would have {alone_in_words}: {gain}"));
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
fn delivered(agent: &AgentSummary, measures: &[Measure]) -> String {
    if !agent.is_asked() {
        return String::new();
    }
    let more = first(&agent.score, measures)
        .map(|(measure, value)| format!(" and {} on its own rows", clause(measure, value)));
    let loss = briefly(agent.score.loss);
    format!("; the delivered one has loss {loss}{} for it", more.unwrap_or_default())
}

/// What a score is told by beside its loss: what it is on unseen rows, or else the first measure.
fn telling<'a>(score: &Score, measures: &'a [Measure]) -> Option<(Cow<'a, Measure>, f64)> {
    match score.of(&Measure::UNSEEN.name) {
        Some(unseen) => Some((Cow::Owned(Measure::UNSEEN), unseen)),
        None => first(score, measures).map(|(measure, value)| (Cow::Borrowed(measure), value)),
    }
}

fn words(score: &Score, measures: &[Measure]) -> String {
    let more = telling(score, measures).map(|(measure, value)| match *measure == Measure::UNSEEN {
        true => format!(" and {} on unseen rows", measure.shown(value)),
        false => format!(" and {}", clause(&measure, value)),
    });
    format!("loss {}{}", briefly(score.loss), more.unwrap_or_default())
}

/// The first measure of a model on an agent's own held-back rows, its value, and both in words.
fn on_held_back<'a>(
    estimate: &Estimate,
    measures: &'a [Measure],
) -> Option<(&'a Measure, f64, String)> {
    let (measure, own) = first_held_back(&estimate.measures, measures)?;
    let loss = briefly(estimate.loss);
    let told = match *measure == Measure::ACCURACY {
        true => within(measure, own),
        false => format!("{} {}", measure.label, within(measure, own)),
    };
    Some((measure, own.value, format!("loss {loss} and {told} on its own held-back rows")))
}

fn gain(ends: &Score, alone: &Score, measures: &[Measure]) -> String {
    let told = telling(ends, measures)
        .and_then(|(measure, ends)| Some((alone.of(&measure.name)?, measure, ends)));
    let loss = || (alone.loss, Cow::Owned(Measure::LOSS), ends.loss);
    let (alone, measure, ends) = told.unwrap_or_else(loss);
    gained(&measure, alone, ends)
}

fn gained(measure: &Measure, alone: f64, ends: f64) -> String {
    let gained = measure.badness(alone) - measure.badness(ends);
    let word = if gained >= 0.0 { "gained" } else { "lost" };
    match measure.is_share() {
        true => format!("it {word} {:.1} points", (100.0 * gained).abs()),
        false => format!("it {word} {} of {}", briefly(gained.abs()), measure.label),
    }
}

/// What the departures cost, in words; `None` if it was not asked for.
pub fn harm(summary: &Summary) -> Option<String> {
    let without = summary.counterfactual.as_ref()?;
    if summary.left.is_empty() {
        return Some("Nobody left, so departures cost nothing.".to_owned());
    }
    let Counterfactual { rounds, .. } = without;
    let mut parts = Vec::new();
    let known = |measure: &&Measure| without.score.get(&measure.name).is_some();
    let (headline, _) = summary.headline();
    let measure = Some(headline).filter(known).cloned().unwrap_or(Measure::LOSS);
    let of = |score: &Score<Spread>| score.get(&measure.name).copied().unwrap_or(Spread::UNKNOWN);
    let (now, then) = (of(&summary.score), of(&without.score));
    let (worst_now, worst_then) = (worst(&measure, &now), worst(&measure, &then));
    if measure.is_share() {
        parts.push(points("the average agent", now.mean, then.mean));
        parts.push(points("the worst agent", worst_now, worst_then));
    } else {
        let change = |then: f64, now: f64| format!("{} → {}", briefly(then), briefly(now));
        let mean = change(then.mean, now.mean);
        parts.push(format!("the average agent's {} {mean}", measure.label));
        parts.push(format!("the worst agent's {}", change(worst_then, worst_now)));
    }
    let population = |score: &Option<Score>| score.as_ref()?.of(&headline.name);
    if let (true, Some(now), Some(then)) =
        (headline.is_share(), population(&summary.population), population(&without.population))
    {
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
