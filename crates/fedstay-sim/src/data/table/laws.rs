//! What holds for every table: no row is lost or doubled, and the order of rows, columns and files, and the
//! names of owners, decide nothing.

use super::*;
use crate::data::Row;
use fedstay::Seed;
use proptest::prelude::*;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The rows of a table: owner, number, category, class, patient; a blank is missing.
type Cells = Vec<[String; 5]>;

const NAMES: [&str; 5] = ["site", "x", "kind", "y", "patient"];

fn cells() -> impl Strategy<Value = Cells> {
    let blank = |text: String, blank: bool| if blank { String::new() } else { text };
    let row = (
        0..4u8,
        0..1000u16,
        0..3u8,
        0..2u8,
        0..12u8,
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.05),
    );
    let row = row.prop_map(move |(site, x, kind, class, patient, no_x, no_y)| {
        [
            format!("s{site}"),
            blank(format!("{}.{}", x / 10, x % 10), no_x),
            blank(format!("k{kind}"), no_x),
            blank(format!("c{class}"), no_y),
            format!("p{patient}"),
        ]
    });
    // Every owner and both classes are there, so that no table is refused for want of them.
    prop::collection::vec(row, 8..60).prop_map(|mut rows| {
        for (at, row) in rows.iter_mut().take(8).enumerate() {
            row[0] = format!("s{}", at % 4);
            row[3] = format!("c{}", at % 2);
            row[1] = format!("{at}.5");
        }
        rows
    })
}

/// Writes rows as files, columns in this order.
fn write(rows: &Cells, columns: &[usize], files: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (file, rows) in rows.chunks(rows.len().div_ceil(files)).enumerate() {
        let head: Vec<&str> = columns.iter().map(|column| NAMES[*column]).collect();
        let mut text = head.join(",") + "\n";
        for row in rows {
            let line: Vec<&str> = columns.iter().map(|column| &row[*column][..]).collect();
            let _ = writeln!(text, "{}", line.join(","));
        }
        std::fs::write(folder.path().join(format!("f{file}.csv")), text).unwrap();
    }
    folder
}

fn table(folder: &tempfile::TempDir, together: bool) -> Table {
    Table {
        owner: Some(LabelColumn::Name("site".into())),
        label: Some(LabelColumn::Name("y".into())),
        together: together.then(|| "patient".into()),
        leave_out: if together { Vec::new() } else { vec!["patient".into()] },
        scale: Scaling::None,
        least: 0,
        test_share: 0.3,
        ..Table::new(folder.path().join("*.csv"))
    }
}

/// What each owner has, for training and for testing: its rows' contents, in an order of their own.
type Holdings = BTreeMap<(String, bool), Vec<Vec<u32>>>;

