//! Times `Server::step` under ADA-GD on gradients from a file, for `bench/python_step.py`.
//!
//! ```sh
//! step FILE D AGENTS HELD OUT
//! ```
//! FILE holds `AGENTS` rows of `D` little-endian f32; the first `HELD` agents are about to leave.
//! Every line on standard input is answered with the CPU seconds of one more step; at the end of
//! input the weights go to OUT as f64.

use fedstay::{AdaGd, AgentId, Loss, Report, Reports, Server, Vector};
use std::io::Write;

const STEP_SIZE: f64 = 0.1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, dimension, agents, held, out] = arguments.as_slice() else {
        return Err("usage: step FILE D AGENTS HELD OUT".into());
    };
    let (dimension, agents): (usize, usize) = (dimension.parse()?, agents.parse()?);
    let held: u64 = held.parse()?;
    let bytes = std::fs::read(file)?;
    let (chunks, _) = bytes.as_chunks::<4>();
    let values: Vec<f32> = chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect();
    if values.len() != dimension * agents {
        return Err(format!("{file} holds {} numbers", values.len()).into());
    }
    let report = |(agent, row)| {
        let loss = if agent < held { 0.1 } else { 1e9 };
        Report::new(AgentId(agent), Loss::Exact(loss).leaves_at(0.1), Vector::F32(row))
    };
    let mut server = Server::new(vec![0.0; dimension], AdaGd::default(), STEP_SIZE)?;
    for line in std::io::stdin().lines() {
        line?;
        let rows = (0u64..).zip(values.chunks(dimension)).map(report).collect();
        let start = cpu_seconds()?;
        server.step(&Reports::new(dimension, rows)?)?;
        println!("{}", cpu_seconds()? - start);
        std::io::stdout().flush()?;
    }
    let bytes: Vec<u8> = server.weights().iter().flat_map(|w| w.to_le_bytes()).collect();
    Ok(std::fs::write(out, bytes)?)
}

/// The time this thread has spent on a core, according to Linux.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e9)
}
