//! A tournament's table: every rule against every behaviour, as means over the seeds.

use super::outcome::Outcome;
use super::picture;
use fedstay_draw::words::{percent, whole_percent};
use fedstay_sim::sweep::stats::Mean;
use fedstay_terminal::{Column, Table};
use std::collections::BTreeMap;

/// A rule against a behaviour, over the seeds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Averaged {
    /// The rule.
    pub(super) rule: String,
    /// The behaviour.
    pub(super) behaviour: String,
    /// How many agents left.
    pub(super) left: f64,
    /// How often somebody came back.
    pub(super) returns: f64,
    /// The verdicts: one, or how many of each.
    pub(super) verdict: String,
    /// How many of its runs diverged, of which nothing is known: means are over the others.
    pub(super) diverged: usize,
    /// The rounds.
    pub(super) rounds: f64,
    /// The delivered model's accuracy, mean over the agents.
    pub(super) accuracy_mean: f64,
    /// That of the worst agent.
    pub(super) accuracy_worst: f64,
    /// That on rows nobody trained on.
    pub(super) accuracy_population: f64,
    /// That of the worst agent, of the seed with the least and of that with the most.
    pub(super) accuracy_worst_range: (f64, f64),
    /// The sum of value less cost.
    pub(super) welfare: f64,
    /// The same with the server's.
    pub(super) welfare_all: f64,
    /// The share of agents that end with a better model than alone.
    pub(super) better_than_alone: f64,
}

impl Averaged {
    /// Whether a run did not diverge, so that there is something to say.
    fn is_known(&self) -> bool {
        !self.left.is_nan()
    }

    /// Whether nobody left in any run. A run that diverged has kept nobody.
    fn keeps_everybody(&self) -> bool {
        self.left == 0.0 && self.diverged == 0
    }
}

/// What the picture shows of them.
pub(super) fn drawn(lines: &[Averaged]) -> Vec<picture::Bout> {
    let bout = |line: &Averaged| picture::Bout {
        rule: line.rule.clone(),
        behaviour: line.behaviour.clone(),
        result: line.is_known().then_some((line.accuracy_worst, line.left)),
        range: line.accuracy_worst_range,
    };
    lines.iter().map(bout).collect()
}

/// The means over the seeds of outcomes that stand in the order of the table.
pub(super) fn averaged(outcomes: &[Outcome]) -> Vec<Averaged> {
    let same = |a: &Outcome, b: &Outcome| (&a.rule, &a.behaviour) == (&b.rule, &b.behaviour);
    let mut lines: Vec<Averaged> = outcomes.chunk_by(same).map(average).collect();
    let mut columns: Vec<String> = Vec::new();
    for line in &lines {
        if !columns.contains(&line.behaviour) {
            columns.push(line.behaviour.clone());
        }
    }
    lines.sort_by_key(|line| columns.iter().position(|column| *column == line.behaviour));
    lines
}

fn average(group: &[Outcome]) -> Averaged {
    let ended = || group.iter().filter(|outcome| outcome.diverged.is_none());
    let mean = |of: &dyn Fn(&Outcome) -> f64| {
        let values: Vec<f64> = ended().map(of).collect();
        Mean::of(&values).map_or(f64::NAN, |mean| mean.mean)
    };
    let mut verdicts: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in group {
        *verdicts.entry(&outcome.verdict).or_default() += 1;
    }
    let verdict = match verdicts.len() {
        1 => group[0].verdict.clone(),
        _ => verdicts.iter().map(|(name, n)| format!("{n} {name}")).collect::<Vec<_>>().join(", "),
    };
    let worst = || ended().map(|outcome| outcome.accuracy_worst);
    let range = (worst().fold(f64::INFINITY, f64::min), worst().fold(f64::NEG_INFINITY, f64::max));
    Averaged {
        rule: group[0].rule.clone(),
        behaviour: group[0].behaviour.clone(),
        left: mean(&|outcome| outcome.left as f64),
        returns: mean(&|outcome| outcome.returns as f64),
        verdict,
        diverged: group.len() - ended().count(),
        rounds: mean(&|outcome| f64::from(outcome.rounds)),
        accuracy_mean: mean(&|outcome| outcome.accuracy_mean),
        accuracy_worst: mean(&|outcome| outcome.accuracy_worst),
        accuracy_worst_range: range,
        accuracy_population: mean(&|outcome| outcome.accuracy_population),
        welfare: mean(&|outcome| outcome.welfare),
        welfare_all: mean(&|outcome| outcome.welfare_all),
        better_than_alone: mean(&|outcome| outcome.better_than_alone),
    }
}

/// The headings, and how soon each column is left out.
const HEADINGS: [(&str, u8); 11] = [
    ("behaviour", 0),
    ("rule", 0),
    ("left", 0),
    ("verdict", 1),
    ("rounds", 5),
    ("accuracy", 4),
    ("worst", 0),
    ("population", 2),
    ("welfare", 3),
    ("with server", 5),
    ("better than alone", 6),
];

fn cells(line: &Averaged) -> Vec<String> {
    if !line.is_known() {
        let mut cells = vec!["–".to_owned(); HEADINGS.len()];
        cells[0].clone_from(&line.behaviour);
        cells[1].clone_from(&line.rule);
        cells[3].clone_from(&line.verdict);
        return cells;
    }
    let back = match line.returns {
        0.0 => String::new(),
        returns => format!(" ({returns:.1} returns)"),
    };
    vec![
        line.behaviour.clone(),
        line.rule.clone(),
        format!("{:.1}{back}", line.left),
        line.verdict.clone(),
        format!("{:.0}", line.rounds),
        percent(line.accuracy_mean),
        percent(line.accuracy_worst),
        percent(line.accuracy_population),
        format!("{:.2}", line.welfare),
        format!("{:.2}", line.welfare_all),
        whole_percent(line.better_than_alone),
    ]
}

