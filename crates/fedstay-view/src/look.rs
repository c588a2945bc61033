//! How a rule's line looks on the page: the same as in every drawing.

use fedstay_draw::plot::Style;
use serde::Serialize;

/// How a rule's line looks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RuleLook {
    /// The colour on white, as `#rrggbb`.
    colour: String,
    /// The lengths of dashes and gaps in multiples of the line's width; empty for an unbroken line.
    dash: Vec<f64>,
    /// Whether it is the rule's own, and not one of the spare ones.
    own: bool,
}

impl RuleLook {
    /// The look of a rule, by the label that a run's header has.
    pub(crate) fn of(rule: &str) -> Self {
        let style = Style::of(rule);
        let own = Style::known(rule).is_some();
        Self { colour: style.colour.hex(), dash: style.dash.lengths().to_vec(), own }
    }
}
