use super::super::tests::{Sample, assert_close, mlp, models, start};
use super::*;
use crate::model::{Activation, Init};

fn slices(index: &[Vec<u32>]) -> Vec<Batch<'_>> {
    index.iter().map(|index| Batch::Rows(index)).collect()
}

/// Twelve batches in which rows come again, one of them with a row twice, one with all rows.
fn batches(rows: u32) -> Vec<Vec<u32>> {
    let mut index: Vec<Vec<u32>> =
        (0..12).map(|k| (0..9 + k).map(|i| (i * 7 + k * 11) % rows).collect()).collect();
    index[3] = vec![5, 5, 1];
    index[7] = (0..rows).rev().collect();
    index
}

/// The path by products is the path of gradients, taken one at a time with the weights moved between
/// them in `f64`; those gradients agree with finite differences by another test.
#[test]
fn steps_by_products_are_steps() {
    let (eta, mu) = (0.05f32, 0.3f32);
    for (model, features, classes) in models() {
        let network = model.network(features, classes).unwrap();
        let data = Sample::new(60, features, classes, 7);
        let received = network.load(&start(&network, 8)).unwrap();
        let index = batches(60);
        let batches = slices(&index);
        for (isa, rows) in
            Isa::available().into_iter().flat_map(|isa| [(isa, data.bytes()), (isa, data.floats())])
        {
            let work = &mut Workspace::with_isa(isa);
            let mut u: Vec<f64> = received.flat().iter().map(|w| f64::from(*w)).collect();
            let mut want = vec![0.0; u.len()];
            let mut gradient = vec![0.0; u.len()];
            let mut want_loss = 0.0;
            for batch in &batches {
                let loaded = network.load(&u).unwrap();
                let loss = network.loss_and_gradient(&loaded, &rows, *batch, &mut gradient, work);
                want_loss += loss.unwrap() / 12.0;
                for i in 0..u.len() {
                    let pull = f64::from(mu) * (u[i] - f64::from(received.flat()[i]));
                    let g = f64::from(gradient[i]) + pull;
                    want[i] += g / 12.0;
                    u[i] -= f64::from(eta) * g;
                }
            }
            let products = RowProducts::default();
            let mut direction = vec![f32::NAN; u.len()];
            let how = (eta, 1.0 - mu * eta);
            let loss = network
                .take_steps(&received, &rows, &batches, how, Some(&products), &mut direction, work)
                .unwrap();
            assert_close(&direction, &want, 1e-5, &format!("{model:?} {isa:?}"));
            assert!((loss - want_loss).abs() < 1e-5 * want_loss, "{model:?} {isa:?}");
        }
    }
}

/// A whole round of Figure 3's kind, smaller: the two ways differ by rounding and by no more.
#[test]
fn a_round_by_products_is_the_direct_round_up_to_rounding() {
    let network = mlp(&[64], Activation::Softplus, Init::Torch).network(1024, 10).unwrap();
    let data = Sample::new(300, 1024, 10, 3);
    let received = network.load(&start(&network, 2)).unwrap();
    let index: Vec<Vec<u32>> =
        (0..60u32).map(|k| (0..32).map(|i| (i * 37 + k * k * 13) % 300).collect()).collect();
    let batches = slices(&index);
    for isa in Isa::available() {
        let mut work = Workspace::with_isa(isa);
        let products = RowProducts::default();
        let rows = data.bytes();
        let mut walk = |products: Option<&RowProducts>, rows: &Rows<'_>| {
            let mut direction = vec![f32::NAN; received.flat().len()];
            let how = (0.05, 1.0);
            let work = &mut work;
            network
                .take_steps(&received, rows, &batches, how, products, &mut direction, work)
                .unwrap();
            direction
        };
        let direct: Vec<f64> = walk(None, &rows).into_iter().map(f64::from).collect();
        let by_products = walk(Some(&products), &rows);
        assert_close(&by_products, &direct, 2e-5, &format!("{isa:?}"));
        assert_ne!(by_products.iter().map(|v| f64::from(*v)).collect::<Vec<_>>(), direct);
        // What is kept changes nothing, and `local_steps` takes this way by itself.
        assert_eq!(walk(Some(&products), &rows), by_products);
        let mut direction = vec![f32::NAN; received.flat().len()];
        let walk = crate::model::Walk::Descend { eta: 0.05, mu: 0.0 };
        let with = rows.with_products(&products);
        network.local_steps(&received, &with, &batches, walk, &mut direction, &mut work).unwrap();
        assert_eq!(direction, by_products);
    }
}

/// Whether products are used for this number of batches of rows drawn in turn.
fn pays(widths: (usize, usize), samples: usize, batch: usize, steps: usize) -> bool {
    let network = mlp(&[widths.1], Activation::Relu, Init::Torch).network(widths.0, 10).unwrap();
    let (floats, labels) = (vec![0.0; samples * widths.0], vec![0; samples]);
    let data = RowsData::Floats { rows: &floats, features: widths.0 };
    let rows = Rows::new(data, &labels).unwrap();
    // 7919 is prime, so that rows come again only once all were there.
    let draw = |k: usize| (0..batch).map(|i| ((k * batch + i) * 7919 % samples) as u32).collect();
    let index: Vec<Vec<u32>> = (0..steps).map(draw).collect();
    network.products_pay(&rows, &slices(&index))
}

#[test]
fn products_are_used_where_they_are_less_work() {
    // Figure 3's agents: many steps only.
    assert!(pays((3072, 64), 2000, 64, 100) && pays((3072, 64), 2000, 64, 60));
    assert!(!pays((3072, 64), 2000, 64, 5));
    assert!(!pays((3072, 64), 2000, 64, 1));
    // Few rows and large weights: an epoch of five steps walks over them once instead of five times.
    assert!(pays((3072, 200), 50, 10, 5));
    assert!(!pays((3072, 200), 50, 10, 1));
    // Nothing to gain from a small layer, from batches that fill several tiles, from many more rows
    // than features.
    assert!(!pays((784, 10), 60, 10, 6));
    assert!(!pays((3072, 64), 500, 65, 100));
    assert!(!pays((1024, 64), 8000, 64, 300));
}
