//! A run's summary in sentences, for the terminal and the report.

use super::measure::clause;
use super::verdict::{Counts, emptiness, sureness};
use super::{count, percent};
use fedstay::Measure;
use fedstay::fairness::Fairness;
use fedstay::privacy::Budget;
use fedstay::record::{Departure, Guarantee, Prediction, Summary, decimals, told_apart};
use fedstay::verdict::Verdict;

/// How many left, as `3 of 10`.
pub fn leavers(summary: &Summary) -> String {
    match summary.leavers() {
        0 => "nobody".to_owned(),
        left => format!("{left} of {}", summary.count()),
    }
}

/// The first departures, as `2@41, 7@55, …` (agent 2 in round 41) or by names, and how many came back;
/// a dash where there are none.
pub fn moments(summary: &Summary) -> String {
    let left = &summary.left;
    if left.is_empty() {
        return "–".to_owned();
    }
    let moment =
        |left: &Departure| format!("{}@{}", summary.called_briefly(left.agent), left.round);
    let named: Vec<String> = left.iter().take(3).map(moment).collect();
    let more = if left.len() > 3 { ", …" } else { "" };
    let back = match summary.returned.len() {
        0 => String::new(),
        times => format!(", came back {times}×"),
    };
    format!("{}{more}{back}", named.join(", "))
}

/// Who was absent at times, as `4 of 10 at times, 37% of all reports`; `None` where nobody was. An absent
/// agent has not left.
pub fn absences(summary: &Summary) -> Option<String> {
    let absent = summary.agents.iter().filter(|agent| agent.entry.absent > 0);
    let rounds: u64 = summary.agents.iter().map(|agent| u64::from(agent.entry.absent)).sum();
    let could = u64::from(summary.rounds) * summary.count() as u64;
    (rounds > 0).then(|| {
        let share = percent(rounds as f64 / could.max(1) as f64);
        format!("{} of {} at times, {share} of all their rounds", absent.count(), summary.count())
    })
}

/// How the result is spread over the agents, as `median agent 95.1%, worst tenth 90.0%; Jain 0.998, Gini
/// 0.013`; `None` where it is not known for everybody who counts.
pub fn spread(summary: &Summary) -> Option<String> {
    let Fairness { of, median, worst_decile, jain, gini, with_alone } =
        summary.fairness.as_ref()?;
    let known = summary.measures.iter().find(|measure| measure.name == *of).cloned();
    let measure = known.unwrap_or(Measure::LOSS);
    let shown = |value: &f64| clause(&measure, *value);
    let alone = with_alone.map(|r| format!(", correlation with what each makes alone {r:.2}"));
    Some(format!(
        "median agent {}, worst tenth {}; Jain {jain:.3}, Gini {gini:.3}{}",
        shown(median),
        shown(worst_decile),
        alone.unwrap_or_default()
    ))
}

/// What a verdict means, in a sentence.
pub fn verdict_sentence(summary: &Summary) -> String {
    let counts = Counts::of(summary);
    let left = counts.left_words();
    let what = match (summary.verdict, summary.everybody_content) {
        (Verdict::Retained, true) => "nobody left, and everybody is content".to_owned(),
        (Verdict::Retained, false) => "nobody left".to_owned(),
        (Verdict::Unsatisfied, _) => "nobody left, but nobody is content either".to_owned(),
        (Verdict::AtStart, _) => format!("{left}; all others stayed, and everybody is content"),
        (Verdict::Benign, _) => format!("{left}, and the model satisfies everybody even so"),
        (Verdict::Harmful, _) => {
            format!("{left}, and the delivered model fails {}", counts.failed_words())
        }
        (Verdict::Unknown, _) if counts.left == 0 => "nobody left".to_owned(),
        (Verdict::Unknown, _) if counts.unmeasured > 0 => left,
        (Verdict::Unknown, _) => {
            let unasked = counts.unasked;
            format!(
                "{left}; {unasked} could not be asked about the model, which satisfies all others"
            )
        }
        (Verdict::Empty, _) if counts.left == 0 => emptiness(summary.empty).to_owned(),
        (Verdict::Empty, _) => format!("{}; {left}", emptiness(summary.empty)),
    };
    format!("{}: {what} ({})", summary.verdict.name(), content(summary))
}

