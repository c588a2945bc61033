use super::*;
use crate::data::{Csv, Row, Targets};
use std::path::Path;

/// Writes files into a folder of their own.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn named(name: &str) -> Option<LabelColumn> {
    Some(LabelColumn::Name(name.into()))
}

/// A table with the label `y`, without test rows and as it is.
fn plain(path: impl Into<PathBuf>) -> Table {
    let label = named("y");
    Table { label, test_share: 0.0, scale: Scaling::None, least: 0, ..Table::new(path) }
}

fn read(text: &str, change: impl FnOnce(&mut Table)) -> Result<LoadedData, String> {
    let folder = folder(&[("t.csv", text)]);
    let mut table = plain(folder.path().join("t.csv"));
    change(&mut table);
    table.load().map_err(|error| error.to_string())
}

fn rows(loaded: &LoadedData) -> Vec<Vec<f32>> {
    let row = |row| match loaded.data.row(row) {
        Row::Floats(values) => values.to_vec(),
        Row::Bytes(_) => panic!("tables are numbers"),
    };
    (0..loaded.data.len()).map(row).collect()
}

/// What was a csv is the same table, bit for bit, and so is its split where rows are not drawn.
#[test]
fn a_csv_of_numbers_is_the_same_as_a_table() {
    let mut text = "site,age,dose,y\n".to_owned();
    for row in 0..200_u32 {
        let (age, dose) = (row * 37 % 91, f64::from(row * 7919 % 1000) / 7.0);
        text += &format!("s{},{age},{dose},{}\n", row % 3, row % 2);
    }
    let folder = folder(&[("t.csv", &text)]);
    let path = folder.path().join("t.csv");
    for task in [None, Some(Predicted::Number)] {
        let task_of_csv = task.unwrap_or_default();
        let csv =
            Csv { owner: named("site"), test_share: 0.0, task: task_of_csv, ..Csv::new(&path) };
        let table = Table { owner: named("site"), task, ..plain(&path) };
        let table = Table { scale: Scaling::Federated, ..table };
        let (mut csv, mut table) = (csv.load().unwrap(), table.load().unwrap());
        assert_eq!(csv, table);
        csv.standardise();
        table.standardise();
        assert_eq!(csv, table);
    }
}

#[test]
fn texts_days_and_blanks_become_features() {
    let text = "sex,stage,age,seen,y\nF,II,30,2024-01-02,0\nM,I,NA,2024-01-04,1\nF,III,50,,0\n\
                M,,40,2024-01-03,1\n";
    let loaded = read(text, |_| ()).unwrap();
    // sex = M; stage = I, II, III, is missing; age, is missing; seen, is missing.
    let day = crate::data::table::date::days("2024-01-02").unwrap() as f32;
    let expected = vec![
        vec![0.0, 0.0, 1.0, 0.0, 0.0, 30.0, 0.0, day, 0.0],
        vec![1.0, 1.0, 0.0, 0.0, 0.0, 40.0, 1.0, day + 2.0, 0.0],
        vec![0.0, 0.0, 0.0, 1.0, 0.0, 50.0, 0.0, day + 1.0, 1.0],
        vec![1.0, 0.0, 0.0, 0.0, 1.0, 40.0, 0.0, day + 1.0, 0.0],
    ];
    assert_eq!(rows(&loaded), expected);
    let dropped =
        read("x,k,y\n1,a,0\n,a,1\n3,,1\n4,b,1\n", |table| table.fill = Fill::Drop).unwrap();
    assert_eq!((dropped.data.len(), dropped.not_used[0].rows), (2, 2));
}

#[test]
fn what_is_filled_in_comes_from_training_rows() {
    let text = "x,split,y\n1,train,0\n,train,1\n3,train,0\n1000,test,1\n";
    let loaded = read(text, |table| {
        table.test = "split".into();
        table.fill = Fill::Mean;
    });
    let loaded = loaded.unwrap();
    assert_eq!((loaded.train, rows(&loaded)[1][0]), (3, 2.0));
    let refused = read(text, |table| {
        table.test = "split".into();
        table.fill = Fill::Refuse;
    });
    let told = refused.unwrap_err();
    assert!(told.starts_with("data.fill: `x` is missing in 1 rows, first in line 3"), "{told}");
}

