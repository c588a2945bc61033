//! Figures: one file a figure. [`LIST`] is the list.
//!
//! Every figure is drawn from runs that are made when it is asked for: paths, departures, losses
//! and the numbers in captions and notes come from them, none is written down here.

mod bad_problem;
mod drawing;
mod figure1;
mod figure4;
mod landscape;
mod observation1;
mod trace;

pub use drawing::Drawing;

use fedstay::list::Entry;

/// Every figure, under the name it has on the command line.
pub const LIST: &[Entry] = &[
    Entry {
        name: "1",
        about: "red and blue need each other's data: the separators with and without a departure",
        reference: "arXiv 2311.16459, Figure 1",
    },
    Entry {
        name: "4",
        about: "contours, bad regions and paths of Observations 2 and 3",
        reference: "arXiv 2311.16459, Figure 4",
    },
    Entry {
        name: "observation-1",
        about: "whoever satisfies agent 1 satisfies agent 2: every departure is benign",
        reference: "arXiv 2311.16459, Observation 1",
    },
    Entry {
        name: "bad-problem",
        about: "parallel gradients: small steps lose agent 1 for good, or stall",
        reference: "arXiv 2311.16459, Observation 4 and its figure of a bad problem",
    },
];

/// Makes the figure with that name in [`LIST`]; `None` if there is none.
pub fn make(name: &str) -> Option<anyhow::Result<Drawing>> {
    Some(match name {
        "1" => figure1::make(),
        "4" => figure4::make(),
        "observation-1" => observation1::make(),
        "bad-problem" => bad_problem::make(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    //! Laws that hold for every figure of the list.

    use super::*;

    fn every_drawing() -> Vec<Drawing> {
        LIST.iter().map(|entry| make(entry.name).unwrap().unwrap()).collect()
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
        assert!(make("no such figure").is_none());
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
        let drawing = make("4").unwrap().unwrap();
        let files = drawing.write(&inner).unwrap();
        let names: Vec<_> = files.iter().map(|f| f.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["figure-4.svg", "figure-4.png", "figure-4.json"]);
        let first: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        assert!(first[0].starts_with(b"<svg") && first[1].starts_with(b"\x89PNG"));
        assert_eq!(
            serde_json::from_slice::<serde_json::Value>(&first[2]).unwrap()["name"],
            "figure-4"
        );
        // Over files that are there already, and with the same bytes.
        drawing.write(&inner).unwrap();
        let second: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        assert_eq!(first, second);
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 3);
    }
}
