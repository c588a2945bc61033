//! A figure and its files.

use crate::plot::{Figure, RasterError, png};
use fedstay_sim::run::write_whole;
use std::io;
use std::path::{Path, PathBuf};

/// Pixels of the PNG for each unit of the drawing: 300 per inch across a printed page.
pub const PNG_SCALE: f32 = 2.0;

/// Why a picture could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// Its folder cannot be created.
    #[error("cannot make the folder {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It cannot be turned into pixels.
    #[error("cannot turn the figure {name} into a PNG")]
    Raster {
        /// The file's name without its ending.
        name: String,
        /// The cause.
        source: RasterError,
    },
    /// A file cannot be written; the error names it.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Writes `NAME.svg` and `NAME.png` into a folder, which is created if it does not exist, and
/// returns their paths. A reader of one of them sees the old file or the new one, never half of
/// it.
///
/// # Errors
/// When the folder cannot be written to.
pub fn write_figure(
    figure: &Figure,
    folder: &Path,
    name: &str,
) -> Result<Vec<PathBuf>, PictureError> {
    std::fs::create_dir_all(folder)
        .map_err(|source| PictureError::Folder { folder: folder.to_owned(), source })?;
    let svg = figure.to_svg();
    let picture = png(&svg, PNG_SCALE)
        .map_err(|source| PictureError::Raster { name: name.to_owned(), source })?;
    let (vector, raster) = (folder.join(format!("{name}.svg")), folder.join(format!("{name}.png")));
    write_whole(&vector, svg.as_bytes())?;
    write_whole(&raster, &picture)?;
    Ok(vec![vector, raster])
}
