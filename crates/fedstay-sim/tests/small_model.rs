//! A model that is too small to satisfy everybody: `retain` ends no worse than it began for those who stay. Before it knew
//! a way back, four to seven of ten left on these seeds, and mean losses ended at 190 to 840.

use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Trial;

/// Digits, one class a device, and a net with one hidden unit.
const SMALL: &str = "rounds = 150\nstep_size = 0.2\nagents = 10\nepsilon = 0.1\n[rule]\n\
    kind = \"retain\"\ndelta = 0.02\n[data]\nkind = \"digits\"\n[partition]\nkind = \"by-class\"\n\
    q = 1.0\n[model]\nkind = \"mlp\"\nhidden = [1]\n";

#[test]
fn a_model_too_small_for_everybody_ends_no_worse_than_it_began() {
    for seed in 0..3 {
        let set = [("seed".to_owned(), seed.to_string())];
        let mut trial = Trial::new(Experiment::parse(SMALL, &set).unwrap()).unwrap();
        let mut lines = Vec::new();
        let summary = trial.run(&mut [&mut lines]).unwrap().unwrap();
        let worst = |losses: Vec<f64>| losses.into_iter().fold(0.0, f64::max);
        let first = worst(lines[0].loss.iter().flatten().copied().collect());
        let stayed = summary.agents.iter().filter(|agent| agent.entry.left.is_none());
        let last = worst(stayed.map(|agent| agent.score.loss).collect());
        let (left, back) = (summary.left.len(), lines.iter().filter(|l| l.reverted).count());
        println!("seed {seed}: worst {first:.3} to {last:.3}, {left} left, went back {back} times");
        assert!(last <= first, "seed {seed}: {first} to {last}");
        // A step on a net is a prediction: the one that failed may carry somebody off.
        assert!(left <= 1 && back > 0, "seed {seed}: {left} left, went back {back} times");
    }
}
