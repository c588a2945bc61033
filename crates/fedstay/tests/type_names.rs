//! A name of a type means one thing within a crate. The test reads the sources of all crates and names
//! every type that is defined twice in one of them, outside of tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// All Rust files below a folder that are not tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && stem != "tests" {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs")
            && stem != "tests"
            && stem != "laws"
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The name of the type that a line defines. Associated types, and names that a macro fills in, are none.
fn defined(line: &str) -> Option<&str> {
    let inner = line.trim_start();
    let inside = inner.len() < line.len();
    let after = match inner.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => inner,
    };
    let (kind, rest) = after.split_once(' ')?;
    if !(["struct", "enum", "trait", "union"].contains(&kind) || (kind == "type" && !inside)) {
        return None;
    }
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Some(&rest[..end.unwrap_or(rest.len())]).filter(|name| !name.is_empty())
}

/// Where each type is defined in a text: its name and the line.
fn types(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("mod tests {").unwrap_or(text.len());
    text[..end].lines().enumerate().filter_map(|(at, line)| Some((at + 1, defined(line)?)))
}

/// The types that are defined more than once in a crate, with their places.
fn twice(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let src = folder.join("src");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources(&src) {
        let text = fs::read_to_string(&path).unwrap();
        let inside = path.strip_prefix(&src).unwrap().display().to_string();
        for (line, name) in types(&text) {
            found.entry(name.to_owned()).or_default().push(format!("{inside}:{line}"));
        }
    }
    found.retain(|_, places| places.len() > 1);
    found
}

#[test]
fn no_type_name_means_two_things_in_a_crate() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(&crates).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.push(crates.join("../python"));
    folders.retain(|folder| folder.join("src").is_dir());
    assert!(folders.len() >= 6, "{folders:?}");
    let mut wrong = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let found = twice(&folder);
        wrong.extend(found.iter().map(|(kind, at)| format!("{name}: {kind} in {}", at.join(", "))));
    }
    assert!(wrong.is_empty(), "one name, one thing:\n{}", wrong.join("\n"));
}

#[test]
fn definitions_are_found_and_nothing_else() {
    let text = "pub(crate) struct Told {\n    struct Inner;\nimpl X for Y {\n    type Item = u8;\n\
                pub type Wide = u64;\n/// struct Words\npub enum $name {\nenum State<'a> {\n\
                #[cfg(test)]\nmod tests {\n    struct Told;\n}\n";
    let found: Vec<_> = types(text).collect();
    assert_eq!(found, [(1, "Told"), (2, "Inner"), (5, "Wide"), (8, "State")]);
}
