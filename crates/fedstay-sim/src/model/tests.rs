//! Laws that hold for every model on every instruction set.

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use fedstay_kernels::Isa;

/// A sample to borrow rows from, as bytes and as the floats they stand for.
pub(super) struct Sample {
    bytes: Vec<u8>,
    scale: Vec<f32>,
    shift: Vec<f32>,
    floats: Vec<f32>,
    pub(super) targets: Targets,
}

/// What a model is to say of the rows: all labels or all numbers.
#[derive(Clone)]
pub(super) enum Targets {
    Classes(Vec<u16>),
    Numbers(Vec<f32>),
}

impl Targets {
    fn rows(&self) -> RowTargets<'_> {
        match self {
            Self::Classes(labels) => RowTargets::Classes(labels),
            Self::Numbers(numbers) => RowTargets::Numbers(numbers),
        }
    }

    fn labels(&self) -> &[u16] {
        match self {
            Self::Classes(labels) => labels,
            Self::Numbers(_) => panic!("these rows have numbers"),
        }
    }
}

impl Sample {
    pub(super) fn new(
        samples: usize,
        input: impl Into<Input>,
        output: impl Into<Output>,
        seed: u64,
    ) -> Self {
        let features = input.into().features;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut bytes = vec![0; samples * features];
        rng.fill_bytes(&mut bytes);
        let scale: Vec<f32> = (0..features).map(|j| (1.0 + (j % 3) as f32) / 150.0).collect();
        let shift: Vec<f32> = (0..features).map(|j| -1.0 + (j % 5) as f32 * 0.1).collect();
        let floats = bytes.iter().enumerate();
        let floats = floats.map(|(i, b)| f32::from(*b) * scale[i % features] + shift[i % features]);
        let floats = floats.collect();
        let mut below = |count: u32| rng.next_u32() % count;
        let targets = match output.into() {
            Output::Classes(classes) => {
                Targets::Classes((0..samples).map(|_| below(classes as u32) as u16).collect())
            }
            Output::Number => {
                Targets::Numbers((0..samples).map(|_| below(4001) as f32 * 1e-3 - 2.0).collect())
            }
        };
        Self { bytes, scale, shift, floats, targets }
    }

    pub(super) fn bytes(&self) -> Rows<'_> {
        let data = RowsData::Bytes { rows: &self.bytes, scale: &self.scale, shift: &self.shift };
        Rows::new(data, self.targets.rows()).unwrap()
    }

    pub(super) fn floats(&self) -> Rows<'_> {
        let data = RowsData::Floats { rows: &self.floats, features: self.scale.len() };
        Rows::new(data, self.targets.rows()).unwrap()
    }
}

pub(super) fn mlp(hidden: &[usize], activation: Activation, init: Init) -> Model {
    Model::Mlp(Mlp { hidden: hidden.to_vec(), activation, init })
}

/// Every kind, with shapes on both sides of the kernels' tiles and blocks.
pub(super) fn models() -> Vec<(Model, Input, Output)> {
    let image = Image { channels: 2, height: 17, width: 22 };
    let grey = Image { channels: 1, height: 16, width: 36 };
    let cnn = |channels, activation| {
        Model::Cnn(Cnn { channels, hidden: vec![5], activation, init: Init::Torch })
    };
    vec![
        (Model::SoftmaxRegression(SoftmaxRegression { init: Init::Torch }), 12.into(), 5.into()),
        (Model::SoftmaxRegression(SoftmaxRegression { init: Init::He }), 7.into(), 19.into()),
        (Model::LogisticRegression(LogisticRegression { init: Init::Torch }), 8.into(), 2.into()),
        (mlp(&[6], Activation::Softplus, Init::Torch), 12.into(), 3.into()),
        (mlp(&[18], Activation::Tanh, Init::He), 9.into(), 4.into()),
        (mlp(&[5], Activation::Relu, Init::Torch), 4.into(), 3.into()),
        (mlp(&[7, 5], Activation::Softplus, Init::He), 10.into(), 3.into()),
        (mlp(&[6, 3, 5], Activation::Tanh, Init::Torch), 5.into(), 2.into()),
        (mlp(&[], Activation::Relu, Init::Torch), 6.into(), 3.into()),
        (mlp(&[34], Activation::Softplus, Init::Torch), 68.into(), 2.into()),
        (cnn([2, 3], Activation::Relu), image.into(), 3.into()),
        (cnn([1, 2], Activation::Tanh), grey.into(), 4.into()),
        (
            Model::LinearRegression(LinearRegression { init: Init::Torch }),
            12.into(),
            Output::Number,
        ),
        (mlp(&[6], Activation::Softplus, Init::Torch), 12.into(), Output::Number),
        (mlp(&[7, 5], Activation::Tanh, Init::He), 9.into(), Output::Number),
    ]
}

