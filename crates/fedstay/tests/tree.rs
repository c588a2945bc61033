//! The house is a tree: a room uses those on the floors below its own, and so does a crate. The test reads
//! the sources and names every line that looks up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of the core, from the ground up. A room may use those of the floors below its own.
const CORE: &[&[&str]] = &[
    &["numerics"],
    &["message"],
    &["memory"],
    &["list"],
    &["rule", "agent"],
    &["server"],
    &["run"],
    &["book"],
    &["theory"],
];
/// The same of the crate below it.
const KERNELS: &[&[&str]] = &[&["isa"], &["numerics", "layer"]];

/// The same of the simulator.
const SIM: &[&[&str]] = &[
    &["text"],
    &["data"],
    &["model", "partition"],
    &["measure"],
    &["training"],
    &["experiment"],
    &["simulator"],
    &["run"],
    &["sweep"],
    &["plan"],
];
/// The same of what draws.
const DRAW: &[&[&str]] = &[&["markup"], &["plot", "words"], &["picture"]];
/// The same of the page, where a room is a file.
const VIEW: &[&[&str]] = &[
    &["bundle", "cast", "delivered", "inside", "look", "patience"],
    &["settings", "spread", "theory", "whole", "worth"],
    &["assets", "connections", "follow", "history", "status", "times"],
    &["guard", "map", "run", "series", "words"],
    &["listing"],
    &["detail"],
    &["library"],
    &["server"],
];
/// The same of what the commands share, of the paper's commands, and of the others.
const TERMINAL: &[&[&str]] =
    &[&["interrupt", "screen", "source", "spreadsheet"], &["progress"], &["plan", "sweep"]];
const PAPER: &[&[&str]] = &[&["figure", "tournament"]];
const CLI: &[&[&str]] = &[&["summary"], &["command"]];

/// What `lib.rs` itself defines is below every room.
const GROUND: &str = "lib";

/// The crates, by their folders, and those of ours that each may use.
const CRATES: [(&str, &[&str]); 10] = [
    ("crates/fedstay-kernels", &[]),
    ("crates/fedstay", &["fedstay-kernels"]),
    ("crates/fedstay-sim", &["fedstay", "fedstay-kernels"]),
    ("crates/fedstay-draw", &["fedstay", "fedstay-sim"]),
    ("crates/fedstay-view", &["fedstay", "fedstay-sim", "fedstay-draw"]),
    ("crates/fedstay-terminal", &["fedstay", "fedstay-sim", "fedstay-draw"]),
    ("crates/fedstay-paper", &["fedstay", "fedstay-sim", "fedstay-draw", "fedstay-terminal"]),
    (
        "crates/fedstay-cli",
        &[
            "fedstay",
            "fedstay-sim",
            "fedstay-draw",
            "fedstay-view",
            "fedstay-terminal",
            "fedstay-paper",
        ],
    ),
    ("python", &["fedstay", "fedstay-sim", "fedstay-draw"]),
    ("bench/drivers", &["fedstay", "fedstay-sim"]),
];

fn floor(floors: &[&[&str]], room: &str) -> usize {
    let floor = floors.iter().position(|rooms| rooms.contains(&room));
    floor.unwrap_or_else(|| panic!("`{room}` is a new room: say in this test which floor it is on"))
}

fn source(file: impl AsRef<Path>) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// All Rust files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

/// What is compiled without tests: no comments, no `mod tests`. Lines keep their numbers.
fn code(text: &str) -> Vec<&str> {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end].lines().map(|line| line.split("//").next().unwrap_or_default()).collect()
}

/// The names at the first level of `{a, b::{c, d}, e}`.
fn first_names(group: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[begin..]);
    parts.into_iter().map(first_name).filter(|name| !name.is_empty()).collect()
}

/// The identifier that a path begins with.
fn first_name(path: &str) -> &str {
    let path = path.trim();
    let end = path.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    &path[..end.unwrap_or(path.len())]
}

/// The inside of the braces that `text` begins with.
fn braced(text: &str) -> &str {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[1..at];
        }
    }
    panic!("braces without an end: {text:.40}")
}

/// Which room has each name that `lib.rs` offers at the crate's root.
fn rooms_of_names(lib: &str) -> BTreeMap<&str, &str> {
    let mut rooms = BTreeMap::new();
    for statement in lib.split("pub use ").skip(1) {
        let statement = &statement[..statement.find(';').unwrap()];
        // What comes from a crate below is below every room.
        let room = Some(first_name(statement)).filter(|name| !name.starts_with("fedstay"));
        let room = room.unwrap_or(GROUND);
        let last = statement.rfind("::").map_or(statement, |_| match statement.find('{') {
            Some(at) => &statement[..at],
            None => statement,
        });
        let parent = last.trim_end_matches("::").rsplit("::").next().unwrap_or(room);
        match statement.find('{') {
            None => {
                rooms.insert(parent, room);
            }
            Some(at) => {
                for name in first_names(braced(&statement[at..])) {
                    rooms.insert(if name == "self" { parent } else { name }, room);
                }
            }
        }
    }
    rooms
}

/// The macros that a file offers at the crate's root.
fn macros_of(text: &str) -> impl Iterator<Item = &str> {
    text.split("#[macro_export]\nmacro_rules! ").skip(1).map(first_name)
}

