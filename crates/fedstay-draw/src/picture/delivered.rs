//! The delivered model in a drawing: no round has it, so it stands behind the last one, as a
//! diamond with a dotted line to it.

use crate::plot::{Colour, Dash, Line, Marker, Panel, Points, Style};
use fedstay::record::{AgentSummary, Summary};

/// The name of the diamonds in the legend.
pub(super) const NAME: &str = "the delivered model";

/// Adds the end of a line: the value under the delivered model, joined to the last round's.
pub fn with_end(panel: Panel, last: Option<(f64, f64)>, end: (f64, f64), colour: Colour) -> Panel {
    let style = Style { colour, dash: Dash::Dotted, marker: Marker::Diamond };
    let joined = last.map(|last| Line { width: 1.6, ..Line::new("", vec![last, end], style) });
    let panel = joined.into_iter().fold(panel, Panel::with);
    panel.with(Points { size: 5.0, ..Points::new(NAME, vec![end], Marker::Diamond, colour) })
}

/// Whether an agent is content with the delivered model; `None` if it could not be asked.
pub(super) fn content(agent: &AgentSummary) -> Option<bool> {
    agent.is_asked().then(|| agent.is_content())
}

/// How many agents are content, as `7 of 10` of which it is known.
pub(super) fn content_of(summary: &Summary) -> String {
    format!("{} of {}", summary.satisfied(), summary.known())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::plot::Layer;

    /// The values of a panel's diamonds, which must be where its dotted lines end.
    pub(in crate::picture) fn ends(panel: &Panel) -> Vec<f64> {
        let dotted = |layer: &Layer| match layer {
            Layer::Line(line) if line.name.is_empty() && line.points.len() == 2 => {
                Some(line.points[1])
            }
            _ => None,
        };
        let joined: Vec<(f64, f64)> = panel.layers.iter().filter_map(dotted).collect();
        let diamonds: Vec<(f64, f64)> = panel
            .layers
            .iter()
            .filter_map(|layer| match layer {
                Layer::Points(points) if points.name == NAME => Some(points.points[0]),
                _ => None,
            })
            .collect();
        assert!(joined.iter().all(|end| diamonds.contains(end)), "{joined:?} {diamonds:?}");
        diamonds.into_iter().map(|(_, value)| value).collect()
    }
}
