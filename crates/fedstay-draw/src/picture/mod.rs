//! Pictures of runs: one file a picture.

pub mod compare;
mod delivered;
mod map;
pub mod report;
pub mod run;
pub mod tournament;

use crate::draw::{Figure, png};
use anyhow::{Context, Result};
use fedstay_sim::observe::write_whole;
use fedstay_sim::simulator::DecidesOn;
use std::path::{Path, PathBuf};

/// Points a curve is drawn with at most; more would not be seen.
const POINTS: usize = 600;

/// Writes NAME.svg and NAME.png into a folder.
fn write(figure: &Figure, folder: &Path, name: &str) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let svg = figure.to_svg();
    let picture = png(&svg, 2.0)?;
    let (vector, raster) = (folder.join(format!("{name}.svg")), folder.join(format!("{name}.png")));
    write_whole(&vector, svg.as_bytes())?;
    write_whole(&raster, &picture)?;
    Ok(vec![vector, raster])
}

/// Every n-th element so that at most `POINTS` are left, always with the last.
fn thinned<T: Copy>(points: &[T]) -> Vec<T> {
    let every = points.len().div_ceil(POINTS).max(1);
    let mut thinned: Vec<T> = points.iter().copied().step_by(every).collect();
    if let (true, Some(last)) = (!(points.len().max(1) - 1).is_multiple_of(every), points.last()) {
        thinned.push(*last);
    }
    thinned
}

/// On which loss the agents of a run decide, by its configuration.
fn decides_on(config: Option<&str>) -> DecidesOn {
    let table: Option<toml::Table> = config.and_then(|text| toml::from_str(text).ok());
    let own = table
        .is_some_and(|table| table.get("decides_on").and_then(toml::Value::as_str) == Some("own"));
    if own { DecidesOn::Own } else { DecidesOn::Received }
}
