use std::collections::BTreeSet;

use proptest::prelude::*;
use rand::SeedableRng;

use super::*;
use crate::data::{ClassRef, Source};

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn classed<'a>(of: &'a [u16], names: &'a [String]) -> TargetsOf<'a> {
    TargetsOf::Classes(Classes { of, names })
}

/// The training labels of the digits and their names.
fn digits() -> (Vec<u16>, Vec<String>) {
    let loaded = Source::default().load().unwrap();
    let classes = loaded.data.targets.classes().unwrap();
    (classes.of[..loaded.train].to_vec(), classes.names.to_vec())
}

fn by_class(q: f64, mix: Mix) -> Partition {
    Partition::ByClass(ByClass { q, mix, ..ByClass::default() })
}

fn any_partition() -> impl Strategy<Value = Partition> {
    let mix = prop_oneof![Just(Mix::AsDescribed), Just(Mix::AsPrinted)];
    prop_oneof![
        (0.0..=1.0, mix).prop_map(|(q, mix)| by_class(q, mix)),
        (-3.0..2.0f64).prop_map(|power| dirichlet(10f64.powf(power))),
        (1..4usize).prop_map(shards),
        Just(Partition::Iid(Iid::default())),
    ]
}

fn dirichlet(alpha: f64) -> Partition {
    Partition::Dirichlet(Dirichlet { alpha, sizes: Sizing::Equal, skew: 1.0 })
}

fn shards(k: usize) -> Partition {
    Partition::Shards(Shards { k, sizes: Sizing::Equal, skew: 1.0 })
}

/// The same way of dealing, to devices of other sizes.
fn sized(partition: Partition, law: Sizing, by: f64) -> Partition {
    let mut table = serde_json::to_value(partition).unwrap();
    (table["sizes"], table["skew"]) = (serde_json::to_value(law).unwrap(), by.into());
    serde_json::from_value(table).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_get_equally_many_and_no_row_goes_to_two(
        partition in any_partition(),
        devices in 1..40usize,
        per_agent in prop::option::of(1..3usize),
        seed: u64,
    ) {
        let (labels, classes) = digits();
        let per_agent = per_agent.map(|sixes| 6 * sixes);
        let deal = Deal { targets: classed(&labels, &classes), owners: None, devices, per_agent };
        let dealt = partition.deal(&deal, &mut rng(seed)).unwrap();
        prop_assert_eq!(dealt.len(), devices);
        prop_assert!(!dealt[0].is_empty());
        prop_assert!(dealt.iter().all(|rows| rows.len() == dealt[0].len()));
        prop_assert!(per_agent.is_none_or(|rows| rows == dealt[0].len()));
        let distinct: BTreeSet<usize> = dealt.iter().flatten().copied().collect();
        prop_assert_eq!(distinct.len(), devices * dealt[0].len());
        prop_assert!(distinct.last().is_none_or(|&row| row < labels.len()));
        prop_assert_eq!(&dealt, &partition.deal(&deal, &mut rng(seed)).unwrap());
        prop_assert_ne!(&dealt, &partition.deal(&deal, &mut rng(seed ^ 1)).unwrap());
    }

    #[test]
    fn unequal_devices_share_as_many_rows_and_a_skew_of_zero_is_equal_bit_for_bit(
        partition in any_partition(),
        devices in 1..20usize,
        law in prop_oneof![Just(Sizing::Power), Just(Sizing::Dirichlet)],
        skew in 0.01..3.0f64,
        seed: u64,
    ) {
        let (labels, classes) = digits();
        // Few enough for one class to serve a device that has nearly everything.
        let deal = Deal { targets: classed(&labels, &classes), owners: None, devices, per_agent: Some(6) };
        let dealt = sized(partition.clone(), law, skew).deal(&deal, &mut rng(seed)).unwrap();
        let distinct: BTreeSet<usize> = dealt.iter().flatten().copied().collect();
        prop_assert_eq!(distinct.len(), dealt.iter().map(Vec::len).sum::<usize>());
        prop_assert_eq!(distinct.len(), 6 * devices);
        prop_assert!(dealt.iter().all(|rows| !rows.is_empty()));
        if law == Sizing::Power {
            // A shard more or less, and the row that an empty share is given.
            let least = if matches!(partition, Partition::Shards(_)) { 6 } else { 1 };
            prop_assert!(dealt[0].len() + least >= dealt[devices - 1].len());
        }
        let equal = partition.deal(&deal, &mut rng(seed)).unwrap();
        for law in [Sizing::Power, Sizing::Dirichlet] {
            let none = sized(partition.clone(), law, 0.0).deal(&deal, &mut rng(seed)).unwrap();
            prop_assert_eq!(&none, &equal);
        }
    }

    #[test]
    fn as_printed_is_as_described_with_one_minus_q(q in 0.0..=1.0f64, seed: u64) {
        let (labels, classes) = digits();
        let deal = Deal { targets: classed(&labels, &classes), owners: None, devices: 10, per_agent: Some(50) };
        let printed = by_class(q, Mix::AsPrinted).deal(&deal, &mut rng(seed)).unwrap();
        let described = by_class(1.0 - q, Mix::AsDescribed).deal(&deal, &mut rng(seed)).unwrap();
        prop_assert_eq!(printed, described);
    }

    #[test]
    fn a_device_keeps_at_least_the_share_q_of_its_own(q in 0.0..=1.0f64, seed: u64) {
        let (labels, classes) = digits();
        let deal = Deal { targets: classed(&labels, &classes), owners: None, devices: 10, per_agent: Some(80) };
        let dealt = by_class(q, Mix::AsDescribed).deal(&deal, &mut rng(seed)).unwrap();
        let counts = Histogram::new(&classes, &labels, dealt).counts;
        for (device, counts) in counts.iter().enumerate() {
            prop_assert!(counts[device] >= (q * 80.0).round() as usize);
        }
    }
}

