//! The parts of the answer that are sentences.

use super::owners::when;
use super::{capital, count, difference, interval, names, way};
use fedstay_sim::plan::{AVERAGING, Findings, Gains, OwnerFinding};

/// What a plan is about, for a heading: `heart: would these 4 members hold together?`
pub fn title(found: &Findings) -> String {
    let members = count(found.owners.len(), "member");
    format!("{}: should these {members} federate?", found.on)
}

/// 1: what came in, and what became of it.
pub fn came_in(found: &Findings) -> Vec<String> {
    let owners = count(found.owners.len(), "member");
    let held: usize = found.owners.iter().map(|owner| owner.test_rows).sum();
    let mut told = vec![
        format!(
            "{}.",
            crate::words::rows(&found.rows, found.owners.len()).replace("agent", "member")
        ),
        format!(
            "{}: {owners}; {} are read from each row. {} held back on each of {}.",
            found.on,
            count(found.method.features, "number"),
            format!("{held} of the rows are"),
            count(found.method.seeds.len(), "seed"),
        ),
    ];
    told.extend(found.notes.iter().cloned());
    told
}

/// 2: who gains, in a sentence.
pub fn gaining(found: &Findings) -> String {
    let of = |gains| found.names(|owner| owner.gains == gains);
    let (yes, no, unknown) = (of(Gains::Yes), of(Gains::No), of(Gains::Unknown));
    let mut told = Vec::new();
    let verb = |list: &[String], one: &str, several: &str| {
        if list.len() == 1 { one.to_owned() } else { several.to_owned() }
    };
    if !yes.is_empty() {
        told.push(format!("{} {}", names(&yes), verb(&yes, "gains", "gain")));
    }
    if !no.is_empty() {
        told.push(format!("{} {} nothing that counts", names(&no), verb(&no, "gains", "gain")));
    }
    if !unknown.is_empty() {
        told.push(format!("of {} it cannot be told", names(&unknown)));
    }
    let mean = found.mean_gain.map_or(String::new(), |gain| {
        let measure = &found.measure;
        format!(
            " On average over the members the gain is {} {} {}.",
            difference(measure, gain.value),
            measure.label,
            interval(measure, gain)
        )
    });
    // Names keep the letters they have.
    let told = told.join("; ");
    let told = if told.starts_with("of ") { capital(&told) } else { told };
    format!("{told}.{mean}")
}

/// What chance does to many intervals, where there are many.
pub fn chance(found: &Findings) -> Option<String> {
    const MANY: usize = 10;
    let owners = found.owners.len();
    // One in forty intervals of 95% lies above zero although there is nothing.
    let expected = owners as f64 / 40.0;
    (owners >= MANY).then(|| {
        format!(
            "Each interval is about one member. Of {owners} members who gain nothing, {} would still be \
             called gainers by chance.",
            match expected < 1.0 {
                true => "perhaps one".to_owned(),
                false => format!("about {expected:.0}"),
            }
        )
    })
}

