//! The terminal: how wide it is, whether it shows colours, and how much it wants to hear.
//!
//! What a command prints for a person goes through a [`Screen`], so that nothing is wider than the
//! terminal. What is printed for programs (`--json`, `fedstay step`) is left as it is.

mod options;
mod table;
mod wrap;

pub use options::{Colour, ScreenOptions};
pub use table::{Cell, Column, Table};

use anyhow::Result;
use fedstay_draw::words::Tone;
use fedstay_sim::text::{one_line, printable};
use std::io::{IsTerminal, Write};
use std::path::Path;

/// How much a command says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Volume {
    /// Results and errors only.
    Quiet,
    Usual,
    /// Also what was resolved, and how long it took.
    Verbose,
}

/// Where a command prints.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// The number of columns; `None` where lines may have any length.
    columns: Option<usize>,
    /// Whether a table leaves out columns that do not fit.
    wide: bool,
    colours: bool,
    volume: Volume,
}

/// Narrower than this, nothing could be read.
const LEAST_COLUMNS: usize = 20;

/// The width to use on standard output or standard error: what `COLUMNS` says, else what the
/// terminal says. `None` where there is neither, as in a pipe or a file: lines then have their full
/// length, for `grep` and the like.
fn columns(error: bool) -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse::<usize>().ok());
    let size = || match error {
        true => terminal_size::terminal_size_of(std::io::stderr()),
        false => terminal_size::terminal_size_of(std::io::stdout()),
    };
    let found = asked.filter(|columns| *columns > 0).or_else(|| Some(usize::from(size()?.0.0)));
    found.map(|columns| columns.max(LEAST_COLUMNS))
}

/// The width of a help text: as for anything else, but never so wide that it is hard to read.
pub fn help_columns() -> usize {
    columns(false).unwrap_or(100).min(100)
}

impl Screen {
    /// The screen that these options and the environment ask for.
    pub fn new(options: &ScreenOptions) -> Self {
        Self {
            columns: columns(false),
            wide: options.wide,
            colours: options.color.on(std::io::stdout().is_terminal()),
            volume: match (options.quiet, options.verbose) {
                (true, _) => Volume::Quiet,
                (false, true) => Volume::Verbose,
                (false, false) => Volume::Usual,
            },
        }
    }

    /// A screen of this width, or of none, without colours, whatever the environment says.
    pub fn plain(columns: impl Into<Option<usize>>) -> Self {
        let columns = columns.into();
        Self { columns, wide: false, colours: false, volume: Volume::Usual }
    }

    /// Prints text as it is: what was made for this screen, or for a program.
    pub fn print(&self, text: &str) -> Result<()> {
        Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
    }

    /// Prints paragraphs, wrapped.
    pub fn say(&self, text: &str) -> Result<()> {
        self.print(&format!("{}\n", self.prose(text)))
    }

    /// Prints what a person may like to know and did not ask for, unless it should be quiet.
    pub fn mention(&self, text: &str) -> Result<()> {
        if self.volume == Volume::Quiet { Ok(()) } else { self.say(text) }
    }

    /// Says where something was written: the one way to say it. A path is never broken.
    pub fn written(&self, path: &Path) -> Result<()> {
        if self.volume == Volume::Quiet {
            return Ok(());
        }
        self.print(&format!("written to {}\n", one_line(&path.display().to_string())))
    }

    /// Says on standard error what only `--verbose` wants to know.
    pub fn detail(&self, text: &str) {
        if self.volume == Volume::Verbose {
            eprintln!("{}", printable(text));
        }
    }

    /// Whether progress is shown.
    pub fn shows_progress(&self) -> bool {
        self.volume > Volume::Quiet
    }

    /// Lines, wrapped; further lines are indented like the first.
    pub fn prose(&self, text: &str) -> String {
        let text = printable(text);
        let lines = text.split('\n').map(|line| wrap::indented(line, self.columns));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// A line that begins with a label, wrapped beside it.
    pub fn labelled(&self, label: &str, text: &str) -> String {
        wrap::hanging(&printable(label), &printable(text), self.columns)
    }

    /// A table, without the columns for which there is no room.
    pub fn table(&self, table: &Table) -> String {
        table.render(self.columns, self.wide, self)
    }

    /// Whether a table fits without leaving anything out.
    pub fn fits(&self, table: &Table) -> bool {
        self.wide || self.columns.is_none_or(|columns| table.width() <= columns)
    }

    /// Text in a tone's colour, where there are colours.
    pub fn toned(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Fair => "36",
            Tone::Warn => "33",
            Tone::Bad => "31",
            Tone::Open => "2",
        };
        self.styled(code, text)
    }

    /// A heading.
    pub fn bold(&self, text: &str) -> String {
        self.styled("1", text)
    }

    fn styled(&self, code: &str, text: &str) -> String {
        match self.colours {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

/// Prints an error and, where it has one, the excerpt of the file under it.
pub fn complain(color: Colour, message: &str, excerpt: Option<&str>) {
    let colours = color.on(std::io::stderr().is_terminal());
    let label = if colours { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
    // The label's codes take no room.
    let text = wrap::hanging("error: ", message, columns(true));
    let text =
        text.strip_prefix("error:").map_or_else(String::new, |rest| format!("{label}{rest}"));
    // Nobody can be told that standard error is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
    if let Some(excerpt) = excerpt {
        let _ = writeln!(std::io::stderr(), "{}", printable(excerpt));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_colours_only_where_they_are_wanted() {
        let plain = Screen::plain(80);
        assert_eq!(plain.toned(Tone::Bad, "harmful"), "harmful");
        let coloured = Screen { colours: true, ..plain };
        assert_eq!(coloured.toned(Tone::Bad, "harmful"), "\u{1b}[31mharmful\u{1b}[0m");
    }

    #[test]
    fn what_comes_from_outside_cannot_colour_anything() {
        assert_eq!(Screen::plain(None).prose("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(Screen::plain(40).labelled("x", "\u{7}"), "x\\u{7}");
    }
}
