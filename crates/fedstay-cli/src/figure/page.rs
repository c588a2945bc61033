//! The page that every figure with training curves shares: average and population accuracy in the
//! paper's form, the controls, and for whom the delivered models are good.

use super::measured::{Run, Sample};
use super::training::{Arm, Done};
use crate::draw::{
    BarSeries, Bars, Colour, Figure, Fill, Guide, Line, Marker, Panel, Pattern, Point, Points,
    Style,
};
use fedstay_sim::local_work::{BatchSize, StepSize};
use fedstay_sim::model::Model;
use fedstay_sim::simulator::DecidesOn;
use fedstay_sim::spec::{Epsilon, Experiment};

/// Height of the axes in pixels.
const HEIGHT: f64 = 270.0;
/// Points a curve is drawn with at most.
const POINTS: usize = 400;

/// The whole page.
pub(super) fn figure(title: &str, done: &[Done]) -> Figure {
    let labels: Vec<&str> = done.iter().map(|done| done.arm.label).collect();
    let styles = Style::assign(&labels);
    let styled: Vec<(&Done, Style)> = done.iter().zip(styles).collect();
    let average = curves("(a) average accuracy over all agents, leavers included", &styled);
    let population = Panel { y_label: String::new(), ..average.0 };
    let experiment = &done[0].experiment;
    Figure {
        subtitle: subtitle(experiment),
        caption: caption(done),
        columns: 2,
        ..Figure::new(title)
    }
    .with(population)
}

fn curves(_: &str, _: &[(&Done, Style)]) -> (Panel, ()) {
    todo!()
}
fn subtitle(_: &Experiment) -> String {
    todo!()
}
fn caption(_: &[Done]) -> String {
    todo!()
}
