//! Local steps for `bench/local_steps.py`: one agent's round, directly and by its rows' products with each
//! other, on one thread.
//!
//! ```sh
//! local_steps SAMPLES HIDDEN BATCH STEPS [BATCH STEPS]…
//! ```
//! HIDDEN is a list such as `[64]`. Prints one line of JSON for every pair: CPU milliseconds of several
//! rounds each way, taking turns, and how far apart the two directions are, as a share of their
//! largest element. The first line says what the products themselves took.

use fedstay::Seed;
use fedstay_bench::{Outcome, cpu_seconds, figure_two};
use fedstay_sim::data::Inputs;
use fedstay_sim::model::{RowProducts, Rows, RowsData, Workspace};
use fedstay_sim::simulator::Simulator;

const ROUNDS: u32 = 9;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [samples, hidden, pairs @ ..] = &arguments[..] else {
        return Err("usage: local_steps SAMPLES HIDDEN BATCH STEPS [BATCH STEPS]…".into());
    };
    let mut first = true;
    for pair in pairs.chunks_exact(2) {
        let experiment = figure_two(&[
            ("data.per_agent", samples),
            ("model.hidden", hidden),
            ("local.batch", &pair[0]),
            ("local.steps", &pair[1]),
        ])?;
        let training = experiment.training().ok_or("no training")?;
        let simulator = Simulator::new(&experiment)?;
        let (population, network) = (simulator.population(), simulator.network());
        let data = population.data();
        let Inputs::Bytes { rows, scale, shift } = &data.inputs else {
            return Err("not bytes".into());
        };
        let range = population.place(0).ok_or("drawn, not dealt out")?;
        let span = range.start * data.features()..range.end * data.features();
        let direct = Rows::new(
            RowsData::Bytes { rows: &rows[span], scale, shift },
            data.targets.rows(range),
        )?;
        let products = RowProducts::default();
        if first {
            let clock = cpu_seconds();
            products.compute(&direct);
            println!("{{\"products\": {:.3}}}", (cpu_seconds() - clock) * 1e3);
            first = false;
        }
        let ways = [direct, direct.with_products(&products)];
        let weights = network.load(&simulator.initial_weights())?;
        let local = &training.local;
        let mut work = Workspace::new();
        let mut drawn = Vec::new();
        let mut times = [Vec::new(), Vec::new()];
        let mut directions = [(); 2].map(|()| vec![0.0f32; weights.flat().len()]);
        for round in 0..=ROUNDS {
            local.draw(direct.len(), Seed(0), round, 0, &mut drawn);
            let (batches, walk) =
                (local.batches(&drawn, direct.len()), local.walk(0.05, direct.len(), false));
            for way in 0..2 {
                let clock = cpu_seconds();
                let direction = &mut directions[way];
                network.local_steps(&weights, &ways[way], &batches, walk, direction, &mut work)?;
                // The first round computes what is kept.
                if round > 0 {
                    times[way].push((cpu_seconds() - clock) * 1e3);
                }
            }
        }
        let [one, other] = &directions;
        let largest = one.iter().fold(0.0f32, |top, value| top.max(value.abs()));
        let apart = one.iter().zip(other).fold(0.0f32, |top, (a, b)| top.max((a - b).abs()));
        println!(
            "{{\"batch\": {}, \"steps\": {}, \"direct\": {:?}, \"products\": {:?}, \"apart\": {:e}, \"used\": {}}}",
            pair[0],
            pair[1],
            times[0],
            times[1],
            apart / largest,
            products.are_computed() && apart > 0.0,
        );
    }
    Ok(())
}
