//! Randomness that can be repeated: one stream for every purpose, round and agent.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The seed of an experiment.
///
/// Every draw comes from a stream named by its purpose, the round and the agent. Streams are
/// independent of each other, so a draw added in one place changes no other, and neither the number
/// of threads nor the order in which agents are served can change a result.
///
/// ```
/// # extern crate fedstay_kernels as fedstay;
/// use fedstay::Seed;
/// use rand::Rng;
/// let seed = Seed(7);
/// assert_eq!(seed.stream("batch", 3, 1).next_u64(), seed.stream("batch", 3, 1).next_u64());
/// assert_ne!(seed.stream("batch", 3, 1).next_u64(), seed.stream("batch", 3, 2).next_u64());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream for `purpose` in `round` for `agent`; use 0 where one does not apply.
    pub fn stream(self, purpose: &str, round: u64, agent: u64) -> ChaCha8Rng {
        let mut key = [0u8; 32];
        key[..8].copy_from_slice(&self.0.to_le_bytes());
        key[8..16].copy_from_slice(&fingerprint(purpose).to_le_bytes());
        key[16..24].copy_from_slice(&round.to_le_bytes());
        key[24..].copy_from_slice(&agent.to_le_bytes());
        ChaCha8Rng::from_seed(key)
    }
}

/// A short name for some bytes, by 64-bit FNV-1a: the same on every platform and in every version,
/// which the standard library does not promise of its hasher. It is not a cryptographic hash, so it
/// is for texts of our own and not for anything that somebody might want to forge.
///
/// ```
/// # extern crate fedstay_kernels as fedstay;
/// use fedstay::numerics::fingerprint;
///
/// assert_eq!(fingerprint("a"), 0xaf63_dc4c_8601_ec8c);
/// ```
pub fn fingerprint(bytes: impl AsRef<[u8]>) -> u64 {
    bytes.as_ref().iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn every_coordinate_names_another_stream() {
        let draws: std::collections::BTreeSet<u64> = [
            Seed(0).stream("a", 0, 0).next_u64(),
            Seed(1).stream("a", 0, 0).next_u64(),
            Seed(0).stream("b", 0, 0).next_u64(),
            Seed(0).stream("a", 1, 0).next_u64(),
            Seed(0).stream("a", 0, 1).next_u64(),
        ]
        .into();
        assert_eq!(draws.len(), 5);
    }

    #[test]
    fn the_streams_are_part_of_the_contract() {
        // A change here changes every seeded result: it needs a line in the changelog.
        assert_eq!(Seed(42).stream("start", 0, 0).next_u64(), 752_521_306_306_834_229);
    }
}
