//! `fedstay report`: runs as one page that can be passed on.

use anyhow::Result;
use fedstay_draw::picture::Subject;
use fedstay_draw::picture::report::page;
use fedstay_draw::words;
use fedstay_sim::run::{is_of_a_run, write_whole};
use fedstay_terminal::{Screen, Usage};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  # report.html
  fedstay report runs/a
  # several runs, compared
  fedstay report runs/a runs/b -o comparison.html
  chromium --headless --print-to-pdf=report.pdf report.html

The page holds drawings, verdict, configuration and the commands to repeat it; it has no scripts and \
loads nothing from elsewhere.";

/// Write runs to one self-contained page.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Report {
    /// Folders of runs
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
}

impl Report {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        if is_of_a_run(&self.out) {
            let out = self.out.display();
            let told =
                format!("{out} is a file of a run; choose another name, such as report.html");
            return Err(Usage(told).into());
        }
        let mut subjects = Vec::new();
        for folder in &self.folders {
            let read = Subject::read(folder);
            subjects.push(read.map_err(|why| {
                Usage(format!("{why}; give the folder of a run, such as runs/digits-ada-gd-s0"))
            })?);
        }
        write_whole(&self.out, page(&subjects).as_bytes())?;
        for subject in &subjects {
            if let Some(changed) = words::changed(&subject.changed) {
                screen.say(&format!("WARNING  {}: {changed}", subject.folder.display()))?;
            }
            let count = subject.recorded.unreadable.len();
            if count > 0 {
                let (folder, lines) = (subject.folder.display(), words::count(count, "line"));
                screen
                    .say(&format!("{folder}: {lines} could not be read; the report names them"))?;
            }
        }
        screen.written(&self.out)
    }
}
