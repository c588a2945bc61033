//! What a progress display says beside the number of the round.

use fedstay::record::{Header, RoundLine, called_briefly};

/// What is known of a run so far: the last measured loss and how many agents have left.
#[derive(Debug, Default)]
pub struct RunProgress {
    left: usize,
    /// The mean loss over all agents when it was last measured, and in which round. There are
    /// reports in every round, but many of them are lower bounds, and a mean of those is not a
    /// loss.
    measured: Option<(u32, f64)>,
}

impl RunProgress {
    /// Takes note of a round.
    pub fn add(&mut self, line: &RoundLine) {
        self.left += line.left.len();
        self.left = self.left.saturating_sub(line.returned.len());
        let losses = line.assessment.as_ref().and_then(|measured| measured.spread());
        if let Some(spread) = losses {
            self.measured = Some((line.round, spread.loss.mean));
        }
    }

    /// The last measured loss, who is about to leave after a round, and how many have left.
    pub fn message(&self, header: &Header, line: &RoundLine) -> String {
        let measured = self.measured.map_or(String::new(), |(round, loss)| {
            format!("measured loss {loss:.3} at round {round} · ")
        });
        let shown = line.d.iter().take(6).map(|id| called_briefly(*id, header.name(*id)));
        let shown: Vec<String> = shown.collect();
        let more = if line.d.len() > 6 { ", …" } else { "" };
        let near = match line.d.is_empty() {
            true => "nobody about to leave".to_owned(),
            false => format!("about to leave: {}{more}", shown.join(", ")),
        };
        format!("{measured}{near} · left: {}", self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::record::Spread;
    use fedstay_sim::experiment::Experiment;
    use fedstay_sim::run::Trial;

    #[test]
    fn the_last_measured_loss_is_shown_and_no_mean_of_lower_bounds() {
        let text = "rounds = 12\nstep_size = 0.01\nepsilon = 0.2\neval_every = 5\n\
                    [rule]\nkind = \"fedavg\"\n[data]\nper_agent = 40\n";
        let mut trial = Trial::new(Experiment::parse(text, &[]).unwrap()).unwrap();
        let mut lines: Vec<RoundLine> = Vec::new();
        trial.run(&mut [&mut lines]).unwrap();
        let bounded = &lines[7];
        assert_eq!(bounded.at_least.len(), bounded.agents.len(), "the test needs bounds");
        let measured = lines[4].assessment.as_ref().unwrap();
        let mean = Spread::of(measured.score.loss.iter().copied()).unwrap().mean;
        let wanted =
            format!("measured loss {mean:.3} at round 5 · nobody about to leave · left: 0");
        let mut seen = RunProgress::default();
        for line in &lines {
            seen.add(line);
            if (5..10).contains(&line.round) {
                assert_eq!(seen.message(trial.header(), line), wanted);
            }
        }
    }
}
