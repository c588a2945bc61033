//! `fedstay data`: fetch data sets, read tables, and look at how they are dealt out.

mod read;

use super::rows_line;
use anyhow::Result;
use fedstay::AgentId;
use fedstay::record::called_briefly;
use fedstay_draw::words::count;
use fedstay_sim::data::cache_dir;
use fedstay_sim::data::fetch::{Fetchable, fetch};
use fedstay_sim::experiment::SpecError;
use fedstay_sim::partition::Histogram;
use fedstay_sim::run::Trial;
use fedstay_terminal::{Column, Screen, Source, Table, Usage, hide};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

const FETCH_EXAMPLES: &str = "\
Examples:
  fedstay data fetch cifar10
  fedstay data fetch mnist --into /data/fedstay

The cache is $FEDSTAY_DATA, else $XDG_CACHE_HOME/fedstay, else ~/.cache/fedstay. Files that are already \
complete are not fetched again.";

const SHOW_EXAMPLES: &str = "\
Examples:
  fedstay data show
  # ten agents that share half of their data
  fedstay data show --set partition.q=0.5
  # unequal shares
  fedstay data show --set partition.kind=dirichlet --set partition.alpha=0.3
  # a table of your own
  fedstay data show --set data.kind=csv --set data.path=table.csv";

/// Fetch data sets, read tables, and show how they are dealt to agents.
#[derive(Debug, clap::Subcommand)]
pub enum Data {
    /// Fetch a data set into the cache, check it, and say where it is
    #[command(after_help = FETCH_EXAMPLES)]
    Fetch {
        /// cifar10, mnist or fashion-mnist
        kind: String,
        /// Another cache folder
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
    /// Read a table: columns, owners, what will become of them, and what is wrong
    #[command(after_help = read::EXAMPLES)]
    Read(read::Read),
    /// Show how many samples of each class every agent holds
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        #[command(flatten)]
        source: ShowSource,
    },
}

/// More classes than this are shown as a list of the largest.
const MOST_CLASSES: usize = 12;
/// How many classes such a list has.
const LARGEST: usize = 5;
/// A class's name is cut to this above its column.
const SHORT: usize = 6;

/// Which experiment to show.
#[derive(Debug, clap::Args)]
pub struct ShowSource {
    #[command(flatten)]
    source: Source,
    /// Show at most this many agents
    #[arg(long, default_value_t = 20)]
    most: usize,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Data {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        match self {
            Self::Fetch { kind, into } => fetch_kind(&kind, into, screen),
            Self::Read(read) => read.run(screen),
            Self::Show { source } => show(&source, screen),
        }
    }
}

fn fetch_kind(kind: &str, into: Option<PathBuf>, screen: &Screen) -> Result<()> {
    let Some(what) = Fetchable::from_kind(kind) else {
        let kinds: Vec<&str> = Fetchable::ALL.iter().map(|what| what.kind()).collect();
        return Err(Usage(format!(
            "`{kind}` cannot be fetched; choose one of {}",
            kinds.join(", ")
        ))
        .into());
    };
    let cache = match into {
        Some(folder) => folder,
        None => cache_dir()?,
    };
    let bar = ProgressBar::new_spinner();
    hide(&bar, screen.shows_progress());
    bar.enable_steady_tick(Duration::from_millis(120));
    let known =
        ProgressStyle::with_template("{bar:16} {bytes}/{total_bytes}, {eta} left  {wide_msg}")?;
    let unknown = ProgressStyle::with_template("{spinner} {elapsed}  {wide_msg}")?;
    let fetched = fetch(what, &cache, &mut |progress| {
        match progress.total {
            Some(total) => {
                bar.set_style(known.clone());
                bar.set_length(total);
                bar.set_position(progress.done);
            }
            None => bar.set_style(unknown.clone()),
        }
        bar.set_message(progress.doing);
    });
    bar.finish_and_clear();
    let fetched = fetched?;
    match fetched.new.len() {
        0 => screen.mention(&format!("{kind} is already there and complete"))?,
        files => {
            let files = count(files, "file");
            screen.mention(&format!("{kind}: {files} from {}, checksums match", fetched.from))?;
        }
    }
    screen.written(&fetched.folder)
}

