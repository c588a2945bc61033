use super::*;
use crate::data::{ClassRef, Data, Row, Source, Targets};
use crate::partition::{ByClass, Dirichlet, Iid, Shards, Sizing};
use proptest::prelude::*;
use rand::SeedableRng;

fn sizes(agents: usize, population: Option<usize>, per_agent: Option<usize>) -> Sizes {
    Sizes { agents, population, per_agent }
}

fn digits(partition: &Partition, sizes: Sizes, seed: u64) -> Result<Population, DataError> {
    let loaded = Data::default().load().unwrap();
    Population::new(loaded, partition, sizes, &mut ChaCha8Rng::seed_from_u64(seed))
}

/// The class of every row.
fn labels(population: &Population) -> &[u16] {
    population.data().targets.classes().unwrap().of
}

fn pure() -> Partition {
    Partition::ByClass(ByClass { q: 1.0, ..ByClass::default() })
}

#[test]
fn every_agent_has_its_rows_side_by_side() {
    let population = digits(&pure(), sizes(10, None, Some(100)), 1).unwrap();
    assert_eq!(population.place(9), Some(900..1000));
    for agent in 0..10 {
        let rows = population.place(agent).unwrap();
        assert!(rows.clone().all(|row| population.data().targets.kind(row) == agent));
    }
    assert_eq!(population.histogram().unwrap().counts[3][3], 100);
    assert_eq!(population.population(), Some(1000..1355));
}

#[test]
fn unequal_agents_have_their_own_ranges_and_the_first_has_half() {
    let unequal = Iid { sizes: Sizing::Power, skew: 1.5 };
    let population = digits(&Partition::Iid(unequal), sizes(10, None, None), 3).unwrap();
    let rows = population.sizes();
    assert_eq!(rows.iter().sum::<usize>(), 1440);
    assert!((715..=725).contains(&rows[0]) && rows[9] < 30, "{rows:?}");
    assert!(rows.is_sorted_by(|a, b| a >= b), "{rows:?}");
    assert_eq!((population.place(1).unwrap().start, population.per_agent()), (rows[0], 144));
    assert_eq!(population.test().start, 1440);
    let counted: usize = population.histogram().unwrap().counts[0].iter().sum();
    assert_eq!(counted, rows[0]);
}

#[test]
fn rows_can_be_lined_up_by_class_each_agents_own_first() {
    let population = digits(&Partition::default(), sizes(10, None, None), 2).unwrap();
    let lined = population.clone().by_class();
    assert_eq!(lined.histogram(), population.histogram());
    for agent in 0..10 {
        let labels = &labels(&lined)[lined.place(agent).unwrap()];
        let runs = 1 + labels.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let classes: std::collections::HashSet<_> = labels.iter().collect();
        assert_eq!((usize::from(labels[0]), runs), (agent, classes.len()));
    }
}

#[test]
fn images_and_labels_stay_together() {
    let whole = Source::default().load().unwrap().data;
    let known: std::collections::HashMap<Vec<u8>, usize> = (0..whole.len())
        .map(|row| match whole.row(row) {
            Row::Bytes(bytes) => (bytes.to_vec(), whole.targets.kind(row)),
            Row::Floats(_) => panic!("digits are bytes"),
        })
        .collect();
    let population = digits(&Partition::default(), sizes(10, None, None), 2).unwrap();
    let data = population.data();
    for row in 0..data.len() {
        let Row::Bytes(bytes) = data.row(row) else { panic!("digits are bytes") };
        assert_eq!(known[bytes], data.targets.kind(row));
    }
}

#[test]
fn devices_that_do_not_take_part_stand_for_the_population() {
    let partition = Partition::Iid(Iid::default());
    let population = digits(&partition, sizes(4, Some(20), Some(50)), 3).unwrap();
    assert_eq!(population.agents(), 4);
    assert_eq!(population.population(), Some(200..1000));
    assert_eq!(population.test().len(), 355);
    // Which devices take part is random, their order is not.
    let chosen = |seed| -> Vec<u16> {
        let population = digits(&pure(), sizes(4, Some(10), Some(50)), seed).unwrap();
        let first = |agent| labels(&population)[population.place(agent).unwrap().start];
        (0..4).map(first).collect()
    };
    assert!((0..10).all(|seed| chosen(seed).is_sorted()));
    assert!((0..10).any(|seed| chosen(seed) != chosen(0)));
    assert_eq!(chosen(5), chosen(5));
}

#[test]
fn the_test_rows_are_of_classes_somebody_has() {
    let population = digits(&pure(), sizes(3, None, None), 4).unwrap();
    assert!(labels(&population).iter().all(|&label| label < 3));
}

#[test]
fn a_population_smaller_than_its_agents_is_refused() {
    let error = digits(&pure(), sizes(5, Some(4), None), 5).unwrap_err();
    assert_eq!(error.to_string(), "population: 4 devices are fewer than agents = 5");
}