pub(super) fn start(network: &Network, seed: u64) -> Vec<f64> {
    let weights = network.initial_weights(&mut ChaCha8Rng::seed_from_u64(seed));
    // The values agents compute with, so that a reference sees the same.
    weights.into_iter().map(|weight| f64::from(weight as f32)).collect()
}

pub(super) fn assert_close(got: &[f32], want: &[f64], tolerance: f64, what: &str) {
    let size = want.iter().fold(0.0f64, |size, value| size.max(value.abs()));
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(*got) - want).abs();
        assert!(error <= tolerance * size, "{what}: parameter {i} is {got}, not {want}");
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    for (model, features, classes) in models() {
        let network = model.network(features, classes).unwrap();
        let data = Sample::new(23, features, classes, 3);
        let weights = start(&network, 5);
        let batch: Vec<u32> = (0..17).map(|i| i * 5 % 23).collect();
        let want = reference::gradient(&network, &weights, &data.floats(), &batch);
        let want_loss = reference::mean_loss(&network, &weights, &data.floats(), &batch);
        let loaded = network.load(&weights).unwrap();
        for isa in Isa::available() {
            for rows in [data.bytes(), data.floats()] {
                let mut gradient = vec![f32::NAN; weights.len()];
                let batch = Batch::Rows(&batch);
                let work = &mut Workspace::with_isa(isa);
                let loss =
                    network.loss_and_gradient(&loaded, &rows, batch, &mut gradient, work).unwrap();
                assert_close(&gradient, &want, 3e-6, &format!("{model:?} {isa:?}"));
                assert!((loss - want_loss).abs() < 1e-6 * want_loss);
            }
        }
    }
}

/// By how much the loss halfway between two random points exceeds the mean of the losses there:
/// never, for a convex one.
fn bulge(
    model: &Model,
    features: impl Into<Input> + Copy,
    classes: impl Into<Output> + Copy,
) -> f64 {
    let network = model.network(features, classes).unwrap();
    let data = Sample::new(40, features, classes, 11);
    let all: Vec<u32> = (0..40).collect();
    let loss = |weights: &[f64]| reference::mean_loss(&network, weights, &data.floats(), &all);
    let bulges = (0..50).map(|seed| {
        let [a, b] = [start(&network, 2 * seed), start(&network, 2 * seed + 1)];
        // Farther apart than where training starts, so that curvature shows.
        let [a, b] = [a, b].map(|w| w.iter().map(|value| 8.0 * value).collect::<Vec<f64>>());
        let middle: Vec<f64> = a.iter().zip(&b).map(|(a, b)| 0.5 * (a + b)).collect();
        loss(&middle) - 0.5 * (loss(&a) + loss(&b))
    });
    bulges.fold(f64::NEG_INFINITY, f64::max)
}