/// The rooms that a file's code names, with the line that does. Names that are unknown are of the room `other`.
/// `root` is how the file names the crate's root other than by `crate::`.
fn looks_at<'a>(
    floors: &[&[&str]],
    (text, root): (&'a str, &str),
    names: &BTreeMap<&'a str, &'a str>,
    other: &'a str,
) -> Vec<(usize, &'a str)> {
    let lines = code(text);
    let mut looks = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let by_name = line.match_indices("crate::");
        for (at, way) in by_name.chain(line.match_indices(root)) {
            let path = &line[at + way.len()..];
            if path.starts_with("super::") {
                continue;
            }
            let begin = path.as_ptr() as usize - text.as_ptr() as usize;
            let is_macro = macros_of(text).any(|own| path.starts_with(&format!("{own}!")));
            if is_macro {
                continue;
            }
            let found = match path.starts_with('{') {
                true => first_names(braced(&text[begin..])),
                false => vec![first_name(path)],
            };
            for name in found {
                let is_room = floors.concat().contains(&name);
                let room = if is_room { name } else { names.get(name).copied().unwrap_or(other) };
                looks.push((number + 1, room));
            }
        }
    }
    looks
}

/// Fails if a room of the crate in `folder` uses one that is not below it, or if fewer than `least` uses of
/// rooms were found at all.
fn assert_no_room_looks_up(folder: &str, floors: &[&[&str]], unknown: &str, least: usize) {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("src");
    let lib = source(src.join("lib.rs"));
    let names = rooms_of_names(&lib);
    let (mut wrong, mut edges) = (Vec::new(), 0);
    for path in files(&src) {
        let inside = path.strip_prefix(&src).unwrap();
        let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
        let room = first.trim_end_matches(".rs");
        let stem = path.file_stem().unwrap();
        if room == "lib" || stem == "tests" || stem == "laws" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let depth = inside.components().count() - usize::from(stem == "mod");
        for (line, other) in looks_at(floors, (&text, &"super::".repeat(depth)), &names, unknown) {
            edges += 1;
            if other != room && other != GROUND && floor(floors, other) >= floor(floors, room) {
                wrong.push(format!("{}:{line}: {room} uses {other}", inside.display()));
            }
        }
    }
    assert!(edges >= least, "only {edges} paths were found: does this test still read them?");
    assert!(wrong.is_empty(), "rooms that look up:\n{}", wrong.join("\n"));
}

#[test]
fn no_room_of_the_core_looks_up() {
    let lib = source("src/lib.rs");
    let names = rooms_of_names(&lib);
    assert_eq!(names.get("Server"), Some(&"server"));
    assert_eq!(names.get("Report"), Some(&"message"));
    assert_eq!(names.get("behaviour"), Some(&"agent"));
    assert_no_room_looks_up("", CORE, "?", 300);
}

#[test]
fn no_room_of_the_kernels_looks_up() {
    assert_no_room_looks_up("../fedstay-kernels", KERNELS, GROUND, 30);
}

#[test]
fn no_room_above_the_core_looks_up() {
    for (name, floors, least) in [
        ("sim", SIM, 200),
        ("draw", DRAW, 15),
        ("view", VIEW, 40),
        ("terminal", TERMINAL, 3),
        ("paper", PAPER, 0),
        ("cli", CLI, 3),
    ] {
        assert_no_room_looks_up(&format!("../fedstay-{name}"), floors, GROUND, least);
    }
}

#[test]
fn an_upward_look_is_found() {
    let names = rooms_of_names(
        "pub use server::{Server, policy::{self, Policy}};\npub use run::Session;\n",
    );
    let text = "use crate::{Error,\n    Session};\n// crate::theory\nfn f(_: crate::server::Server) {}\n\
                use super::theory::X;\n#[cfg(test)]\nmod tests {\n    use crate::book::X;\n}\n";
    let found = [(1, "rule"), (1, "run"), (4, "server"), (5, "theory")];
    assert_eq!(looks_at(CORE, (text, "super::"), &names, "rule"), found);
}

/// Our crates that a manifest names among its dependencies, of any kind and on any platform.
fn ours(manifest: &str) -> BTreeSet<&str> {
    let mut inside = false;
    let lines = manifest.lines().map(|line| line.split('#').next().unwrap_or_default());
    let lines = lines.filter(|line| {
        if line.starts_with('[') {
            inside = line.contains("dependencies");
        }
        inside
    });
    let words = lines.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '-'));
    words.filter(|word| word.starts_with("fedstay")).collect()
}

#[test]
fn no_crate_looks_up() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (folder, below) in CRATES {
        let manifest = source(root.join(folder).join("Cargo.toml"));
        for other in ours(&manifest) {
            assert!(below.contains(&other), "{folder} depends on {other}, which is not below it");
        }
    }
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let name = format!("crates/{}", entry.unwrap().file_name().to_str().unwrap());
        let known = CRATES.iter().any(|(folder, _)| *folder == name);
        assert!(known, "`{name}` is a new crate: say in this test which of ours it may use");
    }
}

#[test]
fn an_upward_dependency_is_found() {
    let manifest = "[package]\nname = \"fedstay-sim\"\n[features]\nall = [\"dep:fedstay-view\"]\n\
                    [dependencies]\nfedstay.workspace = true # not fedstay-draw\n\
                    core = { package = \"fedstay-paper\" }\n[dev-dependencies.fedstay-cli]\n\
                    [target.'cfg(unix)'.build-dependencies]\nfedstay-terminal = \"1\"\n";
    let found = ["fedstay", "fedstay-cli", "fedstay-paper", "fedstay-terminal"];
    assert_eq!(ours(manifest), BTreeSet::from(found));
}
