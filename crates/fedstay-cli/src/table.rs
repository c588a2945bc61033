//! Results as text for a terminal.

use fedstay::privacy::Budget;
use fedstay::record::{Guarantee, Summary};
use fedstay::verdict::Verdict;

/// Rows under headings; the first column to the left, the others to the right.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |text: &str| text.chars().count();
    let widths: Vec<usize> = headings
        .iter()
        .enumerate()
        .map(|(column, heading)| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
            cells.max().unwrap_or(0).max(width(heading))
        })
        .collect();
    let line = |cells: Vec<&str>| {
        let mut line = String::new();
        for (column, (cell, width_wanted)) in cells.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width_wanted.saturating_sub(width(cell)));
            match column {
                0 => line.push_str(&format!("{cell}{padding}")),
                _ => line.push_str(&format!("  {padding}{cell}")),
            }
        }
        format!("{}\n", line.trim_end())
    };
    let mut text = line(headings.to_vec());
    text.push_str(&line(widths.iter().map(|width| &RULER[..*width.min(&RULER.len())]).collect()));
    for row in rows {
        text.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    text
}

const RULER: &str = "------------------------------------------------------------------------";

pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.1}%", 100.0 * share))
}

/// `3 of 10 (2@41, 7@55, 0@60)`, and how many came back.
pub(crate) fn departures(summary: &Summary) -> String {
    let left = &summary.left;
    if left.is_empty() {
        return "nobody".to_owned();
    }
    let named: Vec<String> =
        left.iter().take(3).map(|left| format!("{}@{}", left.agent, left.round)).collect();
    let more = if left.len() > 3 { ", …" } else { "" };
    let back = match summary.returned.len() {
        0 => String::new(),
        times => format!(", came back {times}×"),
    };
    let (leavers, agents) = (summary.leavers(), summary.agents.len());
    format!("{leavers} of {agents} ({}{more}){back}", named.join(", "))
}

/// What a verdict means, in a sentence.
pub(crate) fn verdict(summary: &Summary) -> String {
    let left = summary.leavers();
    let all = summary.agents.len();
    let what = match (summary.verdict, summary.everybody_content) {
        (Verdict::Retained, true) => "nobody left, and everybody is content".to_owned(),
        (Verdict::Retained, false) => "nobody left".to_owned(),
        (Verdict::Unsatisfied, _) => "nobody left, but nobody is content either".to_owned(),
        (Verdict::Benign, _) => {
            format!("{left} of {all} left, and the model satisfies everybody all the same")
        }
        (Verdict::Harmful, _) => {
            let asked = summary.agents.iter().filter(|agent| agent.loss_of_round.is_none());
            let failed = asked.filter(|agent| !agent.is_content()).count();
            let agents = if failed == 1 { "agent" } else { "agents" };
            format!("{left} of {all} left, and the model fails {failed} {agents}")
        }
        (Verdict::Unknown, _) => format!(
            "{left} of {all} left and were not asked about the model, which satisfies all others"
        ),
    };
    format!("{}: {what} ({})", summary.verdict.name(), content(summary))
}

/// `7 of 10 content`, and how far the farthest agent is from it.
pub(crate) fn content(summary: &Summary) -> String {
    let asked = summary.agents.iter().filter(|agent| agent.loss_of_round.is_none());
    let farthest = asked
        .filter(|agent| !agent.is_content())
        .max_by(|a, b| (a.loss - a.epsilon).total_cmp(&(b.loss - b.epsilon)));
    let worst = farthest
        .map(|agent| format!("; worst: loss {:.4} where ε is {:.4}", agent.loss, agent.epsilon));
    let (content, all) = (summary.satisfied(), summary.agents.len());
    format!("{content} of {all} content{}", worst.unwrap_or_default())
}