#[test]
fn a_model_is_convex_only_if_it_says_so_and_then_it_is() {
    for (model, features, classes) in models() {
        let kind = model.name();
        let about = Model::LIST.iter().find(|entry| entry.name == kind).unwrap().about;
        assert_eq!(about.ends_with("convex"), model.is_convex(), "{kind}: {about}");
        if model.is_convex() {
            assert!(bulge(&model, features, classes) <= 1e-9, "{model:?}");
        }
    }
    // The test can fail: a network with hidden units is caught.
    assert!(bulge(&mlp(&[6], Activation::Tanh, Init::He), 12, 3) > 0.01);
}

#[test]
fn a_model_too_large_for_memory_is_refused_before_memory_is_taken() {
    let refused = |hidden: &[usize]| {
        let model = mlp(hidden, Activation::Relu, Init::Torch);
        let early = model.check().err();
        let late = model.network(64, 10).unwrap_err();
        (early, late)
    };
    let absurd = 1usize << 32;
    for hidden in [&[1_000_000_000][..], &[50_000, 50_000], &[absurd, absurd], &[usize::MAX; 3]] {
        let (early, late) = refused(hidden);
        assert!(matches!(early, Some(Error::TooManyWeights { .. })), "{hidden:?}: {early:?}");
        assert!(matches!(late, Error::TooManyWeights { .. }), "{hidden:?}: {late}");
    }
    // This one is too large only together with its inputs.
    let (early, late) = refused(&[10_000_000]);
    assert_eq!(early, None);
    assert!(matches!(late, Error::TooManyWeights { weights: 750_000_010, .. }), "{late}");
    let (early, _) = refused(&[1; 20_000]);
    assert_eq!(early, Some(Error::TooManyLayers { layers: 20_000, most: 100 }));
}

#[test]
fn full_batches_span_tiles() {
    let network = mlp(&[20], Activation::Softplus, Init::Torch).network(130, 4).unwrap();
    let data = Sample::new(600, 130, 4, 1);
    let weights = start(&network, 2);
    let loaded = network.load(&weights).unwrap();
    let mut want = vec![0.0f64; weights.len()];
    let mut part = vec![0.0f32; weights.len()];
    let work = &mut Workspace::with_isa(Isa::PORTABLE);
    for row in 0..600 {
        let batch = [row];
        network
            .loss_and_gradient(&loaded, &data.floats(), Batch::Rows(&batch), &mut part, work)
            .unwrap();
        want.iter_mut().zip(&part).for_each(|(want, part)| *want += f64::from(*part) / 600.0);
    }
    for isa in Isa::available() {
        let work = &mut Workspace::with_isa(isa);
        let loss =
            network.loss_and_gradient(&loaded, &data.bytes(), Batch::All, &mut part, work).unwrap();
        assert_close(&part, &want, 1e-5, &format!("{isa:?}"));
        let full = network.evaluate(&loaded, &data.bytes(), None, work).unwrap();
        assert!((loss - full.loss).abs() < 1e-6 * loss);
    }
}

#[test]
fn losses_agree_with_the_reference() {
    for (model, features, classes) in models() {
        let network = model.network(features, classes).unwrap();
        let data = Sample::new(300, features, classes, 4);
        let weights = start(&network, 6);
        let loaded = network.load(&weights).unwrap();
        let losses = reference::losses(&network, &weights, &data.floats());
        let want = losses.iter().sum::<f64>() / 300.0;
        for isa in Isa::available() {
            for rows in [data.bytes(), data.floats()] {
                let work = &mut Workspace::with_isa(isa);
                let got = network.evaluate(&loaded, &rows, None, work).unwrap();
                assert!(
                    (got.loss - want).abs() < 1e-6 * want,
                    "{model:?} {isa:?} {} {want}",
                    got.loss
                );
                assert_eq!(got.samples, 300);
                let right = |row: &usize| {
                    let z = reference::outputs(&network, &weights, &rows, *row);
                    let label = usize::from(data.targets.labels()[*row]);
                    match z.len() {
                        1 => usize::from(z[0] > 0.0) == label,
                        _ => z.iter().all(|other| *other <= z[label]),
                    }
                };
                let correct = (classes != Output::Number).then(|| (0..300).filter(right).count());
                assert_eq!(got.correct, correct, "{model:?} {isa:?}");
            }
        }
    }
}