/// 3: what happens under averaging, in sentences; empty where averaging was not tried.
pub fn averaging(found: &Findings) -> Vec<String> {
    let Some(averaging) = found.way(AVERAGING) else { return Vec::new() };
    let seeds = found.method.seeds.len();
    if averaging.leavers.is_empty() {
        return vec![format!("Nobody leaves on any of {}.", count(seeds, "seed"))];
    }
    let mut leavers: Vec<&OwnerFinding> =
        found.owners.iter().filter(|owner| owner.leaves.is_some()).collect();
    let order = |owner: &OwnerFinding| {
        owner.leaves.map(|leaves| (leaves.median, (1000.0 * (1.0 - leaves.share)) as u32))
    };
    leavers.sort_by_key(|owner| order(owner));
    const MOST: usize = 8;
    let shown = leavers.iter().take(MOST).filter_map(|owner| {
        Some(format!("{} leaves {}.", owner.name, when(owner.leaves.as_ref()?, seeds)))
    });
    let mut told: Vec<String> = shown.collect();
    if leavers.len() > MOST {
        told.push(format!("{} more leave as well.", leavers.len() - MOST));
    }
    let stay = found.names(|owner| owner.leaves.is_none());
    if !stay.is_empty() {
        let verb = if stay.len() == 1 { "stays" } else { "stay" };
        told.push(format!("{} always {verb}.", names(&stay)));
    }
    let measure = &found.measure;
    let hurt: Vec<String> = found
        .owners
        .iter()
        .filter_map(|owner| {
            let cost = owner.cost.filter(|cost| cost.low > 0.0 && cost.value > found.least)?;
            Some(format!(
                "{} {} {}",
                owner.name,
                difference(measure, -cost.value),
                interval(measure, cost.map(|value| -value))
            ))
        })
        .collect();
    told.push(match hurt.is_empty() {
        true => "That costs nobody anything that can be measured.".to_owned(),
        false => format!("That costs {} {}.", measure.label, names(&hurt)),
    });
    let still = found.names(|owner| owner.still_gains.is_some_and(|gain| gain.low > 0.0));
    let gainers = found.names(|owner| owner.gains == Gains::Yes);
    if !gainers.is_empty() {
        told.push(match still.is_empty() {
            true => "With these departures nobody can be shown to gain any more.".to_owned(),
            false => format!("Still better off than alone, in spite of it: {}.", names(&still)),
        });
    }
    told
}

/// What it would cost to go on without those who do not gain.
pub fn without(found: &Findings) -> Option<String> {
    let without = found.without.as_ref()?;
    let measure = &found.measure;
    Some(format!(
        "Without {} from the start, those who gain would end {} {} {}.",
        names(&without.names),
        difference(measure, -without.cost.value),
        measure.label,
        interval(measure, without.cost.map(|cost| -cost))
    ))
}

/// How it was found: the appendix.
pub fn method(found: &Findings) -> Vec<String> {
    let method = &found.method;
    let ways: Vec<String> = found.ways.iter().map(|one| way(&one.label)).collect();
    vec![
        format!(
            "Every member's rows are split into training rows and held-back rows, again on each of {}. A \
             {} with {} is trained for at most {} with step size {}.",
            count(method.seeds.len(), "seed"),
            method.model,
            count(method.weights, "weight"),
            count(method.rounds, "round"),
            method.step_size
        ),
        format!(
            "A member has its target when the model's loss on its {} rows is at most {}. Whoever has its \
             target leaves for good and takes its rows along, unless the way prevents it.",
            method.decides_on_rows,
            target(&method.epsilon)
        ),
        format!("Ways: {}.", ways.join("; ")),
        format!(
            "An interval holds the middle 95% of {} repetitions. Each draws every member's held-back rows \
             again, the same rows for both sides of a difference. Intervals are widened because rows come \
             back on several seeds, and where rows are few.",
            method.resamples
        ),
        format!(
            "A member gains if that interval lies above zero; it does not if the interval ends at or below \
             {}, the smallest difference that counts; else it cannot be told.",
            super::difference(&found.measure, found.least).trim_start_matches('+')
        ),
        "Together, the ceiling, is a run in which nobody may leave. Nobody can enforce it; it says what the \
         rows of all could give."
            .to_owned(),
    ]
}

/// What a target loss is: `"1 * alone"` is what a member's own best model has.
fn target(epsilon: &str) -> String {
    let (factor, to) = match epsilon.split_once('*') {
        Some((factor, to)) => (factor.trim(), to.trim()),
        None => return epsilon.to_owned(),
    };
    let what = match to {
        "alone" => "that of its own best model",
        "pooled" => "that of one model of all rows",
        "local" => "what it reaches by itself in as many rounds",
        other => other,
    };
    match factor.parse::<f64>() {
        Ok(1.0) => what.to_owned(),
        _ => format!("{factor} times {what}"),
    }
}
