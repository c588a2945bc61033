//! What threads gain on this machine: arithmetic that stays in registers, for `bench/threads.py`.
//!
//! ```sh
//! spin THREADS
//! ```
//! Every thread runs the same loop of fused multiply-adds for half a second; prints one line of
//! JSON with the loops per second of all of them. Where cores are only hardware threads of one
//! core, two do hardly more than one, and no program can change that.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Twelve registers of sixteen: enough independent chains to keep both multiply-add units busy, so
/// that two threads that share a core are seen to share it. Eight would leave it half idle.
const LANES: usize = 192;

/// Performs a million multiply-adds on as many numbers as the registers hold.
fn block() -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the instructions are available.
        return unsafe { wide() };
    }
    plain()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn wide() -> f32 {
    plain()
}

#[inline(always)]
fn plain() -> f32 {
    let mut values = [1.0f32; LANES];
    let (factor, term) = (black_box(0.999), black_box(1e-3));
    for _ in 0..1_000_000 / LANES {
        values.iter_mut().for_each(|value| *value = value.mul_add(factor, term));
    }
    values.iter().sum()
}

fn spin() -> u64 {
    let end = Instant::now() + Duration::from_millis(500);
    let mut loops = 0;
    while Instant::now() < end {
        black_box(block());
        loops += 1;
    }
    loops
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1);
    let loops: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(spin)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that counts")).sum()
    });
    println!("{{\"loops_per_second\": {}}}", loops * 2);
}
