//! `report.html`: runs as one self-contained page to pass on, with drawings, the verdict in words,
//! the configuration and the commands to repeat it. No script, no request; text from files is
//! escaped.

pub(super) mod html;
mod theory;

use self::html::{paragraph, rows_of};
use self::theory::theory;
use super::delivered::{content, content_of};
use super::run::figure;
use super::{Compared, Subject, compare, map};
use crate::markup::escape;
use crate::plot::Figure;
use crate::words::{self, count, leavers, sentence};
use fedstay::Measure;
use fedstay::record::{AgentSummary, Summary, decimals};
use fedstay_sim::run::write_whole;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

/// Nothing may be loaded and nothing may run, whatever the text of a run says.
pub(super) const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
/// The most rows of the table of agents; a page is not a database.
const AGENTS: usize = 200;

impl Subject {
    fn title(&self) -> String {
        words::title(&self.recorded.header)
    }

    /// What came of it: the name of the verdict, and a sentence.
    fn verdict(&self) -> (&'static str, String) {
        match &self.summary {
            Some(summary) => (summary.verdict.name(), sentence(&words::verdict_sentence(summary))),
            None => {
                let rounds = self.recorded.rounds.last().map_or(0, |line| line.round);
                let rounds = count(rounds, "round");
                let left = self.recorded.rounds.iter().flat_map(|line| &line.left);
                // An agent that came back and left again is one agent.
                let left = left.collect::<HashSet<_>>().len();
                let all = self.recorded.header.count();
                (
                    "open",
                    format!(
                        "Not over, or without a summary: {rounds} so far, {left} of {all} agents left."
                    ),
                )
            }
        }
    }
}

/// Writes `report.html` into the folder of a run.
///
/// # Errors
/// When the page cannot be written.
pub fn write(subject: &Subject) -> io::Result<PathBuf> {
    let path = subject.folder.join("report.html");
    write_whole(&path, page(std::slice::from_ref(subject)).as_bytes())?;
    Ok(path)
}

/// The page.
pub fn page(subjects: &[Subject]) -> String {
    let title = match subjects {
        [one] => one.title(),
        several => format!("{} runs compared", several.len()),
    };
    let mut html = format!(
        "{HEAD}<title>{}</title>\n<style>\n{}</style>\n</head><body>\n<main>\n",
        escape(&title),
        include_str!("report.css")
    );
    let names = names(subjects);
    if subjects.len() > 1 {
        html.push_str(&comparison(&title, subjects, &names));
    }
    for (subject, name) in subjects.iter().zip(&names) {
        html.push_str(&section(subject, Some(name).filter(|_| subjects.len() > 1)));
    }
    html.push_str("</main>\n</body></html>\n");
    html
}

/// The runs' names, as `fedstay ls` and the page have them: the names of their folders, or the whole
/// paths where two folders have one name.
fn names(subjects: &[Subject]) -> Vec<String> {
    let whole = |subject: &Subject| subject.folder.display().to_string();
    let last = |subject: &Subject| match subject.folder.file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => whole(subject),
    };
    let short: Vec<String> = subjects.iter().map(last).collect();
    let different: HashSet<&String> = short.iter().collect();
    match different.len() == short.len() {
        true => short,
        false => subjects.iter().map(whole).collect(),
    }
}