#[test]
fn local_steps_are_steps() {
    let (eta, mu) = (0.05, 0.3);
    for (model, features, classes) in models() {
        let network = model.network(features, classes).unwrap();
        let data = Sample::new(100, features, classes, 7);
        let received = network.load(&start(&network, 8)).unwrap();
        let index: Vec<Vec<u32>> =
            (0..4).map(|k| (0..9 + k).map(|i| (i * 7 + k) % 100).collect()).collect();
        // The third batch is larger than a tile of every kernel but the portable ones.
        let mut batches: Vec<Batch<'_>> = index.iter().map(|index| Batch::Rows(index)).collect();
        batches[2] = Batch::All;
        for isa in Isa::available() {
            let work = &mut Workspace::with_isa(isa);
            let rows = data.bytes();
            // One gradient at a time, the weights moved between them in f64.
            let mut u: Vec<f64> = received.flat().iter().map(|w| f64::from(*w)).collect();
            let mut want = vec![0.0; u.len()];
            let mut gradient = vec![0.0; u.len()];
            let mut want_loss = 0.0;
            for batch in &batches {
                let loaded = network.load(&u).unwrap();
                want_loss +=
                    network.loss_and_gradient(&loaded, &rows, *batch, &mut gradient, work).unwrap()
                        / 4.0;
                for i in 0..u.len() {
                    let pull = f64::from(mu) * (u[i] - f64::from(received.flat()[i]));
                    let g = f64::from(gradient[i]) + pull;
                    want[i] += g / 4.0;
                    u[i] -= f64::from(eta) * g;
                }
            }
            let walk = Walk::Descend { eta, mu };
            let mut direction = vec![f32::NAN; u.len()];
            let loss = network
                .local_steps(&received, &rows, &batches, walk, &mut direction, work)
                .unwrap();
            assert_close(&direction, &want, 1e-5, &format!("{model:?} {isa:?}"));
            assert!((loss - want_loss).abs() < 1e-5 * want_loss);
            let end = received.displaced(&direction, -4.0 * eta).unwrap();
            assert_close(end.flat(), &u, 1e-5, "the end of the walk");
        }
    }
}

#[test]
fn standing_averages_gradients_at_one_place() {
    let network = mlp(&[9], Activation::Softplus, Init::Torch).network(20, 3).unwrap();
    let data = Sample::new(64, 20, 3, 9);
    let loaded = network.load(&start(&network, 1)).unwrap();
    let work = &mut Workspace::new();
    let halves: Vec<Vec<u32>> = vec![(0..32).collect(), (32..64).collect()];
    let batches: Vec<Batch<'_>> = halves.iter().map(|half| Batch::Rows(half)).collect();
    let (mut two, mut all) = (vec![0.0; loaded.flat().len()], vec![0.0; loaded.flat().len()]);
    network.local_steps(&loaded, &data.bytes(), &batches, Walk::Stand, &mut two, work).unwrap();
    network.loss_and_gradient(&loaded, &data.bytes(), Batch::All, &mut all, work).unwrap();
    let all: Vec<f64> = all.into_iter().map(f64::from).collect();
    assert_close(&two, &all, 1e-5, "halves");
}

