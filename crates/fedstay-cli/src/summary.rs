//! Results as text for a terminal.

use fedstay::record::Summary;
use fedstay_draw::words::{guarantee, harm, percent, privacy, verdict_sentence};

/// Rows under headings; the first column is aligned left, the others right.
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

/// The agents' table, with how each behaves if they differ.
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
        verdict_sentence(summary)
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
                agent.entry.left.map_or("–".to_owned(), |round| round.to_string()),
                agent.entry.rounds_in_d.to_string(),
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
            percent(accuracy.min),
            percent(accuracy.mean),
            percent(accuracy.max)
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
    if let Some(harm) = harm(summary) {
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
