//! From data to pixels: ranges, linear and logarithmic axes, and round tick values.

/// How an axis spaces its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences take equal room.
    #[default]
    Linear,
    /// Equal ratios take equal room; values that are not positive are not drawn.
    Log,
}

/// A labelled position on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// A resolved axis. `low` is at the left or bottom; it may be the larger value, which turns the
/// axis round (agents are listed from the top).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) scale: Scale,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Axis {
    /// An axis over the wished range, or something drawable near it: ranges that are not finite,
    /// empty or (for a logarithmic axis) not positive are replaced, since data we do not control
    /// may ask for them and a figure with an odd axis is worth more than no figure.
    pub(super) fn new(scale: Scale, range: (f64, f64)) -> Self {
        let (mut low, mut high) = range;
        if !low.is_finite() || !high.is_finite() {
            (low, high) = if scale == Scale::Log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if scale == Scale::Log {
            high = if high > 0.0 { high } else { 1.0 };
            low = if low > 0.0 { low } else { high / 1000.0 };
            if low == high {
                (low, high) = (low / 2.0, high * 2.0);
            }
        } else if (high - low).abs() <= 1e-12 * low.abs().max(high.abs()) {
            let margin = if low == 0.0 { 0.5 } else { 0.1 * low.abs() };
            (low, high) = (low - margin, high + margin);
        }
        Self { scale, low, high }
    }

    /// Where `value` lies, 0 at `low` and 1 at `high`; `None` if it has no place on this axis.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Log => return None,
        };
        // Values far outside would only make needlessly long coordinates; clipping hides them.
        share.is_finite().then(|| share.clamp(-1e3, 1e3))
    }

    /// About `target` round values within the axis, ascending.
    pub(super) fn ticks(&self, target: usize) -> Vec<Tick> {
        let (low, high) = (self.low.min(self.high), self.low.max(self.high));
        match self.scale {
            Scale::Linear => linear_ticks(low, high, target),
            Scale::Log => log_ticks(low, high, target),
        }
    }
}

/// The number nearest to `raw`, by ratio, among 1, 2 and 5 times a power of ten.
fn nice_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    // The limits are the geometric means of the neighbours, √2, √10 and √50.
    let factor = match raw / power {
        f if f < 1.414 => 1.0,
        f if f < 3.162 => 2.0,
        f if f < 7.071 => 5.0,
        _ => 10.0,
    };
    factor * power
}

fn linear_ticks(low: f64, high: f64, target: usize) -> Vec<Tick> {
    let step = nice_step((high - low) / target.max(1) as f64);
    if !step.is_finite() || step <= 0.0 {
        return Vec::new();
    }
    let slack = 1e-9 * step;
    let first = ((low - slack) / step).ceil();
    // Multiplying keeps every tick exact to the last digit; adding up steps would drift.
    (0..=2 * target.max(1) + 1)
        .map(|i| (first + i as f64) * step)
        .take_while(|v| *v <= high + slack)
        .map(|value| Tick { value, label: tick_label(value, step) })
        .collect()
}

/// Powers of ten, thinned out if there are many; 1-2-5 steps if there are few.
fn log_ticks(low: f64, high: f64, target: usize) -> Vec<Tick> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let decades = (last - first).max(1) as usize;
    let stride = decades.div_ceil(target.max(1)).max(1);
    let factors: &[f64] = if high / low < 100.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    (first..=last)
        .step_by(stride)
        .flat_map(|e| factors.iter().map(move |f| f * 10f64.powi(e)))
        .filter(|v| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(v))
        .map(|value| Tick { value, label: log_label(value) })
        .collect()
}

/// `value` with as many decimals as `step` needs, and a true minus sign.
fn tick_label(value: f64, step: f64) -> String {
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    if !(1e-5..1e6).contains(&step) {
        return format!("{value:e}").replace('-', "−");
    }
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}").replace('-', "−")
}

fn log_label(value: f64) -> String {
    if (0.001..10_000.0).contains(&value) {
        return short(value);
    }
    let exponent = value.log10().floor() as i32;
    let factor = (value / 10f64.powi(exponent)).round();
    let superscript: String = exponent
        .to_string()
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            c => char::from_u32('⁰' as u32 + c.to_digit(10).unwrap_or(0)).unwrap_or(c),
        })
        .collect();
    if factor == 1.0 { format!("10{superscript}") } else { format!("{factor}·10{superscript}") }
}

/// `value` with at most four significant digits, for contour levels and bars.
pub(super) fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".into();
    }
    let digits = (3.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, range: (f64, f64), target: usize) -> Vec<String> {
        Axis::new(scale, range).ticks(target).into_iter().map(|t| t.label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            labels(Scale::Linear, (0.0, 1.0), 5),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(labels(Scale::Linear, (-0.3, 0.3), 3), ["−0.2", "0.0", "0.2"]);
        assert_eq!(
            labels(Scale::Linear, (0.0, 500.0), 4),
            ["0", "100", "200", "300", "400", "500"]
        );
        assert_eq!(labels(Scale::Linear, (3.0, 1.0), 2), ["1", "2", "3"]);
    }

    #[test]
    fn log_ticks_are_powers_or_one_two_five() {
        assert_eq!(labels(Scale::Log, (1.0, 1000.0), 6), ["1", "10", "100", "1000"]);
        assert_eq!(labels(Scale::Log, (1.0, 20.0), 6), ["1", "2", "5", "10", "20"]);
        assert_eq!(labels(Scale::Log, (1e-5, 1e-3), 6), ["10⁻⁵", "10⁻⁴", "0.001"]);
        assert!(labels(Scale::Log, (1e-30, 1e30), 6).len() <= 8);
    }

    #[test]
    fn odd_ranges_still_give_an_axis() {
        for scale in [Scale::Linear, Scale::Log] {
            for range in [
                (f64::NAN, 1.0),
                (2.0, 2.0),
                (0.0, 0.0),
                (-1.0, f64::INFINITY),
                (-5.0, -1.0),
                (1.0, 1.0 + 1e-16),
            ] {
                let axis = Axis::new(scale, range);
                assert!(
                    axis.low.is_finite() && axis.high.is_finite() && axis.low != axis.high,
                    "{axis:?}"
                );
                assert!(axis.ticks(5).len() < 20);
                assert!(axis.position(1.0).is_some());
            }
        }
        assert_eq!(Axis::new(Scale::Log, (1.0, 10.0)).position(0.0), None);
        assert_eq!(Axis::new(Scale::Linear, (0.0, 1.0)).position(f64::NAN), None);
    }

    #[test]
    fn short_numbers() {
        assert_eq!(short(0.12), "0.12");
        assert_eq!(short(1.0), "1");
        assert_eq!(short(-12.3456), "−12.35");
        assert_eq!(short(1200.0), "1200");
    }
}
