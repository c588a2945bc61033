//! A run's summary as text for a terminal.

use fedstay::Measure;
use fedstay::record::{Difference, Forgotten, Header, Summary, decimals};
use fedstay_draw::words::{
    Counts, Tone, absences, count, first_held_back, foreseen, guarantee, harm, held_back, privacy,
    title, unrealizable, verdict, verdict_sentence, within,
};
use fedstay_terminal::{Column, Screen, Table};

/// The most agents that are listed.
const MOST_AGENTS: usize = 30;

/// Which model the numbers are about, where there are others.
const TWO_MODELS: &str = "Losses and accuracies are the delivered model's, also for agents that left; \
                          `fedstay story` tells what each took away.";

/// The colour of a run's verdict.
pub(crate) fn tone(summary: &Summary) -> Tone {
    verdict(summary.verdict, &Counts::of(summary)).tone
}

/// A run's summary.
pub(crate) fn summary(header: &Header, summary: &Summary, screen: &Screen) -> String {
    let (name, rounds) = (title(header), count(summary.rounds, "round"));
    let head = format!("{name}: {} after {rounds}", summary.stop.name());
    let sentence = screen.prose(&verdict_sentence(summary));
    // The colour is added after the lines were broken: it takes no room.
    let word = summary.verdict.name();
    let sentence = match sentence.strip_prefix(word) {
        Some(rest) => format!("{}{rest}", screen.toned(tone(summary), word)),
        None => sentence,
    };
    let mut text = format!("{}\n{sentence}\n\n{}", screen.prose(&head), agents(summary, screen));
    let more = summary.count() - summary.agents.len().min(MOST_AGENTS);
    if more > 0 {
        text.push_str(&format!("… and {} more\n", count(more, "agent")));
    }
    text.push('\n');
    for (label, what) in lines(summary) {
        text.push_str(&screen.labelled(&format!("{label:10}  "), &what));
        text.push('\n');
    }
    if summary.agents.iter().any(|agent| agent.entry.left.is_some()) {
        text.push_str(&format!("\n{}\n", screen.prose(TWO_MODELS)));
    }
    if let Some(harm) = harm(summary) {
        text.push_str(&format!("\n{}\n", screen.prose(&harm)));
    }
    if !summary.without.is_empty() {
        let told =
            "What it costs the others if an agent never takes part (in brackets, the change):";
        text.push_str(&format!("\n{}\n\n{}", screen.prose(told), without(summary, screen)));
    }
    for warning in &summary.warnings {
        let warning = screen.labelled("WARNING  ", warning);
        let coloured = warning.replacen("WARNING", &screen.toned(Tone::Warn, "WARNING"), 1);
        text.push_str(&format!("\n{coloured}\n"));
    }
    text
}

/// The agents, with how each behaves if they differ.
fn agents(summary: &Summary, screen: &Screen) -> String {
    let mixed = summary.behaviour == "mixed";
    let mut columns =
        vec![Column::kept("agent"), Column::dispensable("epsilon", 2), Column::kept("loss")];
    let label = |measure: &Measure| Column::dispensable(measure.label.to_string(), 1);
    columns.extend(summary.measures.iter().map(label));
    let held_back = summary.held_back.is_some();
    if held_back {
        columns.push(Column::dispensable("on held-back rows", 1));
    }
    columns.extend([Column::kept("left in round"), Column::dispensable("rounds in D", 3)]);
    if mixed {
        columns.push(Column::dispensable("behaviour", 1));
    }
    let mut table = Table::new(columns);
    for agent in summary.agents.iter().take(MOST_AGENTS) {
        let mut row = vec![
            agent.called_briefly(),
            decimals(agent.epsilon),
            or_dash(agent.is_measured(), agent.score.loss),
        ];
        let value = |measure: &Measure| measure.or_dash(agent.score.of(&measure.name));
        row.extend(summary.measures.iter().map(value));
        if held_back {
            let own = agent.held_back.as_ref();
            let first = own.and_then(|own| first_held_back(&own.measures, &summary.measures));
            row.push(first.map_or("–".to_owned(), |(measure, own)| within(measure, own)));
        }
        row.push(agent.entry.left.map_or("–".to_owned(), |round| round.to_string()));
        row.push(agent.entry.rounds_in_d.to_string());
        if mixed {
            row.push(agent.behaviour.clone().unwrap_or_default());
        }
        table.row(row);
    }
    screen.table(&table)
}

/// A loss, or a dash where it was not measured.
fn or_dash(measured: bool, loss: f64) -> String {
    if measured { decimals(loss) } else { "–".to_owned() }
}

