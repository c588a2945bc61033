//! Times the projection on gradients from a file, for `bench/projection.py`.
//!
//! ```sh
//! project FILE D AGENTS REPEATS OUT [ISA]
//! ```
//! FILE holds `AGENTS + 1` rows of `D` little-endian f32: the direction to project, then the
//! gradients to project it away from. ISA is `plain`, `avx2` or `avx512`, the strongest that the machine
//! has unless given. The projection goes to OUT as f64, one line of JSON to
//! standard output.

use fedstay::Vector;
use fedstay::numerics::{Isa, Machine};
use fedstay::projection::project_sum_with;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, dimension, agents, repeats, out, rest @ ..] = arguments.as_slice() else {
        return Err("usage: project FILE D AGENTS REPEATS OUT [ISA]".into());
    };
    let isa = match rest {
        [] => Isa::detect(),
        [name, ..] => Isa::available()
            .into_iter()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| format!("this machine has no {name}"))?,
    };
    let machine = Machine::new(isa);
    let (dimension, agents): (usize, usize) = (dimension.parse()?, agents.parse()?);
    let bytes = std::fs::read(file)?;
    let (chunks, _) = bytes.as_chunks::<4>();
    let values: Vec<f32> = chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect();
    if values.len() != dimension * (agents + 1) {
        return Err(format!("{file} holds {} numbers", values.len()).into());
    }
    let rows: Vec<Vector<'_>> = values.chunks(dimension).map(Vector::F32).collect();
    let mut projected = vec![0.0; dimension];
    let mut done = project_sum_with(&machine, &rows[..1], &rows[1..], &mut projected);
    let mut seconds: Vec<f64> = Vec::new();
    for _ in 0..repeats.parse()? {
        let start = Instant::now();
        done = project_sum_with(&machine, &rows[..1], &rows[1..], &mut projected);
        seconds.push(start.elapsed().as_secs_f64());
    }
    let bytes: Vec<u8> = projected.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(out, bytes)?;
    println!(
        "{{\"seconds\": {seconds:?}, \"rank\": {}, \"of\": {}, \"orthogonality\": {:e}, \"isa\": \"{}\"}}",
        done.rank,
        done.of,
        done.orthogonality,
        isa.name()
    );
    Ok(())
}
