//! One inner product is one number: for every instruction set, kernel and number of workers.

mod threads;

use super::super::{Machine, Workers};
use super::*;
use crate::{Bf16, Isa, Seed, Vector};
use rand::Rng;
use std::sync::Arc;
use threads::Threads;

/// Numbers between −1 and 1, in all precisions.
struct Drawn {
    f32: Vec<Vec<f32>>,
    f64: Vec<Vec<f64>>,
    bits: Vec<Vec<u16>>,
}

impl Drawn {
    fn new(count: usize, columns: usize) -> Self {
        let mut rng = Seed(3).stream("kernel", columns as u64, count as u64);
        let mut unit = || f64::from(rng.next_u32()) / f64::from(u32::MAX) * 2.0 - 1.0;
        let mut rows = || -> Vec<Vec<f64>> {
            (0..count).map(|_| (0..columns).map(|_| unit()).collect()).collect()
        };
        let single = |row: Vec<f64>| row.into_iter().map(|v| v as f32).collect::<Vec<f32>>();
        let half = |row: Vec<f32>| row.into_iter().map(|v| (v.to_bits() >> 16) as u16).collect();
        Self {
            f64: rows(),
            f32: rows().into_iter().map(single).collect(),
            bits: rows().into_iter().map(single).map(half).collect(),
        }
    }

    /// All in one precision, or mixed.
    fn views(&self, precision: usize) -> Vec<Vector<'_>> {
        let of = |row: usize, precision: usize| match precision {
            0 => Vector::F32(&self.f32[row]),
            1 => Vector::F64(&self.f64[row]),
            2 => Vector::BF16(Bf16::from_bits(&self.bits[row])),
            _ => unreachable!(),
        };
        (0..self.f32.len())
            .map(|row| of(row, if precision < 3 { precision } else { row % 3 }))
            .collect()
    }
}

fn naive(a: Vector<'_>, b: Vector<'_>) -> (f64, f64) {
    let terms = (0..a.len()).map(|index| a.get(index).unwrap() * b.get(index).unwrap());
    (terms.clone().sum(), terms.map(f64::abs).sum())
}

/// Calls the parts backwards, so that nothing can rest on their order.
struct Backwards;

impl Workers for Backwards {
    fn share(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        (0..parts).rev().for_each(part);
    }
}

fn machines() -> Vec<Machine> {
    let workers: [Arc<dyn Workers>; 4] =
        [Arc::new(Backwards), Arc::new(Threads(1)), Arc::new(Threads(2)), Arc::new(Threads(8))];
    let alone = Isa::available().into_iter().map(Machine::new);
    alone.chain(workers.map(|workers| Machine::default().with_workers(workers))).collect()
}

const COLUMNS: [usize; 9] = [1, 7, 8, 19, 255, 650, 1_024, 5_003, SPAN + 1_234];

#[test]
fn every_instruction_set_gives_the_same_product() {
    for columns in COLUMNS {
        let drawn = Drawn::new(2, columns);
        for (first, second) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
            let (a, b) = (drawn.views(first)[0], drawn.views(second)[1]);
            let plain = dot(Isa::PORTABLE, a, b);
            let (sum, size) = naive(a, b);
            assert!((plain - sum).abs() <= 1e-13 * size, "{columns}: {plain} for {sum}");
            for isa in Isa::available() {
                assert_eq!(dot(isa, a, b).to_bits(), plain.to_bits(), "{isa:?}, {columns}");
                assert_eq!(dot(isa, b, a).to_bits(), plain.to_bits(), "{isa:?}, {columns}");
            }
        }
        let (a, b) = (&drawn.f64[0], &drawn.f64[1]);
        for isa in Isa::available() {
            let short = dot_short(Isa::PORTABLE, a, b);
            assert_eq!(dot_short(isa, a, b).to_bits(), short.to_bits());
            let (sum, size) = naive(Vector::F64(a), Vector::F64(b));
            assert!((short - sum).abs() <= 1e-13 * size);
        }
    }
}

