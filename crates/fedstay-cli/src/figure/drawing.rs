//! A finished figure and its files.

use crate::draw::{Figure, png};
use anyhow::Context;
use fedstay_sim::observe::write_whole;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Pixels of the PNG for each unit of the drawing: 300 an inch across a printed page.
const PNG_SCALE: f32 = 2.0;

/// A figure with the numbers behind it.
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
    /// Writes `NAME.svg`, `NAME.png` and `NAME.json` into the folder, which is made if it is not
    /// there, and says where they are. Whoever reads one of them sees the old file or the new one,
    /// never half of it.
    pub fn write(&self, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("could not make the folder {}", folder.display()))?;
        let svg = self.figure.to_svg();
        let picture = png(&svg, PNG_SCALE)
            .with_context(|| format!("could not turn the figure {} into a PNG", self.name))?;
        let numbers = json!({ "name": self.name, "notes": self.notes, "numbers": self.numbers });
        let numbers = format!("{numbers:#}\n");
        let files =
            [("svg", svg.as_bytes()), ("png", picture.as_slice()), ("json", numbers.as_bytes())];
        files
            .into_iter()
            .map(|(ending, bytes)| {
                let path = folder.join(format!("{}.{ending}", self.name));
                write_whole(&path, bytes).context("could not write a figure")?;
                Ok(path)
            })
            .collect()
    }
}
