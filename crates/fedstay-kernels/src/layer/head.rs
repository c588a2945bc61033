//! The last step of a model: from logits, or an output, to per-sample losses, hits and gradients.
//!
//! Logits come class by class, `logits[class * tile + row]`, so that the work runs along the rows
//! and vectorises. A row's numbers never depend on its neighbours. Losses are built from terms that
//! are never negative: an early exit relies on that.

use super::scalar::{exp, log1p, softplus};
use crate::isa::dispatch;

/// A tile holds a multiple of this many rows, a vector.
pub const LANES: usize = 16;
/// The number of rows handled together.
const CHUNK: usize = 64;

dispatch! {
    /// Cross entropy of a softmax. Writes each row's loss, and 1 to `hits` where the largest logit
    /// (the first of equals) is the label's.
    pub fn softmax(logits: &[f32], labels: &[u32], losses: &mut [f32], hits: &mut [u32]) {
        let (tile, scratch) = (labels.len(), &mut Scratch::new());
        for start in (0..tile).step_by(CHUNK) {
            let end = (start + CHUNK).min(tile);
            let label = &labels[start..end];
            scratch.visit(logits, tile, start, label, &mut losses[start..end]);
            for ((hit, at), label) in hits[start..end].iter_mut().zip(&scratch.at).zip(label) {
                *hit = u32::from(at == label);
            }
        }
    }
}

dispatch! {
    /// As [`softmax`], and replaces the logits by the gradient with respect to them, p - 1{label}.
    pub fn softmax_gradient(logits: &mut [f32], labels: &[u32], losses: &mut [f32]) {
        let (tile, scratch) = (labels.len(), &mut Scratch::new());
        for start in (0..tile).step_by(CHUNK) {
            let end = (start + CHUNK).min(tile);
            let label = &labels[start..end];
            scratch.visit(logits, tile, start, label, &mut losses[start..end]);
            let Scratch { top, inverse, .. } = &*scratch;
            for (class, row) in logits.chunks_exact_mut(tile).enumerate() {
                let row = row[start..end].iter_mut().zip(top).zip(inverse).zip(label);
                for (((z, top), inverse), label) in row {
                    let target = if *label == class as u32 { 1.0 } else { 0.0 };
                    *z = exp(*z - top) * inverse - target;
                }
            }
        }
    }
}

dispatch! {
    /// Cross entropy of a logistic output: ln(1 + e^-z) for label 1 and ln(1 + e^z) for label 0.
    /// The guess is 1 where z > 0.
    pub fn logistic(logits: &[f32], labels: &[u32], losses: &mut [f32], hits: &mut [u32]) {
        for (((z, label), loss), hit) in logits.iter().zip(labels).zip(losses).zip(hits) {
            *loss = softplus(if *label == 1 { -*z } else { *z }).0;
            *hit = u32::from(u32::from(*z > 0.0) == *label);
        }
    }
}

dispatch! {
    /// As [`logistic`], and replaces the logits by the gradient with respect to them, p - label.
    pub fn logistic_gradient(logits: &mut [f32], labels: &[u32], losses: &mut [f32]) {
        for ((z, label), loss) in logits.iter_mut().zip(labels).zip(losses) {
            let sign = if *label == 1 { -1.0 } else { 1.0 };
            let (value, slope) = softplus(sign * *z);
            *loss = value;
            *z = sign * slope;
        }
    }
}

dispatch! {
    /// The squared distance of an output from a number, (z - y)².
    pub fn squared(outputs: &[f32], numbers: &[f32], losses: &mut [f32]) {
        for ((z, number), loss) in outputs.iter().zip(numbers).zip(losses) {
            let off = z - number;
            *loss = off * off;
        }
    }
}

dispatch! {
    /// As [`squared`], and replaces the outputs by the gradient with respect to them, 2 (z - y).
    pub fn squared_gradient(outputs: &mut [f32], numbers: &[f32], losses: &mut [f32]) {
        for ((z, number), loss) in outputs.iter_mut().zip(numbers).zip(losses) {
            let off = *z - number;
            *loss = off * off;
            *z = 2.0 * off;
        }
    }
}

/// What is known of each row of a chunk while its classes are visited.
struct Scratch {
    /// The largest logit.
    top: [f32; CHUNK],
    /// The first class that has it.
    at: [u32; CHUNK],
    /// Σ exp(z - top) over the classes that are not the label's.
    sum: [f32; CHUNK],
    /// The label's logit.
    own: [f32; CHUNK],
    /// 1 / Σ exp(z - top) over all classes.
    inverse: [f32; CHUNK],
}

impl Scratch {
    #[inline(always)]
    fn new() -> Self {
        let zeros = [0.0; CHUNK];
        Self { top: zeros, at: [0; CHUNK], sum: zeros, own: zeros, inverse: zeros }
    }

    /// Takes down what is to be known of a chunk, and writes its losses.
    #[inline(always)]
    fn visit(
        &mut self,
        logits: &[f32],
        tile: usize,
        start: usize,
        label: &[u32],
        losses: &mut [f32],
    ) {
        self.largest(logits, tile, start, label.len());
        self.exponentials(logits, tile, start, label);
        self.finish(losses);
    }

