//! What the agents are, by the configuration: how each behaves, and which classes it holds.

use fedstay::{Behaviour, Seed};
use fedstay_sim::data::Source;
use fedstay_sim::experiment::Experiment;
use fedstay_sim::partition::{Histogram, Partition};
use fedstay_sim::simulator::Simulator;

/// The most classes of an agent that are named.
const MOST_NAMED: usize = 3;
/// A configuration with more agents than this is not dealt out just to look at it.
const MOST_AGENTS: usize = 2000;

/// What is known about the agents before the first round, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct ConfiguredAgents {
    behaviours: Vec<String>,
    classes: Vec<String>,
    /// Whether `fedstay run --resume` can continue the run; else a program in Python has the agents.
    pub(crate) command: bool,
}

impl ConfiguredAgents {
    /// The agents of a configuration; nobody where it is not an experiment of ours.
    pub(crate) fn of(config: Option<&str>) -> Self {
        let Some(experiment) = config.and_then(|text| Experiment::parse(text, &[]).ok()) else {
            return Self::default();
        };
        Self {
            behaviours: behaviours(&experiment).unwrap_or_default(),
            classes: classes(&experiment).unwrap_or_default(),
            command: true,
        }
    }

    /// How the agent at a place behaves.
    pub(crate) fn behaviour(&self, place: usize) -> Option<&str> {
        self.behaviours.get(place).map(String::as_str)
    }

    /// The classes that the agent at a place holds, in words.
    pub(crate) fn classes(&self, place: usize) -> Option<&str> {
        self.classes.get(place).map(String::as_str)
    }
}

/// How every agent behaves. How many agents a problem brings is not known here, so a mixed
/// population is told apart only where agents train.
fn behaviours(experiment: &Experiment) -> Option<Vec<String>> {
    let behaviour = &experiment.behaviour;
    let agents = match (experiment.training(), behaviour) {
        (Some(training), _) if training.agents <= MOST_AGENTS => training.agents,
        (_, Behaviour::Mixed(_)) => return None,
        _ => MOST_AGENTS,
    };
    let assigned = behaviour.assign(agents, Seed(experiment.seed)).ok()?;
    Some(assigned.iter().map(|one| one.name().to_owned()).collect())
}

/// The classes of every agent. No file outside the run's folder is read for it, so only the data
/// that come with the program are dealt out again; of others only that which the file says.
fn classes(experiment: &Experiment) -> Option<Vec<String>> {
    let training = experiment.training()?;
    match (&training.data.source, &training.partition) {
        (Source::Digits(_), _) if training.agents <= MOST_AGENTS => {
            Some(words(&Simulator::deal(experiment).ok()?.histogram()?))
        }
        (_, Partition::ByClass(by_class))
            if by_class.map.is_none() && training.population.is_none() =>
        {
            let agents = training.agents.min(MOST_AGENTS);
            Some((0..agents).map(|agent| format!("class {agent}, q = {}", by_class.q)).collect())
        }
        _ => None,
    }
}

/// Every agent's largest classes with their shares: `3 (90%), 7 (2%), …`.
fn words(histogram: &Histogram) -> Vec<String> {
    let one = |counts: &Vec<usize>| {
        let all: usize = counts.iter().sum();
        let mut held: Vec<usize> = (0..counts.len()).filter(|class| counts[*class] > 0).collect();
        held.sort_by_key(|class| (std::cmp::Reverse(counts[*class]), *class));
        if let [only] = held[..] {
            return format!("only {}", histogram.classes[only]);
        }
        let share = |class: &usize| {
            let share = 100.0 * counts[*class] as f64 / all.max(1) as f64;
            format!("{} ({share:.0}%)", histogram.classes[*class])
        };
        let more = if held.len() > MOST_NAMED { ", …" } else { "" };
        let named: Vec<String> = held.iter().take(MOST_NAMED).map(share).collect();
        format!("{}{more}", named.join(", "))
    };
    histogram.counts.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_dealt_out_again_and_behaviours_assigned() {
        let config = "agents = 2\n[partition]\nkind = \"by-class\"\nq = 1.0\n[data]\nclasses = [3, 5]\n\
            [behaviour]\nkind = \"mixed\"\nof = [{ kind = \"threshold\", agents = [0] }, \
            { kind = \"never\", agents = [1] }]\n";
        let cast = ConfiguredAgents::of(Some(config));
        assert_eq!([cast.behaviour(0), cast.behaviour(1)], [Some("threshold"), Some("never")]);
        assert_eq!([cast.classes(0), cast.classes(1)], [Some("only 3"), Some("only 5")]);
        assert!(cast.command && cast.classes(2).is_none());
        let mixed = ConfiguredAgents::of(Some("[partition]\nkind = \"iid\"\n"));
        let words = mixed.classes(0).unwrap();
        assert!(words.ends_with("%), …") && words.matches('%').count() == MOST_NAMED, "{words}");
    }

    #[test]
    fn files_elsewhere_are_not_read() {
        let cast = ConfiguredAgents::of(Some(
            "[data]\nkind = \"csv\"\npath = \"/etc/passwd\"\nlabel = \"x\"\n",
        ));
        assert_eq!(cast.classes(1).unwrap_or("class 1, q = 0.9"), "class 1, q = 0.9");
        assert!(ConfiguredAgents::of(Some("strategy = \"of Flower\"")).classes(0).is_none());
        assert!(!ConfiguredAgents::of(None).command);
    }
}