#[test]
fn a_gram_matrix_has_the_products_of_its_vectors_to_the_bit() {
    for (count, columns) in [(1, 19), (2, 300), (5, 650), (9, 1_024), (13, 257), (70, 70)] {
        let drawn = Drawn::new(count, columns);
        for precision in 0..4 {
            let vectors = drawn.views(precision);
            for machine in machines() {
                for first in [0, count / 3] {
                    let rows = machine.gram_rows(Sums::Double, &vectors, first);
                    let cells = (first..count).flat_map(|i| (0..=i).map(move |j| (i, j)));
                    for ((i, j), value) in cells.zip(rows) {
                        let single = dot(Isa::PORTABLE, vectors[i], vectors[j]);
                        assert_eq!(value.to_bits(), single.to_bits(), "{machine:?} {i} {j}");
                    }
                }
            }
        }
    }
}

/// Where all products are one number, roundings go one way.
#[test]
fn sums_in_single_precision_of_one_number_are_near_enough() {
    for value in [0.994, 0.1, 1.0 / 3.0, 7.7e-4] {
        let vector = vec![value as f32; 2_410];
        let vectors = [Vector::F32(&vector); 3];
        let single = Machine::default().gram_rows(Sums::Single, &vectors, 0);
        let double = Machine::default().gram_rows(Sums::Double, &vectors, 0);
        for (single, double) in single.iter().zip(&double) {
            assert!((single - double).abs() < 4e-6 * double, "{single} for {double}");
        }
    }
}

