//! A finished figure and its files.

use anyhow::Context;
use fedstay_draw::picture::write_figure;
use fedstay_draw::plot::Figure;
use fedstay_sim::run::write_whole;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A figure, with the numbers behind it.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// The file name without its ending.
    pub name: String,
    /// What to draw.
    pub figure: Figure,
    /// What the picture shows, in sentences for the terminal.
    pub notes: Vec<String>,
    /// The numbers behind it.
    pub numbers: Value,
}

impl Drawing {
    /// Writes `NAME.svg`, `NAME.png` and `NAME.json` into the folder, which is created if need be,
    /// and returns their paths. A reader of one of them sees the old file or the new one, never
    /// half of it.
    pub fn write(&self, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let mut files = write_figure(&self.figure, folder, &self.name)?;
        let numbers = json!({ "name": self.name, "notes": self.notes, "numbers": self.numbers });
        let path = folder.join(format!("{}.json", self.name));
        write_whole(&path, format!("{numbers:#}\n").as_bytes())
            .context("could not write a figure")?;
        files.push(path);
        Ok(files)
    }
}
