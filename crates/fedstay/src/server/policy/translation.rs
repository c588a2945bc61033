//! What agents said about what they were shown, as if they had said it about the server's weights.
//!
//! An agent that is held by a preview would otherwise pull as if it stood at ε, and worst agents would suffer.
//! Its loss falls by about `fall = ⟨g, w̃ − w⟩` on the way from what it was shown to `w`. Cross-entropy is
//! nearly exponential along such a way, and its gradient nearly proportional to it, so both are
//! multiplied by `exp(−fall/L)`; the mean direction of a local path by less (`path.rs`). On digits
//! with five local steps the losses come out within a few percent, and the cosine between the
//! translated and the real gradient is 0.98 or more as long as offsets are small. (Only the part of the
//! direction along the way could be scaled: that made training on CIFAR-10 unstable.)
//!
//! For rules that take reports as cuts, lower bounds of convex losses, the loss is `L − fall` and the
//! gradient stays: then it is the same cut.

use super::path;
use crate::message::Layer;
use crate::{Broadcast, Error, Loss, Report, Reports, Standing, Vector, linalg};

/// The gradient of an agent's loss at what it received, as far as it is known: a multiple of what it
/// reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slope<'a> {
    pub(super) vector: Vector<'a>,
    pub(super) times: f64,
}

impl Slope<'_> {
    /// The change that it predicts for a move.
    pub(super) fn along(&self, way: &[f64]) -> f64 {
        self.times * linalg::dot(self.vector, Vector::F64(way))
    }

    pub(super) fn norm(&self) -> f64 {
        self.times * linalg::norm(self.vector)
    }
}

/// A vector of our own.
#[derive(Debug)]
enum Owned {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Owned {
    fn scaled(vector: Vector<'_>, by: f64) -> Self {
        match vector {
            Vector::F32(values) => {
                Self::F32(values.iter().map(|value| (f64::from(*value) * by) as f32).collect())
            }
            Vector::F64(values) => Self::F64(values.iter().map(|value| value * by).collect()),
            Vector::BF16(values) => {
                Self::F32(values.iter().map(|value| (value.widen() * by) as f32).collect())
            }
        }
    }

    fn view(&self) -> Vector<'_> {
        match self {
            Self::F32(values) => Vector::F32(values),
            Self::F64(values) => Vector::F64(values),
        }
    }
}

/// The reports of agents that were shown something else, translated.
#[derive(Debug)]
pub(crate) struct Translation {
    /// By position among the reports; `None` for those that need none.
    lines: Vec<Option<TranslatedReport>>,
}

#[derive(Debug)]
struct TranslatedReport {
    loss: f64,
    /// Direction and gradient, unless they stay as they are.
    scaled: Option<(Owned, Option<Owned>)>,
}

/// A loss after it has fallen by `fall`, to first order, as cross-entropy falls. Never below
/// `loss − fall`.
pub(super) fn estimate(loss: f64, fall: f64) -> f64 {
    if loss > 0.0 && fall > 0.0 { loss * (-fall / loss).exp() } else { loss - fall }
}

/// How much of the gradient at its start the agent's mean direction has kept: `⟨d, g⟩/‖g‖²`.
fn kept(report: &Report<'_>, slope: Slope<'_>) -> f64 {
    let square = slope.norm() * slope.norm();
    slope.times * linalg::dot(report.direction, slope.vector) / square
}

impl Translation {
    /// Translates the reports of agents that a policy showed something of its own in `layer`, into what
    /// they would have said of what they are shown `without` it. `slope` gives what is known of their
    /// gradients; where the reports are to be `cuts`, they stay lower bounds.
    pub(super) fn new<'r>(
        policy: &'static str,
        layer: Layer<'_>,
        without: &Broadcast<'_>,
        reports: &Reports<'r>,
        cuts: bool,
        slope: impl Fn(&Report<'r>) -> Slope<'r>,
    ) -> Result<Self, Error> {
        let line = |report: &Report<'r>| -> Result<Option<TranslatedReport>, Error> {
            let own = layer.of(report.agent).filter(|own| own.differs());
            let Some(own) = own else { return Ok(None) };
            let loss = report.exact_loss(policy)?;
            let slope = slope(report);
            let fall = slope.along(&own.offset(&without.to(report.agent)));
            if cuts {
                return Ok(Some(TranslatedReport { loss: loss - fall, scaled: None }));
            }
            let there = estimate(loss, fall);
            let scale = if loss > 0.0 && fall > 0.0 { there / loss } else { 1.0 };
            let gradient = report.gradient.map(|gradient| Owned::scaled(gradient, scale));
            let shrink = path::shrink(kept(report, slope), scale);
            let scaled = Some((Owned::scaled(report.direction, shrink), gradient));
            Ok(Some(TranslatedReport { loss: there, scaled }))
        };
        Ok(Self { lines: reports.iter().map(line).collect::<Result<_, _>>()? })
    }

    /// The reports as the rule sees them.
    pub(crate) fn of<'t>(&'t self, reports: &Reports<'t>) -> Reports<'t> {
        reports.translated(|index, report, norm| {
            let Some(line) = &self.lines[index] else { return None };
            let made = report.loss().map_or(line.loss, crate::Loss::value);
            if let Standing::Open { loss, .. } = &mut report.standing {
                *loss = match *loss {
                    Loss::Sampled { standard_error, .. } => {
                        Loss::Sampled { mean: line.loss, standard_error }
                    }
                    _ => Loss::Exact(line.loss),
                };
            }
            if let Some((direction, gradient)) = &line.scaled {
                report.direction = direction.view();
                report.gradient = gradient.as_ref().map(Owned::view);
                *norm = linalg::norm(report.slope());
            }
            Some(made - line.loss)
        })
    }
}
