//! Figures: one file per figure. [`LIST`] is the list.
//!
//! Some are drawn from problems with exact oracles and take no time; those with training curves
//! read `experiments/*.toml`, which the program carries inside, and train on real data.
//!
//! Every figure is drawn from runs that are made when it is asked for: paths, departures, losses
//! and the numbers in captions and notes come from them, and none is written down here.

mod appendix;
mod bad_problem;
mod command;
mod drawing;
mod figure1;
mod figure2;
mod figure3;
mod figure6;
mod figure8a;
mod figure8b;
pub(crate) mod landscape;
mod measured;
mod names;
mod observation1;
mod page;
mod search;
mod setting;
mod swept;
mod table;
mod trace;
mod training;
mod tuning;
mod words;

pub use command::Figure;
pub use drawing::Drawing;
pub use names::{Named, named};
pub use training::Asked;

use fedstay::list::Entry;
use fedstay_sim::sweep::Plan;
use std::path::PathBuf;

/// Every figure, under the name it has on the command line: the number it has in the paper, where it has one.
/// What figures were called before, and the paper's figures that are not drawn, are in `names.rs`.
pub const LIST: &[Entry] = &[
    Entry {
        name: "1",
        about: "red and blue need each other's data: the separators with and without a departure",
        reference: "arXiv 2311.16459, Figure 1",
    },
    Entry {
        name: "2",
        about: "averaging on CIFAR-10, ten agents: what departures cost",
        reference: "arXiv 2311.16459, Figure 2",
    },
    Entry {
        name: "3",
        about: "averaging over ε: average, population and worst accuracy, from a sweep",
        reference: "arXiv 2311.16459, Figure 3",
    },
    Entry {
        name: "6",
        about: "contours, bad regions and paths of Observations 2 and 3",
        reference: "arXiv 2311.16459, Figure 6",
    },
    Entry {
        name: "7",
        about: "parallel gradients: small steps lose agent 1 for good, or stall",
        reference: "arXiv 2311.16459, Figure 7: an example of a bad problem, for Observation 4",
    },
    Entry {
        name: "8a",
        about: "averaging and ADA-GD on two agents at the same step size",
        reference: "arXiv 2311.16459, Figure 8a",
    },
    Entry {
        name: "8b",
        about: "averaging at the largest step size that loses nobody, found by bisection, and ADA-GD",
        reference: "arXiv 2311.16459, Figure 8b",
    },
    Entry {
        name: "9",
        about: "the best step size for each heterogeneity and number of local steps",
        reference: "arXiv 2311.16459, Figure 9, appendix: fine-tuning the step size",
    },
    Entry {
        name: "10",
        about: "average accuracy over ε for every q and K, from a sweep",
        reference: "arXiv 2311.16459, Figure 10, appendix: the full version of Figure 3a",
    },
    Entry {
        name: "11",
        about: "population accuracy over ε for every q and K, from a sweep",
        reference: "arXiv 2311.16459, Figure 11, appendix: the full version of Figure 3b",
    },
    Entry {
        name: "12",
        about: "worst, mean and best agent over ε for every q, from a sweep",
        reference: "arXiv 2311.16459, Figure 12, appendix: the full version of Figure 3c",
    },
    Entry {
        name: "13",
        about: "averaging and ADA-GD on ten agents, at the same and at safe step sizes",
        reference: "arXiv 2311.16459, Figure 13, appendix: additional findings on the performance",
    },
    Entry {
        name: "observation-1",
        about: "whatever satisfies agent 1 satisfies agent 2: every departure is benign",
        reference: "arXiv 2311.16459, Observation 1",
    },
];

/// The figures with training curves: their names and experiments.
const TRAINED: &[(&str, &str)] = &[
    ("2", figure2::TEXT),
    ("8a", figure8a::TEXT),
    ("8b", figure8b::TEXT),
    ("9", tuning::TEXT),
    ("13", appendix::TEXT),
];

/// The figures that are drawn from a sweep's store, and their sweep.
const SWEPT: &[(&str, &str)] =
    &[("3", figure3::TEXT), ("10", figure3::TEXT), ("11", figure3::TEXT), ("12", figure3::TEXT)];

