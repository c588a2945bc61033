//! CONTRIBUTING's picture of the house: every path that it names is there.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn contributing() -> String {
    fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap()
}

/// The words in backticks of a text.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The paths of the drawing: crates and folders at the margin, and below them what is indented once. The
/// rooms of a crate are in its `src`.
fn drawn(text: &str) -> Vec<String> {
    let drawing = text.split("```").nth(1).unwrap();
    let (mut paths, mut inside) = (Vec::new(), String::new());
    for line in drawing.lines().filter(|line| !line.is_empty()) {
        let indent = line.len() - line.trim_start().len();
        let names = line.trim_start().split("  ").next().unwrap_or_default();
        if indent == 0 {
            let name = names.split_whitespace().next().unwrap().trim_end_matches('/');
            paths.push(name.to_owned());
            inside =
                if name.starts_with("crates/") { format!("{name}/src") } else { name.to_owned() };
        } else if indent == 2 {
            paths.extend(names.split_whitespace().map(|name| format!("{inside}/{name}")));
        }
    }
    paths
}

/// The files of the tables of hops; a column's heading says where they are, unless they say it themselves.
fn hops(text: &str) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    let mut paths = Vec::new();
    let tables = text.split("\n## ").find(|part| part.starts_with("One round of")).unwrap();
    for line in tables.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        if cells[0].trim() == "hop" {
            let place = |cell: &&str| quoted(cell).next().unwrap_or_default().to_owned();
            columns = cells.iter().map(place).collect();
            continue;
        }
        for (cell, place) in cells.iter().zip(&columns) {
            let files = quoted(cell).filter(|word| word.ends_with(".rs") || word.ends_with(".py"));
            paths.extend(files.map(|file| match file.split_once('/') {
                Some(("crates" | "python", _)) => file.to_owned(),
                _ => format!("{place}/{file}"),
            }));
        }
    }
    paths
}

/// Every other path in backticks that begins with a folder of the repository and names no example.
fn told(text: &str) -> Vec<String> {
    let folders = ["crates/", "python/", "scripts/", "bench/", "docs/", "fuzz/", "experiments/"];
    let begins = |word: &&str| folders.iter().any(|folder| word.starts_with(folder));
    let one = |word: &str| word.split_whitespace().next().unwrap_or_default().to_owned();
    let example = |word: &String| word.contains(['{', '<', '*']) || word.contains("your_");
    quoted(text).filter(begins).map(one).filter(|word| !example(word)).collect()
}

#[test]
fn every_path_that_contributing_names_is_there() {
    let text = contributing();
    let prose: String = text.split("```").step_by(2).collect();
    let (drawn, hops, told) = (drawn(&text), hops(&text), told(&prose));
    // Where one of them finds nothing, the document has another form, and the test would not see it.
    assert!(
        drawn.len() > 40 && hops.len() > 30 && told.len() > 30,
        "{drawn:?}\n{hops:?}\n{told:?}"
    );
    let paths = drawn.iter().chain(&hops).chain(&told);
    let gone: Vec<&String> = paths.filter(|path| !root().join(path).exists()).collect();
    assert!(gone.is_empty(), "CONTRIBUTING.md names what is not there: {gone:#?}");
}

#[test]
fn every_room_of_the_core_is_drawn() {
    let drawn = drawn(&contributing());
    for entry in fs::read_dir(root().join("crates/fedstay/src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let room = [format!("{name}/"), name.clone()].map(|n| format!("crates/fedstay/src/{n}"));
        let has = room.iter().any(|room| drawn.contains(room));
        assert!(has || name == "lib.rs", "CONTRIBUTING.md does not draw {name}");
    }
}

#[test]
fn every_rule_has_an_example() {
    let mut rules = 0;
    for entry in fs::read_dir(root().join("crates/fedstay/src/rule")).unwrap() {
        let path = entry.unwrap().path();
        let file = if path.is_dir() { path.join("mod.rs") } else { path };
        let text = fs::read_to_string(&file).unwrap();
        if text.contains(": Origin = Origin {") {
            rules += 1;
            assert!(text.contains("/// ```\n#[derive"), "{} has no example", file.display());
        }
    }
    assert!(rules >= 16, "only {rules} rules were found: does this test still read them?");
}
