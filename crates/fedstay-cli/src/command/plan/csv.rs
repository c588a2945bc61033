//! The tables of a plan as CSV, with everything that was found.

use anyhow::Result;
use fedstay::Interval;
use fedstay_sim::plan::{Findings, Gains, Measured};
use fedstay_terminal::cell;

/// A line of every member: rows, measures with intervals, what it gains, when it leaves.
pub(super) fn members(found: &Findings) -> Result<String> {
    let mut head: Vec<String> = ["member", "rows", "held_back"].map(str::to_owned).to_vec();
    for what in ["alone", "together", "pooled", "constant"] {
        for measure in measures(found) {
            head.extend(ends(&format!("{what} {measure}")));
        }
    }
    head.extend(ends("gain"));
    head.extend(["gains", "leaves_share", "leaves_round"].map(str::to_owned));
    head.extend(ends("cost_of_departures"));
    let mut lines = vec![head];
    for owner in &found.owners {
        let mut line =
            vec![owner.name.clone(), owner.rows.to_string(), owner.test_rows.to_string()];
        for measured in [&owner.alone, &owner.together, &owner.pooled, &owner.constant] {
            for measure in measures(found) {
                line.extend(numbers(measured.get(&measure).copied()));
            }
        }
        line.extend(numbers(owner.gain));
        line.push(
            match owner.gains {
                Gains::Yes => "yes",
                Gains::No => "no",
                Gains::Unknown => "unknown",
            }
            .to_owned(),
        );
        line.push(owner.leaves.map_or("0".to_owned(), |leaves| leaves.share.to_string()));
        line.push(owner.leaves.map_or(String::new(), |leaves| leaves.median.to_string()));
        line.extend(numbers(owner.cost));
        lines.push(line);
    }
    text(lines)
}

/// A line of every way.
pub(super) fn ways(found: &Findings) -> Result<String> {
    let first = ["way", "may_leave", "mean_left", "left", "seeds_without_departures", "content"];
    let mut head: Vec<String> = first.map(str::to_owned).to_vec();
    measures(found).for_each(|measure| head.extend(ends(&measure)));
    head.extend(ends("behind_ceiling"));
    let last = ["worst_member", "worst", "rounds", "bytes", "diverged", "dominated"];
    head.extend(last.map(str::to_owned));
    let mut lines = vec![head];
    for way in &found.ways {
        let mut line = vec![
            way.label.clone(),
            way.may_leave.to_string(),
            way.mean_left.to_string(),
            way.left.join("; "),
            way.kept_all.to_string(),
            way.content.to_string(),
        ];
        for measure in measures(found) {
            line.extend(numbers(way.measures.get(&measure).copied()));
        }
        line.extend(numbers(way.behind));
        let (name, worst) = way.worst.clone().unzip();
        line.push(name.unwrap_or_default());
        line.push(worst.map_or(String::new(), |worst| worst.to_string()));
        line.extend([way.rounds.to_string(), way.bytes.to_string(), way.diverged.to_string()]);
        line.push(way.dominated.to_string());
        lines.push(line);
    }
    text(lines)
}

/// The names of the measures that somebody has, in the order of their names.
fn measures(found: &Findings) -> impl Iterator<Item = String> + use<> {
    let of = |measured: &Measured| measured.keys().cloned().collect::<Vec<_>>();
    let mut names: Vec<String> =
        found.owners.iter().flat_map(|owner| of(&owner.together)).collect();
    names.sort();
    names.dedup();
    names.into_iter()
}

fn ends(what: &str) -> [String; 3] {
    ["", " low", " high"].map(|end| format!("{what}{end}"))
}

fn numbers(of: Option<Interval>) -> [String; 3] {
    of.map_or_else(Default::default, |of| [of.value, of.low, of.high].map(|x| x.to_string()))
}

fn text(lines: Vec<Vec<String>>) -> Result<String> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for line in &lines {
        writer.write_record(line.iter().map(|text| cell(text).into_owned()))?;
    }
    Ok(String::from_utf8(writer.into_inner().map_err(|error| error.into_error())?)?)
}