fn holdings(table: &Table, seed: u64) -> Holdings {
    let loaded = table.load_for(Draw { seed, small: Small::Join }).unwrap();
    let names = encode::names(&table.prepared(Small::Join).unwrap().0.raw);
    let mut by_name: Vec<usize> = (0..names.len()).collect();
    by_name.sort_by_key(|at| &names[*at]);
    let owners = loaded.data.owners.as_ref().unwrap();
    let mut all = Holdings::new();
    for row in 0..loaded.data.len() {
        let Row::Floats(values) = loaded.data.row(row) else { panic!() };
        let mut content: Vec<u32> = by_name.iter().map(|at| values[*at].to_bits()).collect();
        content.push(loaded.data.targets.kind(row) as u32);
        let owner = owners.names[usize::from(owners.of[row])].clone();
        all.entry((owner, row >= loaded.train)).or_default().push(content);
    }
    all.values_mut().for_each(|rows| rows.sort());
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_row_is_in_exactly_one_place(rows in cells(), seed in 0..5u64, together: bool) {
        let folder = write(&rows, &[0, 1, 2, 3, 4], 1);
        let table = table(&folder, together);
        let loaded = table.load_for(Draw { seed, small: Small::Join }).unwrap();
        let unused: usize = loaded.not_used.iter().map(|part| part.rows).sum();
        prop_assert_eq!(loaded.data.len() + unused, rows.len());
        let labelled = rows.iter().filter(|row| !row[3].is_empty()).count();
        prop_assert_eq!(loaded.data.len(), labelled);
        // And it is that row: numbers and classes are those of the file, each as often.
        let count = |of: &dyn Fn(usize) -> String| {
            let mut counts = BTreeMap::new();
            (0..loaded.data.len()).for_each(|row| *counts.entry(of(row)).or_insert(0) += 1);
            counts
        };
        let owners = loaded.data.owners.as_ref().unwrap();
        let classes = loaded.data.targets.classes().unwrap();
        let found = count(&|row| {
            let owner = &owners.names[usize::from(owners.of[row])];
            format!("{owner} {}", classes.names[usize::from(classes.of[row])])
        });
        let mut expected = BTreeMap::new();
        for row in rows.iter().filter(|row| !row[3].is_empty()) {
            *expected.entry(format!("{} {}", row[0], row[3])).or_insert(0) += 1;
        }
        prop_assert_eq!(found, expected);
        prop_assert!(owners.rows(loaded.train).iter().all(|rows| !rows.is_empty()) || together);
    }

    #[test]
    fn the_order_of_rows_columns_and_files_decides_nothing(
        rows in cells(),
        seed in 0..5u64,
        shuffle in 0..1000u64,
        columns in Just(vec![0, 1, 2, 3, 4]).prop_shuffle(),
        files in 1..4usize,
        together: bool,
    ) {
        let one = write(&rows, &[0, 1, 2, 3, 4], 1);
        let expected = holdings(&table(&one, together), seed);
        let mut mixed = rows.clone();
        mixed.shuffle(&mut Seed(shuffle).stream("laws", 0, 0));
        let other = write(&mixed, &columns, files);
        prop_assert_eq!(holdings(&table(&other, together), seed), expected);
    }

    #[test]
    fn renamed_owners_change_names_only(rows in cells(), seed in 0..5u64, together: bool) {
        let folder = write(&rows, &[0, 1, 2, 3, 4], 1);
        let expected = holdings(&table(&folder, together), seed);
        // In another order, too.
        let other = |name: &str| format!("clinic {}", 9 - name[1..].parse::<u8>().unwrap());
        let mut renamed = rows.clone();
        renamed.iter_mut().for_each(|row| row[0] = other(&row[0]));
        let renamed = write(&renamed, &[0, 1, 2, 3, 4], 1);
        let expected: Holdings =
            expected.into_iter().map(|((name, test), rows)| ((other(&name), test), rows)).collect();
        // One patient with rows at two owners has its home at the first of equals, by name.
        if !together {
            prop_assert_eq!(holdings(&table(&renamed, together), seed), expected);
        }
    }

    #[test]
    fn every_owner_has_its_share_of_every_class_and_patients_stay_whole(rows in cells(), seed in 0..50u64) {
        let folder = write(&rows, &[0, 1, 2, 3, 4], 1);
        let whole = table(&folder, false);
        let loaded = whole.load_for(Draw { seed, small: Small::Join }).unwrap();
        let owners = loaded.data.owners.as_ref().unwrap();
        let (all, train) = (owners.rows(loaded.data.len()), owners.rows(loaded.train));
        for (all, train) in all.iter().zip(&train) {
            let kept = (all.len() - train.len()) as f64;
            prop_assert!((kept - 0.3 * all.len() as f64).abs() < 1.0, "{} of {}", kept, all.len());
            for class in 0..2 {
                let count = |rows: &[usize]| rows.iter().filter(|row| loaded.data.targets.kind(**row) == class).count();
                let (all, kept) = (count(all), count(all) - count(train));
                prop_assert!((kept as f64 - 0.3 * all as f64).abs() < 1.5, "{} of {}", kept, all);
            }
        }
        let together = Table { time: None, ..table(&folder, true) };
        let prepared = together.prepared(Small::Join).unwrap().0;
        let test = prepared.tests(&together, Draw { seed, small: Small::Join });
        let mut sides: BTreeMap<&str, bool> = BTreeMap::new();
        for (row, test) in prepared.rows.iter().zip(test) {
            let patient = &rows[*row as usize][4][..];
            prop_assert_eq!(*sides.entry(patient).or_insert(test), test);
        }
    }
}

#[test]
fn the_seed_draws_and_the_last_rows_are_not_drawn() {
    let rows: Cells = (0..60)
        .map(|at| {
            [
                format!("s{}", at % 2),
                format!("{at}.5"),
                "k".into(),
                format!("c{}", at / 2 % 2),
                format!("{}", at / 2),
            ]
        })
        .collect();
    let folder = write(&rows, &[0, 1, 2, 3, 4], 1);
    let drawn = table(&folder, false);
    assert_eq!(holdings(&drawn, 1), holdings(&drawn, 1));
    assert_ne!(holdings(&drawn, 1), holdings(&drawn, 2));
    let last = Table { time: Some("patient".into()), leave_out: Vec::new(), ..drawn };
    let loaded = last.load_for(Draw { seed: 3, small: Small::Join }).unwrap();
    assert_eq!(holdings(&last, 1), holdings(&last, 2));
    // Nine of each owner's thirty.
    assert_eq!((loaded.train, loaded.data.len()), (42, 60));
    let first_of_test = (0..60).filter_map(|row| match loaded.data.row(row) {
        Row::Floats(values) if row >= loaded.train => Some(values[0]),
        _ => None,
    });
    assert_eq!(first_of_test.min_by(f32::total_cmp), Some(42.5));
}