fn show(source: &ShowSource, screen: &Screen) -> Result<()> {
    let experiment = source.source.experiment()?;
    let trial = Trial::new(experiment)?;
    let (experiment, header) = (trial.experiment(), trial.header());
    let simulator = trial.simulator().ok_or(SpecError::NoTraining)?;
    let population = simulator.population();
    let histogram = population.histogram();
    let called = |agent| called_briefly(AgentId(agent as u64), population.name(agent));
    let who: Vec<String> = (0..population.agents()).map(called).collect();
    if source.json {
        let mut told = match &histogram {
            Some(Histogram { classes, counts }) => json!({ "classes": classes, "rows": counts }),
            None => json!({ "rows": population.sizes() }),
        };
        told["agents"] = json!(who);
        told["all"] = json!(header.rows);
        return screen.print(&format!("{}\n", serde_json::to_string_pretty(&told)?));
    }
    if let Some(line) = rows_line(header) {
        screen.say(&line)?;
    }
    if let Some(training) = experiment.training() {
        let sizes = population.sizes();
        let least = sizes.iter().copied().min().unwrap_or(0);
        let most = sizes.iter().copied().max().unwrap_or(0);
        let rows = match least == most {
            true => format!("{} each", count(most, "sample")),
            false => format!("{least} to {}", count(most, "sample")),
        };
        let agents = count(population.agents(), "agent");
        screen.say(&format!("{}: {agents} with {rows}", experiment.on()))?;
        screen.say(&format!("{}\n", training.describe_data()))?;
    }
    let shown = &who[..who.len().min(source.most)];
    let table = match &histogram {
        None => numbers(&population.sizes(), shown),
        Some(histogram) => {
            let in_columns = columns(histogram, shown);
            let fits = histogram.classes.len() <= MOST_CLASSES && screen.fits(&in_columns);
            if fits { in_columns } else { lists(histogram, shown) }
        }
    };
    screen.print(&screen.table(&table))?;
    let more = who.len() - shown.len();
    if more > 0 {
        screen.say(&format!("… and {} more (--most)", count(more, "agent")))?;
    }
    trial.warnings().iter().try_for_each(|told| screen.say(&format!("\nWARNING  {told}")))
}

/// Each of these agents, the first ones, with its number of rows, where the target is a number.
fn numbers(sizes: &[usize], who: &[String]) -> Table {
    let mut table = Table::new([Column::kept("agent"), Column::kept("rows")]);
    for (name, rows) in who.iter().zip(sizes) {
        table.row([name.clone(), rows.to_string()]);
    }
    table
}

/// Each of these agents, the first ones, with a bar for every class.
fn columns(histogram: &Histogram, who: &[String]) -> Table {
    let Histogram { classes, counts } = histogram;
    let peak = counts.iter().flatten().copied().max().unwrap_or(0);
    let short = |class: &String| Column::kept(class.chars().take(SHORT).collect::<String>());
    let columns = [Column::kept("agent"), Column::kept("rows")];
    let mut table = Table::new(columns.into_iter().chain(classes.iter().map(short)));
    for (name, counts) in who.iter().zip(counts) {
        let cell = |rows: &usize| match rows {
            0 => "·".to_owned(),
            rows => format!("{}{rows}", bar(*rows, peak)),
        };
        let row = [name.clone(), counts.iter().sum::<usize>().to_string()];
        table.row(row.into_iter().chain(counts.iter().map(cell)));
    }
    table
}

/// Each of these agents, the first ones, with a list of its largest classes.
fn lists(histogram: &Histogram, who: &[String]) -> Table {
    let columns = [Column::kept("agent"), Column::kept("rows"), Column::kept("largest classes")];
    let mut table = Table::new(columns);
    for (name, counts) in who.iter().zip(&histogram.counts) {
        let rows = counts.iter().sum::<usize>();
        table.row([name.clone(), rows.to_string(), largest(&histogram.classes, counts)]);
    }
    table
}

/// A block as high as `count` is of `peak`; anything above 0 shows.
fn bar(count: usize, peak: usize) -> char {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    BARS[(count * 8).div_ceil(peak.max(1)).min(8)]
}

/// An agent's largest classes, with their numbers of rows.
fn largest(classes: &[String], counts: &[usize]) -> String {
    let mut largest: Vec<usize> = (0..counts.len()).filter(|&class| counts[class] > 0).collect();
    largest.sort_by_key(|&class| (std::cmp::Reverse(counts[class]), class));
    let named =
        largest.iter().take(LARGEST).map(|&class| format!("{} {}", classes[class], counts[class]));
    let mut named: Vec<String> = named.collect();
    if largest.len() > LARGEST {
        named.push(format!("and {} more", largest.len() - LARGEST));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_classes_stand_in_columns_and_many_are_listed_by_size() {
        let classes = ["bird".to_owned(), "automobile".to_owned()];
        let histogram =
            Histogram::new(&classes, &[0, 1, 1, 1, 0, 0], [vec![0, 4], vec![1, 2, 3, 5]]);
        let expected = "agent  rows  bird  automo\n-----  ----  ----  ------\n\
                        0         2    ▆2       ·\n1         4    ▃1      █3\n";
        assert_eq!(
            Screen::plain(None).table(&columns(&histogram, &["0", "1"].map(String::from))),
            expected
        );
        let classes: Vec<String> = (0..20).map(|class| format!("c{class}")).collect();
        let labels: Vec<u16> = (0..20).chain([7; 20]).collect();
        let many = Histogram::new(&classes, &labels, [Vec::from_iter(0..40)]);
        let text = Screen::plain(None).table(&lists(&many, &["0".to_owned()]));
        assert!(text.contains("c7 21, c0 1, c1 1, c2 1, c3 1, and 15 more"), "{text}");
    }
}
