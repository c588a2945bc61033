//! Measures the memory bandwidth of the machine, for `bench/parameters.py`.
//!
//! ```sh
//! stream BYTES
//! ```
//! Every line on standard input is answered with the bytes per second at which all threads together
//! read a buffer of that size and add it up.

use std::io::Write;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bytes: usize = std::env::args().nth(1).ok_or("usage: stream BYTES")?.parse()?;
    let buffer: Vec<u64> = (0..bytes as u64 / 8).collect();
    let expected = buffer.iter().fold(0u64, |sum, value| sum.wrapping_add(*value));
    let threads = std::thread::available_parallelism()?.get();
    let part = buffer.len().div_ceil(threads).max(1);
    for line in std::io::stdin().lines() {
        line?;
        let start = Instant::now();
        let sum = std::thread::scope(|scope| {
            let parts: Vec<_> = buffer.chunks(part).map(|part| scope.spawn(|| sum(part))).collect();
            parts.into_iter().filter_map(|part| part.join().ok()).fold(0, u64::wrapping_add)
        });
        let seconds = start.elapsed().as_secs_f64();
        if sum != expected {
            return Err("a wrong sum".into());
        }
        println!("{}", bytes as f64 / seconds);
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// Eight sums side by side: plain enough to be limited by memory alone.
fn sum(part: &[u64]) -> u64 {
    let (chunks, rest) = part.as_chunks::<8>();
    let mut sums = [0u64; 8];
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*value);
        }
    }
    sums.iter().chain(rest).fold(0, |sum, value| sum.wrapping_add(*value))
}
