//! A tournament as one picture: one row per rule, one column per behaviour.

use fedstay_draw::picture::{PictureError, write_figure};
use fedstay_draw::plot::{Category, Cells, Colour, Figure, Fill, Panel};
use fedstay_draw::words::whole_percent;
use std::path::{Path, PathBuf};

/// The smallest worst-agent accuracy of each shade.
const BANDS: [(f64, &str, f64); 5] = [
    (0.90, "worst agent ≥ 90%", 0.75),
    (0.75, "≥ 75%", 0.5),
    (0.50, "≥ 50%", 0.3),
    (0.25, "≥ 25%", 0.14),
    (f64::NEG_INFINITY, "below", 0.0),
];

/// With more columns, cells have no room for how far the seeds are apart.
const MOST_COLUMNS: usize = 12;

/// What came of a rule against a behaviour, as means over the seeds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bout {
    /// The rule.
    pub(super) rule: String,
    /// The behaviour.
    pub(super) behaviour: String,
    /// The worst agent's accuracy under the delivered model, and how many agents left; none where
    /// every run failed.
    pub(super) result: Option<(f64, f64)>,
    /// The worst agent's accuracy in the seed with the least and in that with the most.
    pub(super) range: (f64, f64),
}

/// Draws `tournament.svg` and `tournament.png`.
pub(super) fn write(bouts: &[Bout], folder: &Path) -> Result<Vec<PathBuf>, PictureError> {
    write_figure(&figure(bouts), folder, "tournament")
}

fn figure(bouts: &[Bout]) -> Figure {
    let distinct = |of: fn(&Bout) -> &String| {
        let mut names: Vec<String> = Vec::new();
        for bout in bouts {
            if !names.contains(of(bout)) {
                names.push(of(bout).clone());
            }
        }
        names
    };
    let (rules, behaviours) = (distinct(|bout| &bout.rule), distinct(|bout| &bout.behaviour));
    let (mut rows, mut texts) = (Vec::new(), Vec::new());
    for rule in &rules {
        let cell = |behaviour: &String| {
            bouts.iter().find(|bout| (&bout.rule, &bout.behaviour) == (rule, behaviour))
        };
        let cells: Vec<Option<&Bout>> = behaviours.iter().map(cell).collect();
        rows.push(cells.iter().map(|cell| cell.map_or(usize::MAX, band)).collect());
        let said = |bout: &Bout| said(bout, behaviours.len() > MOST_COLUMNS);
        texts.push(cells.iter().map(|cell| cell.map_or(String::new(), said)).collect());
    }
    let subtitle = match behaviours.len() > MOST_COLUMNS {
        true => {
            "In each cell: the worst agent's accuracy under the delivered model, and how many agents \
             left (✓: none in any seed), means over the seeds"
        }
        false => {
            "In each cell: the worst agent's accuracy under the delivered model, mean over the seeds, \
             least to most, and how many agents left (✓: none in any seed)"
        }
    };
    let panel = Panel {
        x_categories: behaviours,
        y_categories: rules.clone(),
        grid: false,
        height: Some(48.0 * rules.len() as f64),
        ..Panel::new("", "how the agents behave", "")
    };
    let cells = Cells { texts, ..Cells::new(rows, categories(), 0.0) };
    let figure = Figure {
        subtitle: subtitle.to_owned(),
        columns: 1,
        ..Figure::new("Rules against behaviours")
    };
    figure.with(panel.with(cells))
}

fn band(bout: &Bout) -> usize {
    // A rule that failed has failed its worst agent too.
    let worst = bout.result.map_or(0.0, |(worst, _)| worst);
    BANDS.iter().position(|(from, ..)| worst >= *from).unwrap_or(BANDS.len() - 1)
}

fn said(bout: &Bout, crowded: bool) -> String {
    let Some((worst, left)) = bout.result else { return "failed".to_owned() };
    let left = match left {
        0.0 if crowded => "✓".to_owned(),
        0.0 => "✓ all stayed".to_owned(),
        left => format!("{} left", (10.0 * left).round() / 10.0),
    };
    let [least, mean, most] = [bout.range.0, worst, bout.range.1].map(whole_percent);
    match crowded || least == most {
        true => format!("{mean}\n{left}"),
        false => format!("{mean}\n{} to {most}\n{left}", least.trim_end_matches('%')),
    }
}

fn categories() -> Vec<Category> {
    let category = |(_, name, opacity): &(f64, &str, f64)| Category {
        name: (*name).to_owned(),
        // The lowest band has another colour: there the model fails somebody.
        fill: match *opacity {
            0.0 => Fill::tint(Colour::ORANGE, 0.25),
            opacity => Fill::tint(Colour::SKY, opacity),
        },
    };
    BANDS.iter().map(category).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_says_how_far_the_seeds_are_apart() {
        let bout = |result, range| {
            said(&Bout { rule: String::new(), behaviour: String::new(), result, range }, false)
        };
        assert_eq!(bout(Some((0.5, 0.0)), (0.42, 0.58)), "50%\n42 to 58%\n✓ all stayed");
        assert_eq!(bout(Some((0.934, 1.25)), (0.931, 0.934)), "93%\n1.3 left");
        assert_eq!(bout(None, (0.0, 0.0)), "failed");
        let (rule, behaviour) = (String::new(), String::new());
        let crowded = Bout { rule, behaviour, result: Some((0.5, 0.0)), range: (0.42, 0.58) };
        assert_eq!(said(&crowded, true), "50%\n✓");
    }
}