/// The table for a terminal.
pub(super) fn table(lines: &[Averaged]) -> Table {
    let columns = HEADINGS.map(|(heading, spare)| Column::dispensable(heading, spare));
    let mut table = Table::new(columns);
    lines.iter().for_each(|line| table.row(cells(line)));
    table
}

/// The same for a page.
pub(super) fn markdown(lines: &[Averaged]) -> String {
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = row(&HEADINGS.map(|(heading, _)| heading.to_owned()));
    text.push_str(&row(&HEADINGS.map(|_| "---".to_owned())));
    lines.iter().for_each(|line| text.push_str(&row(&cells(line))));
    text
}

/// Who wins against each behaviour: by departures, worst agent and welfare.
pub(super) fn sentences(lines: &[Averaged]) -> Vec<String> {
    let mut behaviours: Vec<&str> = Vec::new();
    for line in lines {
        if !behaviours.contains(&line.behaviour.as_str()) {
            behaviours.push(&line.behaviour);
        }
    }
    let sentence = |behaviour: &&str| {
        let of: Vec<&Averaged> =
            lines.iter().filter(|line| line.behaviour == **behaviour).collect();
        let known = || of.iter().copied().filter(|line| line.is_known());
        let best =
            |score: &dyn Fn(&Averaged) -> f64| known().max_by(|a, b| score(a).total_cmp(&score(b)));
        let worst = best(&|line| line.accuracy_worst)?;
        let welfare = best(&|line| line.welfare)?;
        let kept: Vec<&str> = of
            .iter()
            .filter(|line| line.keeps_everybody())
            .map(|line| line.rule.as_str())
            .collect();
        let kept = match kept.len() {
            0 => "no rule keeps everybody".to_owned(),
            n if n == of.len() => "every rule keeps everybody".to_owned(),
            _ => format!("everybody stays under {}", kept.join(", ")),
        };
        Some(format!(
            "{behaviour}: {kept}. Best for the worst agent: {} ({:.1}%); most welfare: {} ({:.2}).",
            worst.rule,
            100.0 * worst.accuracy_worst,
            welfare.rule,
            welfare.welfare
        ))
    };
    behaviours.iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(rule: &str, seed: u64, left: usize, verdict: &str) -> Outcome {
        Outcome {
            rule: rule.into(),
            behaviour: "threshold".into(),
            seed,
            left,
            verdict: verdict.into(),
            ..Outcome::default()
        }
    }

    #[test]
    fn a_run_that_diverged_keeps_nobody_and_is_no_mean() {
        let failed = |rule: &str, seed: u64| Outcome {
            diverged: Some("overflow".into()),
            ..outcome(rule, seed, 0, "failed")
        };
        let worked = |rule: &str, left: usize, welfare: f64| Outcome {
            accuracy_worst: 0.9,
            welfare,
            ..outcome(rule, 0, left, "retained")
        };
        let outcomes = [
            worked("fedavg", 4, -2.0),
            failed("fedavg", 1),
            worked("mifa", 0, -3.0),
            failed("mifa", 1),
            failed("scaffold", 0),
            failed("scaffold", 1),
        ];
        let lines = averaged(&outcomes);
        // Means are over the runs that came to an end.
        assert_eq!((lines[0].left, lines[0].accuracy_worst, lines[0].diverged), (4.0, 0.9, 1));
        assert_eq!(lines[0].verdict, "1 failed, 1 retained");
        let told = &sentences(&lines)[0];
        assert!(told.contains("no rule keeps everybody"), "{told}");
        // Nothing is not more than a loss.
        assert!(told.contains("most welfare: fedavg (-2.00)"), "{told}");
        assert_eq!(drawn(&lines)[2].result, None);
        assert_eq!(cells(&lines[2])[..4], ["threshold", "scaffold", "–", "failed"]);
    }

    #[test]
    fn seeds_are_averaged_and_verdicts_counted() {
        let outcomes = [
            outcome("fedavg", 0, 10, "harmful"),
            outcome("fedavg", 1, 9, "benign"),
            outcome("retain", 0, 0, "retained"),
        ];
        let lines = averaged(&outcomes);
        assert_eq!((lines.len(), lines[0].left), (2, 9.5));
        assert_eq!(lines[0].verdict, "1 benign, 1 harmful");
        assert_eq!(lines[1].verdict, "retained");
        assert!(sentences(&lines)[0].contains("everybody stays under retain"));
        assert_eq!(markdown(&lines).lines().count(), 4);
        // Behaviours stay together, whatever varied faster.
        let mixed = ["threshold", "threshold, markov", "threshold", "threshold, markov"];
        let mixed =
            ["fedavg", "fedavg", "retain", "retain"].iter().zip(mixed).map(|(rule, behaviour)| {
                Outcome { behaviour: behaviour.into(), ..outcome(rule, 0, 0, "retained") }
            });
        let lines = averaged(&mixed.collect::<Vec<_>>());
        let order: Vec<_> = lines.iter().map(|line| line.rule.as_str()).collect();
        assert_eq!(order, ["fedavg", "retain", "fedavg", "retain"]);
    }
}
