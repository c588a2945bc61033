//! `plan.html`: a plan's answer as one page for a steering committee. What to do, a sentence for each member,
//! two tables, two pictures, and the method in an appendix. No script, no request; text from files is escaped.

mod figures;

use super::report::HEAD;
use super::report::html::{paragraph, rows_of};
use crate::markup::escape;
use crate::words::plan as words;
use fedstay_sim::plan::{Action, Findings, PlanAnswer};
use fedstay_sim::run::write_whole;
use std::io;
use std::path::{Path, PathBuf};

pub use figures::{gains_figure, ways_figure};

/// The most members that get a sentence each; a page is not a database.
const MEMBERS: usize = 200;

/// Writes `plan.html` into a plan's folder. `question` is the text of `plan.toml`.
///
/// # Errors
/// When the page cannot be written.
pub fn write(answer: &PlanAnswer, question: &str, folder: &Path) -> io::Result<PathBuf> {
    let path = folder.join("plan.html");
    write_whole(&path, page(answer, question).as_bytes())?;
    Ok(path)
}

/// The page.
pub fn page(answer: &PlanAnswer, question: &str) -> String {
    let answer = &answer.spoken();
    let found = &answer.found;
    let title = words::title(found);
    let mut html = format!(
        "{HEAD}<title>{}</title>\n<style>\n{}</style>\n</head><body>\n<main>\n<section class=\"run\">\
         <h1>{}</h1>\n",
        escape(&title),
        include_str!("report.css"),
        escape(&title)
    );
    let advice = words::advice(found, &answer.recommend);
    html.push_str(&paragraph(&format!("verdict {}", tone(answer.recommend.action)), &advice));
    html.push_str("<h2>What came in</h2>\n");
    words::came_in(found).iter().for_each(|told| html.push_str(&paragraph("", told)));
    html.push_str(&members(found));
    html.push_str(&departures(found));
    html.push_str(&ways(found));
    html.push_str("<h2>Appendix: how this was found</h2>\n");
    words::method(found).iter().for_each(|told| html.push_str(&paragraph("", told)));
    html.push_str(&paragraph(
        "faint",
        &format!(
            "Written by fedstay {}. The question below, saved as plan.toml, gives the same answer again: \
             fedstay plan plan.toml",
            found.version
        ),
    ));
    html.push_str(&format!("<pre class=\"config\">{}</pre>\n", escape(question)));
    html.push_str("</section>\n</main>\n</body></html>\n");
    html
}

/// The look of the recommendation: one of those that verdicts have.
fn tone(action: Action) -> &'static str {
    match action {
        Action::Average | Action::Keep | Action::LetGo => "retained",
        Action::Pay | Action::NotShown => "unsatisfied",
        Action::Alone | Action::RaiseTarget | Action::NobodyGains => "harmful",
    }
}

fn table(of: &words::PlanTable) -> String {
    let headings: Vec<&str> = of.headings.iter().map(|(heading, _)| heading.as_str()).collect();
    format!("{}{}", rows_of(&headings, of.rows.iter().cloned()), paragraph("faint", &of.glossary))
}

fn members(found: &Findings) -> String {
    let mut html = "<h2>Who gains</h2>\n".to_owned();
    html.push_str(&paragraph("", &words::gaining(found)));
    html.push_str("<ul>\n");
    for owner in found.owners.iter().take(MEMBERS) {
        html.push_str(&format!("<li>{}</li>\n", escape(&words::member(found, owner))));
    }
    html.push_str("</ul>\n");
    if found.owners.len() > MEMBERS {
        let more = format!("… and {} more members", found.owners.len() - MEMBERS);
        html.push_str(&paragraph("faint", &more));
    }
    html.push_str(&table(&words::members_table(found)));
    html.extend(words::chance(found).map(|told| paragraph("faint", &told)));
    html.push_str(&gains_figure(found).to_svg());
    html
}

fn departures(found: &Findings) -> String {
    let told = words::averaging(found);
    if told.is_empty() {
        return String::new();
    }
    let mut html = "<h2>What happens under plain averaging</h2>\n".to_owned();
    html.push_str(&paragraph("", &told.join(" ")));
    html.extend(words::without(found).map(|told| paragraph("", &told)));
    html
}

fn ways(found: &Findings) -> String {
    let mut html = "<h2>What keeps members</h2>\n".to_owned();
    let (shown, folded) = words::ways_table(found);
    html.push_str(&table(&shown));
    html.extend(folded.map(|told| paragraph("faint", &told)));
    html.push_str(&ways_figure(found).to_svg());
    html
}