#[test]
fn drawn_rows_are_those_of_the_data_with_their_labels_and_nothing_is_kept_about_agents() {
    let loaded = || Data::default().load().unwrap();
    let (whole, train) = (loaded().data, loaded().train);
    let drawn = |sizes| Population::drawn(loaded(), &pure(), sizes, Seed(3));
    let population = drawn(sizes(1_000_000, None, Some(40))).unwrap();
    assert_eq!((population.agents(), population.per_agent()), (1_000_000, 40));
    assert_eq!(population.data().len(), whole.len(), "the rows are there once");
    assert_eq!((population.test(), population.population()), (train..1797, Some(train..1797)));
    let rows = population.agent(999_997);
    let rows = rows.view().unwrap();
    assert!(rows.targets() == RowTargets::Classes(&[7; 40]));
    let RowsData::Bytes { rows: bytes, .. } = rows.data() else { panic!("digits are bytes") };
    let known = |one: &[u8]| {
        (0..train).any(|row| whole.row(row) == Row::Bytes(one) && whole.targets.kind(row) == 7)
    };
    assert!(bytes.chunks_exact(64).all(known));
    let error = drawn(sizes(5, Some(9), Some(40))).unwrap_err().to_string();
    assert!(error.contains("population") && error.contains("data.replace"), "{error}");
    let few = drawn(sizes(3, None, Some(10))).unwrap();
    assert!(labels(&few)[few.test()].iter().all(|label| *label < 3));
    assert_eq!(few.histogram().unwrap().counts[2][2], 10);
}
/// Rows that know their number in the file: it is their only feature.
fn numbered(labels: &[u16], classes: u16, test_share: usize) -> LoadedData {
    let train = labels.len() - labels.len() * test_share / 10;
    LoadedData {
        data: Dataset {
            groups: None,
            name: "numbered".into(),
            inputs: Inputs::Floats {
                rows: (0..labels.len()).map(|row| row as f32).collect(),
                features: 1,
            },
            image: None,
            targets: Targets::Classes {
                of: labels.to_vec(),
                names: (0..classes).map(|class| class.to_string()).collect(),
            },
            owners: None,
        },
        train,
        channels: crate::data::Channels::PerFeature,
        left_out: 0,
        not_used: Vec::new(),
        warnings: Vec::new(),
    }
}

