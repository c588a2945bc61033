use super::*;
use fedstay::list::Listed;

fn table(text: &str) -> Result<Data, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

fn digits(text: &str) -> Result<Data, String> {
    table(&format!("kind = 'digits'\n{text}"))
}

#[test]
fn keys_of_the_kind_and_of_all_kinds_stand_side_by_side() {
    assert_eq!(table("kind = 'digits'").unwrap(), Data::default());
    let data = table("kind = 'digits'\nper_agent = 20\ntest_share = 0.5").unwrap();
    assert_eq!(data.per_agent, Some(20));
    assert_eq!(data.source, Source::Digits(Digits { test_share: 0.5 }));
}

#[test]
fn every_kind_is_read_from_its_name() {
    for kind in Source::LIST.iter().map(|entry| entry.name) {
        let path = Source::parameters(kind).needed.map_or("", |_| "path = 'mine'");
        let data = table(&format!("kind = '{kind}'\n{path}\nclasses = [0, 'x']")).unwrap();
        assert_eq!(data.source.name(), kind);
        assert_eq!(data.classes, Some(vec![ClassRef::Index(0), ClassRef::Name("x".into())]));
        let written = toml::to_string(&data).unwrap();
        assert_eq!(table(&written).unwrap(), data, "{written}");
    }
}

#[test]
fn unknown_kinds_and_keys_are_refused() {
    assert!(table("kind = 'cifar100'").unwrap_err().contains("unknown variant `cifar100`"));
    assert!(
        table("kind = 'digits'\nper_agnet = 3").unwrap_err().contains("unknown field `per_agnet`")
    );
    assert!(table("kind = 'csv'").unwrap_err().contains("missing field `path`"));
    let error = table("kind = 'mnist'\ntest_share = 0.1").unwrap_err();
    assert!(error.contains("unknown field `test_share`"), "{error}");
}

#[test]
fn chosen_classes_are_renumbered_and_the_split_is_kept() {
    let data = digits("classes = ['7', 2]").unwrap();
    let loaded = data.load().unwrap();
    assert_eq!(loaded.data.targets.classes().unwrap().names, ["7", "2"]);
    let whole = Source::default().load().unwrap();
    let (train, all) = [0..whole.train, 0..1797].map(|rows| whole.data.targets.counts(rows)).into();
    assert_eq!(loaded.data.targets.counts(0..loaded.train), [train[7], train[2]]);
    assert_eq!(loaded.data.targets.counts(0..loaded.data.len()), [all[7], all[2]]);
}

#[test]
fn classes_that_are_not_there_or_twice_are_refused() {
    let error = digits("classes = ['seven']").unwrap().load().unwrap_err().to_string();
    assert!(
        error.starts_with("data.classes: there is no class `seven`; digits has 0, 1"),
        "{error}"
    );
    let error = digits("classes = [10]").unwrap().load().unwrap_err().to_string();
    assert!(error.starts_with("data.classes: there is no class 10"), "{error}");
    let error = digits("classes = [1, '1']").unwrap().load().unwrap_err().to_string();
    assert_eq!(error, "data.classes: 1 is named twice");
}
