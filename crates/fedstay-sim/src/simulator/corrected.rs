//! Local steps that a rule corrects: to every gradient the agent adds what the server sent it.
//!
//! One gradient at a time, because the fused steps of a model ([`Network::local_steps`]) know nothing
//! of corrections. With S the sum of what was added up so far the agent stands at w − ηS, as there.

use crate::model::{Batch, Error, Loaded, Network, Rows, Walk, Workspace};

/// Takes the local steps from `weights`, and leaves their mean direction in `direction`. Returns the
/// gradient at `weights` if the first batch was all rows.
pub(super) fn local_steps(
    network: &Network,
    (weights, rows): (&Loaded, &Rows<'_>),
    batches: &[Batch<'_>],
    walk: Walk,
    correction: &[f32],
    direction: &mut [f32],
    work: &mut Workspace,
) -> Result<Option<Vec<f32>>, Error> {
    let (eta, keep) = match walk {
        Walk::Stand => (0.0, 1.0),
        Walk::Descend { eta, mu } => (eta, 1.0 - mu * eta),
    };
    let mut sum = vec![0.0f32; direction.len()];
    let mut first = None;
    for (step, batch) in batches.iter().enumerate() {
        let moved = match step {
            0 => None,
            _ if eta == 0.0 => None,
            _ => Some(weights.displaced(&sum, -eta)?),
        };
        let here = moved.as_ref().unwrap_or(weights);
        network.loss_and_gradient(here, rows, *batch, direction, work)?;
        if step == 0 && *batch == Batch::All {
            first = Some(direction.to_vec());
        }
        for ((sum, gradient), correction) in sum.iter_mut().zip(&*direction).zip(correction) {
            *sum = keep * *sum + gradient + correction;
        }
    }
    let share = 1.0 / batches.len().max(1) as f32;
    direction.iter_mut().zip(&sum).for_each(|(direction, sum)| *direction = share * sum);
    Ok(first)
}