/// How many agents were content with the starting model, as `17 of 57 were content with the starting
/// model and never took part`; `None` where nobody was.
pub fn at_start(summary: &Summary) -> Option<String> {
    let counts = Counts::of(summary);
    let alone = Counts { left: counts.at_start, ..counts };
    (counts.at_start > 0).then(|| alone.left_words())
}

/// How many agents are content, as `7 of 10 content`, and how far the farthest is from it.
pub fn content(summary: &Summary) -> String {
    let asked = summary.agents.iter().filter(|agent| agent.is_asked());
    let farthest = asked
        .filter(|agent| !agent.is_content())
        .max_by(|a, b| (a.score.loss - a.epsilon).total_cmp(&(b.score.loss - b.epsilon)));
    let worst = farthest.map(|agent| {
        let (loss, epsilon) = told_apart(agent.score.loss, agent.epsilon);
        format!("; worst: loss {loss} where ε is {epsilon}")
    });
    format!("{}{}", Counts::of(summary).content_words(), worst.unwrap_or_default())
}

/// How many of those that left the server had seen coming; `None` where nobody left and nobody was
/// about to.
pub fn foreseen(summary: &Summary) -> Option<String> {
    let Prediction { left, left_foreseen, in_d, in_d_left } = summary.prediction;
    (in_d > 0 || left > 0).then(|| {
        format!(
            "of {left} that left, {left_foreseen} were in D the round before; of {in_d} ever in D, \
             {in_d_left} left"
        )
    })
}

/// How sure it is that the rule keeps everybody, and how often the guard had to act.
pub fn guarantee(summary: &Summary) -> Option<String> {
    let sure = sureness(summary.guarantee?);
    let acted = summary
        .guarded
        .map(|share| format!("; the guard changed the step in {} of the rounds", percent(share)));
    let missed = summary.misses.map(|misses| match misses {
        0 => "; no prediction missed".to_owned(),
        1 => "; 1 prediction missed".to_owned(),
        misses => format!("; {misses} predictions missed"),
    });
    // Where keeping everybody is proved, a missed prediction means nothing.
    let missed = missed.filter(|_| summary.guarantee == Some(Guarantee::Estimated));
    Some(format!("{sure}{}{}", acted.unwrap_or_default(), missed.unwrap_or_default()))
}

/// That no model satisfies everybody, and how far that is proved; `None` where it is not.
pub fn unrealizable(summary: &Summary) -> Option<String> {
    Some(impossible(summary.least?, summary.within))
}

fn impossible(least: f64, within: Option<f64>) -> String {
    let (reach, beyond) = match within {
        None => ("anywhere".to_owned(), ""),
        Some(within) => (
            format!("within {within:.1e} of where the reports contradicted each other"),
            "; what lies beyond is not known",
        ),
    };
    format!(
        "certified: no model {reach} brings everybody to their target loss, somebody stays {} \
         above{beyond}",
        decimals(least)
    )
}

/// What the reports of a run gave away, in a sentence.
pub fn privacy(budget: &Budget) -> String {
    let Budget { reports, delta, .. } = budget;
    match budget.epsilon {
        Some(epsilon) => format!(
            "what {} say{} is ({epsilon:.3}, {delta})-differentially private for an \
             agent's whole data; when it leaves is not covered",
            count(*reports, "report"),
            if *reports == 1 { "s" } else { "" },
        ),
        None => "clipped, but without noise: nothing is protected".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_something_is_impossible_is_said_with_the_distance_it_is_certified_for() {
        let near = impossible(0.85, Some(1.8e7));
        assert!(near.starts_with("certified: no model within 1.8e7 of"), "{near}");
        assert!(near.ends_with("0.8500 above; what lies beyond is not known"), "{near}");
        let everywhere = impossible(0.4, None);
        assert!(impossible(1e-9, None).contains("stays 1.0e-9 above"), "a little is not nothing");
        assert!(everywhere.contains("no model anywhere") && !everywhere.contains("beyond"));
    }
}
