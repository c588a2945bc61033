//! From SVG to PNG, without any font installed on the machine.

use std::sync::{Arc, OnceLock};

use resvg::{tiny_skia, usvg};
use usvg::fontdb::{Database, Source};

use super::text;

/// A picture above this many pixels on a side is a mistake in the scale, not a wish.
const LARGEST_SIDE: f32 = 20_000.0;

/// Why an SVG could not be turned into a PNG.
#[derive(Debug, thiserror::Error)]
pub enum RasterError {
    /// The text is not an SVG.
    #[error("not a readable SVG: {0}")]
    Svg(#[from] usvg::Error),
    /// The picture would have no pixels or too many.
    #[error(
        "a {width} × {height} drawing at scale {scale} is not between 1 and {LARGEST_SIDE} pixels a side; \
         choose another scale (2 suits print)"
    )]
    Size {
        /// The drawing's own width.
        width: f32,
        /// The drawing's own height.
        height: f32,
        /// The scale that was asked for.
        scale: f32,
    },
    /// The pixels could not be written as PNG.
    #[error("could not encode the picture: {0}")]
    Encode(String),
}

/// Draws `svg` at `scale` pixels per unit and returns the bytes of a PNG file; the same input gives
/// the same bytes. Texts are set in the embedded font alone, so the picture looks the same on a
/// server without fonts as on a desk.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, RasterError> {
    let tree = parse(svg)?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let too_large = || RasterError::Size { width, height, scale };
    let pixels = |side: f32| {
        let scaled = (side * scale).round();
        (1.0..=LARGEST_SIDE).contains(&scaled).then_some(scaled as u32)
    };
    let (Some(columns), Some(rows)) = (pixels(width), pixels(height)) else {
        return Err(too_large());
    };
    let mut picture = tiny_skia::Pixmap::new(columns, rows).ok_or_else(too_large)?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut picture.as_mut());
    picture.encode_png().map_err(|e| RasterError::Encode(e.to_string()))
}

/// The drawing with its texts laid out in the embedded font.
pub(super) fn parse(svg: &str) -> Result<usvg::Tree, usvg::Error> {
    let options = usvg::Options {
        fontdb: fonts(),
        font_family: "DejaVu Sans".into(),
        ..usvg::Options::default()
    };
    usvg::Tree::from_str(svg, &options)
}

fn fonts() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let load = || {
        let mut fonts = Database::new();
        for bold in [false, true] {
            fonts.load_font_source(Source::Binary(Arc::new(text::font(bold))));
        }
        fonts.set_sans_serif_family("DejaVu Sans");
        Arc::new(fonts)
    };
    Arc::clone(FONTS.get_or_init(load))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::svg::{Label, Svg};

    /// The share of pixels that are not white.
    fn ink(png: &[u8]) -> f64 {
        let picture = tiny_skia::Pixmap::decode_png(png).expect("our own PNG");
        let dark = picture.pixels().iter().filter(|p| p.red() < 128).count();
        dark as f64 / picture.pixels().len() as f64
    }

    fn page(text: &str) -> String {
        let mut svg = Svg::default();
        svg.text(&Label::new(5.0, 30.0, text, 24.0));
        svg.finish(200.0, 40.0, "", "")
    }

    #[test]
    fn text_is_drawn_from_the_embedded_font_alone() {
        assert_eq!(fonts().faces().count(), 2, "no font of this machine is consulted");
        assert_eq!(ink(&png(&page(""), 1.0).unwrap()), 0.0);
        assert!(ink(&png(&page("ε-sub-level"), 1.0).unwrap()) > 0.02);
    }

    #[test]
    fn equal_input_gives_equal_bytes() {
        let page = page("F₁ ≤ ε");
        assert_eq!(png(&page, 2.0).unwrap(), png(&page, 2.0).unwrap());
    }

    #[test]
    fn bad_input_is_an_error() {
        assert!(matches!(png("not an svg", 1.0), Err(RasterError::Svg(_))));
        for scale in [0.0, -1.0, f32::NAN, 1e9] {
            assert!(matches!(png(&page("x"), scale), Err(RasterError::Size { .. })), "{scale}");
        }
    }
}
