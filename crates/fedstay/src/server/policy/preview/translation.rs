//! What agents said about their previews, as if they had said it about the server's weights.
//!
//! An agent that is held would otherwise pull as if it stood at ε, and worst agents would suffer.
//! Its loss falls by about `fall = ⟨g, w̃ − w⟩` on the way from its preview to `w`. Cross-entropy is
//! nearly exponential along such a way, and its gradient nearly proportional to it, so both are
//! multiplied by `exp(−fall/L)`. (Only the part of the direction along the way could be: that served
//! digits with five local steps better, and made training on CIFAR-10 unstable.)
//!
//! For rules that take reports as cuts, lower bounds of convex losses, the loss is `L − fall` and the
//! gradient stays: then it is the same cut.

use crate::server::Personal;
use crate::{AgentId, Error, Loss, Report, Reports, Standing, Vector, linalg};

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
    lines: Vec<Option<Line>>,
}

#[derive(Debug)]
struct Line {
    loss: f64,
    /// Direction and gradient, unless they stay as they are.
    scaled: Option<(Owned, Option<Owned>)>,
}

/// A loss after it has fallen by `fall`, to first order, as cross-entropy falls. Never below
/// `loss − fall`.
pub(super) fn estimate(loss: f64, fall: f64) -> f64 {
    if loss > 0.0 && fall > 0.0 { loss * (-fall / loss).exp() } else { loss - fall }
}

impl Translation {
    /// Translates the reports of agents that `own` says were shown something else.
    pub(super) fn new<'p>(
        weights: &[f64],
        reports: &Reports<'_>,
        cuts: bool,
        own: &dyn Fn(AgentId) -> Option<&'p Personal>,
    ) -> Result<Self, Error> {
        let line = |report: &Report<'_>| -> Result<Option<Line>, Error> {
            let Some(own) = own(report.agent).filter(|own| own.differs()) else { return Ok(None) };
            let loss = report.exact_loss("preview")?;
            let offset = super::offset::of(own, weights);
            let fall = linalg::dot(report.slope(), Vector::F64(&offset));
            if cuts {
                return Ok(Some(Line { loss: loss - fall, scaled: None }));
            }
            let there = estimate(loss, fall);
            let scale = if loss > 0.0 && fall > 0.0 { there / loss } else { 1.0 };
            let gradient = report.gradient.map(|gradient| Owned::scaled(gradient, scale));
            let scaled = Some((Owned::scaled(report.direction, scale), gradient));
            Ok(Some(Line { loss: there, scaled }))
        };
        Ok(Self { lines: reports.iter().map(line).collect::<Result<_, _>>()? })
    }

    /// The reports as the rule sees them.
    pub(crate) fn of<'t>(&'t self, reports: &Reports<'t>) -> Reports<'t> {
        reports.translated(|index, report, norm| {
            let Some(line) = &self.lines[index] else { return };
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
        })
    }
}
