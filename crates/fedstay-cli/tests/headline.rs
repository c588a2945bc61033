//! The README's first table is what `experiments/headline.toml` gives, and is still true of this program.

use fedstay::record::Summary;
use fedstay_sim::experiment::{Experiment, read_table, under};
use fedstay_sim::run::Trial;
use fedstay_sim::sweep::stats::{Difference, Mean};
use std::collections::BTreeMap;
use std::path::Path;

fn read(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(file)).unwrap()
}

/// One run of the sweep.
#[derive(Debug, Clone, PartialEq)]
struct Run {
    seed: u64,
    left: f64,
    worst: f64,
    mean: f64,
    content: f64,
    unseen: f64,
    better: f64,
    rounds: f64,
}

/// The runs of every label, by step size.
fn runs() -> BTreeMap<String, Vec<(f64, Vec<Run>)>> {
    let text = read("docs/data/headline.csv");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut all: BTreeMap<String, Vec<(f64, Vec<Run>)>> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |name: &str| cells[header.iter().position(|column| *column == name).unwrap()];
        let number = |name: &str| cell(name).parse::<f64>().unwrap_or(f64::NAN);
        let run = Run {
            seed: cell("seed").parse().unwrap(),
            left: number("left"),
            worst: number("accuracy.min"),
            mean: number("accuracy.mean"),
            content: number("content"),
            unseen: number("population.accuracy"),
            better: number("better_than_alone"),
            rounds: number("rounds"),
        };
        let steps = all.entry(cell("label").to_owned()).or_default();
        let size = number("step_size");
        match steps.iter_mut().find(|(step, _)| *step == size) {
            Some((_, runs)) => runs.push(run),
            None => steps.push((size, vec![run])),
        }
    }
    all
}

