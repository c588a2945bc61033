//! A tournament as one picture: a row a rule, a column a behaviour.

use super::write as write_figure;
use crate::draw::{Category, Cells, Colour, Figure, Fill, Panel};
use crate::tournament::Averaged;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// From which worst-agent accuracy on a cell has which shade.
const BANDS: [(f64, &str, f64); 5] = [
    (0.90, "worst agent ≥ 90%", 0.75),
    (0.75, "≥ 75%", 0.5),
    (0.50, "≥ 50%", 0.3),
    (0.25, "≥ 25%", 0.14),
    (f64::NEG_INFINITY, "below", 0.0),
];

/// Draws `tournament.svg` and `tournament.png`.
///
/// # Errors
/// When the folder cannot be written to.
pub fn write(lines: &[Averaged], folder: &Path) -> Result<Vec<PathBuf>> {
    write_figure(&figure(lines), folder, "tournament")
}

/// The picture.
pub fn figure(lines: &[Averaged]) -> Figure {
    let distinct = |of: fn(&Averaged) -> &String| {
        let mut names: Vec<String> = Vec::new();
        for line in lines {
            if !names.contains(of(line)) {
                names.push(of(line).clone());
            }
        }
        names
    };
    let (rules, behaviours) = (distinct(|line| &line.rule), distinct(|line| &line.behaviour));
    let (mut rows, mut texts) = (Vec::new(), Vec::new());
    for rule in &rules {
        let cell = |behaviour: &String| {
            lines.iter().find(|line| (&line.rule, &line.behaviour) == (rule, behaviour))
        };
        let cells: Vec<Option<&Averaged>> = behaviours.iter().map(cell).collect();
        rows.push(cells.iter().map(|cell| cell.map_or(usize::MAX, band)).collect());
        texts.push(cells.iter().map(|cell| cell.map_or(String::new(), said)).collect());
    }
    let panel = Panel {
        x_categories: behaviours,
        y_categories: rules.clone(),
        grid: false,
        height: Some(34.0 * rules.len() as f64),
        ..Panel::new("", "how the agents behave", "")
    };
    let cells = Cells { texts, ..Cells::new(rows, categories(), 0.0) };
    let subtitle = "In each cell: the worst agent's accuracy under the delivered model, and how many \
                    agents left; means over the seeds";
    let figure = Figure {
        subtitle: subtitle.to_owned(),
        columns: 1,
        ..Figure::new("Rules against behaviours")
    };
    figure.with(panel.with(cells))
}

fn band(line: &Averaged) -> usize {
    BANDS.iter().position(|(from, ..)| line.accuracy_worst >= *from).unwrap_or(BANDS.len() - 1)
}

fn said(line: &Averaged) -> String {
    if line.verdict == "failed" {
        return "failed".to_owned();
    }
    let left = match line.left {
        0.0 => "nobody left".to_owned(),
        left => format!("{} left", (10.0 * left).round() / 10.0),
    };
    format!("{:.0}%\n{left}", 100.0 * line.accuracy_worst)
}

fn categories() -> Vec<Category> {
    let category = |(_, name, opacity): &(f64, &str, f64)| Category {
        name: (*name).to_owned(),
        // The lowest band is another colour: somebody is failed there.
        fill: match *opacity {
            0.0 => Fill::tint(Colour::ORANGE, 0.25),
            opacity => Fill::tint(Colour::SKY, opacity),
        },
    };
    BANDS.iter().map(category).collect()
}
