//! The bars that say how good delivered models are.

use crate::plot::{BarSeries, Colour, Fill, Pattern};

/// All of 100%, with room for a marker or a number above it.
pub const PERCENT: (f64, f64) = (0.0, 108.0);

/// The mean over the agents and the worst agent, in greys: every colour belongs to a rule or to an
/// agent already.
pub fn delivered_bars(means: Vec<f64>, worsts: Vec<f64>) -> Vec<BarSeries> {
    let grey = Colour(0x8a, 0x8a, 0x8a);
    let hatched = Fill {
        pattern: Pattern::Hatch,
        ink: Colour::INK,
        ..Fill::tint(Colour(0xdd, 0xdd, 0xdd), 1.0)
    };
    let worst = BarSeries { fill: hatched, ..BarSeries::new("worst agent", worsts, grey) };
    vec![BarSeries::new("mean over agents", means, grey), worst]
}