/// How sure it is that the rule keeps everybody, and how often the guard had to act.
pub(crate) fn guarantee(summary: &Summary) -> Option<String> {
    let sure = match summary.guarantee? {
        Guarantee::Certified => {
            "certified: convex losses and exact gradients, so every step was proved to keep everybody"
        }
        Guarantee::Estimated => {
            "estimated: that steps keep everybody is predicted from gradients, not proved"
        }
    };
    let acted = summary.guarded.map(|share| {
        format!("; the guard changed the step in {} of the rounds", percent(Some(share)))
    });
    let missed = summary.misses.map(|misses| match misses {
        0 => "; no prediction missed".to_owned(),
        1 => "; 1 prediction missed".to_owned(),
        misses => format!("; {misses} predictions missed"),
    });
    // Where it is proved there is nothing to miss.
    let missed = missed.filter(|_| summary.guarantee == Some(Guarantee::Estimated));
    Some(format!("{sure}{}{}", acted.unwrap_or_default(), missed.unwrap_or_default()))
}

/// What the reports of a run gave away, in a sentence.
pub(crate) fn privacy(budget: &Budget) -> String {
    let Budget { reports, delta, .. } = budget;
    match budget.epsilon {
        Some(epsilon) => format!(
            "what {reports} reports say is ({epsilon:.3}, {delta})-differentially private for an \
             agent's whole data; when it leaves is not covered"
        ),
        None => "clipped, but without noise: nothing is protected".to_owned(),
    }
}

/// The agents' table, with how each behaves where they differ.
fn with_behaviours(summary: &Summary, headings: &[&str], mut rows: Vec<Vec<String>>) -> String {
    let mut headings = headings.to_vec();
    if summary.behaviour == "mixed" {
        headings.push("behaviour");
        for (row, agent) in rows.iter_mut().zip(&summary.agents) {
            row.push(agent.behaviour.clone().unwrap_or_default());
        }
    }
    table(&headings, &rows)
}

/// A run's summary.
pub(crate) fn summary(summary: &Summary) -> String {
    let mut text = format!(
        "{} on {}, seed {}: {} after {} rounds\n{}\n\n",
        summary.rule,
        summary.on,
        summary.seed,
        summary.stop.name(),
        summary.rounds,
        verdict(summary)
    );
    let rows: Vec<Vec<String>> = summary
        .agents
        .iter()
        .take(30)
        .map(|agent| {
            vec![
                agent.id.to_string(),
                format!("{:.4}", agent.epsilon),
                format!("{:.4}", agent.loss),
                percent(agent.accuracy),
                agent.left.map_or("–".to_owned(), |round| round.to_string()),
                agent.rounds_in_d.to_string(),
            ]
        })
        .collect();
    let headings = ["agent", "epsilon", "loss", "accuracy", "left in round", "rounds in D"];
    text.push_str(&with_behaviours(summary, &headings, rows));
    if summary.agents.len() > 30 {
        text.push_str(&format!("… and {} more agents\n", summary.agents.len() - 30));
    }
    let loss = &summary.loss;
    text.push_str(&format!(
        "\nloss      min {:.4}  mean {:.4}  max {:.4}\n",
        loss.min, loss.mean, loss.max
    ));
    if let Some(accuracy) = &summary.accuracy {
        text.push_str(&format!(
            "accuracy  min {}  mean {}  max {}\n",
            percent(Some(accuracy.min)),
            percent(Some(accuracy.mean)),
            percent(Some(accuracy.max))
        ));
    }
    if let Some(population) = &summary.population {
        let accuracy = percent(population.accuracy);
        text.push_str(&format!("population  loss {:.4}  accuracy {accuracy}\n", population.loss));
    }
    let prediction = &summary.prediction;
    if prediction.in_d > 0 || prediction.left > 0 {
        text.push_str(&format!(
            "prediction  of {} who left, {} were in D the round before; of {} ever in D, {} left\n",
            prediction.left, prediction.left_foreseen, prediction.in_d, prediction.in_d_left
        ));
    }
    if let Some(sure) = guarantee(summary) {
        text.push_str(&format!("guarantee  {sure}\n"));
    }
    if let Some(harm) = crate::story::harm(summary) {
        text.push_str(&format!("\n{harm}\n"));
    }
    if let Some(budget) = &summary.privacy {
        text.push_str(&format!("privacy  {}\n", privacy(budget)));
    }
    for note in &summary.notes {
        text.push_str(&format!("data  {note}\n"));
    }
    for warning in &summary.warnings {
        text.push_str(&format!("\nWARNING  {warning}\n"));
    }
    text
}