    #[inline(always)]
    fn largest(&mut self, logits: &[f32], tile: usize, start: usize, count: usize) {
        let (top, at) = (&mut self.top[..count], &mut self.at[..count]);
        top.fill(f32::NEG_INFINITY);
        at.fill(0);
        for (class, row) in logits.chunks_exact(tile).enumerate() {
            for ((z, top), at) in row[start..][..count].iter().zip(&mut *top).zip(&mut *at) {
                *at = if *z > *top { class as u32 } else { *at };
                *top = if *z > *top { *z } else { *top };
            }
        }
    }

    #[inline(always)]
    fn exponentials(&mut self, logits: &[f32], tile: usize, start: usize, label: &[u32]) {
        let count = label.len();
        let (sum, own) = (&mut self.sum[..count], &mut self.own[..count]);
        sum.fill(0.0);
        for (class, row) in logits.chunks_exact(tile).enumerate() {
            let row = row[start..][..count].iter().zip(&self.top).zip(label);
            for (((z, top), label), (sum, own)) in row.zip(sum.iter_mut().zip(&mut *own)) {
                let is_own = *label == class as u32;
                let term = exp(*z - top);
                *sum += if is_own { 0.0 } else { term };
                *own = if is_own { *z } else { *own };
            }
        }
    }

    /// Where the label's logit is the largest, the loss is ln(1 + sum), which keeps its relative
    /// precision however small it is.
    #[inline(always)]
    fn finish(&mut self, losses: &mut [f32]) {
        let rows = losses.iter_mut().zip(&self.sum).zip(&self.own).zip(&self.top);
        for ((((loss, sum), own), top), inverse) in rows.zip(&mut self.inverse) {
            let gap = top - own;
            // exp(0) is exactly 1, so nothing is lost when the gap is 0.
            let rest = sum + (exp(-gap) - 1.0);
            *loss = log1p(rest) + gap;
            *inverse = 1.0 / (1.0 + rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;

    /// Classes × 16 logits with labels; every third row has its label's logit far on top.
    fn case(classes: usize) -> (Vec<f32>, Vec<u32>) {
        let labels: Vec<u32> = (0..LANES as u32).map(|i| i * 7 % classes as u32).collect();
        let mut logits: Vec<f32> =
            (0..classes * LANES).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.11).collect();
        for (i, label) in labels.iter().enumerate().step_by(3) {
            logits[*label as usize * LANES + i] = 18.0;
        }
        (logits, labels)
    }

    #[test]
    fn softmax_agrees_with_f64() {
        for classes in [2, 3, 10] {
            let (logits, labels) = case(classes);
            for isa in Isa::available() {
                let (mut losses, mut hits) = ([0.0; LANES], [0; LANES]);
                softmax(isa, &logits, &labels, &mut losses, &mut hits);
                let (mut gradient, mut again) = (logits.clone(), [0.0; LANES]);
                softmax_gradient(isa, &mut gradient, &labels, &mut again);
                assert_eq!(losses, again);
                for i in 0..LANES {
                    let z: Vec<f64> = (0..classes).map(|c| logits[c * LANES + i].into()).collect();
                    let label = labels[i] as usize;
                    let others = |c: &usize| *c != label;
                    let rest: f64 =
                        (0..classes).filter(others).map(|c| (z[c] - z[label]).exp()).sum();
                    let want = rest.ln_1p();
                    assert!(
                        (f64::from(losses[i]) - want).abs() <= 1e-6 * want,
                        "{} {want}",
                        losses[i]
                    );
                    assert_eq!(hits[i] == 1, z.iter().all(|other| *other <= z[label]));
                    for c in 0..classes {
                        let p = (z[c] - z[label]).exp() / (1.0 + rest);
                        let want = p - f64::from(u8::from(c == label));
                        assert!((f64::from(gradient[c * LANES + i]) - want).abs() < 3e-7);
                    }
                }
            }
        }
    }

    #[test]
    fn logistic_is_a_softmax_of_two() {
        let labels: Vec<u32> = (0..LANES as u32).map(|i| i % 2).collect();
        let z: Vec<f32> = (0..LANES).map(|i| i as f32 - 7.3).collect();
        let two: Vec<f32> = std::iter::repeat_n(0.0, LANES).chain(z.iter().copied()).collect();
        let (mut losses, mut hits) = ([0.0; LANES], [0; LANES]);
        let (mut want, mut want_hits) = ([0.0; LANES], [0; LANES]);
        logistic(Isa::detect(), &z, &labels, &mut losses, &mut hits);
        softmax(Isa::detect(), &two, &labels, &mut want, &mut want_hits);
        assert_eq!(hits, want_hits);
        let (mut gradient, mut two) = (z, two);
        logistic_gradient(Isa::detect(), &mut gradient, &labels, &mut losses);
        softmax_gradient(Isa::detect(), &mut two, &labels, &mut want);
        for i in 0..LANES {
            assert!((losses[i] - want[i]).abs() <= 1e-6 * want[i]);
            assert!((gradient[i] - two[LANES + i]).abs() < 3e-7);
        }
    }

    #[test]
    fn losses_are_never_negative() {
        let labels = [0; LANES];
        let mut logits = vec![0.0; 2 * LANES];
        for (i, logit) in logits[..LANES].iter_mut().enumerate() {
            *logit = 10f32.powi(i as i32 - 8);
        }
        let (mut losses, mut hits) = ([-1.0; LANES], [0; LANES]);
        softmax(Isa::detect(), &logits, &labels, &mut losses, &mut hits);
        assert!(losses.iter().all(|loss| *loss >= 0.0), "{losses:?}");
    }
}