#[test]
fn several_files_are_one_table_and_their_owners_may_be_their_names() {
    let files = [("b.csv", "y,x\n1,5\n0,6\n"), ("a.csv", "x;y\n1;0\n2;1\n3;0\n")];
    let folder = folder(&files);
    let pattern = folder.path().join("*.csv");
    let table = Table { owner: named("file"), ..plain(&pattern) };
    let loaded = table.load().unwrap();
    let owners = loaded.data.owners.as_ref().unwrap();
    assert_eq!(
        (&owners.names[..], &owners.of[..]),
        (&["a", "b"].map(String::from)[..], &[0, 0, 0, 1, 1][..])
    );
    assert_eq!(rows(&loaded).concat(), [1.0, 2.0, 3.0, 5.0, 6.0]);
    let list = Paths::Several(files.iter().map(|(name, _)| folder.path().join(name)).collect());
    assert_eq!(
        Table { path: list, ..table.clone() }.load().unwrap().data.inputs,
        loaded.data.inputs
    );
    std::fs::write(folder.path().join("c.csv"), "x,z\n1,2\n").unwrap();
    let told = table.load().unwrap_err().to_string();
    assert!(told.contains("c.csv has no column `y`, but") && told.contains("a.csv has"), "{told}");
}

#[test]
fn gzip_latin_1_decimal_commas_and_byte_order_marks_are_read() {
    use std::io::Write as _;
    let folder = folder(&[]);
    let path = folder.path().join("t.csv.gz");
    let file = std::fs::File::create(&path).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    packed.write_all(b"\xef\xbb\xbfx;y\n3,5;d\xc3\xa9c\xc3\xa9d\xc3\xa9\n4;vivant\n").unwrap();
    packed.finish().unwrap();
    let comma = Table { decimal: DecimalSign::Comma, ..plain(&path) };
    let loaded = comma.load().unwrap();
    assert_eq!(rows(&loaded).concat(), [3.5, 4.0]);
    assert_eq!(loaded.data.targets.classes().unwrap().names, ["décédé", "vivant"]);
    let latin = folder.path().join("l.csv");
    std::fs::write(&latin, b"x,y\n1,d\xe9c\xe9d\xe9\n2,vivant\n").unwrap();
    let told = plain(&latin).load().unwrap_err().to_string();
    assert!(told.contains("other bytes in line 2: set data.encoding = \"latin-1\""), "{told}");
    let loaded = Table { encoding: Encoding::Latin1, ..plain(&latin) }.load().unwrap();
    assert_eq!(loaded.data.targets.classes().unwrap().names, ["décédé", "vivant"]);
}

/// Every refusal says what was read, where, and what to type.
#[test]
fn what_cannot_be_used_as_it_is_is_refused_with_a_way_out() {
    let refused = |text: &str, change: &dyn Fn(&mut Table), told: &[&str]| {
        let error = read(text, |table| change(table)).unwrap_err();
        assert!(told.iter().all(|part| error.contains(part)) && !error.contains('\n'), "{error}");
    };
    let nothing = |_: &mut Table| ();
    let numbers: String = (0..60).map(|row| format!("{row},{}\n", row * 3)).collect();
    refused(
        &format!("x,y\n{numbers}"),
        &nothing,
        &["data.task: `y` has 60 different numbers", "\"number\"", "\"classes\""],
    );
    refused(
        "x,x,y\n1,2,0\n1,3,1\n",
        &nothing,
        &["two columns are called `x`, the 1st and the 2nd"],
    );
    refused("x,y\n1,yes\n2,Yes\n3,no\n", &nothing, &["`yes` and `Yes` of `y` mean the same"]);
    refused(
        "x;y\n1,5;a\n2,5;b\n",
        &nothing,
        &["data.decimal: `x` has numbers such as `1,5`", "\",\""],
    );
    refused("x;y\n1,068;a\n2,500;b\n12,000;a\n1,000,000;b\n", &nothing, &["between thousands"]);
    refused("x,y\n1,0\n2\n3,1\n", &nothing, &["line 3: 1 values for 2 columns"]);
    refused("x,y\n1,0\n2,0\n", &nothing, &["data.label: the label has `0` alone in 2 rows"]);
    refused("x,y\n,0\n,1\n", &nothing, &["data.leave_out: `x` says nothing in any row"]);
    refused("1,2,5\n1,0,1\n", &nothing, &["set data.header = false"]);
    refused("x,y\n1,0\n", &|table| table.label = None, &["data.label: say which column", "x, y"]);
    refused(
        "x,y\n1,0\n",
        &|table| table.owner = named("site"),
        &["data.owner: no column is named `site`"],
    );
    refused(
        "x,y\n1,0\n",
        &|table| table.leave_out = vec!["y".into()],
        &["is left out (data.leave_out)"],
    );
    refused("x,y\n1,0\n2,b\n", &|table| table.task = Some(Predicted::Number), &["line 3 has `b`"]);
    refused(
        "x,y\nV6,0\n2,1\n",
        &|table| table.read_as = [("x".to_owned(), ReadAs::Number)].into(),
        &["data.as: `x` is to be a number, but line 2 has `V6`"],
    );
    refused(
        "x,y\n1,0\n2,1\n",
        &|table| table.test = "later.csv".into(),
        &["data.test: `later.csv` is neither"],
    );
    refused(
        "x,y,t\n1,0,a\n2,1,b\n",
        &|table| table.test = "t".into(),
        &["data.test: `t` has `a`", "`test` or `train`"],
    );
    refused(
        "x,y\n1,0\n2,1\n",
        &|table| table.test_share = 1.0,
        &["data.test_share: 1 is not a share"],
    );
    let texts: String = (0..60).map(|row| format!("t{row},{}\n", row % 2)).collect();
    refused(
        &format!("x,y\n{texts}"),
        &nothing,
        &["`x` has 60 different texts", "data.leave_out", "category"],
    );
    let days: String = (0..60).map(|row| format!("{row}/3/2024,{}\n", row % 2)).collect();
    refused(&format!("x,y\n{days}"), &nothing, &["days are read as 2024-05-31"]);
    let ages: String = (0..60).map(|row| format!("{row},{}\n", row % 2)).collect();
    refused(
        &format!("x,y\n{ages}V6,0\n"),
        &nothing,
        &["data.missing: `x` has numbers, but also `V6`"],
    );
    refused("x,y\n", &nothing, &["no rows below them"]);
    refused("", &nothing, &["the names of columns"]);
}