#[test]
fn the_ends_of_q_are_one_class_and_nearly_iid() {
    let (labels, classes) = digits();
    let deal = Deal {
        targets: classed(&labels, &classes),
        owners: None,
        devices: 10,
        per_agent: Some(100),
    };
    let counts = |q| {
        let dealt = by_class(q, Mix::AsDescribed).deal(&deal, &mut rng(3)).unwrap();
        Histogram::new(&classes, &labels, dealt).counts
    };
    for (device, counts) in counts(1.0).into_iter().enumerate() {
        assert_eq!(counts[device], 100);
    }
    // Counts of about 10 with deviation 3: 25 would be five deviations.
    assert!(counts(0.0).iter().flatten().all(|&count| count < 25));
}

#[test]
fn more_devices_than_classes_start_again_and_fewer_leave_classes_out() {
    let (labels, classes) = digits();
    let pure = by_class(1.0, Mix::AsDescribed);
    // Digit 2 has 142 training rows, digit 8 has 140; of 25 devices three have digit 2.
    for (devices, most) in [(3, 142), (10, 140), (25, 142 / 3)] {
        let deal =
            Deal { targets: classed(&labels, &classes), owners: None, devices, per_agent: None };
        let dealt = pure.deal(&deal, &mut rng(4)).unwrap();
        for (device, rows) in dealt.iter().enumerate() {
            assert!(rows.iter().all(|&row| usize::from(labels[row]) == device % 10));
        }
        assert_eq!(dealt[0].len(), most);
    }
}

#[test]
fn a_map_gives_a_device_several_classes() {
    let (labels, classes) = digits();
    let name = |class: &str| ClassRef::Name(class.into());
    let map = vec![vec![name("0"), name("1"), ClassRef::Index(2)], vec![name("9")]];
    let partition = Partition::ByClass(ByClass { q: 1.0, map: Some(map), ..ByClass::default() });
    let deal =
        Deal { targets: classed(&labels, &classes), owners: None, devices: 3, per_agent: Some(50) };
    let counts =
        Histogram::new(&classes, &labels, partition.deal(&deal, &mut rng(5)).unwrap()).counts;
    assert_eq!(counts[0][..4], [17, 17, 16, 0]);
    assert_eq!(counts[1][9], 50);
    assert_eq!(counts[2], counts[0]);
}

#[test]
fn a_shard_holds_one_class_or_two() {
    let labels: Vec<u16> = (0..1000).map(|row| row % 10).collect();
    let classes: Vec<String> = (0..10).map(|class| class.to_string()).collect();
    let deal =
        Deal { targets: classed(&labels, &classes), owners: None, devices: 20, per_agent: None };
    let dealt = shards(2).deal(&deal, &mut rng(6)).unwrap();
    for counts in Histogram::new(&classes, &labels, dealt).counts {
        assert!(counts.iter().filter(|&&count| count > 0).count() <= 2, "{counts:?}");
    }
}

#[test]
fn what_cannot_be_dealt_says_what_to_lower() {
    let (labels, classes) = digits();
    let told = |partition: &Partition, devices, per_agent| {
        let deal = Deal { targets: classed(&labels, &classes), owners: None, devices, per_agent };
        partition.deal(&deal, &mut rng(7)).unwrap_err().to_string()
    };
    let pure = by_class(1.0, Mix::AsDescribed);
    assert_eq!(
        told(&pure, 21, Some(60)),
        "class 0 has 143 training rows, but the devices need 180 of it at 60 rows each: \
         lower data.per_agent to 47 or less, or lower the number of devices"
    );
    assert!(
        told(&pure, 2000, None).ends_with("lower data.per_agent, or lower the number of devices")
    );
    let iid = Partition::Iid(Iid::default());
    assert_eq!(
        told(&iid, 10, Some(200)),
        "there are 1442 training rows, but 10 devices of 200 rows need 2000: \
         lower data.per_agent to 144 or less, or lower the number of devices"
    );
    assert!(told(&iid, 2000, None).contains("there are 1442 training rows, but 2000 devices of 1"));
    assert!(told(&iid, usize::MAX, Some(usize::MAX)).contains("training rows"));
    assert!(told(&iid, 0, None).starts_with("agents: "));
    assert!(told(&iid, 1, Some(0)).starts_with("data.per_agent: "));
    assert!(told(&by_class(1.5, Mix::AsPrinted), 1, None).starts_with("partition.q: 1.5"));
    assert!(told(&shards(0), 1, None).starts_with("partition.k: 0"));
    assert!(told(&shards(3), 1, Some(10)).contains("not a multiple of partition.k = 3"));
    for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(told(&dirichlet(alpha), 1, None).starts_with("partition.alpha: "));
    }
    let map = |map| Partition::ByClass(ByClass { map: Some(map), ..ByClass::default() });
    assert!(told(&map(vec![vec![]]), 1, None).starts_with("partition.map: "));
    assert!(
        told(&map(vec![vec![ClassRef::Index(10)]]), 1, None)
            .starts_with("partition.map: there is no class 10")
    );
}