fn comparison(title: &str, subjects: &[Subject], names: &[String]) -> String {
    let mut html = format!("<section class=\"run\"><h1>{}</h1>\n", escape(title));
    let compared: Vec<Compared> =
        subjects.iter().zip(names).filter_map(|(subject, name)| compared(subject, name)).collect();
    for sentence in compare::sentences(&compared) {
        html.push_str(&paragraph("", &sentence));
    }
    if compared.len() > 1 {
        html.push_str(&compare::figure(&compared).to_svg());
    }
    let summaries = subjects.iter().filter_map(|subject| subject.summary.as_ref());
    let mut measures: Vec<Measure> = Vec::new();
    for measure in summaries.flat_map(|summary| &summary.measures) {
        if !measures.contains(measure) {
            measures.push(measure.clone());
        }
    }
    let mut headings: Vec<String> =
        ["run", "rule", "left", "verdict", "content", "rounds", "mean loss", "worst loss"]
            .map(str::to_owned)
            .to_vec();
    for (place, measure) in measures.iter().enumerate() {
        // Beside the first measure it is clear of what the others are.
        let of = if place == 0 { String::new() } else { format!(" {}", measure.label) };
        headings.push(format!("mean {}", measure.label));
        headings.extend(["worst", "population"].map(|what| format!("{what}{of}")));
    }
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let rows = subjects.iter().zip(names).map(|(subject, name)| {
        let summary = subject.summary.as_ref();
        let loss = |pick: fn(&Summary) -> f64| {
            summary.map_or("–".into(), |summary| format!("{:.4}", pick(summary)))
        };
        let mut row = vec![
            name.clone(),
            subject.recorded.header.rule.clone(),
            summary.map_or("–".into(), leavers),
            subject.verdict().0.to_owned(),
            summary.map_or("–".into(), content_of),
            subject.recorded.rounds.last().map_or(0, |line| line.round).to_string(),
            loss(|summary| summary.score.loss.mean),
            loss(|summary| summary.score.loss.max),
        ];
        for measure in &measures {
            let over = summary.and_then(|summary| summary.score.get(&measure.name));
            let population = summary.and_then(|summary| summary.population.as_ref());
            row.extend([
                measure.or_dash(over.map(|over| over.mean)),
                measure.or_dash(over.map(|over| words::worst(measure, over))),
                measure.or_dash(population.and_then(|score| score.of(&measure.name))),
            ]);
        }
        row
    });
    html.push_str(&rows_of(&headings, rows));
    html.push_str("</section>\n");
    html
}

fn compared(subject: &Subject, name: &str) -> Option<Compared> {
    Some(Compared {
        label: name.to_owned(),
        rule: subject.recorded.header.rule.clone(),
        recorded: subject.recorded.clone(),
        summary: subject.summary.clone()?,
    })
}

/// Everything about one run; among others it has its name.
fn section(subject: &Subject, name: Option<&String>) -> String {
    let (heading, title) = match name {
        Some(name) => ("h2", format!("{name}: {}", subject.title())),
        None => ("h1", subject.title()),
    };
    let mut html = format!("<section class=\"run\"><{heading}>{}</{heading}>\n", escape(&title));
    let (kind, told) = subject.verdict();
    let header = &subject.recorded.header;
    if let Some(rows) = &header.rows {
        html.push_str(&paragraph("faint", &sentence(&words::rows(rows, header.count()))));
    }
    html.push_str(&paragraph(&format!("verdict {kind}"), &told));
    html.push_str(&troubles(subject));
    if let Some(summary) = &subject.summary {
        html.push_str(&result(summary));
        if let Some(harm) = words::harm(summary) {
            html.push_str(&paragraph("", &harm));
        }
    }
    // The page has the title already.
    let drawing = figure(&subject.recorded, subject.summary.as_ref(), subject.loss_of());
    let name = format!("{}: losses, states, quality and steps over the rounds", drawing.title);
    // Lower than alone, so that it is as wide as the page and shares it with the verdict.
    let mut drawing = Figure { title: String::new(), name, ..drawing };
    drawing.panels.iter_mut().for_each(|panel| panel.height = panel.height.map(|high| 0.8 * high));
    html.push_str(&drawing.to_svg());
    let map = subject
        .config
        .as_deref()
        .and_then(|config| map::figure(&subject.recorded, subject.summary.as_ref(), config));
    if let Some(map) = map {
        let name = format!("{}: the trajectory on a map of the losses", subject.title());
        html.push_str(&Figure { name, ..map }.to_svg());
    }
    if let Some(summary) = &subject.summary {
        html.push_str(&agents(summary));
        if summary.agents.iter().any(|agent| agent.alone.is_some()) {
            html.push_str(&format!("<pre>{}</pre>\n", escape(&words::story(summary))));
        }
    }
    html.push_str(&theory(subject));
    html.push_str(&repeat(subject));
    html.push_str("</section>\n");
    html
}