/// Whether a figure is drawn from a sweep's store: always, or when one is named.
pub fn is_swept(name: &str) -> bool {
    SWEPT.iter().any(|(swept, _)| *swept == name)
}

/// The runs behind the small version of a figure that is drawn from a sweep, and where they are kept by default.
pub fn quick(asked: &Asked) -> anyhow::Result<(Plan, PathBuf)> {
    figure3::quick(asked)
}

/// The text of the experiment behind a figure; `None` for one that trains nothing.
pub fn experiment(name: &str) -> Option<&'static str> {
    TRAINED.iter().find(|(trained, _)| *trained == name).map(|(_, text)| *text)
}

/// Makes the figure with that name in [`LIST`]; `None` if there is none. Figures that train nothing
/// ignore what is asked for.
pub fn make(name: &str, asked: &Asked) -> Option<anyhow::Result<Drawing>> {
    Some(match name {
        "1" => figure1::make(),
        "2" => figure2::make(asked),
        "3" => figure3::make(asked),
        "6" => figure6::make(),
        "7" => bad_problem::make(),
        "8a" => figure8a::make(asked),
        "8b" => figure8b::make(asked),
        "9" => tuning::make(asked),
        "10" => figure3::average(asked),
        "11" => figure3::population(asked),
        "12" => figure3::spread(asked),
        "13" => appendix::make(asked),
        "observation-1" => observation1::make(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    //! Laws that hold for every figure of the list.

    use super::*;
    use fedstay_sim::experiment::Experiment;
    use fedstay_sim::run::Trial;
    use fedstay_sim::sweep::{Options, run};

    /// Three rounds on the built-in digits instead of CIFAR-10.
    fn digits(seeds: Vec<u64>) -> Asked {
        let set = [
            ("data.kind", "digits"),
            ("data.per_agent", "20"),
            ("data.classes", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"),
            ("model.hidden", "[8]"),
            ("local.batch", "8"),
            ("rounds", "3"),
            ("eval_every", "1"),
        ];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        Asked { seeds: Some(seeds), set, ..Asked::default() }
    }

    /// A small sweep on digits in a store of its own, for the figures that are drawn from one.
    fn sweep(folder: &std::path::Path, text: &str) -> Asked {
        let file = folder.join("small.toml");
        std::fs::write(&file, text).unwrap();
        let mut set = digits(Vec::new()).set;
        set.retain(|(key, _)| key != "rounds");
        set.push(("rounds".into(), "25".into()));
        let plan = Plan::read(&file, &set).unwrap();
        let store = folder.join("small.db");
        let options = Options { threads: 2, share: true, full_losses: false };
        run(&plan, &store, &options, &()).unwrap();
        Asked { set, from: Some(file), store: Some(store), ..Asked::default() }
    }

    fn small(text: &str) -> String {
        let grid = "epsilon = [0.3, 1.2, 1.9]\nlocal.steps = [1, 4]\npartition.q = [0.5, 0.9]\n\
                    seed = [0, 1]\n\n";
        let (before, rest) = text.split_once("[grid]").unwrap();
        let rest = rest.split_once("\n[").unwrap().1;
        format!("{before}[grid]\n{grid}[{rest}")
    }

    fn every_drawing() -> Vec<Drawing> {
        let asked = digits(vec![0, 4]);
        let folder = tempfile::tempdir().unwrap();
        let swept = sweep(folder.path(), &small(figure3::TEXT));
        let of = |name: &str| if is_swept(name) { &swept } else { &asked };
        LIST.iter().map(|entry| make(entry.name, of(entry.name)).unwrap().unwrap()).collect()
    }

    #[test]
    fn figure_3_is_drawn_from_its_store_and_says_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let asked = sweep(folder.path(), &small(figure3::TEXT));
        let drawing = make("10", &asked).unwrap().unwrap();
        let points = &drawing.numbers["panels"][0]["curves"][0]["points"];
        assert_eq!(points.as_array().unwrap().len(), 3);
        assert_eq!(points[0][3], 2, "two seeds a point");
        assert!(drawing.notes[0].contains("of 4 cells"), "{:?}", drawing.notes);
        // The titles count what these runs did.
        let title = |name: &str| make(name, &asked).unwrap().unwrap().figure.title;
        for (name, part, cells) in [
            ("10", "Average accuracy falls in ", 4),
            ("11", "Population accuracy falls in ", 4),
            ("12", "apart in ", 2),
        ] {
            let title = title(name);
            let told = title.split_once(part).and_then(|(_, rest)| rest.split_once(" of "));
            let (fell, rest) = told.unwrap_or_else(|| panic!("{title}"));
            assert!(rest.starts_with(&format!("{cells} cells from ε = ")), "{title}");
            assert!(fell.parse::<usize>().is_ok_and(|fell| fell <= cells), "{title}");
        }
        let more = Asked { seeds: Some(vec![0, 1, 2]), ..asked };
        let drawing = make("3", &more).unwrap().unwrap();
        assert!(
            drawing.figure.caption.contains("12 of 36 runs are not"),
            "{}",
            drawing.figure.caption
        );
        let nothing = Asked { store: Some(folder.path().join("none.db")), ..Asked::default() };
        let error = make("3", &nothing).unwrap().unwrap_err();
        assert!(format!("{error:#}").contains("fedstay sweep experiments/fig3.toml"), "{error:#}");
    }

    #[test]
    fn a_small_version_says_so_and_has_a_name_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let few = [("data.kind", "digits"), ("rounds", "25"), ("epsilon", "[0.02, 1.2]")];
        let set = few.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let asked = Asked { quick: true, set, seeds: Some(vec![0, 1]), ..Asked::default() };
        let (plan, usual) = quick(&asked).unwrap();
        assert_eq!(usual, PathBuf::from("sweeps/fig3-digits.db"));
        let store = folder.path().join("quick.db");
        let options = Options { threads: 2, share: true, full_losses: false };
        run(&plan, &store, &options, &()).unwrap();
        let drawing = make("3", &Asked { store: Some(store), ..asked }).unwrap().unwrap();
        assert_eq!(drawing.name, "figure-3-quick");
        let caption = &drawing.figure.caption;
        assert!(caption.contains("A small version") && caption.contains("digits"), "{caption}");
        assert!(drawing.notes.len() == 4, "{:?}", drawing.notes);
        // Data that somebody names are the paper's, and said to be missing if they are.
        let named = vec![("data.kind".to_owned(), "cifar10".to_owned())];
        let asked = Asked { quick: true, set: named, ..Asked::default() };
        assert_eq!(quick(&asked).unwrap().1, PathBuf::from("sweeps/fig3-quick.db"));
    }

    #[test]
    fn every_experiment_runs_on_digits_and_every_figures_is_among_them() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
        let mut texts = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "toml") {
                let text = std::fs::read_to_string(&path).unwrap();
                let set = digits(Vec::new()).set;
                let experiment = match text.contains("[grid]") {
                    true => Plan::read(&path, &set).unwrap().runs[0].experiment.clone(),
                    false => Experiment::parse(&text, &set).unwrap(),
                };
                let summary = Trial::new(experiment).unwrap().run(&mut []).unwrap().unwrap();
                assert!((1..=3).contains(&summary.rounds), "{}", path.display());
                texts.push(text);
            }
        }
        for (name, text) in TRAINED.iter().chain(SWEPT) {
            assert!(texts.iter().any(|file| file == text), "figure {name}");
            assert!(text.starts_with("# ") && text.contains("The paper says"), "figure {name}");
        }
    }

    #[test]
    fn the_numbers_hold_every_arm_and_seed() {
        let drawing = make("8a", &digits(vec![3, 5])).unwrap().unwrap();
        let arms = drawing.numbers["arms"].as_array().unwrap();
        let seeds = |arm: &serde_json::Value| -> Vec<u64> {
            let runs = arm["runs"].as_array().unwrap();
            runs.iter().map(|run| run["seed"].as_u64().unwrap()).collect()
        };
        assert_eq!((seeds(&arms[0]), seeds(&arms[1])), (vec![3, 5], vec![3, 5]));
        assert!(arms[2..].iter().all(|arm| seeds(arm) == [3]), "controls run on one seed");
        assert_eq!(arms[0]["experiment"]["rule"]["kind"], "fedavg");
        assert_eq!(arms[1]["experiment"]["rule"]["delta"], 0.0);
        assert_eq!(arms[0]["runs"][0]["curve"].as_array().unwrap().len(), 3);
        let full = Asked { full: true, ..digits(vec![3, 5]) };
        let drawing = make("8a", &full).unwrap().unwrap();
        assert_eq!(seeds(drawing.numbers["arms"].as_array().unwrap().last().unwrap()), [3, 5]);
    }

    #[test]
    fn a_title_says_what_the_runs_of_this_picture_did() {
        // Three rounds on digits: not what the paper found.
        let title = |name: &str| make(name, &digits(vec![3])).unwrap().unwrap().figure.title;
        assert_eq!(title("8a"), "Neither averaging nor ADA-GD loses anybody");
        assert_eq!(title("2"), "Agents leave averaging, and it loses no accuracy by it");
        let exact = |name: &str| make(name, &Asked::default()).unwrap().unwrap().figure.title;
        assert_eq!(
            exact("1"),
            "Together all is right; once red has left, 20% of its points are wrong"
        );
        assert_eq!(exact("6"), "Of 4 agents averaging loses 4, ADA-GD 1");
        assert_eq!(
            exact("7"),
            "Small steps on a bad problem: averaging loses agent 1 for good, ADA-GD stalls"
        );
        let mut two = digits(vec![3]);
        two.set.push(("agents".into(), "2".into()));
        let title = make("13", &two).unwrap().unwrap().figure.title;
        assert_eq!(title, "2 agents: averaging loses agents, ADA-GD does not");
    }

    #[test]
    fn a_wrong_key_is_told_before_anything_runs() {
        let mut asked = digits(vec![0]);
        asked.set.push(("epsilom".into(), "0.1".into()));
        let error = make("2", &asked).unwrap().unwrap_err();
        assert!(error.to_string().contains("epsilon"), "{error}");
    }

    #[test]
    fn data_that_are_not_there_are_named_with_the_command_that_fetches_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = toml::Value::from(folder.path().to_str().unwrap()).to_string();
        let asked = Asked { set: vec![("data.path".into(), path)], ..Asked::default() };
        for (name, _) in TRAINED {
            let error = make(name, &asked).unwrap().unwrap_err();
            assert!(format!("{error:#}").contains("fedstay data fetch cifar10"), "{error:#}");
        }
    }

    #[test]
    fn every_figure_is_made_and_every_name_differs() {
        let drawings = every_drawing();
        for (index, drawing) in drawings.iter().enumerate() {
            assert!((2..=4).contains(&drawing.notes.len()), "{}", drawing.name);
            assert!(drawing.notes.iter().all(|note| note.ends_with('.')), "{:?}", drawing.notes);
            assert!(!drawing.figure.caption.is_empty() && drawing.numbers.is_object());
            assert!(drawings[index + 1..].iter().all(|other| other.name != drawing.name));
        }
        assert!(make("no such figure", &Asked::default()).is_none());
        assert!(experiment("6").is_none() && experiment("9").is_some());
    }

    #[test]
    fn the_same_figure_has_the_same_bytes() {
        for (one, other) in every_drawing().iter().zip(&every_drawing()) {
            assert_eq!(one.figure.to_svg(), other.figure.to_svg(), "{}", one.name);
            assert_eq!(one.notes, other.notes);
            assert_eq!(one.numbers, other.numbers);
        }
    }

    #[test]
    fn a_drawing_becomes_three_files_and_leaves_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("new/figures");
        let drawing = make("6", &Asked::default()).unwrap().unwrap();
        let files = drawing.write(&inner).unwrap();
        let names: Vec<_> = files.iter().map(|f| f.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["figure-6.svg", "figure-6.png", "figure-6.json"]);
        let first: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        assert!(first[0].starts_with(b"<svg") && first[1].starts_with(b"\x89PNG"));
        assert_eq!(
            serde_json::from_slice::<serde_json::Value>(&first[2]).unwrap()["name"],
            "figure-6"
        );
        // The files are already there, and are overwritten with the same bytes.
        drawing.write(&inner).unwrap();
        let second: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        assert_eq!(first, second);
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 3);
    }
}
