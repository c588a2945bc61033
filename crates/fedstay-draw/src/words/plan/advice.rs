//! The recommendation in words: what to do, why, how sure it is, and its price.

use super::ways::mean;
use super::{count, difference, interval, names, way};
use fedstay_sim::plan::{AVERAGING, Action, Advice, Findings, Gains, OwnerFinding};

/// The recommendation, in sentences.
pub fn advice(found: &Findings, advice: &Advice) -> String {
    let measure = &found.measure;
    let mut told = vec![what(found, advice)];
    match advice.action {
        Action::Alone | Action::RaiseTarget => return told.concat(),
        Action::NobodyGains | Action::NotShown => {}
        _ => {
            told.extend(gainers(found));
            told.extend(price(found, advice));
        }
    }
    if let Action::NotShown = advice.action
        && let Some(gain) = found.mean_gain
    {
        told.push(format!(
            "On average the gain is {} {} {}.",
            difference(measure, gain.value),
            measure.label,
            interval(measure, gain)
        ));
    }
    told.extend(nothing(found, advice));
    told.extend(unknown(advice));
    told.join(" ")
}

/// What to do.
fn what(found: &Findings, advice: &Advice) -> String {
    let measure = &found.measure;
    let run = way(&advice.label);
    let on = format!("{} of {}", advice.kept_all, count(advice.seeds, "seed"));
    let cost = advice.cost_of_leaving.map(|cost| {
        let text = difference(measure, cost.value);
        format!("{} {} {}", text.trim_start_matches('+'), measure.label, interval(measure, cost))
    });
    match advice.action {
        Action::Alone => {
            "Do not federate: there is one owner, and nobody to federate with.".to_owned()
        }
        Action::RaiseTarget => {
            "Do not run this plan as it is: every member has its target before the \
             first round, so nobody would take part. Set a target that asks for more (--epsilon)."
                .to_owned()
        }
        Action::NobodyGains => {
            "Do not federate for this: no member gains anything that counts over its own model."
                .to_owned()
        }
        Action::NotShown => {
            "Do not federate on this evidence: no member can be shown to gain.".to_owned()
        }
        Action::Average => format!("Run plain averaging: nobody leaves, on {on}."),
        Action::LetGo => format!(
            "Run plain averaging and let go whoever leaves ({}): for those who gain it makes no \
             difference that counts{}.",
            names(&leavers(found, advice)),
            cost.map_or(String::new(), |cost| format!(" (cost {cost})"))
        ),
        Action::Keep => {
            let members = count(found.owners.len(), "member");
            let lost = |label: &str| found.way(label).map_or(0.0, |way| way.mean_left);
            let kept = match advice.kept_all {
                0 => format!(
                    "It loses {:.1} of {members} on average, where plain averaging loses {:.1}",
                    lost(&advice.label),
                    lost(AVERAGING)
                ),
                all if all == advice.seeds => format!("It keeps all {members} on {on}"),
                _ => format!("It keeps everybody on {on}"),
            };
            let cost = cost.map_or(String::new(), |cost| {
                format!("; under plain averaging departures cost those who gain {cost}")
            });
            format!("Run {run}. {kept}{cost}.")
        }
        Action::Pay => format!(
            "Run plain averaging and give those who leave ({}) another reason to stay. Their leaving costs \
             those who gain {}, and no way of training that was tried keeps them at a lower price.",
            names(&leavers(found, advice)),
            cost.unwrap_or_else(|| "something that cannot be told".to_owned())
        ),
    }
}

/// Who gains, and how much.
fn gainers(found: &Findings) -> Option<String> {
    let measure = &found.measure;
    let mut gainers: Vec<&OwnerFinding> =
        found.owners.iter().filter(|owner| owner.gains == Gains::Yes).collect();
    let gain = |owner: &OwnerFinding| owner.gain.map_or(0.0, |gain| gain.value);
    gainers.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    let told = gainers.iter().filter_map(|owner| {
        let gain = owner.gain?;
        let (by, interval) = (difference(measure, gain.value), interval(measure, gain));
        Some(format!("{} {by} {interval}", owner.name))
    });
    let told: Vec<String> = told.collect();
    match told.is_empty() {
        true => found.mean_gain.map(|gain| {
            format!(
                "On average members gain {} {} {}, though of no single one it can be told.",
                difference(measure, gain.value),
                measure.label,
                interval(measure, gain)
            )
        }),
        false => Some(format!("Gains in {}: {}.", measure.label, names(&told))),
    }
}

/// Who gains nothing, and what can be done about them.
fn nothing(found: &Findings, advice: &Advice) -> Option<String> {
    if advice.nothing.is_empty() || advice.action == Action::NobodyGains {
        return None;
    }
    let who = names(&advice.nothing);
    let gain = if advice.nothing.len() == 1 { "gains" } else { "gain" };
    let them = if advice.nothing.len() == 1 { "it" } else { "them" };
    if advice.action == Action::NotShown {
        return Some(format!("{who} certainly {gain} nothing that counts."));
    }
    let cost = match &found.without {
        Some(without) => {
            let measure = &found.measure;
            let cost = difference(measure, without.cost.value);
            let cost = cost.trim_start_matches(['+', '±']);
            format!(" (cost to those who gain: {cost} {})", interval(measure, without.cost))
        }
        None => String::new(),
    };
    Some(format!(
        "{who} {gain} nothing that counts: no rule should hold {them}. Pay {them}, or let {them} go{cost}."
    ))
}

/// Of whom it cannot be told.
fn unknown(advice: &Advice) -> Option<String> {
    let who = names(&advice.unknown);
    (!advice.unknown.is_empty()).then(|| {
        format!(
            "Of {who} it cannot be told; more rows would tell, and perhaps more seeds (--seeds 10)."
        )
    })
}

/// What the way costs.
fn price(found: &Findings, advice: &Advice) -> Option<String> {
    let measure = &found.measure;
    let work = format!(
        "{} rounds and {} KB for each member",
        mean(advice.rounds),
        mean(advice.bytes / 1024.0)
    );
    let behind = advice.price.map(|price| match price.value > found.least {
        true => format!(
            ", and {} {} {} below what all could have if nobody could leave",
            difference(measure, price.value).trim_start_matches('+'),
            measure.label,
            interval(measure, price)
        ),
        false => String::new(),
    });
    Some(format!("Its price: {work}{}.", behind.unwrap_or_default()))
}

/// Who leaves under averaging: on at least half of the seeds or, if nobody does, on some.
fn leavers(found: &Findings, advice: &Advice) -> Vec<String> {
    match advice.leavers.is_empty() {
        true => found.names(|owner| owner.leaves.is_some()),
        false => advice.leavers.clone(),
    }
}
