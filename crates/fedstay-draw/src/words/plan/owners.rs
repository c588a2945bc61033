//! Members: a sentence for each, and the table of what each has alone, together and pooled.

use super::{PlanTable, count, difference, interval, value};
use fedstay::Measure;
use fedstay_sim::plan::{Findings, Gains, Measured, OwnerFinding, WhenLeaves};

/// What a member gains, in a word for a table.
fn gains(owner: &OwnerFinding) -> &'static str {
    match (owner.gains, owner.gain) {
        (Gains::Yes, _) => "yes",
        (Gains::No, Some(gain)) if gain.high < 0.0 => "no, it loses",
        (Gains::No, _) => "no",
        (Gains::Unknown, _) => "cannot tell",
    }
}

/// The table of members: alone, together, pooled, and whether each gains.
pub fn members_table(found: &Findings) -> PlanTable {
    let measure = &found.measure;
    let heading = |text: &str, spare| (text.to_owned(), spare);
    let headings = vec![
        heading("member", 0),
        heading("rows", 3),
        heading("held back", 5),
        heading("constant", 4),
        heading("alone", 0),
        heading("together", 0),
        heading("pooled", 2),
        heading("gain", 0),
        heading("95% interval", 1),
        heading("gains?", 0),
    ];
    let of = |measured: &Measured| match measured.get(&*measure.name) {
        Some(known) => value(measure, known.value),
        None => "–".to_owned(),
    };
    let row = |owner: &OwnerFinding| {
        vec![
            owner.name.clone(),
            owner.rows.to_string(),
            owner.test_rows.to_string(),
            of(&owner.constant),
            of(&owner.alone),
            of(&owner.together),
            of(&owner.pooled),
            owner.gain.map_or("–".to_owned(), |gain| difference(measure, gain.value)),
            owner.gain.map_or("–".to_owned(), |gain| interval(measure, gain)),
            gains(owner).to_owned(),
        ]
    };
    let better = match measure.better {
        fedstay::Better::Higher => "more is better",
        fedstay::Better::Lower => "less is better",
    };
    let glossary = format!(
        "{} on each member's own held-back rows ({better}; a gain is positive when it helps). Alone: its \
         best model without the others. Together: the common model if nobody leaves. Pooled: one model of \
         all rows in one place.",
        super::capital(&measure.label)
    );
    PlanTable { headings, rows: found.owners.iter().map(row).collect(), glossary }
}

/// A sentence or two about a member.
pub fn member(found: &Findings, owner: &OwnerFinding) -> String {
    let measure = &found.measure;
    let of = |measured: &Measured| measured.get(&*measure.name).map(|known| known.value);
    let (alone, together) = (of(&owner.alone), of(&owner.together));
    let rows = format!(
        "{} ({}, {} of them held back)",
        owner.name,
        count(owner.rows, "row"),
        owner.test_rows
    );
    let gain = match (alone, together, owner.gain) {
        (Some(alone), Some(together), Some(gain)) => {
            let told = match owner.gains {
                Gains::Yes => "gains by federating",
                Gains::No if gain.high < 0.0 => "loses by federating",
                Gains::No => "gains nothing that counts",
                Gains::Unknown => "may or may not gain: its rows do not suffice to tell",
            };
            format!(
                "{rows} {told}: {} {} alone, {} together, {} {}.",
                measure.label,
                value(measure, alone),
                value(measure, together),
                difference(measure, gain.value),
                interval(measure, gain)
            )
        }
        _ => format!(
            "{rows} cannot be judged: {} is not defined on its held-back rows.",
            measure.label
        ),
    };
    let leaves = match &owner.leaves {
        Some(leaving) => {
            format!(" Under averaging it leaves {}.", when(leaving, found.method.seeds.len()))
        }
        None if found.way(fedstay_sim::plan::AVERAGING).is_some() => {
            " Under averaging it stays to the end.".to_owned()
        }
        None => String::new(),
    };
    format!("{gain}{leaves}{}", cost(measure, owner, found.least))
}

/// When a member leaves: `on 3 of 5 seeds, in round 12 (9 to 20)`.
pub(super) fn when(leaving: &WhenLeaves, seeds: usize) -> String {
    let on = (leaving.share * seeds as f64).round() as usize;
    let rounds = match leaving.first == leaving.last {
        true => format!("in round {}", leaving.median),
        false => format!("in round {} ({} to {})", leaving.median, leaving.first, leaving.last),
    };
    match (on == seeds, leaving.last <= 1) {
        (true, true) => {
            "before the first round: the first model already meets its target".to_owned()
        }
        (true, false) => format!("on every seed, {rounds}"),
        (false, _) => format!("on {on} of {seeds} seeds, {rounds}"),
    }
}

/// What departures cost a member, where that can be told.
fn cost(measure: &Measure, owner: &OwnerFinding, least: f64) -> String {
    match owner.cost {
        Some(cost) if cost.low > 0.0 && cost.value > least => format!(
            " Departures cost it {} {}.",
            difference(measure, cost.value).trim_start_matches('+'),
            interval(measure, cost)
        ),
        _ => String::new(),
    }
}
