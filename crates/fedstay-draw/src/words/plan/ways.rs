//! Ways to run a federation: what each is called, and the table of what each does.

use super::{PlanTable, value};
use fedstay_sim::plan::{CEILING, Findings, WayFinding};

/// What a way is called: `averaging under preview`, `ceiling (nobody may leave)`.
pub fn way(label: &str) -> String {
    if label == CEILING {
        return "ceiling (nobody may leave)".to_owned();
    }
    let mut parts = label.split('+');
    let rule = match parts.next() {
        Some("fedavg") => "averaging",
        Some(rule) => rule,
        None => label,
    };
    let mut name = rule.to_owned();
    for part in parts {
        match part {
            "preview" => name.push_str(" under preview"),
            "never" => name.push_str(", nobody may leave"),
            other => name.push_str(&format!(" with {other}")),
        }
    }
    name
}

/// The table of ways: the ceiling, averaging and those that nothing beats; then how many are folded.
pub fn ways_table(found: &Findings) -> (PlanTable, Option<String>) {
    let measure = &found.measure;
    let heading = |text: &str, spare| (text.to_owned(), spare);
    let headings = vec![
        heading("way", 0),
        heading("leave", 0),
        heading("have target", 1),
        heading("mean", 0),
        heading("worst", 0),
        heading("worst member", 4),
        heading("all rows", 5),
        heading("rounds", 2),
        heading("sent, KB", 3),
    ];
    let owners = found.owners.len();
    let row = |one: &WayFinding| {
        vec![
            way(&one.label),
            match one.may_leave {
                true => format!("{} of {owners}", mean(one.mean_left)),
                false => "–".to_owned(),
            },
            format!("{} of {owners}", mean(one.content)),
            one.measures
                .get(&*measure.name)
                .map_or("–".into(), |mean| value(measure, mean.value)),
            one.worst.as_ref().map_or("–".into(), |(_, worst)| value(measure, *worst)),
            one.worst.as_ref().map_or("–".into(), |(name, _)| name.clone()),
            one.delivered.get(&*measure.name).map_or("–".into(), |all| value(measure, *all)),
            mean(one.rounds),
            mean(one.bytes / 1024.0),
        ]
    };
    let shown = |one: &&WayFinding| {
        !one.may_leave || one.label == fedstay_sim::plan::AVERAGING || !one.dominated
    };
    let rows = found.ways.iter().filter(shown).map(row).collect();
    let folded: Vec<String> =
        found.ways.iter().filter(|one| !shown(one)).map(|one| way(&one.label)).collect();
    let folded = (!folded.is_empty()).then(|| {
        format!(
            "Not shown, because another way is at least as good in everything: {}.",
            super::names(&folded)
        )
    });
    let glossary = format!(
        "Averages over the seeds. Leave: members who go before the end. Have target: members whose target \
         the model they end with meets. Mean, worst: {} of what members end with. Rounds, sent: what one \
         member works and transfers.",
        measure.label
    );
    (PlanTable { headings, rows, glossary }, folded)
}

/// An average of counts: whole where it is whole or large.
pub(super) fn mean(of: f64) -> String {
    match (of - of.round()).abs() < 0.05 || of >= 20.0 {
        true => format!("{of:.0}"),
        false => format!("{of:.1}"),
    }
}
