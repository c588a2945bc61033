//! Times the projection on gradients from a file, for `bench/projection.py`.
//!
//! ```sh
//! project FILE D AGENTS REPEATS OUT
//! ```
//! FILE holds `AGENTS + 1` rows of `D` little-endian f32: the direction to project, then the
//! gradients to project it away from. The projection goes to OUT as f64, one line of JSON to
//! standard output.

use fedstay::{Vector, projection::project_sum};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, dimension, agents, repeats, out] = arguments.as_slice() else {
        return Err("usage: project FILE D AGENTS REPEATS OUT".into());
    };
    let (dimension, agents): (usize, usize) = (dimension.parse()?, agents.parse()?);
    let bytes = std::fs::read(file)?;
    let (chunks, _) = bytes.as_chunks::<4>();
    let values: Vec<f32> = chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect();
    if values.len() != dimension * (agents + 1) {
        return Err(format!("{file} holds {} numbers", values.len()).into());
    }
    let rows: Vec<Vector<'_>> = values.chunks(dimension).map(Vector::F32).collect();
    let mut projected = vec![0.0; dimension];
    let mut done = project_sum(&rows[..1], &rows[1..], &mut projected);
    let mut seconds: Vec<f64> = Vec::new();
    for _ in 0..repeats.parse()? {
        let start = Instant::now();
        done = project_sum(&rows[..1], &rows[1..], &mut projected);
        seconds.push(start.elapsed().as_secs_f64());
    }
    let bytes: Vec<u8> = projected.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(out, bytes)?;
    println!(
        "{{\"seconds\": {seconds:?}, \"rank\": {}, \"of\": {}, \"orthogonality\": {:e}}}",
        done.rank, done.of, done.orthogonality
    );
    Ok(())
}