fn any_partition() -> impl Strategy<Value = Partition> {
    let map = vec![vec![ClassRef::Index(0)], vec![ClassRef::Index(1), ClassRef::Index(0)]];
    let by_class = move |q: f64, mapped: bool, sizes: Sizing| {
        let map = mapped.then(|| map.clone());
        Partition::ByClass(ByClass { q, map, sizes, ..ByClass::default() })
    };
    let sizes = || prop_oneof![Just(Sizing::Equal), Just(Sizing::Power)];
    prop_oneof![
        (0.0..=1.0, any::<bool>(), sizes())
            .prop_map(move |(q, mapped, sizes)| by_class(q, mapped, sizes)),
        sizes().prop_map(|sizes| Partition::Iid(Iid { sizes, skew: 1.0 })),
        (0.1..2.0f64, sizes()).prop_map(|(alpha, sizes)| {
            Partition::Dirichlet(Dirichlet { alpha, sizes, skew: 1.0 })
        }),
        (1..4usize)
            .prop_map(|k| { Partition::Shards(Shards { k, sizes: Sizing::Equal, skew: 1.0 }) }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_row_is_in_exactly_one_place_and_the_line_counts_them_all(
        labels in prop::collection::vec(0u16..4, 20..120),
        kept in prop::option::of(1..4usize),
        test_share in 0..5usize,
        partition in any_partition(),
        agents in 1..7usize,
        more in 0..4usize,
        per_agent in prop::option::of(1..4usize),
        replace: bool,
        seed: u64,
    ) {
        let mut loaded = numbered(&labels, 4, test_share);
        if let Some(kept) = kept {
            let classes: Vec<ClassRef> = (0..=kept).map(ClassRef::Index).collect();
            loaded.select(&classes).unwrap();
        }
        let train = loaded.train;
        let per_agent = if replace { Some(per_agent.unwrap_or(2)) } else { per_agent };
        let population = match replace {
            true => Population::drawn(loaded, &partition, sizes(agents, None, per_agent), Seed(seed)),
            false => {
                let sizes = sizes(agents, (more > 0).then_some(agents + more), per_agent);
                Population::new(loaded, &partition, sizes, &mut ChaCha8Rng::seed_from_u64(seed))
            }
        };
        // Too few rows for so many agents is refused, and not what this is about.
        let Ok(population) = population else { return Ok(()) };
        let rows = population.rows();
        prop_assert_eq!(rows.read, labels.len());
        prop_assert_eq!(rows.dealt + rows.held_out + rows.test + rows.unused(), rows.read);
        prop_assert!(rows.unused.iter().all(|part| part.rows > 0 && !part.why.is_empty()));
        prop_assert_eq!(rows.test, population.test().len());
        prop_assert_eq!(rows.held_out, population.held_out().len());
        // What is here, is here once.
        let number = |row: usize| match population.data().row(row) {
            Row::Floats(features) => features[0] as usize,
            Row::Bytes(_) => unreachable!("these rows are floats"),
        };
        let here: Vec<usize> = (0..population.data().len()).map(number).collect();
        let once: std::collections::BTreeSet<usize> = here.iter().copied().collect();
        prop_assert_eq!(once.len(), here.len());
        prop_assert_eq!(replace, rows.drawn);
        if replace {
            let known = |agent| population.kinds_of(agent).into_iter().enumerate();
            let held = (0..agents).flat_map(known).filter(|(_, rows)| *rows > 0);
            let drawn: std::collections::BTreeSet<usize> = held.map(|(class, _)| class).collect();
            let none = rows.unused.iter().find(|part| part.why.contains("leaves out"));
            prop_assert!(rows.dealt + none.map_or(0, |part| part.rows) <= train);
            prop_assert!(drawn.len() <= rows.dealt);
        } else {
            prop_assert_eq!(population.sizes().iter().sum::<usize>(), rows.dealt);
            prop_assert_eq!(here.len() + rows.unused(), rows.read);
        }
        // The warning is about what nobody asked for, and about nothing less than a tenth.
        let unasked: usize =
            rows.unused.iter().filter(|part| !part.asked && !part.why.starts_with("test")).map(|part| part.rows).sum();
        prop_assert_eq!(population.warning.is_some(), unasked as f64 > 0.1 * train as f64);
    }
}

#[test]
fn a_small_class_that_keeps_all_agents_small_is_named_and_warned_about() {
    let labels: Vec<u16> = (0..300).map(|row| if row % 100 == 0 { 2 } else { row % 2 }).collect();
    let deal = |partition: &Partition, agents, per_agent| {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let loaded = numbered(&labels, 3, 0);
        Population::new(loaded, partition, sizes(agents, None, per_agent), &mut rng).unwrap()
    };
    let few = deal(&pure(), 3, None);
    assert_eq!((few.rows().dealt, few.rows().unused()), (9, 291));
    let [warning] = &few.warnings()[..] else { panic!("{:?}", few.warnings()) };
    for told in ["291 of 300 training rows (97%)", "class `2` has no more", "data.per_agent = 3"] {
        assert!(warning.contains(told), "{warning}");
    }
    // Who says so needs no warning, and is told all the same.
    let stated = deal(&pure(), 3, Some(3));
    assert_eq!(stated.warnings(), Vec::<String>::new());
    assert_eq!(stated.rows().unused[0].why, "data.per_agent = 3");
    let two = deal(&pure(), 2, None);
    assert!(two.rows().unused.iter().any(|part| part.why.contains("leaves out class `2`")));
    assert_eq!(two.warnings(), Vec::<String>::new(), "three rows of 300 are few");
    let iid = deal(&Partition::Iid(Iid::default()), 7, None);
    assert_eq!((iid.rows().unused(), iid.warnings().len()), (300 % 7, 0));
}

#[test]
fn rows_of_one_class_teach_nothing_and_that_is_said() {
    let loaded = numbered(&[0; 30], 1, 0);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let iid = Partition::Iid(Iid::default());
    let population = Population::new(loaded, &iid, sizes(3, None, None), &mut rng).unwrap();
    assert!(population.warnings()[0].contains("one class, `0`"), "{:?}", population.warnings());
}

/// Of every owner, test rows lie side by side, too, in the order of the file.
#[test]
fn test_rows_of_an_owner_are_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("table.csv");
    let line = |row: usize| format!("{},{row},{}\n", ["b", "c", "a"][row % 3], row % 2);
    let rows: String = (0..60).map(line).collect();
    std::fs::write(&path, format!("owner,a,y\n{rows}")).unwrap();
    let owner = Some(crate::data::LabelColumn::Name("owner".into()));
    let csv = crate::data::Csv { owner, ..crate::data::Csv::new(&path) };
    let loaded = Source::Csv(csv).load().unwrap();
    let owned = crate::partition::Owner::default();
    let new = |partition: &Partition| {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        Population::new(loaded.clone(), partition, sizes(0, None, None), &mut rng)
    };
    let population = new(&Partition::Owner(owned)).unwrap();
    let mut end = population.test().start;
    for agent in 0..3 {
        let rows = population.held_back(agent).unwrap();
        assert_eq!((rows.start, rows.len()), (end, 4), "agent {agent}");
        end = rows.end;
        // The only feature is the row's number: every third row is of one owner.
        let place = |row: usize| match population.data().row(row) {
            Row::Floats(values) => values[0],
            Row::Bytes(_) => unreachable!("a table"),
        };
        let first = place(population.place(agent).unwrap().start);
        assert!(rows.clone().all(|row| (place(row) - first) % 3.0 == 0.0));
        assert!(rows.clone().map(place).is_sorted_by(|a, b| a < b));
    }
    assert_eq!((end, population.held_back(3)), (population.data().len(), None));
    let dealt = digits(&pure(), sizes(10, None, Some(100)), 1).unwrap();
    assert_eq!(dealt.held_back(0), None, "nobody says whose they are");
}
