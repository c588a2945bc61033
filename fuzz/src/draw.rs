//! Choices, from a seed or from a fuzzer's bytes: the same source always gives the same case.

/// A source of choices.
pub struct Draw<'a> {
    bytes: &'a [u8],
    state: u64,
}

impl<'a> Draw<'a> {
    /// Makes choices without end, from a seed.
    pub fn seeded(seed: u64) -> Self {
        Self { bytes: &[], state: seed ^ 0x5851_f42d_4c95_7f2d }
    }

    /// Makes choices from bytes, as long as there are any: a fuzzer that changes a byte changes a
    /// choice.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes, state: 0 }
    }

    fn next(&mut self) -> u64 {
        if let Some((head, rest)) = self.bytes.split_first_chunk::<4>() {
            self.bytes = rest;
            return u64::from(u32::from_le_bytes(*head)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        // SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to below 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether something happens that has this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// A whole number from 0 to below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.share() * end as f64) as usize
    }

    /// One of these choices.
    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A number from -1 to below 1.
    pub fn signed(&mut self) -> f64 {
        2.0 * self.share() - 1.0
    }

    /// A positive number, uniform on a logarithmic scale between powers of ten.
    pub fn power(&mut self, low: f64, high: f64) -> f64 {
        10f64.powf(low + (high - low) * self.share())
    }
}