fn troubles(subject: &Subject) -> String {
    let mut words: Vec<String> =
        subject.summary.iter().flat_map(|summary| summary.warnings.clone()).collect();
    words.extend(words::changed(&subject.changed));
    words.extend(subject.unusable.clone());
    let unreadable = &subject.recorded.unreadable;
    for (number, why) in unreadable.iter().take(10) {
        words.push(format!("rounds.jsonl, line {number} could not be read and is left out: {why}"));
    }
    if unreadable.len() > 10 {
        words.push(format!("… and {} more lines", unreadable.len() - 10));
    }
    words.iter().map(|text| paragraph("warning", &sentence(text))).collect()
}

fn result(summary: &Summary) -> String {
    let mut told = vec![format!(
        "{}. {} Loss of the delivered model over the agents: mean {}, worst {}.",
        count(summary.rounds, "round"),
        sentence(words::stop(summary.stop)),
        decimals(summary.score.loss.mean),
        decimals(summary.score.loss.max)
    )];
    told.extend(words::besides(summary));
    if let Some(spread) = words::spread(summary) {
        told.push(format!("Over the agents: {spread}."));
    }
    if let Some(absent) = words::absences(summary) {
        told.push(format!("Absent, which is not a departure: {absent}."));
    }
    if let Some(foreseen) = words::foreseen(summary) {
        told.push(format!("{} D has the agents that are about to leave.", sentence(&foreseen)));
    }
    let mut html = paragraph("", &told.join(" "));
    html.extend(summary.notes.iter().map(|note| paragraph("faint", note)));
    html
}

fn agents(summary: &Summary) -> String {
    let measures: Vec<&Measure> = summary.measures.iter().collect();
    let previews = summary.agents.iter().any(|agent| agent.entry.previewed > 0);
    let absent = summary.agents.iter().any(|agent| agent.entry.absent > 0);
    let helped = |agent: &AgentSummary| agent.worth.and_then(|worth| worth.given.zip(worth.got));
    let help = summary.agents.iter().any(|agent| helped(agent).is_some());
    let held_back = summary.held_back.is_some();
    let headings: Vec<&str> = ["agent", "ε", "loss", "margin"]
        .into_iter()
        .chain(measures.iter().map(|measure| &*measure.label))
        .chain(held_back.then_some(words::HELD_BACK))
        .chain(["content", "left in round", "rounds in D", "behaviour"])
        .chain(previews.then_some("shown at last, in rounds"))
        .chain(absent.then_some("rounds absent"))
        .chain(["gave", "got"].into_iter().filter(|_| help))
        .collect();
    let row = |agent: &AgentSummary| {
        let shown = agent.entry.last_shown.map_or("the model".to_owned(), |shown| {
            format!("loss {}, {}", decimal(shown), agent.entry.previewed)
        });
        let loss = agent.score.loss;
        let known = [agent.epsilon, loss, loss - agent.epsilon].map(decimal);
        let measured =
            measures.iter().map(|measure| measure.or_dash(agent.score.of(&measure.name)));
        let more = [
            content(agent).map_or("not asked", |yes| if yes { "yes" } else { "no" }).to_owned(),
            agent.entry.left.map_or("stayed".to_owned(), |round| round.to_string()),
            agent.entry.rounds_in_d.to_string(),
            agent.behaviour.clone().unwrap_or_else(|| summary.behaviour.clone()),
        ];
        let help = helped(agent).filter(|_| help).map(|(given, got)| [given, got].map(decimal));
        std::iter::once(agent.called())
            .chain(known)
            .chain(measured)
            .chain(held_back.then(|| on_held_back(agent, &summary.measures)))
            .chain(more)
            .chain(previews.then_some(shown))
            .chain(absent.then(|| agent.entry.absent.to_string()))
            .chain(help.into_iter().flatten())
            .collect()
    };
    let mut html = "<h2>Agents, at the delivered model</h2>\n".to_owned();
    if summary.agents.iter().any(|agent| agent.entry.left.is_some()) {
        let told = "Agents that left are judged by it too; each keeps the model of the round in which it left.";
        html.push_str(&paragraph("faint", told));
    }
    html.push_str(&rows_of(&headings, summary.agents.iter().take(AGENTS).map(row)));
    if summary.count() > AGENTS.min(summary.agents.len()) {
        html.push_str(&paragraph(
            "faint",
            &format!("… and {} more agents", summary.count() - AGENTS.min(summary.agents.len())),
        ));
    }
    html
}

