//! The two pictures of a plan: what every member gains, and what every way does.

use crate::plot::{Colour, Dash, Figure, Guide, Legend, Line, Marker, Panel, Points, Style};
use crate::words::plan::way;
use fedstay::{Interval, Measure};
use fedstay_sim::plan::{Findings, Gains, OwnerFinding, WayFinding};

/// More members than this are not drawn; those with the largest gains are.
const MOST: usize = 60;
/// The height of a row.
const ROW: f64 = 26.0;

/// What every member gains over training alone, with its interval.
pub fn gains_figure(found: &Findings) -> Figure {
    let measure = &found.measure;
    let mut owners: Vec<&OwnerFinding> =
        found.owners.iter().filter(|owner| owner.gain.is_some()).collect();
    let gain = |owner: &OwnerFinding| owner.gain.map_or(0.0, |gain| gain.value);
    // From the bottom up, so that who gains most stands at the top.
    owners.sort_by(|a, b| gain(a).total_cmp(&gain(b)));
    let owners = owners.split_off(owners.len().saturating_sub(MOST));
    let ends = owners.iter().filter_map(|owner| owner.gain);
    let mut panel = Panel {
        x_range: range(ends.chain([Interval { value: 0.0, low: 0.0, high: 0.0 }]), measure),
        y_categories: owners.iter().map(|owner| owner.name.clone()).collect(),
        height: Some(ROW * owners.len().max(2) as f64),
        y_range: Some((-0.6, owners.len().max(1) as f64 - 0.4)),
        ..Panel::new("", format!("gain in {} over training alone", axis(measure)), "")
    };
    panel = panel.with(Guide { width: 1.8, ..Guide::vertical(0.0, "") });
    let kinds = [
        (Gains::Yes, "gains", Colour::GREEN, Marker::Disc),
        (Gains::Unknown, "cannot tell", Colour::GREY, Marker::Ring),
        (Gains::No, "gains nothing that counts", Colour::VERMILLION, Marker::Square),
    ];
    for (kind, name, colour, marker) in kinds {
        let mut points = Vec::new();
        for (place, owner) in owners.iter().enumerate() {
            let Some(gain) = owner.gain.filter(|_| owner.gains == kind) else { continue };
            panel = panel.with(whisker(gain, place as f64, measure, colour));
            points.push((measure.scale() * gain.value, place as f64));
        }
        if !points.is_empty() {
            panel = panel.with(Points::new(name, points, marker, colour));
        }
    }
    Figure {
        name: "What each member gains over training alone, with 95% intervals".to_owned(),
        legend: Legend::Top,
        ..Figure::new("")
    }
    .with(panel)
}

/// How many leave under every way, and what members end with.
pub fn ways_figure(found: &Findings) -> Figure {
    let measure = &found.measure;
    let ways: Vec<&WayFinding> = found.ways.iter().rev().collect();
    let names: Vec<String> = ways.iter().map(|one| way(&one.label)).collect();
    let frame = |label: String, categories: Vec<String>| Panel {
        y_categories: categories,
        height: Some(ROW * ways.len().max(2) as f64),
        y_range: Some((-0.6, ways.len().max(1) as f64 - 0.4)),
        ..Panel::new("", label, "")
    };
    let members = found.owners.len() as f64;
    let leave: Vec<(f64, f64)> = ways
        .iter()
        .enumerate()
        .filter(|(_, one)| one.may_leave)
        .map(|(place, one)| (one.mean_left, place as f64))
        .collect();
    let mut leaving = frame("members who leave".to_owned(), names);
    leaving.x_range = Some((-0.04 * members, 1.04 * members));
    let leaving = leaving.with(Points::new("", leave, Marker::Square, Colour::VERMILLION));
    let mut ends = frame(
        format!("{} that members end with, on average", axis(measure)),
        vec![String::new(); ways.len()],
    );
    let means = ways.iter().filter_map(|one| one.measures.get(&*measure.name).copied());
    ends.x_range = range(means, measure);
    let mut points = Vec::new();
    for (place, one) in ways.iter().enumerate() {
        let Some(mean) = one.measures.get(&*measure.name) else { continue };
        ends = ends.with(whisker(*mean, place as f64, measure, Colour::BLUE));
        points.push((measure.scale() * mean.value, place as f64));
    }
    let ends = ends.with(Points::new("", points, Marker::Disc, Colour::BLUE));
    Figure {
        name: "Who leaves under each way, and what members end with".to_owned(),
        legend: Legend::Top,
        ..Figure::new("")
    }
    .with(leaving)
    .with(ends)
}

/// From a little below the lowest end of all intervals to a little above the highest.
fn range(all: impl Iterator<Item = Interval>, measure: &Measure) -> Option<(f64, f64)> {
    let ends = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), of| {
        (low.min(of.low), high.max(of.high))
    });
    let (low, high) = (measure.scale() * ends.0, measure.scale() * ends.1);
    let air = 0.04 * (high - low);
    // Of an error of which nothing is known, the ends are beyond any number.
    (air.is_finite() && high < 1e299).then_some((low - air, high + air))
}

/// A line from one end of an interval to the other.
fn whisker(of: Interval, height: f64, measure: &Measure, colour: Colour) -> Line {
    let style = Style { colour, dash: Dash::Solid, marker: Marker::Disc };
    let ends = [of.low, of.high].map(|end| (measure.scale() * end, height));
    Line::new("", ends.to_vec(), style)
}

fn axis(measure: &Measure) -> String {
    match measure.is_share() {
        true => format!("{} (points)", measure.label),
        false => measure.label.to_string(),
    }
}
