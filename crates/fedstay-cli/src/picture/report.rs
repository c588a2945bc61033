//! `report.html`: a run as one self-contained page, with its drawing, its verdict and its
//! configuration. No script, no request; text from files is escaped.

use crate::{story, table};
use anyhow::Result;
use fedstay::record::Summary;
use fedstay_sim::observe::write_whole;
use std::path::{Path, PathBuf};

/// Writes `report.html` into the folder of a run whose picture has been drawn.
///
/// # Errors
/// When the folder's files cannot be read or written.
pub fn write(folder: &Path, summary: &Summary) -> Result<PathBuf> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let title = escape(&format!("{} on {}, seed {}", summary.rule, summary.on, summary.seed));
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>body{{font:16px/1.5 sans-serif;max-width:1000px;margin:2em auto;padding:0 1em}}\
         pre{{overflow:auto;background:#f4f4f4;padding:1em}}svg{{max-width:100%;height:auto}}</style>\n\
         </head><body>\n<h1>{title}</h1>\n<p>{}</p>\n{}{}\n<h2>Summary</h2>\n<pre>{}</pre>\n\
         <h2>Configuration</h2>\n<pre>{}</pre>\n<p>Run it again: <code>fedstay run config.toml</code></p>\n\
         </body></html>\n",
        escape(&table::verdict(summary)),
        aftermath(summary),
        read("run.svg"),
        escape(&table::summary(summary)),
        escape(&read("config.toml")),
    );
    let path = folder.join("report.html");
    write_whole(&path, page.as_bytes())?;
    Ok(path)
}

/// What the departures cost and every agent's story, where the run was asked for them.
fn aftermath(summary: &Summary) -> String {
    let mut text = String::new();
    if let Some(harm) = story::harm(summary) {
        text.push_str(&format!("<p>{}</p>\n", escape(&harm)));
    }
    if summary.agents.iter().any(|agent| agent.alone.is_some()) {
        text.push_str(&format!("<pre>{}</pre>\n", escape(&story::story(summary))));
    }
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
