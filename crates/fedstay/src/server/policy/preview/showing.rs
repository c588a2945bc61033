//! What each agent is shown next.

use super::known::KnownAgent;
use super::offset::Offset;
use super::rewind::{Move, ReportedLoss, Rewind};
use super::{By, Preview, Slope};
use crate::Personal;
use crate::rule::{Miss, Round};
use crate::{AgentId, Loss, Report, Seed, Vector, linalg};
use fedstay_kernels::numerics::normal;

/// A miss is worth a line of the record above this share of δ.
const WORTH_TELLING: f64 = 0.5;
/// How much of the largest miss of an agent is still reckoned with one round later.
const REMEMBERED: f64 = 0.9;
/// A room above ε that is this small compared with the terms it is computed from proves nothing.
const ROUNDING: f64 = 1e-12;

/// One report, with where it was made.
pub(super) struct Heard<'a> {
    pub(super) report: &'a Report<'a>,
    pub(super) loss: f64,
    pub(super) epsilon: f64,
    /// What is known from the reports before.
    pub(super) before: Option<KnownAgent>,
    /// What it was shown, if not the server's weights.
    pub(super) shown: Option<Personal>,
}

/// The round in which it is decided.
pub(super) struct Stage<'a> {
    pub(super) round: &'a Round<'a>,
    pub(super) step: &'a [f64],
    /// How far a preview may be from the server's weights.
    pub(super) longest: f64,
    /// Whether everybody's cut is kept, because some agents are silent.
    pub(super) keep: bool,
}

impl Stage<'_> {
    /// Whether an offset of this length is not sent. One that is not a number is not, either.
    fn too_far(&self, length: f64) -> bool {
        length.is_nan() || length > self.longest
    }
}

/// What an agent is shown next.
pub(super) struct Next {
    pub(super) known: KnownAgent,
    pub(super) personal: Option<Personal>,
    /// Whether for convex losses it proves that the agent stays.
    pub(super) certain: bool,
    pub(super) miss: Option<Miss>,
}

impl Next {
    /// Whether the agent is shown something else than the server's weights.
    pub(super) fn differs(&self) -> bool {
        self.personal.as_ref().is_some_and(Personal::differs)
    }
}

impl Preview {
    /// What an agent that was heard is shown next, and what is known about it then.
    pub(super) fn after(&self, heard: Heard<'_>, stage: &Stage<'_>, gap: &Offset) -> Next {
        let Heard { report, loss, epsilon, before, shown } = heard;
        let mut missed = before.as_ref().map_or(0.0, |known| known.missed * REMEMBERED);
        let mut miss = None;
        if let Some(known) = &before {
            let by = known.promised - loss;
            if by > WORTH_TELLING * self.unit(epsilon, known.first) * self.slack() {
                miss = Some(Miss { agent: report.agent, predicted: known.promised, loss });
            }
            missed = missed.max(by);
        }
        let first = before.as_ref().map_or(Some(loss), |known| known.first);
        let floor = self.floor(epsilon, first, stage.round.number);
        let (stood, mut rewind) =
            before.map(|known| (known.stood, known.rewind)).unwrap_or_default();
        let by_cut = self.cuts(report);
        if !by_cut {
            rewind.learn(loss);
        }
        let slope = slope(report, (!by_cut).then_some(&rewind));
        let (along, norm) = (slope.along(&gap.way), slope.norm());
        let at_server = loss + along;
        let known = KnownAgent {
            epsilon,
            first,
            at_server,
            promised: at_server,
            norm,
            missed,
            stood: 0,
            capped: false,
            certain: false,
            rewind,
        };
        let exact = matches!(report.loss(), Some(Loss::Exact(_)));
        let proven = exact && report.gradient.is_some() && by_cut && self.by != By::Noise;
        let room = floor - epsilon > ROUNDING * (loss.abs() + along.abs() + floor.abs());
        let mut next = Next { known, personal: None, certain: proven && room, miss };
        let stand = |mut next: Next, capped: bool| {
            (next.known.promised, next.known.stood, next.known.capped) = (loss, stood + 1, capped);
            next.known.rewind.stand();
            next.personal = Some(stand(shown, stage.round.weights));
            // It has just been seen to stay there.
            next.certain = exact;
            next
        };
        if !by_cut {
            let way = linalg::norm(Vector::F64(&gap.way));
            let bare = linalg::norm(report.direction);
            let along = along / slope.times;
            let seen = ReportedLoss { loss, epsilon, floor, norm: bare, along, way };
            let Some(going) = next.known.rewind.aim(&seen) else { return stand(next, false) };
            if stage.too_far(going.lift * bare) {
                return stand(next, true);
            }
            next.known.promised = going.promised;
            if !going.arrives() {
                next.personal = Some(moved(&going, report.direction, stage, gap));
            }
            return next;
        }
        let floor = floor + missed;
        if at_server < floor {
            let times = (floor - at_server) / (norm * norm);
            let too_far = stage.too_far(times * norm);
            if self.by == By::Stale || too_far {
                return stand(next, too_far && self.by != By::Stale);
            }
            next.known.promised = floor;
            let mut along = copy(slope.vector);
            if self.by == By::Noise {
                randomise(&mut along, norm, stage.round.number, report.agent);
            }
            next.personal = Some(Personal::Shifted { times, along });
        } else if stage.keep {
            next.personal = Some(Personal::Shifted { times: 0.0, along: copy(slope.vector) });
        }
        next
    }

