//! Figures: panels with axes, one legend, exact bytes.
//!
//! A [`Figure`] holds [`Panel`]s, a panel holds layers ([`Line`], [`Region`], [`Cells`], …), and
//! [`Figure::to_svg`] returns the drawing as text; [`png`] turns it into pixels. Nothing here reads
//! a clock, a locale or an installed font, so equal input gives equal bytes and a figure can be
//! compared with the one in the repository.
//!
//! Whatever the data hold, a drawing comes out: points that are not finite are skipped, ranges that
//! make no axis are replaced, texts are escaped.

mod contour;
mod extent;
mod field;
mod figure;
mod frame;
mod label;
mod layer;
mod legend;
mod mark;
mod paint;
mod palette;
mod panel;
mod raster;
mod scale;
mod svg;
mod table;
mod text;
mod ticks;

pub use contour::Grid;
pub use field::{Arrows, Contours, Region};
pub use figure::{COLUMN_WIDTH, Figure, PAGE_WIDTH};
pub use layer::{Along, Band, Guide, Layer, Line, Note, Point, Points};
pub use legend::Legend;
pub use palette::{Colour, Dash, Fill, Marker, Pattern, Style};
pub use panel::Panel;
pub use raster::{RasterError, png};
pub use scale::Scale;
pub use table::{BarSeries, Bars, Category, Cells};

#[cfg(test)]
mod tests;
