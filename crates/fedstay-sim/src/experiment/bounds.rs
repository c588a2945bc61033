//! How large an experiment may be, where that depends on several keys or on the machine.

use super::{Allowed, SpecError};

/// The most threads that are started on request. Starting more takes longer than it saves.
pub const MOST_THREADS: usize = 512;
/// The most weights all agents may hold at once, of four bytes each.
const MOST_HELD: u64 = 1 << 30;
/// The most samples an agent may draw for the local steps of one round.
const MOST_DRAWN: u64 = 100_000_000;

/// Refuses more threads than any machine has cores, before one is started.
///
/// # Errors
/// For zero, and for more than [`MOST_THREADS`].
pub fn check_threads(threads: usize) -> Result<usize, SpecError> {
    match threads {
        1..=MOST_THREADS => Ok(threads),
        _ => Err(SpecError::Value {
            key: "threads".to_owned(),
            value: threads.to_string(),
            must: Allowed::Count(1, MOST_THREADS as u64),
            instead: None,
        }),
    }
}

/// Refuses `agents` models of `weights` numbers each if they would take too much memory.
pub(crate) fn check_held(agents: usize, weights: usize) -> Result<(), SpecError> {
    let held = (agents as u64).saturating_mul(weights as u64);
    if held <= MOST_HELD {
        return Ok(());
    }
    Err(SpecError::TooManyWeights { agents, weights, most: MOST_HELD })
}

/// Refuses local work whose batches would not fit in memory.
pub(crate) fn check_drawn(steps: usize, batch: usize) -> Result<(), SpecError> {
    let drawn = (steps as u64).saturating_mul(batch as u64);
    if drawn <= MOST_DRAWN {
        return Ok(());
    }
    Err(SpecError::TooManySamples { steps, batch, most: MOST_DRAWN })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_sizes_do_not_wrap_around() {
        check_held(10, 1 << 26).unwrap();
        assert!(check_held(usize::MAX, usize::MAX).is_err());
        check_drawn(1_000_000, 64).unwrap();
        assert!(check_drawn(1_000_000, usize::MAX).is_err());
        assert!(check_threads(0).is_err() && check_threads(1_000_000).is_err());
    }
}
