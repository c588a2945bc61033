//! Sums of products without rounding, to judge steps by what they are and not by how they were
//! computed. J. R. Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast Robust
//! Geometric Predicates", 1997. Products below the smallest normal number lose digits, which is far
//! below what is judged.

/// A sum, as numbers that do not overlap, smallest first.
#[derive(Default)]
pub struct Sum(Vec<f64>);

impl Sum {
    /// Adds a number, exactly.
    pub fn add(&mut self, mut value: f64) {
        let mut kept = 0;
        for index in 0..self.0.len() {
            let other = self.0[index];
            let sum = value + other;
            let virtual_other = sum - value;
            let rest = (value - (sum - virtual_other)) + (other - virtual_other);
            if rest != 0.0 {
                self.0[kept] = rest;
                kept += 1;
            }
            value = sum;
        }
        self.0.truncate(kept);
        self.0.push(value);
    }

    /// Adds a product, exactly.
    pub fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.add(a.mul_add(b, -product));
        self.add(product);
    }

    /// The sum, rounded once.
    pub fn value(&self) -> f64 {
        self.0.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Sum;

    #[test]
    fn what_cancels_leaves_the_small_rest() {
        let mut sum = Sum::default();
        sum.add_product(1e20, 1.0);
        sum.add(1.0);
        sum.add_product(-1e10, 1e10);
        sum.add_product(1e-20, 1e-20);
        assert_eq!(sum.value(), 1.0 + 1e-40);
        sum.add(-1.0);
        assert!((sum.value() / 1e-40 - 1.0).abs() < 1e-12);
    }
}