/// The price of every single departure: the others without an agent, and by how much that differs.
fn without(summary: &Summary, screen: &Screen) -> String {
    let (headline, _) = summary.headline();
    let headline = if *headline == Measure::LOSS { Measure::ACCURACY } else { headline.clone() };
    let mut table = Table::new(vec![
        Column::kept("without"),
        Column::kept("mean loss"),
        Column::kept("worst loss"),
        Column::dispensable(format!("mean {}", headline.label), 1),
        Column::dispensable("population loss", 2),
        Column::dispensable("left", 3),
    ]);
    let loss = |change: &Difference| format!("{:.4} ({:+.4})", change.without, change.by());
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    for without in &summary.without {
        let measured = |change: &Difference| {
            let by = headline.scale() * change.by();
            let digits = if headline.is_share() { 1 } else { 4 };
            format!("{} ({by:+.digits$})", headline.shown(change.without))
        };
        table.row(vec![
            summary.called(without.agent),
            loss(&without.score.loss),
            loss(&without.worst),
            or_dash(without.score.measures.get(&headline.name).map(measured)),
            or_dash(without.population.as_ref().map(loss)),
            format!("{} ({:+})", without.left.without, without.left.by()),
        ]);
    }
    screen.table(&table)
}

/// What came of an agent's wish to be forgotten.
fn forgotten(who: &Forgotten, called: &str) -> String {
    let Forgotten { round, how, .. } = who;
    let back = match who.recovered {
        Some(rounds) => format!("the others were back after {rounds}"),
        None => "the others are not back where they were".to_owned(),
    };
    let loss = who.loss.map_or(String::new(), |loss| format!("its loss now {}, ", decimals(loss)));
    let shows = who.membership.map_or(String::new(), |area| format!("membership {area:.2}, "));
    format!("{called} in round {round} ({how}): {loss}{shows}{back}")
}

/// What there is to say about all agents together, each under its label.
fn lines(summary: &Summary) -> Vec<(&str, String)> {
    let spread = |values: [String; 3]| {
        let [min, mean, max] = values;
        format!("min {min}  mean {mean}  max {max}")
    };
    let loss = &summary.score.loss;
    let losses = [loss.min, loss.mean, loss.max].map(decimals);
    let mut lines = Vec::new();
    if summary.unmeasured > 0 {
        let (measured, all) = (summary.measured(), summary.count());
        lines.push(("measured", format!("{measured} of {all} agents (eval_agents)")));
    }
    if !loss.mean.is_nan() {
        lines.push(("loss", spread(losses)));
    }
    for (measure, over) in summary.measured_besides() {
        let parts = [over.min, over.mean, over.max].map(|value| measure.shown(value));
        lines.push((&*measure.name, spread(parts)));
    }
    if let Some(population) = &summary.population {
        let mut told = format!("loss {}", decimals(population.loss));
        for measure in &summary.measures {
            let value = measure.or_dash(population.of(&measure.name));
            told.push_str(&format!("  {} {value}", measure.label));
        }
        lines.push(("population", told));
    }
    lines.extend(held_back(summary).map(|told| ("held back", told)));
    lines.extend(fedstay_draw::words::spread(summary).map(|told| ("spread", told)));
    let gone = summary.forgotten.iter();
    let gone = gone.map(|who| ("forgotten", forgotten(who, &summary.called(who.agent))));
    lines.extend(gone);
    lines.extend(absences(summary).map(|absent| ("absent", absent)));
    lines.extend(foreseen(summary).map(|told| ("prediction", told)));
    lines.extend(guarantee(summary).map(|sure| ("guarantee", sure)));
    lines.extend(unrealizable(summary).map(|told| ("impossible", told)));
    lines.extend(summary.privacy.as_ref().map(|budget| ("privacy", privacy(budget))));
    lines.extend(summary.notes.iter().map(|note| ("data", note.clone())));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay_sim::experiment::Experiment;
    use fedstay_sim::run::Trial;

    #[test]
    fn an_agents_name_stands_in_the_terminal() {
        let text = "rounds = 60\n[rule]\nkind = \"fedavg\"\n[problem]\nkind = \"observation-3\"\n";
        let mut trial = Trial::new(Experiment::parse(text, &[]).unwrap()).unwrap();
        let mut told = trial.run(&mut []).unwrap().unwrap();
        let shown = |told: &Summary| summary(trial.header(), told, &Screen::plain(None));
        assert!(shown(&told).contains("\n0 ") && !told.left.is_empty());
        told.agents[0].name = Some("St Mary".to_owned());
        assert!(shown(&told).contains("\nSt Mary "), "{}", shown(&told));
        let moments = fedstay_draw::words::moments(&told);
        assert!(moments.contains("St Mary@") && moments.contains("1@"), "{moments}");
    }
}
