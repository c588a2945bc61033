//! Job J on random bytes: what one round of ten agents costs on one thread, for every kernel.
//!
//! 10 agents × 5,000 samples of 3,072 bytes, a 3072-128-10 softplus net;
//! a = full local losses, b = 5 local steps of batch 64, c = the mean of the directions, and the
//! same decision with the exact early exit. Prints the minimum and the median over the repetitions.
//!
//! `cargo run --release -p fedstay-sim --example job_j -- [repetitions] [kernel]`

use std::time::Instant;

use fedstay_sim::kernel::Isa;
use fedstay_sim::model::{
    Architecture, Batch, Loaded, Mlp, Network, Order, Rows, RowsData, Walk, Workspace,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const AGENTS: usize = 10;
const SAMPLES: usize = 5000;
const FEATURES: usize = 3072;
const CLASSES: usize = 10;
const STEPS: usize = 5;
const BATCH: usize = 64;
const EPSILON: f64 = 0.2;

struct Job {
    bytes: Vec<u8>,
    labels: Vec<u16>,
    scale: Vec<f32>,
    shift: Vec<f32>,
    batches: Vec<Vec<u32>>,
}

impl Job {
    fn new() -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut bytes = vec![0; AGENTS * SAMPLES * FEATURES];
        rng.fill_bytes(&mut bytes);
        let labels =
            (0..AGENTS * SAMPLES).map(|_| (rng.next_u32() % CLASSES as u32) as u16).collect();
        let batch = |_| (0..BATCH).map(|_| rng.next_u32() % SAMPLES as u32).collect();
        let batches = (0..AGENTS * STEPS).map(batch).collect();
        Self {
            bytes,
            labels,
            scale: vec![1.0 / 73.9; FEATURES],
            shift: vec![-127.5 / 73.9; FEATURES],
            batches,
        }
    }

    fn agent(&self, agent: usize) -> Rows<'_> {
        let len = SAMPLES * FEATURES;
        let rows = &self.bytes[agent * len..][..len];
        let data = RowsData::Bytes { rows, scale: &self.scale, shift: &self.shift };
        Rows::new(data, &self.labels[agent * SAMPLES..][..SAMPLES]).expect("well formed")
    }
}

/// The four times of one round in milliseconds, and numbers that must agree between kernels.
fn round(
    job: &Job,
    network: &Network,
    start: &[f64],
    directions: &mut [Vec<f32>],
    orders: &mut [Order],
    work: &mut Workspace,
) -> ([f64; 5], f64) {
    let mut times = [0.0; 5];
    let mut clock = Instant::now();
    let mut lap = |time: &mut f64| {
        *time = std::mem::replace(&mut clock, Instant::now()).elapsed().as_secs_f64() * 1e3
    };
    let weights: Loaded = network.load(start).expect("finite");
    let mut check = 0.0;
    for agent in 0..AGENTS {
        let order = None;
        check += network.evaluate(&weights, &job.agent(agent), order, work).expect("valid").loss;
    }
    lap(&mut times[0]);
    for (agent, direction) in directions.iter_mut().enumerate() {
        let batches = job.batches[agent * STEPS..][..STEPS].iter().map(|rows| Batch::Rows(rows));
        let batches: Vec<Batch<'_>> = batches.collect();
        let walk = Walk::Descend { eta: 0.1, mu: 0.0 };
        network
            .local_steps(&weights, &job.agent(agent), &batches, walk, direction, work)
            .expect("valid");
    }
    lap(&mut times[1]);
    let mut mean = vec![0.0f64; start.len()];
    for direction in directions.iter() {
        for (mean, d) in mean.iter_mut().zip(direction) {
            *mean += f64::from(*d) / AGENTS as f64;
        }
    }
    lap(&mut times[2]);
    check += mean.iter().map(|d| d * d).sum::<f64>().sqrt();
    for (agent, order) in orders.iter_mut().enumerate() {
        let decision =
            network.decide(&weights, &job.agent(agent), EPSILON, order, work).expect("valid");
        assert!(!decision.is_at_most());
    }
    lap(&mut times[3]);
    times[4] = times[0] + times[1] + times[2];
    (times, check)
}

fn main() {
    let repetitions = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(5);
    let job = Job::new();
    let model = Mlp { hidden: vec![128], ..Mlp::default() };
    let network = model.network(FEATURES, CLASSES).expect("a network");
    let start = network.initial_weights(&mut ChaCha8Rng::seed_from_u64(1));
    println!(
        "kernel     a: losses         b: steps          c: mean           decide            a+b+c   (min / median ms)"
    );
    let only = std::env::args().nth(2);
    let wanted =
        |isa: &Isa| only.as_ref().is_none_or(|only| format!("{isa:?}").eq_ignore_ascii_case(only));
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()).filter(wanted) {
        let mut work = Workspace::with_isa(isa);
        let mut orders = vec![Order::default(); AGENTS];
        let mut directions = vec![vec![0.0f32; start.len()]; AGENTS];
        let mut run = || round(&job, &network, &start, &mut directions, &mut orders, &mut work);
        let (_, check) = run();
        let all: Vec<[f64; 5]> = (0..repetitions).map(|_| run().0).collect();
        let mut line = format!("{:9}", format!("{isa:?}"));
        for part in 0..5 {
            let mut times: Vec<f64> = all.iter().map(|times| times[part]).collect();
            times.sort_by(f64::total_cmp);
            line += &format!("{:7.1} / {:6.1}  ", times[0], times[times.len() / 2]);
        }
        println!("{line} check {check:.9}");
    }
}
