//! Matrix products through the `gemm` crates, on the calling thread. The crate `gemm` itself would also
//! compile products of double-precision and complex matrices, which nobody here asks for.

/// A borrowed matrix of any strides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Rows one after the other, `stride` elements apart.
    pub(crate) fn rows(data: &'a [f32], rows: usize, cols: usize, stride: usize) -> Self {
        Self { data, rows, cols, row_stride: stride, col_stride: 1 }
    }

    /// The same memory, rows and columns exchanged.
    pub(crate) fn transposed(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    fn fits(&self, len: usize) -> bool {
        self.rows == 0
            || self.cols == 0
            || (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride < len
    }
}

/// `dst = beta * dst + alpha * lhs * rhs`, where `dst` is described by `shape` (whose own data are
/// ignored). With `beta == 0` the old content of `dst` is not read, so it may be anything.
pub(crate) fn matmul(
    dst: &mut [f32],
    shape: Matrix<'_>,
    beta: f32,
    alpha: f32,
    lhs: Matrix<'_>,
    rhs: Matrix<'_>,
) {
    assert_eq!(lhs.cols, rhs.rows, "inner dimensions");
    assert_eq!((shape.rows, shape.cols), (lhs.rows, rhs.cols), "outer dimensions");
    assert!(
        shape.fits(dst.len()) && lhs.fits(lhs.data.len()) && rhs.fits(rhs.data.len()),
        "bounds"
    );
    // The kernel prefers a destination whose columns are contiguous: (AB)ᵀ = BᵀAᵀ.
    let (shape, lhs, rhs) = match shape.col_stride < shape.row_stride {
        true => (shape.transposed(), rhs.transposed(), lhs.transposed()),
        false => (shape, lhs, rhs),
    };
    // SAFETY: the last element of each of the three matrices lies inside its slice (checked
    // above), strides are non-negative, and `dst` is borrowed exclusively, so it overlaps neither.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            shape.rows,
            shape.cols,
            lhs.cols,
            dst.as_mut_ptr(),
            shape.col_stride as isize,
            shape.row_stride as isize,
            beta != 0.0,
            lhs.data.as_ptr(),
            lhs.col_stride as isize,
            lhs.row_stride as isize,
            rhs.data.as_ptr(),
            rhs.col_stride as isize,
            rhs.row_stride as isize,
            beta,
            alpha,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

/// The shape of a destination: a matrix without data.
pub(crate) fn shape(rows: usize, cols: usize, stride: usize) -> Matrix<'static> {
    Matrix::rows(&[], rows, cols, stride)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_definition() {
        let (m, k, n) = (3, 4, 5);
        let a: Vec<f32> = (0..m * k).map(|i| i as f32 * 0.5 - 2.0).collect();
        let b: Vec<f32> = (0..n * k).map(|i| 1.0 - i as f32 * 0.25).collect();
        let mut c = vec![f32::NAN; m * n];
        let rhs = Matrix::rows(&b, n, k, k).transposed();
        matmul(&mut c, shape(m, n, n), 0.0, 2.0, Matrix::rows(&a, m, k, k), rhs);
        let product = |i: usize, j: usize| (0..k).map(|t| a[i * k + t] * b[j * k + t]).sum::<f32>();
        for i in 0..m {
            for j in 0..n {
                assert_eq!(c[i * n + j], 2.0 * product(i, j));
            }
        }
        // Accumulating into a transposed destination.
        let mut t = vec![1.0; m * n];
        matmul(&mut t, shape(n, m, m).transposed(), 1.0, 1.0, Matrix::rows(&a, m, k, k), rhs);
        for i in 0..m {
            for j in 0..n {
                assert_eq!(t[j * m + i], 1.0 + product(i, j));
            }
        }
    }

    #[test]
    #[should_panic(expected = "bounds")]
    fn refuses_to_read_outside() {
        let a = [0.0; 5];
        let m = Matrix::rows(&a, 2, 3, 3);
        matmul(&mut [0.0; 4], shape(2, 2, 2), 0.0, 1.0, m, m.transposed());
    }
}