    /// Lets an agent that was not heard keep its last cut while the server moves on.
    pub(super) fn unheard(
        &self,
        mut known: KnownAgent,
        shown: Option<Personal>,
        stage: &Stage<'_>,
    ) -> Next {
        let floor = self.floor(known.epsilon, known.first, stage.round.number) + known.missed;
        let weights = stage.round.weights;
        let personal = match shown {
            Some(Personal::Shifted { times: before, along }) => {
                let after =
                    known.at_server + linalg::dot(Vector::F64(&along), Vector::F64(stage.step));
                let times = ((floor - after) / (known.norm * known.norm)).max(0.0);
                if !stage.too_far(times * known.norm) {
                    known.at_server = after;
                    known.promised = after.max(floor);
                    Some(Personal::Shifted { times, along })
                } else {
                    // Where it was shown a model last, it is predicted to stay.
                    (known.stood, known.capped) = (known.stood + 1, true);
                    Some(stand(Some(Personal::Shifted { times: before, along }), weights))
                }
            }
            Some(fixed @ Personal::Fixed(_)) => {
                known.stood += 1;
                Some(fixed)
            }
            None | Some(Personal::Same) => {
                let fall = known.norm * linalg::norm(Vector::F64(stage.step));
                if known.at_server - fall >= floor {
                    known.at_server -= fall;
                    known.promised = known.at_server;
                    None
                } else {
                    // What the step does to it is not known any more; what it is without it, is.
                    known.promised = known.at_server;
                    Some(Personal::Fixed(weights.to_vec()))
                }
            }
        };
        let certain = known.certain && known.promised > known.epsilon;
        Next { known, personal, certain, miss: None }
    }

    /// Whether previews for this agent are made from the gradient at what it received.
    pub(super) fn cuts(&self, report: &Report<'_>) -> bool {
        match self.by {
            By::Auto => report.gradient.is_some(),
            By::Rewind => false,
            By::Cut | By::Stale | By::Noise => true,
        }
    }
}

/// The slope of an agent whose previews are made by cut, or of one made by rewind about which this is
/// known.
pub(super) fn slope<'a>(report: &Report<'a>, rewind: Option<&Rewind>) -> Slope<'a> {
    match rewind {
        None => Slope { vector: report.slope(), times: 1.0 },
        Some(rewind) => Slope { vector: report.direction, times: rewind.ratio() },
    }
}

fn copy(vector: Vector<'_>) -> Vec<f64> {
    let mut copy = vec![0.0; vector.len()];
    linalg::add_scaled(&mut copy, 1.0, vector);
    copy
}

/// The point to which a rewind goes.
fn moved(going: &Move, direction: Vector<'_>, stage: &Stage<'_>, gap: &Offset) -> Personal {
    let mut point = gap.part(stage.round.weights, stage.step, going.share);
    linalg::add_scaled(&mut point, going.lift, direction);
    Personal::Fixed(point)
}

/// What the agent was shown last, once more.
fn stand(shown: Option<Personal>, weights: &[f64]) -> Personal {
    match shown {
        None | Some(Personal::Same) => Personal::Fixed(weights.to_vec()),
        Some(Personal::Shifted { times, along }) => {
            let mut point = weights.to_vec();
            linalg::add_scaled(&mut point, times, Vector::F64(&along));
            Personal::Fixed(point)
        }
        Some(fixed) => fixed,
    }
}

/// A random direction of the same length.
fn randomise(direction: &mut [f64], norm: f64, round: u32, agent: AgentId) {
    let mut rng = Seed(0).stream("preview", u64::from(round), agent.0);
    direction.iter_mut().for_each(|value| *value = normal(&mut rng));
    let length = linalg::norm(Vector::F64(direction));
    linalg::scale(direction, norm / length.max(f64::MIN_POSITIVE));
}