#[test]
fn what_is_suspicious_is_told_and_read() {
    let mut text = "id,site_number,site,big,leak,x,y\n".to_owned();
    for row in 0..60_u32 {
        let site = row % 3;
        let y = u32::from(row % 7 > 3);
        text += &format!(
            "{},{},s{site},{},{},{},{y}\n",
            1000 + row,
            10 + site,
            20_000_001 + row % 9,
            5 * y + row % 2,
            row * 31 % 17
        );
    }
    let loaded = read(&text, |table| table.owner = named("site")).unwrap();
    let told = |what: &str| loaded.warnings.iter().filter(|told| told.contains(what)).count();
    assert_eq!(told("`id` has another value in every row"), 1, "{:?}", loaded.warnings);
    assert_eq!(told("`site_number` has one value for each owner"), 1);
    assert_eq!(
        told("`big` has 30 whole numbers above") + told("`big` has"),
        1 + told("`big` has 30 whole")
    );
    assert_eq!(told("`leak` alone tells the label (right about 100.0%"), 1);
    assert_eq!(told("`x`"), 0);
}

#[test]
fn small_owners_are_joined_left_out_or_refused() {
    let mut text = "site,x,y\n".to_owned();
    for (site, count) in [("big", 30), ("small", 3), ("tiny", 2)] {
        (0..count).for_each(|row| text += &format!("{site},{row},{}\n", row % 2));
    }
    let load = |small: Small| {
        let folder = folder(&[("t.csv", &text)]);
        let table = Table { owner: named("site"), least: 5, ..plain(folder.path().join("t.csv")) };
        table.load_for(Draw { seed: 0, small })
    };
    let owners = |loaded: &LoadedData| loaded.data.owners.clone().unwrap().names;
    let joined = load(Small::Join).unwrap();
    assert_eq!((owners(&joined), joined.data.len()), (vec!["big".to_owned(), "others".into()], 35));
    let left = load(Small::LeaveOut).unwrap();
    assert_eq!((owners(&left), left.data.len()), (vec!["big".to_owned()], 30));
    assert_eq!(
        left.not_used[0].why,
        "rows of owners with fewer than data.least = 5 rows: small (3), tiny (2)"
    );
    let told = load(Small::Refuse).unwrap_err().to_string();
    assert!(
        told.starts_with("partition.small: owners with fewer than data.least = 5 rows"),
        "{told}"
    );
}

#[test]
fn rows_without_a_label_or_an_owner_are_counted() {
    let text = "site,x,y\na,1,0\na,2,\n,3,1\nb,4,1\nb,5,NA\n";
    let loaded = read(text, |table| table.owner = named("site")).unwrap();
    let told: Vec<(usize, &str)> =
        loaded.not_used.iter().map(|part| (part.rows, &part.why[..])).collect();
    assert_eq!(told, [(2, "rows without a label"), (1, "rows without an owner")]);
    assert_eq!((loaded.data.len(), rows(&loaded).concat()), (2, vec![1.0, 4.0]));
}