fn mean(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

/// The mean and half of its 95% interval (Student's t), with one digit after the point.
fn interval(mean: &Mean) -> String {
    format!("{:.1} ± {:.1}", mean.mean, mean.half_width)
}

/// The runs with the step size of the default experiment, with which the picture is drawn.
fn usual(steps: &[(f64, Vec<Run>)]) -> &[Run] {
    &steps.iter().find(|(step, _)| *step == 0.2).unwrap().1
}

/// The step sizes whose worst agent is best on average, in order, and how good it is. One at which some
/// run diverged is not among them.
fn best(steps: &[(f64, Vec<Run>)]) -> String {
    let worst =
        |runs: &[Run]| Mean::of(&runs.iter().map(|run| 100.0 * run.worst).collect::<Vec<_>>());
    let worst = |runs: &[Run]| worst(runs).filter(|mean| mean.mean.is_finite());
    let mut all: Vec<(f64, Mean)> =
        steps.iter().filter_map(|(step, runs)| Some((*step, worst(runs)?))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let highest = all.iter().map(|(_, mean)| mean.mean).fold(0.0, f64::max);
    all.retain(|(_, mean)| mean.mean > highest - 1e-9);
    let sizes: Vec<String> = all.iter().map(|(step, _)| step.to_string()).collect();
    let any = if sizes.len() > 1 { "any of " } else { "" };
    format!("{} ({any}{})", interval(&all[0].1), sizes.join(", "))
}

#[test]
fn the_readmes_table_is_what_its_sweep_gives() {
    let all = runs();
    let readme = read("README.md");
    assert_eq!(all.len(), 10);
    for (label, steps) in &all {
        assert_eq!(steps.len(), 5, "{label}");
        assert!(steps.iter().all(|(_, runs)| runs.len() == 10), "{label}");
        let runs = usual(steps);
        let of = |of: fn(&Run) -> f64| {
            interval(&Mean::of(&runs.iter().map(of).collect::<Vec<_>>()).unwrap())
        };
        let row = format!(
            "| {:.1} | {:.1} | {} | {} | {} | {:.0} | {} |",
            mean(runs, |run| run.left),
            mean(runs, |run| run.content),
            of(|run| 100.0 * run.worst),
            of(|run| 100.0 * run.unseen),
            of(|run| run.better),
            mean(runs, |run| run.rounds),
            best(steps),
        );
        let line = readme
            .lines()
            .find(|line| line.contains(&format!("`{label}`")) && line.starts_with('|'));
        let line = line.unwrap_or_else(|| panic!("the README has no row for {label}: {row}"));
        assert!(line.ends_with(&row), "{label}: the README says {line}, the runs {row}");
    }
}

/// What a reader would conclude from the column for unseen data, seed by seed.
#[test]
fn the_readme_has_the_paired_differences_on_unseen_data() {
    let all = runs();
    // A paragraph is broken into lines somewhere.
    let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    for (one, other) in [
        ("retain", "ada-gd+halve"),
        ("retain", "fedavg+guard"),
        ("fedavg+preview", "retain"),
        ("fedavg+never", "retain"),
    ] {
        let (mine, theirs) = (usual(&all[one]), usual(&all[other]));
        let pair = |run: &Run| {
            let other = theirs.iter().find(|other| other.seed == run.seed).unwrap();
            (100.0 * other.unseen, 100.0 * run.unseen)
        };
        let pairs: Vec<(f64, f64)> = mine.iter().map(pair).collect();
        let difference = Difference::of(&pairs).unwrap().mean;
        let told =
            format!("`{one}` − `{other}` {:+.1} ± {:.1}", difference.mean, difference.half_width);
        assert!(readme.contains(&told), "the README lacks {told}");
    }
}

/// The sentences above the table have its numbers, and the picture's caption those of the seed that is drawn.
#[test]
fn the_readmes_sentences_and_the_pictures_caption_have_the_tables_numbers() {
    let all = runs();
    let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let of = |label: &str, of: fn(&Run) -> f64| mean(usual(&all[label]), of);
    let worst = |label: &str| format!("{:.1}%", 100.0 * of(label, |run| run.worst));
    let unseen = |label: &str| format!("{:.1}%", 100.0 * of(label, |run| run.unseen));
    let (averaging, never, retain) = ("fedavg", "fedavg+never", "retain");
    for told in [
        format!(
            "{} for the worst agent and {} on unseen images, where nobody leaving gives {} and {}",
            worst(averaging),
            unseen(averaging),
            worst(never),
            unseen(never)
        ),
        format!(
            "in one last step, after {:.0} rounds: {} for the worst agent and {} on unseen images",
            of(retain, |run| run.rounds),
            worst(retain),
            unseen(retain)
        ),
    ] {
        assert!(readme.contains(&told), "the README lacks: {told}");
    }
    let drawn = |label: &str| usual(&all[label]).iter().find(|run| run.seed == 0).unwrap();
    let percent = |label: &str| format!("{}%", (1000.0 * drawn(label).worst).round() / 10.0);
    let kept = ["ada-gd+halve", retain, "fedavg+preview"];
    for label in kept {
        assert_eq!((drawn(label).left, percent(label)), (0.0, percent(retain)), "{label}");
    }
    assert_eq!(drawn(averaging).left, 10.0);
    let caption = format!(
        "under averaging all leave and the worst agent ends at {} accuracy; under ADA-GD with halving, retain and \
         preview nobody leaves and it ends at {}, under retain after {} rounds",
        percent(averaging),
        percent(retain),
        drawn(retain).rounds
    );
    assert!(readme.contains(&caption), "the README lacks: {caption}");
}

fn run(label: &str, seed: u64) -> Summary {
    let table = read_table(&read("experiments/default.toml")).unwrap();
    let text = toml::to_string(&under(table, label).unwrap()).unwrap();
    let set = [("seed", seed.to_string()), ("compare_alone", "true".to_owned())];
    let set: Vec<_> = set.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let mut trial = Trial::new(Experiment::parse(&text, &set).unwrap()).unwrap();
    trial.run(&mut []).unwrap().unwrap()
}

#[test]
fn the_runs_behind_the_readmes_claim_come_out_the_same_today() {
    let all = runs();
    for label in ["fedavg+preview", "retain", "fedavg"] {
        let stored = &usual(&all[label])[0];
        let summary = run(label, stored.seed);
        let accuracy = *summary.score.get("accuracy").unwrap();
        assert_eq!(summary.left.len() as f64, stored.left, "{label}");
        let better = f64::from(summary.better_than_alone.unwrap());
        assert!((better - stored.better).abs() <= 1.0, "{label}: {better}, {stored:?}");
        // Other families of processors round single precision in another way.
        assert!((accuracy.min - stored.worst).abs() < 0.03, "{label}: {accuracy:?}, {stored:?}");
        assert!((accuracy.mean - stored.mean).abs() < 0.01, "{label}: {accuracy:?}, {stored:?}");
    }
}