#[test]
fn a_reused_workspace_changes_nothing() {
    for isa in Isa::available() {
        let shared = &mut Workspace::with_isa(isa);
        for (model, features, classes) in models().into_iter().chain(models().into_iter().rev()) {
            let network = model.network(features, classes).unwrap();
            let data = Sample::new(90, features, classes, 2);
            let loaded = network.load(&start(&network, 1)).unwrap();
            let run = |work: &mut Workspace| {
                let mut direction = vec![0.0; loaded.flat().len()];
                let batches = [Batch::Rows(&[1, 2, 3]), Batch::All, Batch::Rows(&[4, 4])];
                let walk = Walk::Descend { eta: 0.1, mu: 0.0 };
                let rows = data.bytes();
                network.local_steps(&loaded, &rows, &batches, walk, &mut direction, work).unwrap();
                (direction, network.evaluate(&loaded, &rows, None, work).unwrap())
            };
            assert_eq!(run(shared), run(&mut Workspace::with_isa(isa)), "{model:?} {isa:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The law of early exit: at any weights and bound, in any order of the rows, on any kernel,
    /// the decision is the comparison that the full evaluation makes.
    #[test]
    fn decisions_are_those_of_full_evaluation(
        which in 0..models().len(), samples in 1usize..400, seed in 0u64..1000, size in 0.1f64..8.0, share in 0.0f64..2.0,
    ) {
        let (model, features, classes) = models().swap_remove(which);
        let network = model.network(features, classes).unwrap();
        let data = Sample::new(samples, features, classes, seed);
        let weights: Vec<f64> = start(&network, seed).iter().map(|w| w * size).collect();
        let loaded = network.load(&weights).unwrap();
        for isa in Isa::available() {
            let work = &mut Workspace::with_isa(isa);
            for rows in [data.bytes(), data.floats()] {
                let full = network.evaluate(&loaded, &rows, None, work).unwrap().loss;
                let mut order = Order::default();
                // Natural order first, then hardest first by other weights, then by these.
                let other = network.load(&start(&network, seed + 1)).unwrap();
                for refresh in [None, Some(&other), Some(&loaded)] {
                    if let Some(weights) = refresh {
                        network.evaluate(weights, &rows, Some(&mut order), work).unwrap();
                    }
                    for bound in [full, full.next_down(), full.next_up(), full * share, 0.0, f64::MAX, -1.0] {
                        match network.decide(&loaded, &rows, bound, &mut order, work).unwrap() {
                            LossTest::AtMost(loss) => prop_assert!(full <= bound && loss == full),
                            LossTest::Above(least) => {
                                prop_assert!(full > bound && least <= full && (least > bound || bound < 0.0));
                            }
                        }
                    }
                }
            }
        }
    }

    /// A row's loss depends on the row alone, so the mean is the same in any order.
    #[test]
    fn the_loss_does_not_depend_on_the_order(which in 0..models().len(), samples in 2usize..300, seed in 0u64..1000) {
        let (model, features, classes) = models().swap_remove(which);
        let network = model.network(features, classes).unwrap();
        let data = Sample::new(samples, features, classes, seed);
        let mut turned = Sample::new(samples, features, classes, seed);
        turned.bytes.rotate_left(features.features * (samples / 3));
        turned.floats.rotate_left(features.features * (samples / 3));
        match &mut turned.targets {
            Targets::Classes(labels) => labels.rotate_left(samples / 3),
            Targets::Numbers(numbers) => numbers.rotate_left(samples / 3),
        }
        let loaded = network.load(&start(&network, seed)).unwrap();
        for isa in Isa::available() {
            let work = &mut Workspace::with_isa(isa);
            let mut evaluate = |rows: Rows<'_>| network.evaluate(&loaded, &rows, None, work).unwrap();
            prop_assert_eq!(evaluate(data.bytes()), evaluate(turned.bytes()));
            prop_assert_eq!(evaluate(data.floats()), evaluate(turned.floats()));
        }
    }
}

#[test]
fn groups_that_share_tiles_are_evaluated_as_if_alone() {
    for (model, features, classes) in models() {
        let network = model.network(features, classes).unwrap();
        let data = Sample::new(300, features, classes, 12);
        let loaded = network.load(&start(&network, 13)).unwrap();
        let groups = [1, 5, 58, 64, 2, 100, 70];
        for isa in Isa::available() {
            let work = &mut Workspace::with_isa(isa);
            let together = network.evaluate_each(&loaded, &data.bytes(), &groups, work).unwrap();
            let mut from = 0;
            for (group, got) in groups.into_iter().zip(together) {
                let width = data.scale.len();
                let rows = &data.bytes[from * width..][..group * width];
                let (scale, shift) = (&data.scale, &data.shift);
                let inputs = RowsData::Bytes { rows, scale, shift };
                let own = match &data.targets {
                    Targets::Classes(labels) => Rows::new(inputs, &labels[from..][..group]),
                    Targets::Numbers(numbers) => {
                        Rows::new(inputs, RowTargets::Numbers(&numbers[from..][..group]))
                    }
                }
                .unwrap();
                assert_eq!(got, network.evaluate(&loaded, &own, None, work).unwrap(), "{isa:?}");
                from += group;
            }
            let mut refused =
                |groups: &[usize]| network.evaluate_each(&loaded, &data.bytes(), groups, work);
            assert!(matches!(refused(&[299]), Err(Error::Length { .. })));
            assert!(matches!(refused(&[0, 300]), Err(Error::Empty { .. })));
        }
    }
}

#[test]
fn bad_input_is_refused() {
    let network = mlp(&[5], Activation::Softplus, Init::Torch).network(4, 3).unwrap();
    let data = Sample::new(10, 4, 3, 1);
    let work = &mut Workspace::new();
    let mut weights = start(&network, 1);
    let loaded = network.load(&weights).unwrap();
    let count = weights.len();
    assert_eq!(
        network.load(&weights[1..]).unwrap_err(),
        Error::Length { what: "weights", expected: count, got: count - 1 }
    );
    weights[3] = f64::NAN;
    assert!(matches!(network.load(&weights), Err(Error::NotFinite { index: 3, .. })));
    weights[3] = 1e300;
    assert!(matches!(network.load(&weights), Err(Error::NotFinite { index: 3, .. })));
    let wide = Sample::new(10, 5, 3, 1);
    assert_eq!(
        network.evaluate(&loaded, &wide.bytes(), None, work),
        Err(Error::Features { expected: 4, got: 5 })
    );
    let many = Sample::new(100, 4, 9, 1);
    assert!(matches!(
        network.evaluate(&loaded, &many.bytes(), None, work),
        Err(Error::Label { classes: 3, .. })
    ));
    let other = Mlp::default().network(4, 3).unwrap();
    assert!(matches!(
        other.evaluate(&loaded, &data.bytes(), None, work),
        Err(Error::Length { .. })
    ));
    let mut order = Order::default();
    assert_eq!(
        network.decide(&loaded, &data.bytes(), f64::NAN, &mut order, work),
        Err(Error::Bound)
    );
    let mut out = vec![0.0; count];
    let mut walk = |batches: &[Batch<'_>], walk, out: &mut [f32]| {
        network.local_steps(&loaded, &data.bytes(), batches, walk, out, work).unwrap_err()
    };
    assert!(matches!(walk(&[], Walk::Stand, &mut out), Error::Empty { .. }));
    assert_eq!(
        walk(&[Batch::Rows(&[10])], Walk::Stand, &mut out),
        Error::Row { row: 10, rows: 10 }
    );
    assert!(matches!(walk(&[Batch::All], Walk::Stand, &mut out[1..]), Error::Length { .. }));
    let backwards = Walk::Descend { eta: -0.1, mu: 0.0 };
    assert!(matches!(
        walk(&[Batch::All], backwards, &mut out),
        Error::Negative { what: "eta", .. }
    ));
    assert!(matches!(loaded.displaced(&out, f32::NAN), Err(Error::NotFinite { .. })));
    assert_eq!(LogisticRegression::default().network(4, 3), Err(Error::NotBinary { classes: 3 }));
    assert!(matches!(
        mlp(&[4, 0], Activation::Relu, Init::He).network(4, 3),
        Err(Error::Zero { .. })
    ));
    assert!(matches!(
        SoftmaxRegression::default().network(0, 3),
        Err(Error::Zero { what: "feature" })
    ));
    assert!(matches!(
        SoftmaxRegression::default().network(3, 0),
        Err(Error::Zero { what: "class" })
    ));
    assert!(matches!(
        SoftmaxRegression::default().network(3, 70_000),
        Err(Error::TooManyClasses { .. })
    ));
}

#[test]
fn divergence_is_above_every_bound() {
    let network = SoftmaxRegression::default().network(4, 3).unwrap();
    let data = Sample::new(10, 4, 3, 1);
    let huge: Vec<f64> = start(&network, 1).iter().map(|w| w.signum() * 3e38).collect();
    let loaded = network.load(&huge).unwrap();
    for isa in Isa::available() {
        let work = &mut Workspace::with_isa(isa);
        let full = network.evaluate(&loaded, &data.floats(), None, work).unwrap();
        assert!(full.loss.is_finite() && full.loss > 1e5);
        let decision = network.decide(&loaded, &data.floats(), 100.0, &mut Order::default(), work);
        assert!(!decision.unwrap().is_at_most());
    }
}

#[test]
fn names_in_a_configuration() {
    let parse = |text: &str| serde_json::from_str::<Model>(text);
    assert_eq!(parse(r#"{"kind": "mlp"}"#).unwrap(), Model::Mlp(Mlp::default()));
    let model =
        parse(r#"{"kind": "mlp", "hidden": 128, "init": "zero-output", "activation": "relu"}"#);
    assert_eq!(model.unwrap(), mlp(&[128], Activation::Relu, Init::ZeroOutput));
    assert_eq!(
        parse(r#"{"kind": "mlp", "hidden": [3, 4]}"#).unwrap(),
        mlp(&[3, 4], Activation::Softplus, Init::Torch)
    );
    for kind in Model::LIST.iter().map(|entry| entry.name) {
        let model = parse(&format!(r#"{{"kind": "{kind}", "init": "small"}}"#)).unwrap();
        let text = serde_json::to_string(&model).unwrap();
        assert!(text.contains(kind));
        assert_eq!(parse(&text).unwrap(), model);
        assert!(parse(&format!(r#"{{"kind": "{kind}", "hiden": 3}}"#)).is_err());
    }
    let error = parse(r#"{"kind": "mlp", "hidden": "wide"}"#).unwrap_err().to_string();
    assert!(error.contains("a width, or a list of widths"), "{error}");
}

#[test]
fn weights_are_quantised_for_one_scaling() {
    if !Isa::detect().has_vnni() {
        return;
    }
    let network = SoftmaxRegression::default().network(8, 3).unwrap();
    let loaded = network.load(&start(&network, 1)).unwrap();
    let data = Sample::new(10, 8, 3, 1);
    let mut other = Sample::new(10, 8, 3, 1);
    other.shift[0] += 1.0;
    let work = &mut Workspace::new();
    assert!(network.evaluate(&loaded, &data.bytes(), None, work).is_ok());
    assert_eq!(network.evaluate(&loaded, &other.bytes(), None, work), Err(Error::Scaling));
}

#[test]
fn what_learns_classes_refuses_numbers_by_name_and_the_other_way_round() {
    for (model, input, _) in models() {
        match model.network(input, Output::Number) {
            Ok(network) => assert_eq!(network.output(), Output::Number),
            Err(error) => {
                let told = error.to_string();
                let kind = format!("model.kind = \"{}\" learns classes", model.name());
                assert!(told.starts_with(&kind) && told.contains("linear-regression"), "{told}");
            }
        }
    }
    let told = LinearRegression::default().network(4, 3).unwrap_err().to_string();
    assert!(told.starts_with("model.kind = \"linear-regression\" learns a number"), "{told}");
    // Rows of the other kind are refused, too.
    let network = Mlp::default().network(4, Output::Number).unwrap();
    let loaded = network.load(&start(&network, 1)).unwrap();
    let data = Sample::new(3, 4, 2, 1);
    let refused = network.evaluate(&loaded, &data.floats(), None, &mut Workspace::new());
    assert_eq!(refused, Err(Error::Targets { expected: "numbers", got: "classes" }));
}
