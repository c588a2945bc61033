//! From planes of pixels to pixels with their channels side by side, and back.

use crate::isa::dispatch;

dispatch! {
    /// Copies `[channel][row][stride]` to `[row][column][channel]`. The length of `planes` is that of
    /// all planes; `pixels` may be longer than needed.
    pub fn interleave(planes: &[f32], channels: usize, width: usize, stride: usize, pixels: &mut [f32]) {
        let plane = planes.len() / channels;
        if channels == 3 {
            let (red, rest) = planes.split_at(plane);
            let (green, blue) = rest.split_at(plane);
            let rows = red.chunks_exact(stride).zip(green.chunks_exact(stride));
            let rows = rows.zip(blue.chunks_exact(stride));
            for (((red, green), blue), pixels) in rows.zip(pixels.chunks_exact_mut(3 * width)) {
                let colours = red.iter().zip(green).zip(blue);
                for (pixel, ((red, green), blue)) in pixels.chunks_exact_mut(3).zip(colours) {
                    (pixel[0], pixel[1], pixel[2]) = (*red, *green, *blue);
                }
            }
            return;
        }
        for (channel, plane) in planes.chunks_exact(plane).enumerate() {
            let rows = plane.chunks_exact(stride).zip(pixels.chunks_exact_mut(channels * width));
            for (plane, pixels) in rows {
                let column = pixels[channel..].iter_mut().step_by(channels);
                column.zip(&plane[..width]).for_each(|(pixel, value)| *pixel = *value);
            }
        }
    }
}

/// Copies `[row][column][channel]`, times `factors`, to `[channel][row][stride]`. Both lengths are those
/// of all planes; what lies beyond the width becomes zero. It is not compiled for wider vectors: the
/// gathers that the compiler then uses are slower than loads one by one.
pub fn separate(
    pixels: &[f32],
    factors: &[f32],
    channels: usize,
    width: usize,
    stride: usize,
    planes: &mut [f32],
) {
    let plane = planes.len() / channels;
    let all = planes.chunks_exact_mut(plane).zip(factors.chunks_exact(plane));
    for (channel, (plane, factors)) in all.enumerate() {
        let rows = plane.chunks_exact_mut(stride).zip(factors.chunks_exact(stride));
        for ((plane, factors), pixels) in rows.zip(pixels.chunks_exact(channels * width)) {
            let (values, padding) = plane.split_at_mut(width);
            let column = pixels[channel..].iter().step_by(channels);
            for ((value, pixel), factor) in values.iter_mut().zip(column).zip(factors) {
                *value = pixel * factor;
            }
            padding.fill(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;

    #[test]
    fn there_and_back() {
        let (height, width, stride) = (3, 5, 8);
        for channels in [1, 2, 3, 6] {
            let planes: Vec<f32> = (0..channels * height * stride).map(|i| i as f32).collect();
            for isa in Isa::available() {
                let mut pixels = vec![f32::NAN; channels * height * width];
                interleave(isa, &planes, channels, width, stride, &mut pixels);
                let at = (width + 4) * channels + channels - 1;
                let want = (channels - 1) * height * stride + stride + 4;
                assert_eq!(pixels[at], want as f32);
                let (factors, mut back) = (vec![2.0; planes.len()], vec![f32::NAN; planes.len()]);
                separate(&pixels, &factors, channels, width, stride, &mut back);
                for (i, (value, plane)) in back.iter().zip(&planes).enumerate() {
                    let want = if i % stride < width { 2.0 * plane } else { 0.0 };
                    assert_eq!(*value, want);
                }
            }
        }
    }
}