#[test]
fn tables_are_read_by_the_name_of_their_kind() {
    let read = |text: &str| toml::from_str::<Partition>(text).map_err(|error| error.to_string());
    assert_eq!(read("kind = 'by-class'").unwrap(), Partition::default());
    let printed = "kind = 'by-class'\nq = 0.5\nmix = 'as-printed'";
    assert_eq!(read(printed).unwrap(), by_class(0.5, Mix::AsPrinted));
    for kind in Partition::LIST.iter().map(|entry| entry.name) {
        let alpha = if kind == "dirichlet" { "alpha = 0.5" } else { "" };
        let partition = read(&format!("kind = '{kind}'\n{alpha}")).unwrap();
        assert_eq!(partition.name(), kind);
        assert_eq!(read(&toml::to_string(&partition).unwrap()).unwrap(), partition);
        assert!(!partition.describe().is_empty());
    }
    assert!(read("kind = 'iid'\nq = 0.5").unwrap_err().contains("unknown field `q`"));
    assert!(read("kind = 'sorted'").unwrap_err().contains("unknown variant `sorted`"));
    assert!(
        read("kind = 'by-class'\nmix = 'printed'")
            .unwrap_err()
            .contains("unknown variant `printed`")
    );
}

#[test]
fn the_reading_of_q_is_always_named() {
    assert_eq!(
        by_class(0.9, Mix::AsPrinted).describe(),
        "one class a device, q = 0.9 as printed (keeps 10% of its own)"
    );
    assert_eq!(
        Partition::default().describe(),
        "one class a device, q = 0.9 as described (keeps 90% of its own)"
    );
}

/// Three owners of ten rows whose targets are numbers.
fn owned(partition: &Partition, devices: usize, owners: Option<&Owners>) -> Dealt {
    let numbers: Vec<f32> = (0..10).map(|row| row as f32).collect();
    let targets = TargetsOf::Numbers { of: &numbers, name: "price" };
    partition.deal(&Deal { targets, owners, devices, per_agent: None }, &mut rng(1))
}

#[test]
fn kinds_that_deal_by_class_refuse_numbers_by_name() {
    let mut refused = Vec::new();
    for kind in Partition::LIST.iter().map(|entry| entry.name).filter(|kind| *kind != "owner") {
        let partition: Partition = toml::from_str(&format!(
            "kind = '{kind}'\n{}",
            if kind == "dirichlet" { "alpha = 1.0" } else { "" }
        ))
        .unwrap();
        if let Err(error) = owned(&partition, 3, None) {
            let told = error.to_string();
            assert!(told.starts_with(&format!("partition.kind: \"{kind}\" deals")), "{told}");
            assert!(told.contains("`price` is a number"), "{told}");
            refused.push(kind);
        }
    }
    assert_eq!(refused, ["by-class", "dirichlet", "shards"]);
    let unequal = Partition::Iid(Iid { sizes: Sizing::Power, skew: 1.0 });
    let sizes: Vec<usize> = owned(&unequal, 3, None).unwrap().iter().map(Vec::len).collect();
    assert!(sizes[0] > sizes[2] && sizes.iter().sum::<usize>() == 9, "{sizes:?}");
}

#[test]
fn owners_have_their_own_rows_all_of_them_in_order() {
    let partition = Partition::Owner(Owner::default());
    let names = ["Bern", "Oslo"].map(String::from).to_vec();
    let owners = Owners { names, of: vec![1, 0, 0, 1, 1, 0, 1, 1, 1, 0] };
    let dealt = owned(&partition, 2, Some(&owners)).unwrap();
    assert_eq!(dealt, [vec![1, 2, 5, 9], vec![0, 3, 4, 6, 7, 8]]);
    assert_eq!(partition.devices(0, Some(&owners)).unwrap(), 2);
    let told = partition.devices(5, Some(&owners)).unwrap_err().to_string();
    assert!(told.starts_with("agents: 5 are asked for, but data.owner names 2"), "{told}");
    let told = partition.devices(0, None).unwrap_err().to_string();
    assert!(told.starts_with("partition.kind: \"owner\" needs data.owner"), "{told}");
}
