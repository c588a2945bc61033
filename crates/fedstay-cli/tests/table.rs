//! A table as people have it, from `fedstay data read` to a run.

mod common;

use common::{ok, said};
use std::path::Path;

/// Three hospitals with texts, blanks, an id and a date of death, which gives the answer away.
fn write(folder: &Path) {
    let mut text = "id,hospital,sex,age,stage,admitted,death,died\n".to_owned();
    for row in 0..120_u32 {
        let hospital = ["St Mary", "Bergen North", "Charite"][row as usize % 3];
        let sex = ["F", "M"][(row / 3 % 2) as usize];
        let age = if row % 11 == 0 { "NA".to_owned() } else { (30 + row * 17 % 50).to_string() };
        let stage = ["I", "II", "III"][(row / 5 % 3) as usize];
        let died = row * 13 % 10 > 6;
        let death = if died { "2024-06-01" } else { "" };
        let told = if died { "yes" } else { "no" };
        let day = 1 + row % 28;
        text += &format!(
            "{},{hospital},{sex},{age},{stage},2024-03-{day:02},{death},{told}\n",
            1000 + row
        );
    }
    std::fs::write(folder.join("table.csv"), text).unwrap();
}

#[test]
fn a_table_is_read_before_anything_is_made_of_it() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let read = ["data", "read", "table.csv", "--owner", "hospital", "--label", "died"];
    let told = said(folder.path(), &read);
    assert!(told.lines().skip(1).all(|line| line.chars().count() <= 80), "{told}");
    for part in [
        "120 rows of 8 columns",
        "left out: an id",
        "1 where it = M",
        "3 of 0 and 1",
        "predicted: no or yes",
        "Bergen North",
        "120 rows read: 96 for training, 24 for testing and 0 not used",
        "`death` alone tells the label",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is written");
    let told = said(folder.path(), &["data", "read", "table.csv", "--owner", "clinic"]);
    assert!(told.contains("TO DO  data.owner: no column is named `clinic`"), "{told}");
    assert!(told.contains("TO DO  data.label: say which column is predicted"), "{told}");
}

#[test]
fn every_guess_stands_in_the_experiment_and_every_row_is_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let read = ["data", "read", "table.csv", "--owner", "hospital", "--label", "died"];
    let out = ["--out", "h.toml", "--set", "data.leave_out=[\"death\"]"];
    ok(folder.path(), &[&read[..], &out].concat());
    let text = std::fs::read_to_string(folder.path().join("h.toml")).unwrap();
    for line in [
        "age = \"number\"",
        "stage = \"category\"",
        "admitted = \"date\"",
        "leave_out = [\"death\", \"id\"]",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let shown = ok(folder.path(), &["data", "show", "h.toml"]);
    assert!(
        shown.contains("120 rows read: 96 dealt to 3 agents, 24 for testing and none unused"),
        "{shown}"
    );
    ok(folder.path(), &["run", "h.toml", "--set", "rounds=5", "--out", "run"]);
    let summary = std::fs::read_to_string(folder.path().join("run/summary.json")).unwrap();
    assert!(summary.contains("Bergen North"), "{summary}");
    // `new` is the same door: the last column is the label.
    ok(folder.path(), &["new", "n.toml", "--csv", "table.csv", "--set", "data.owner=hospital"]);
    let text = std::fs::read_to_string(folder.path().join("n.toml")).unwrap();
    assert!(text.contains("kind = \"table\"") && text.contains("label = \"died\""), "{text}");
    ok(folder.path(), &["data", "show", "n.toml"]);
}

#[test]
fn four_real_clinics_come_with_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let shown = ok(folder.path(), &["data", "show", "--set", "data.kind=clinics"]);
    for part in ["823 rows read", "9 unused (rows without a label)", "KY", "MN", "MS", "NY"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}
