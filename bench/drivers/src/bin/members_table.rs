//! Prints the table of docs/members.md: what every score of worth says about ten agents, one of which
//! never works, on three seeds.
//!
//! ```text
//! cargo run --release -p fedstay-bench --bin members_table
//! ```

use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Trial;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = include_str!("../../../../experiments/worth.toml");
    println!("seed agent given got loo shapley gtg cgsv fedce reputation unexplained");
    for seed in 0..3 {
        let experiment = Experiment::parse(text, &[("seed".to_owned(), seed.to_string())])?;
        let Some(summary) = Trial::new(experiment)?.run(&mut [])? else { continue };
        for agent in &summary.agents {
            let Some(worth) = agent.worth else { continue };
            let scores = [
                worth.given,
                worth.got,
                worth.loo,
                worth.shapley,
                worth.gtg,
                worth.cgsv,
                worth.fedce,
                worth.reputation,
                worth.unexplained,
            ];
            let known = |score: Option<f64>| score.map_or("-".to_owned(), |s| format!("{s:.4}"));
            let scores: Vec<String> = scores.into_iter().map(known).collect();
            println!("{seed} {} {}", agent.id, scores.join(" "));
        }
    }
    Ok(())
}
