//! `fedstay figure`: the paper's figures, from runs made on the spot.

use super::{Asked, LIST, Named, experiment, is_swept, make, named, quick};
use anyhow::Result;
use fedstay_sim::sweep::Options;
use fedstay_terminal::{Screen, Threads, Usage, compute, pair_of};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  fedstay figure 6
  fedstay figure 7 --out docs/img
  # figures with training need the data
  fedstay data fetch cifar10
  fedstay figure 2
  # seeds 0 to 9; seeds 3, 4 and 5 with another target loss
  fedstay figure 8a --seeds 10
  fedstay figure 8a --seeds 3..6 --set epsilon=0.3
  # a quick look
  fedstay figure 2 --rounds 50 --set data.kind=digits --set data.per_agent=100
  # a small Figure 3 now; the whole one is drawn from a sweep
  fedstay figure 3 --quick
  fedstay sweep experiments/fig3.toml
  fedstay figure 3
  # from what `fedstay sweep export` wrote
  fedstay figure 3 --table fig3.csv
  fedstay list figures

Figures have the paper's numbers. 2, 8a, 8b, 13 and 9 train on CIFAR-10. On two free cores they take about 2, 1, \
4, 4 and 3 minutes, and 8b as long again to search for a step size; with --full two to three times as long, 9 \
six times. Figures 3, 10, 11 and 12 draw what `fedstay sweep` has computed, or with --quick what they compute themselves in a \
minute or two. The others are instant.";

/// Draw a figure of the paper.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Figure {
    /// Which figure: see `fedstay list figures`
    name: String,
    /// The folder for NAME.svg, NAME.png and NAME.json
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
    /// The seeds: how many, a range `0..3`, or a list `0,4,7`; three by default (9: one)
    #[arg(long, value_parser = seeds)]
    seeds: Option<Seeds>,
    /// The number of rounds, if not the experiment's
    #[arg(long)]
    rounds: Option<u32>,
    /// Set a key of the experiment: `--set epsilon=0.1`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Draw from this sweep's store, for figures 3, 9, 10, 11 and 12
    #[arg(long, value_name = "SWEEP.toml")]
    from: Option<PathBuf>,
    /// The sweep's store, if not sweeps/NAME.db
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
    /// Draw from a table that `fedstay sweep export` wrote, not from the store
    #[arg(long, value_name = "CSV", conflicts_with = "store")]
    table: Option<PathBuf>,
    /// Compute a small version now, in under three minutes: figures 3, 10, 11 and 12, on CIFAR-10 if
    /// it has been fetched, else on the built-in digits
    #[arg(long, conflicts_with_all = ["from", "table", "full"])]
    quick: bool,
    /// Run the controls on every seed, not only on the first; 9: also K = 100
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    threads: Threads,
}

/// A list of seeds, wrapped so that clap takes it as one value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seeds(Vec<u64>);

/// More seeds than anyone would wait for are taken for a typing error.
const MOST_SEEDS: u64 = 1000;

fn seeds(text: &str) -> Result<Seeds, String> {
    let number = |part: &str| {
        part.trim()
            .parse::<u64>()
            .map_err(|_| format!("`{part}` is not a seed; write 3, 0..3 or 0,4,7"))
    };
    let range = |from: u64, to: u64| match to.checked_sub(from) {
        Some(1..=MOST_SEEDS) => Ok(Seeds((from..to).collect())),
        _ => Err(format!("{from}..{to} is not a range of 1 to {MOST_SEEDS} seeds")),
    };
    match text.split_once("..") {
        Some((from, to)) => range(number(from)?, number(to)?),
        None if text.contains(',') => {
            let mut seeds = text.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
            let count = seeds.len();
            seeds.sort_unstable();
            seeds.dedup();
            if seeds.len() < count {
                return Err("a seed is listed twice".into());
            }
            Ok(Seeds(seeds))
        }
        None => range(0, number(text)?),
    }
}

impl Figure {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// With a message for the person at the terminal.
    pub fn run(self, screen: &Screen) -> Result<()> {
        let (name, told) = self.named()?;
        let mut asked = self.asked(name)?;
        asked.quiet = !screen.shows_progress();
        if asked.quick {
            let (plan, usual) = quick(&asked)?;
            let store = asked.store.get_or_insert(usual);
            let threads = self.threads.count()?;
            let options = Options { threads, share: true, full_losses: false };
            compute(&plan, store, &options, screen)?;
        } else {
            self.threads.start()?;
        }
        let Some(drawing) = make(name, &asked) else { return Err(self.unknown().into()) };
        let drawing = drawing?;
        let files = drawing.write(&self.out)?;
        told.iter().try_for_each(|note| screen.say(note))?;
        drawing.notes.iter().try_for_each(|note| screen.say(note))?;
        files.iter().try_for_each(|file| screen.written(file))
    }

    /// The figure's name in the list, and what to say about it if it was called by an old one.
    fn named(&self) -> Result<(&'static str, Option<String>), Usage> {
        match named(&self.name) {
            Named::Figure(name, told) => Ok((name, told)),
            Named::NotDrawn(why) => Err(Usage(why)),
            Named::Unknown => Err(self.unknown()),
        }
    }

    fn unknown(&self) -> Usage {
        let names: Vec<&str> = LIST.iter().map(|entry| entry.name).collect();
        Usage(format!("there is no figure `{}`; there are {}", self.name, names.join(", ")))
    }

    fn asked(&self, name: &str) -> Result<Asked, Usage> {
        let mut set = Vec::new();
        for pair in &self.set {
            let (key, value) = pair_of("--set", pair)?;
            if key == "seed" {
                return Err(Usage(format!("--set {pair}: a figure takes --seeds")));
            }
            set.push((key, value));
        }
        if let Some(rounds) = self.rounds {
            set.push(("rounds".to_owned(), rounds.to_string()));
        }
        let asked = Asked {
            seeds: self.seeds.clone().map(|seeds| seeds.0),
            set,
            full: self.full,
            from: self.from.clone(),
            store: self.store.clone(),
            table: self.table.clone(),
            quick: self.quick,
            quiet: false,
        };
        let swept = is_swept(name);
        if !swept && self.quick {
            return Err(Usage(format!(
                "figure {} has no small version; --quick is for 3, 10, 11 and 12",
                name
            )));
        }
        let from = self.from.is_some() || self.store.is_some() || self.table.is_some();
        if !swept && name != "9" && from {
            let why = format!(
                "figure {} is not drawn from a sweep: leave out --from, --store and --table",
                name
            );
            return Err(Usage(why));
        }
        let trains = experiment(name).is_some() || swept;
        if !trains && asked != Asked::default() {
            return Err(Usage(format!(
                "figure {} trains nothing: --seeds, --rounds, --set and --full do not apply",
                name
            )));
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_a_range_or_a_list() {
        assert_eq!(seeds("3"), Ok(Seeds(vec![0, 1, 2])));
        assert_eq!(seeds("2..4"), Ok(Seeds(vec![2, 3])));
        assert_eq!(seeds("7, 1,4"), Ok(Seeds(vec![1, 4, 7])));
        for wrong in ["", "0", "4..4", "5..2", "1,1", "one", "1,,2", "-1", "0..99999999999"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }
}
