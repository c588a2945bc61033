//! What holds for convolutional nets in particular; the laws of all models are in `model/tests.rs`.

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::data::Image;
use crate::model::{Batch, Model, Output, Rows, RowsData, Workspace, reference};
use fedstay_kernels::Isa;

/// Random images, their weights, and whether the gradient is safe to compare with differences: no
/// sum is so close to another, or to zero, that rounding or a small step could change which counts.
struct Case {
    network: Network,
    weights: Vec<f64>,
    images: Vec<f32>,
    labels: Vec<u16>,
}

impl Case {
    fn new(model: &Cnn, image: Image, samples: usize, seed: u64) -> Self {
        let network = model.network(image, 3).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut bytes = vec![0u8; samples * network.features()];
        rng.fill_bytes(&mut bytes);
        let images = bytes.iter().map(|byte| f32::from(*byte) / 100.0 - 1.2).collect();
        let weights = network.initial_weights(&mut rng);
        let weights = weights.into_iter().map(|weight| f64::from(weight as f32)).collect();
        let labels = (0..samples).map(|_| (rng.next_u32() % 3) as u16).collect();
        Self { network, weights, images, labels }
    }

    fn rows(&self) -> Rows<'_> {
        let data = RowsData::Floats { rows: &self.images, features: self.network.features() };
        Rows::new(data, &self.labels).unwrap()
    }

    fn clearance(&self) -> f64 {
        let images = self.images.chunks_exact(self.network.features());
        let clearance = images.map(|image| {
            let image: Vec<f64> = image.iter().map(|pixel| f64::from(*pixel)).collect();
            super::reference::features(&self.network, &self.weights, &image).1
        });
        clearance.fold(f64::INFINITY, f64::min)
    }

    fn gradient(&self, isa: Isa) -> Vec<f32> {
        let loaded = self.network.load(&self.weights).unwrap();
        let mut gradient = vec![f32::NAN; self.weights.len()];
        let work = &mut Workspace::with_isa(isa);
        self.network
            .loss_and_gradient(&loaded, &self.rows(), Batch::All, &mut gradient, work)
            .unwrap();
        gradient
    }
}

/// The largest difference between two gradients, relative to the largest entry.
fn distance(got: &[f32], want: &[f64]) -> f64 {
    let size = want.iter().fold(0.0f64, |size, value| size.max(value.abs()));
    let off = got.iter().zip(want).map(|(got, want)| (f64::from(*got) - want).abs());
    off.fold(0.0, f64::max) / size
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Gradients are those of finite differences for images of any shape and any numbers of filters,
    /// on both sides of every tile, with every instruction set.
    #[test]
    fn gradients_agree_with_differences_for_any_shape(
        channels in 1usize..5, height in 16usize..21, width in 16usize..40,
        first in 1usize..9, second in 1usize..19, activation in 0usize..3, seed in 0u64..1000,
    ) {
        let activation = [Activation::Relu, Activation::Softplus, Activation::Tanh][activation];
        let model = Cnn { channels: [first, second], hidden: vec![4], activation, ..Cnn::default() };
        let case = Case::new(&model, Image { channels, height, width }, 2, seed);
        prop_assume!(case.clearance() > 1e-5);
        // Every weight would take minutes: every tensor is sampled.
        let layout = case.network.layout();
        let places = layout.tensors().iter().flat_map(|tensor| {
            tensor.range.clone().step_by(tensor.range.len().div_ceil(12))
        });
        let places: Vec<usize> = places.collect();
        let want = reference::derivatives(
            &case.network, &case.weights, &case.rows(), &[0, 1], places.iter().copied(), 1e-6,
        );
        for isa in Isa::available() {
            let gradient = case.gradient(isa);
            let got: Vec<f32> = places.iter().map(|place| gradient[*place]).collect();
            prop_assert!(distance(&got, &want) < 3e-5, "{isa:?}: {}", distance(&got, &want));
        }
    }
}

#[test]
fn a_wrong_gradient_would_be_noticed() {
    let image = Image { channels: 2, height: 17, width: 19 };
    let case = Case::new(&Cnn { hidden: vec![4], ..Cnn::default() }, image, 2, 3);
    let want: Vec<f64> = case.gradient(Isa::PORTABLE).into_iter().map(f64::from).collect();
    let mut other = case;
    other.labels[0] = (other.labels[0] + 1) % 3;
    assert!(distance(&other.gradient(Isa::PORTABLE), &want) > 0.01);
}

#[test]
fn the_defaults_are_the_net_of_the_tutorial() {
    let image = Image { channels: 3, height: 32, width: 32 };
    let network = Cnn::default().network(image, 10).unwrap();
    assert_eq!(network.layout().parameters(), 62_006);
    assert_eq!((network.features(), network.output()), (3072, Output::Classes(10)));
    let grey = Image { channels: 1, height: 28, width: 28 };
    assert_eq!(Cnn::default().network(grey, 10).unwrap().layout().parameters(), 44_426);
}

#[test]
fn what_is_not_an_image_is_refused_in_words() {
    let refused = |model: Cnn, input: Input| model.network(input, 10).unwrap_err().to_string();
    let told = refused(Cnn::default(), Input::from(3072));
    assert!(
        told.starts_with("a cnn reads images, but the data are rows of 3072 numbers"),
        "{told}"
    );
    let digits = Image { channels: 1, height: 8, width: 8 };
    let told = refused(Cnn::default(), Input::from(digits));
    assert!(told.contains("at least 16×16 pixels, the data have 8×8"), "{told}");
    let image = Input::from(Image { channels: 1, height: 16, width: 16 });
    assert_eq!(Cnn::default().network(image, 10).unwrap().widths, [16, 120, 84, 10]);
    let told = refused(Cnn { channels: [6, 513], ..Cnn::default() }, image);
    assert!(told.contains("513 filters, but a convolution may have at most 512"), "{told}");
    assert!(
        refused(Cnn { channels: [0, 1], ..Cnn::default() }, image).contains("at least one filter")
    );
    let wide = Cnn { hidden: vec![usize::MAX], ..Cnn::default() };
    assert!(matches!(wide.check(), Err(Error::TooManyWeights { .. })));
}

#[test]
fn a_diverged_path_is_not_finite_and_does_not_panic() {
    let image = Image { channels: 1, height: 16, width: 16 };
    let mut case = Case::new(&Cnn::default(), image, 3, 1);
    case.weights.iter_mut().for_each(|weight| *weight *= 1e12);
    for isa in Isa::available() {
        assert!(case.gradient(isa).iter().any(|value| !value.is_finite()), "{isa:?}");
    }
}

#[test]
fn keys_are_read_and_other_lengths_refused() {
    let read = |text: &str| toml::from_str::<Model>(text);
    let Model::Cnn(model) = read("kind = \"cnn\"\nchannels = [8, 4]\nhidden = 32").unwrap() else {
        panic!("not a cnn")
    };
    assert_eq!((model.channels, model.hidden), ([8, 4], vec![32]));
    for (list, count) in [("[8]", 1), ("[8, 4, 2]", 3)] {
        let told = read(&format!("kind = \"cnn\"\nchannels = {list}")).unwrap_err().to_string();
        assert!(told.contains(&format!("such as [6, 16], but lists {count}")), "{told}");
    }
}