#[test]
fn a_second_path_has_the_test_rows() {
    let folder = folder(&[("t.csv", "x,y\n1,0\n2,1\n"), ("later.csv", "y,x\n0,3\n")]);
    let test = folder.path().join("later.csv").display().to_string();
    let loaded = Table { test, ..plain(folder.path().join("t.csv")) }.load().unwrap();
    assert_eq!((loaded.train, rows(&loaded).concat()), (2, vec![1.0, 2.0, 3.0]));
}

#[test]
fn owners_may_be_scaled_by_themselves() {
    let text = "site,x,y\na,1,0\na,3,1\nb,10,0\nb,30,1\n";
    let mut loaded = read(text, |table| {
        table.owner = named("site");
        table.scale = Scaling::Owner;
    });
    let loaded = loaded.as_mut().unwrap();
    loaded.standardise();
    assert_eq!(rows(loaded).concat(), [-1.0, 1.0, -1.0, 1.0]);
}

#[test]
fn a_label_may_be_a_number() {
    let loaded = read("x,y\n1,10\n2,30\n3,\n4,20\n", |table| table.task = Some(Predicted::Number));
    let loaded = loaded.unwrap();
    let Targets::Numbers { name, scale, .. } = &loaded.data.targets else { panic!() };
    assert_eq!((&name[..], scale.mean, loaded.data.len()), ("y", 20.0, 3));
}

/// Columns that look like numbers at first are read again as texts, and the other way round.
#[test]
fn what_columns_hold_may_show_late() {
    let mut text = "late,blank,y\n".to_owned();
    (0..1500).for_each(|row| text += &format!("{},,{}\n", row % 5, row % 2));
    text += "many,7,0\n8,8,1\n";
    let folder = folder(&[("t.csv", &text)]);
    let loaded = plain(folder.path().join("t.csv")).load().unwrap();
    // late = 0 1 2 3 4 8 many; blank, is missing.
    assert_eq!(rows(&loaded)[1500], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 7.0, 0.0]);
    assert_eq!(rows(&loaded)[0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7.5, 1.0]);
}

#[test]
fn no_bytes_make_it_panic() {
    let folder = folder(&[]);
    let path = folder.path().join("t.csv");
    let whole = b"a,b,y\n1,\"2\",x\n3,4,\xff\xfe\n5,6,z\n2024-01-02,,x\n";
    for len in 0..=whole.len() {
        std::fs::write(&path, &whole[..len]).unwrap();
        let _ = plain(&path).load();
        let _ = Reading::of(&plain(&path), Draw::default());
    }
    for magic in [&b"PAR1"[..], b"\x1f\x8b\x08\0", b"PK\x03\x04", b"\xff\xfe"] {
        std::fs::write(&path, [magic, whole].concat()).unwrap();
        assert!(plain(&path).load().is_err());
    }
}

/// The four centres of the heart disease table, where they are; 36% to 94% positive.
#[test]
fn four_files_of_heart_disease_are_four_owners() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/heart");
    if !folder.is_dir() {
        return;
    }
    let mut table = Table {
        owner: named("file"),
        label: Some(LabelColumn::Index(13)),
        above: Some(0.0),
        header: false,
        ..Table::new(folder.join("*.csv"))
    };
    table.read_as.extend(["2", "6", "10", "12"].map(|name| (name.to_owned(), ReadAs::Category)));
    let reading = Reading::of(&table, Draw::default()).unwrap();
    let owners: Vec<(&str, usize)> =
        reading.owners.iter().map(|owner| (&owner.name[..], owner.rows)).collect();
    assert_eq!(owners, [("cleveland", 303), ("hungarian", 294), ("switzerland", 123), ("va", 200)]);
    let positives: Vec<usize> = reading.owners.iter().filter_map(|owner| owner.positives).collect();
    assert_eq!(positives, [139, 106, 115, 149]);
    // Chest pain 1 to 4 and thal 3, 6, 7, however a hospital writes them.
    let kinds = ["2", "12"]
        .map(|name| reading.columns.iter().find(|column| column.name == name).unwrap().distinct);
    assert_eq!(kinds, [Some(4), Some(3)]);
    assert!(reading.columns.iter().all(|column| column.role != Role::LeftOut));
    let loaded = reading.table().load().unwrap();
    assert_eq!((loaded.data.len(), reading.rows, reading.problems.len()), (920, 920, 0));
}
