//! What agents said about their previews, as if they had said it about the server's weights.
//!
//! An agent that is held would otherwise pull as if it stood at ε, and worst agents would suffer.
//! Its loss falls by about `fall = ⟨g, w̃ − w⟩` on the way from its preview to `w`. Cross-entropy is
//! nearly exponential along such a way, so the loss is multiplied by `exp(−fall/L)`, and so is the part
//! of the direction that points along the way. What the agent says about all other directions stays:
//! the offset has not changed it. (Multiplying the whole direction cost a fifth more mean loss with
//! five local steps, and leaving it as it is costs the worst agents.)
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
    /// The vector with its part along `offset` multiplied by `by`.
    fn scaled(vector: Vector<'_>, offset: &[f64], by: f64) -> Self {
        let square = linalg::dot(Vector::F64(offset), Vector::F64(offset));
        let part = linalg::dot(vector, Vector::F64(offset)) / square;
        let more = if square > 0.0 { (by - 1.0) * part } else { 0.0 };
        match vector {
            Vector::F32(values) => {
                let scaled = values.iter().zip(offset);
                Self::F32(scaled.map(|(v, o)| (f64::from(*v) + more * o) as f32).collect())
            }
            Vector::F64(values) => {
                Self::F64(values.iter().zip(offset).map(|(v, o)| v + more * o).collect())
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
            let gradient = report.gradient.map(|gradient| Owned::scaled(gradient, &offset, scale));
            let scaled = Some((Owned::scaled(report.direction, &offset, scale), gradient));
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
