//! What a progress display says beside the number of the round.

use fedstay::record::Spread;
use fedstay::{AgentId, RoundView};

/// What a run has shown so far: the last measured loss and how many have left.
#[derive(Debug, Default)]
pub struct RunProgress {
    left: usize,
    /// The mean loss over all agents when it was last measured, and in which round. Reports would be
    /// there every round, but many of them are lower bounds, and a mean of those is not a loss.
    measured: Option<(u32, f64)>,
}

impl RunProgress {
    /// Takes a round in.
    pub fn add(&mut self, view: &RoundView<'_>) {
        self.left += view.reports.goodbyes().len();
        self.left = self.left.saturating_sub(view.reports.returned().len());
        let losses = view.assessment.map(|all| all.agents.iter().map(|agent| agent.loss));
        if let Some(spread) = losses.and_then(Spread::of) {
            self.measured = Some((view.number, spread.mean));
        }
    }

    /// The last measured loss, who is near leaving, and how many have left.
    pub fn message(&self, near: &[AgentId]) -> String {
        let measured = self.measured.map_or(String::new(), |(round, loss)| {
            format!("measured loss {loss:.3} at round {round} · ")
        });
        let named: Vec<String> = near.iter().take(6).map(ToString::to_string).collect();
        let more = if near.len() > 6 { ", …" } else { "" };
        let near = match named.is_empty() {
            true => "nobody near leaving".to_owned(),
            false => format!("near leaving: {}{more}", named.join(", ")),
        };
        format!("{measured}{near} · left: {}", self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::Error;
    use fedstay::record::RoundLine;
    use fedstay_sim::spec::Experiment;
    use fedstay_sim::trial::{Trial, Watch};

    #[derive(Default)]
    struct Watching(RunProgress, Vec<(RoundLine, String)>);

    impl Watch for Watching {
        fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
            self.0.add(view);
            self.1.push((RoundLine::new(view), self.0.message(&view.decision.split.d)));
            Ok(())
        }
    }

    #[test]
    fn the_last_measured_loss_is_shown_and_no_mean_of_lower_bounds() {
        let text = "rounds = 12\nstep_size = 0.01\nepsilon = 0.2\neval_every = 5\n\
                    [rule]\nkind = \"fedavg\"\n[data]\nper_agent = 40\n";
        let mut trial = Trial::new(Experiment::parse(text, &[]).unwrap()).unwrap();
        let mut watching = Watching::default();
        trial.run(&mut watching).unwrap();
        let (line, _) = &watching.1[7];
        assert_eq!(line.at_least.len(), line.agents.len(), "the test needs bounds");
        let measured = watching.1[4].0.assessment.as_ref().unwrap();
        let mean = Spread::of(measured.loss.iter().copied()).unwrap().mean;
        let wanted = format!("measured loss {mean:.3} at round 5 · nobody near leaving · left: 0");
        for (_, message) in &watching.1[4..9] {
            assert_eq!(*message, wanted);
        }
    }
}