/// Sums in single precision are other numbers, near enough, and the same ones on every machine.
#[test]
fn a_gram_matrix_in_single_precision_is_the_same_on_every_machine() {
    for (count, columns) in [(3, 19), (9, 1_024), (70, 513), (300, 650), (5, SPAN + 1_234)] {
        let drawn = Drawn::new(count, columns);
        let vectors = drawn.views(0);
        for first in [0, count / 3, count - 1] {
            let plain = Machine::new(Isa::PORTABLE).gram_rows(Sums::Single, &vectors, first);
            let double = Machine::default().gram_rows(Sums::Double, &vectors, first);
            let cells = (first..count).flat_map(|i| (0..=i).map(move |j| (i, j)));
            for ((i, j), (single, double)) in cells.zip(plain.iter().zip(&double)) {
                let lengths = [i, j].map(|i| dot(Isa::PORTABLE, vectors[i], vectors[i]).sqrt());
                let most = 1e-6 * lengths[0] * lengths[1];
                assert!((single - double).abs() < most, "{i} {j}: {single} for {double}");
            }
            assert_ne!(plain, double, "they are not computed alike");
            for machine in machines() {
                let rows = machine.gram_rows(Sums::Single, &vectors, first);
                assert!(rows.iter().zip(&plain).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
        }
        // Of other precisions they are sums in double.
        for precision in 1..3 {
            let vectors = drawn.views(precision);
            let rows = |sums| Machine::default().gram_rows(sums, &vectors, 0);
            assert_eq!(rows(Sums::Single), rows(Sums::Double));
        }
    }
}

/// Where many are watched, a sum is formed first and measured then, if there are hands for it.
#[test]
fn a_sum_is_measured_alike_on_the_way_and_afterwards() {
    for columns in [5_003, SPAN + 1_234] {
        let drawn = Drawn::new(90, columns);
        for precision in [0, 3] {
            let vectors = drawn.views(precision);
            let terms: Vec<_> = vectors.iter().map(|vector| (0.7, *vector)).collect();
            let start: Vec<f64> = (0..columns).map(|index| index as f64).collect();
            let mut expected = start.clone();
            let on_the_way = Machine::default().combine(true, &terms, 3.0, &vectors, &mut expected);
            for machine in machines() {
                let mut out = start.clone();
                let made = machine.combine(true, &terms, 3.0, &vectors, &mut out);
                assert_eq!((made, &out), (on_the_way.clone(), &expected), "{machine:?}");
            }
        }
    }
}

#[test]
fn a_triangle_is_solved_alike_by_every_instruction_set() {
    for (size, lines) in [(1, 1), (7, 3), (64, 4), (40, 9), (150, 6)] {
        let drawn = Drawn::new(size, size + 5);
        let rows: Vec<Vec<f64>> = drawn
            .f64
            .iter()
            .enumerate()
            .map(|(index, row)| {
                let of = |(column, value): (usize, &f64)| {
                    if column == index { 2.0 + value } else { value / size as f64 }
                };
                row[..=index].iter().enumerate().map(of).collect()
            })
            .collect();
        let triangle = rows.concat();
        let mut right = Drawn::new(size * lines, WIDTH).f64.into_iter();
        let right: Vec<Line> =
            (0..size * lines).map(|_| Line(right.next().unwrap().try_into().unwrap())).collect();
        let mut expected = right.clone();
        substitute(Isa::PORTABLE, &triangle, size, lines, &mut expected);
        for lane in 0..WIDTH * lines {
            let at = |block: &[Line], row: usize| block[row * lines + lane / WIDTH].0[lane % WIDTH];
            for (row, factor) in rows.iter().enumerate() {
                let sum: f64 = (0..=row).map(|c| factor[c] * at(&expected, c)).sum();
                assert!((sum - at(&right, row)).abs() < 1e-12, "{size}: {sum}");
            }
        }
        for isa in Isa::available() {
            let mut block = right.clone();
            substitute(isa, &triangle, size, lines, &mut block);
            let same = |(a, b): (&Line, &Line)| a.0.map(f64::to_bits) == b.0.map(f64::to_bits);
            assert!(block.iter().zip(&expected).all(same), "{isa:?}");
        }
    }
}

#[test]
fn long_vectors_are_cut_the_same_way_whoever_computes() {
    let columns = 9 * SPAN + 77;
    let drawn = Drawn::new(4, columns);
    for precision in [0, 3] {
        let vectors = drawn.views(precision);
        let product = |i: usize, j: usize| dot(Isa::PORTABLE, vectors[i], vectors[j]);
        let mut sum = vec![0.0; columns];
        for (times, vector) in [1.5, -0.25, 3.0, 0.1].into_iter().zip(&vectors) {
            add_scaled(Isa::PORTABLE, &mut sum, times, *vector);
        }
        for machine in machines() {
            let gram = machine.gram(&vectors);
            assert_eq!(gram.get(3, 1).to_bits(), product(1, 3).to_bits());
            let squares = machine.squares(&vectors);
            for (index, square) in squares.into_iter().enumerate() {
                assert_eq!(square.to_bits(), product(index, index).to_bits());
            }
            let terms: Vec<_> = [1.5, -0.25, 3.0, 0.1].into_iter().zip(vectors.clone()).collect();
            let mut out = vec![f64::NAN; columns];
            let made = machine.combine(false, &terms, 1.0, &vectors[..2], &mut out);
            assert_eq!(out, sum, "{machine:?}");
            let step = Vector::F64(&sum);
            assert_eq!(made.square.to_bits(), dot(Isa::PORTABLE, step, step).to_bits());
            assert_eq!(made.along[1].to_bits(), dot(Isa::PORTABLE, step, vectors[1]).to_bits());
            let made = machine.combine(true, &[], 2.0, &[], &mut out);
            let half: Vec<f64> = sum.iter().map(|value| value / 2.0).collect();
            assert_eq!((made.along, out), (vec![], half));
        }
    }
}

#[test]
fn a_sum_is_what_adding_one_after_the_other_gives() {
    for columns in COLUMNS {
        let drawn = Drawn::new(11, columns);
        for precision in 0..4 {
            let vectors = drawn.views(precision);
            let terms: Vec<_> = vectors.iter().map(|vector| (-0.3, *vector)).collect();
            let mut sum = vec![0.0; columns];
            for (times, vector) in &terms {
                for (index, sum) in sum.iter_mut().enumerate() {
                    *sum += times * vector.get(index).unwrap();
                }
            }
            sum.iter_mut().for_each(|value| *value /= 11.0);
            for isa in Isa::available() {
                let mut out = vec![f64::NAN; columns];
                let made = Machine::new(isa).combine(false, &terms, 11.0, &vectors, &mut out);
                assert_eq!(out, sum, "{isa:?}, {columns}");
                for (along, vector) in made.along.iter().zip(&vectors) {
                    let single = dot(isa, *vector, Vector::F64(&sum));
                    assert_eq!(along.to_bits(), single.to_bits());
                }
            }
        }
    }
}

/// The converse of the above: a sum in another order is another number, so equal bits say something.
#[test]
fn another_order_of_adding_is_another_number() {
    let drawn = Drawn::new(1, 5_003);
    let vector = Vector::F64(&drawn.f64[0]);
    let (sum, _) = naive(vector, vector);
    assert_ne!(dot(Isa::detect(), vector, vector).to_bits(), sum.to_bits());
}

#[test]
fn infinities_and_nan_are_not_lost() {
    for bad in [f32::NAN, f32::INFINITY] {
        for columns in [3, 700] {
            let mut row = vec![1.0f32; columns];
            row[columns - 1] = bad;
            for isa in Isa::available() {
                assert!(!dot(isa, Vector::F32(&row), Vector::F32(&row)).is_finite());
            }
        }
    }
}

#[test]
fn rows_below_a_triangle_are_told_alike_by_every_instruction_set() {
    for (count, size, lines) in [(1, 1, 1), (7, 3, 2), (25, 130, 4), (64, 70, 7), (3, 0, 1)] {
        let rows = Drawn::new(count, size + 2).f64;
        let views: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let block = |count: usize| -> Vec<Line> {
            let drawn = Drawn::new((count * lines).max(1), WIDTH).f64.into_iter();
            drawn.take(count * lines).map(|line| Line(line.try_into().unwrap())).collect()
        };
        let (solved, start) = (block(size), block(count));
        let mut expected = start.clone();
        subtract(Isa::PORTABLE, &views, lines, &solved, &mut expected);
        for (row, numbers) in rows.iter().enumerate() {
            for lane in 0..WIDTH * lines {
                let at =
                    |block: &[Line], row: usize| block[row * lines + lane / WIDTH].0[lane % WIDTH];
                let sum: f64 = (0..size).map(|k| numbers[k] * at(&solved, k)).sum();
                let found = at(&start, row) - at(&expected, row);
                assert!((found - sum).abs() < 1e-10, "{found} for {sum}");
            }
        }
        for isa in Isa::available() {
            let mut targets = start.clone();
            subtract(isa, &views, lines, &solved, &mut targets);
            let same = |(a, b): (&Line, &Line)| a.0.map(f64::to_bits) == b.0.map(f64::to_bits);
            assert!(targets.iter().zip(&expected).all(same), "{isa:?}");
        }
    }
}

#[test]
fn work_is_done_once_wherever_it_is_hosted() {
    /// Does not do what it is given.
    struct Forgetful;

    impl Workers for Forgetful {
        fn share(&self, _: usize, _: &(dyn Fn(usize) + Sync)) {}

        fn host(&self, _: &mut (dyn FnMut() + Send)) {}
    }

    /// Does it twice.
    struct Eager;

    impl Workers for Eager {
        fn share(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
            (0..parts).for_each(part);
        }

        fn host(&self, work: &mut (dyn FnMut() + Send)) {
            work();
            work();
        }
    }

    let workers: [Arc<dyn Workers>; 3] =
        [Arc::new(Forgetful), Arc::new(Eager), Arc::new(Threads(2))];
    let others = workers.map(|workers| Machine::default().with_workers(workers));
    for machine in [Machine::default()].into_iter().chain(others) {
        let mut times = 0;
        let came = machine.host(|| {
            times += 1;
            "done"
        });
        assert_eq!((came, times), ("done", 1));
    }
}