/// The headline of an agent's own held-back rows, with its interval.
fn on_held_back(agent: &AgentSummary, measures: &[Measure]) -> String {
    let own = agent.held_back.as_ref();
    let first = own.and_then(|own| words::first_held_back(&own.measures, measures));
    first.map_or("–".to_owned(), |(measure, own)| words::within(measure, own).replace('-', "−"))
}

fn repeat(subject: &Subject) -> String {
    let version = &subject.recorded.header.version;
    let mut html = "<h2>To repeat it</h2>\n".to_owned();
    // No path: the page is passed on, and equal runs give equal bytes wherever they are kept.
    let commands = "fedstay run config.toml --out again     # the configuration below, saved as config.toml\n\
         fedstay view .       # in the run's folder: the run on a live page\n\
         fedstay report .     # in the run's folder: this page";
    html.push_str(&format!("<pre>{}</pre>\n", escape(commands)));
    html.push_str(&paragraph(
        "faint",
        &format!("Written by fedstay {version}. The same configuration and seed give the same bytes, whatever the number of threads."),
    ));
    if let Some(config) = &subject.config {
        html.push_str(&format!(
            "<h2>Configuration</h2>\n<pre class=\"config\">{}</pre>\n",
            escape(config)
        ));
    }
    html
}

/// A number with four decimals, or two digits of a tiny one, and a true minus sign.
fn decimal(value: f64) -> String {
    if value.is_finite() { decimals(value).replace('-', "−") } else { "–".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(lines: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let header = r#"{"schema":"fedstay.rounds/1","version":"0","rule":"<script>alert(1)</script>","on":"x","seed":0,"rounds":9,"agents":[{"id":0,"epsilon":null},{"id":1,"epsilon":0.5}]}"#;
        std::fs::write(
            folder.path().join("rounds.jsonl"),
            format!("{header}\n{}\n", lines.join("\n")),
        )
        .unwrap();
        std::fs::write(folder.path().join("config.toml"), "# </pre><script>alert(2)</script>\n")
            .unwrap();
        folder
    }

    #[test]
    fn text_from_a_run_is_text() {
        let folder = folder(&[
            r#"{"round":1,"agents":[0,1],"loss":[1.0,2.0],"step_size":0.1,"step_norm":0.1}"#,
        ]);
        let page = page(&[Subject::read(folder.path()).unwrap()]);
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(1)"));
        assert!(
            !page.contains("http:")
                || page.matches("http:").all(|_| page.contains("http://www.w3.org/"))
        );
    }

    #[test]
    fn an_agent_that_left_twice_is_one_that_left() {
        let folder = folder(&[
            r#"{"round":1,"agents":[1],"loss":[0.9],"left":[0],"step_size":0.1,"step_norm":0.1}"#,
            r#"{"round":2,"agents":[0,1],"loss":[0.9,0.8],"returned":[0],"step_size":0.1,"step_norm":0.1}"#,
            r#"{"round":3,"agents":[1],"loss":[0.6],"left":[0],"step_size":0.1,"step_norm":0.1}"#,
        ]);
        let page = page(&[Subject::read(folder.path()).unwrap()]);
        assert!(page.contains("3 rounds so far, 1 of 2 agents left."), "{page}");
    }

    #[test]
    fn a_finished_run_is_told_by_the_delivered_model() {
        let folder = folder(&[
            r#"{"round":1,"agents":[0,1],"loss":[0.9,0.8],"step_size":0.1,"step_norm":0.1}"#,
            r#"{"round":2,"agents":[1],"loss":[0.6],"left":[0],"step_size":0.1,"step_norm":0.1,"stop":"round-limit"}"#,
        ]);
        let agent = |id: u32, loss: f64, left: &str| {
            format!(
                r#"{{"id":{id},"epsilon":0.5,"loss":{loss},"accuracy":0.25,"left":{left},
                    "rounds_in_d":0,"behaviour":"patient","reports":1}}"#
            )
        };
        let summary = format!(
            r#"{{"schema":"fedstay.summary/1","version":"0","rule":"fedavg","policy":"none",
            "behaviour":"mixed","on":"x","seed":0,"rounds":2,"stop":"round-limit","verdict":"harmful",
            "everybody_content":false,"left":[{{"agent":0,"round":2}}],"agents":[{},{}],
            "loss":{{"min":0.4375,"mean":1.9375,"max":3.4375}},"accuracy":null,"population":null,
            "landed":null,"prediction":{{"left":1,"left_foreseen":0,"in_d":0,"in_d_left":0}},
            "notes":[],"warnings":["hardly anything moved"],"weights":null}}"#,
            agent(0, 3.4375, "2"),
            agent(1, 0.4375, "null")
        );
        std::fs::write(folder.path().join("summary.json"), summary).unwrap();
        let subject = Subject::read(folder.path()).unwrap();
        assert_eq!(subject.unusable, None);
        let drawn = figure(&subject.recorded, subject.summary.as_ref(), subject.loss_of());
        assert_eq!(crate::picture::delivered::tests::ends(&drawn.panels[0]), [3.4375, 0.4375]);
        let page = page(&[subject]);
        let row = "<td>3.4375</td><td>2.9375</td><td>25.0%</td><td>no</td><td>2</td>";
        assert!(page.contains(row) && page.contains("<td>yes</td><td>stayed</td>"), "{page}");
        assert!(page.contains("1 of 2 content") && page.contains("<td>patient</td>"));
        assert!(page.contains("worst 3.4375") && page.contains("Hardly anything moved."));
        assert!(!page.contains("rounds absent") && !page.contains("<th>gave</th>"));
    }

    #[test]
    fn absence_is_told_beside_departures_and_help_and_spread_with_the_agents() {
        let folder = folder(&[
            r#"{"round":1,"agents":[0],"absent":[1],"loss":[0.9],"step_size":0.1,"step_norm":0.1,"stop":"round-limit"}"#,
        ]);
        let agent = |id: u32, absent: u32, given: f64| {
            format!(
                r#"{{"id":{id},"epsilon":0.5,"loss":0.75,"accuracy":0.25,"left":null,"rounds_in_d":0,
                    "reports":1,"absent":{absent},"worth":{{"given":{given},"got":0.125}}}}"#
            )
        };
        let summary = format!(
            r#"{{"schema":"fedstay.summary/1","version":"0","rule":"fedavg","policy":"none",
            "behaviour":"threshold","on":"x","seed":0,"rounds":1,"stop":"round-limit",
            "verdict":"unsatisfied","everybody_content":false,"left":[],"agents":[{},{}],
            "loss":{{"min":0.75,"mean":0.75,"max":0.75}},"accuracy":null,"population":null,
            "landed":null,"prediction":{{"left":0,"left_foreseen":0,"in_d":0,"in_d_left":0}},
            "fairness":{{"of":"accuracy","median":0.25,"worst_decile":0.25,"jain":1.0,"gini":0.0}},
            "notes":[],"warnings":[],"weights":null}}"#,
            agent(0, 0, -0.25),
            agent(1, 1, 0.5)
        );
        std::fs::write(folder.path().join("summary.json"), summary).unwrap();
        let page = page(&[Subject::read(folder.path()).unwrap()]);
        for told in [
            "Absent, which is not a departure: 1 of 2 at times, 50.0% of all their rounds.",
            "median agent 25.0%, worst tenth 25.0%; Jain 1.000, Gini 0.000",
            "<td>stayed</td><td>0</td><td>threshold</td><td>1</td><td>0.5000</td><td>0.1250</td>",
            "<td>0</td><td>−0.2500</td><td>0.1250</td>",
        ] {
            assert!(page.contains(told), "{told}: {page}");
        }
    }

    #[test]
    fn a_run_without_losses_summary_or_good_lines_is_written_about() {
        let lines = [
            r#"{"round":1,"agents":[0,1],"loss":[null,null],"d":[1],"step_size":null,"step_norm":0.1,"faults":[[0,"timed out"]]}"#,
            "oops",
            r#"{"round":3,"agents":[0,1],"loss":[1.0]}"#,
        ];
        let folder = folder(&lines);
        let page = page(&[Subject::read(folder.path()).unwrap()]);
        assert!(
            page.contains("line 3 could not be read") && page.contains("line 4 could not be read")
        );
        assert!(
            page.contains("did not answer")
                && page.contains("Not over, or without a summary: 1 round so far")
        );
    }
}
