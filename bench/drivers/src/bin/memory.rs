//! The most memory it takes to hold all of CIFAR-10, dealt to ten agents, for `bench/memory.py`:
//! one line of JSON in megabytes.

use fedstay_bench::{Outcome, figure_two, peak_megabytes};
use fedstay_sim::simulator::Simulator;

fn main() -> Outcome<()> {
    let simulator = Simulator::new(&figure_two(&[])?)?;
    let images = simulator.population().data().len();
    println!("{{\"images\": {images}, \"peak\": {}}}", peak_megabytes()?);
    Ok(())
}
