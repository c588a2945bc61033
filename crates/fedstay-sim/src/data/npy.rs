//! NPY, NumPy's format for one array: a header in words, then the values.

use std::io::{self, Read};

/// What an array's header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// The kind of its values.
    pub(super) values: NpyValues,
    /// Its dimensions; the values lie in C order.
    pub(super) shape: Vec<usize>,
    /// The bytes before the first value.
    len: u64,
}

/// The kind of an array's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NpyValues {
    /// `b`, `i`, `u` or `f`, as NumPy writes it.
    pub(super) letter: char,
    /// The bytes of a value.
    pub(super) size: usize,
    big_endian: bool,
}

impl Header {
    /// Reads the header; `Err` says what was found instead.
    pub(super) fn read(reader: &mut impl Read) -> Result<Self, String> {
        let torn = |error: io::Error| format!("a header that ends early ({error})");
        let mut start = [0; 8];
        reader.read_exact(&mut start).map_err(torn)?;
        if &start[..6] != b"\x93NUMPY" {
            return Err("something that is not an NPY array".into());
        }
        let mut size = [0; 4];
        let width = if start[6] == 1 { 2 } else { 4 };
        reader.read_exact(&mut size[..width]).map_err(torn)?;
        let size = u32::from_le_bytes(size) as usize;
        if size > 1 << 16 {
            return Err(format!("a header of {size} bytes"));
        }
        let mut text = vec![0; size];
        reader.read_exact(&mut text).map_err(torn)?;
        let text = String::from_utf8_lossy(&text);
        Self::parse(&text, (8 + width + size) as u64)
            .ok_or_else(|| format!("an array of another kind: {}", text.trim()))
    }

    /// Understands `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
    fn parse(text: &str, len: u64) -> Option<Self> {
        let after = |key: &str| Some(text.split_once(key)?.1.trim_start());
        let descr = after("'descr':")?.strip_prefix('\'')?.split_once('\'')?.0;
        let shape = after("'shape':")?.strip_prefix('(')?.split_once(')')?.0;
        let shape = shape
            .split(',')
            .map(str::trim)
            .filter(|dimension| !dimension.is_empty())
            .map(|dimension| dimension.parse().ok())
            .collect::<Option<Vec<usize>>>()?;
        if after("'fortran_order':")?.starts_with("True") && shape.len() > 1 {
            return None;
        }
        let mut letters = descr.chars();
        let (order, letter) = (letters.next()?, letters.next()?);
        let size = letters.as_str().parse().ok()?;
        let known = matches!((letter, size), ('b', 1) | ('i' | 'u', 1 | 2 | 4 | 8) | ('f', 4 | 8));
        let values = NpyValues { letter, size, big_endian: order == '>' };
        (known && "<>|=".contains(order)).then_some(Header { values, shape, len })
    }

    /// The number of values; `None` if it overflows.
    pub(super) fn count(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n))
    }

    /// The bytes of the whole file; `None` if their number overflows.
    pub(super) fn file_len(&self) -> Option<u64> {
        (self.count()?.checked_mul(self.values.size)? as u64).checked_add(self.len)
    }
}

impl NpyValues {
    /// Reads `count` values and hands each to `take`, as an integer or as a float.
    pub(super) fn read(
        self,
        reader: &mut impl Read,
        count: usize,
        mut take: impl FnMut(Value),
    ) -> io::Result<()> {
        let mut chunk = [0; 1 << 13];
        let mut left = count * self.size;
        while left > 0 {
            let part = &mut chunk[..left.min(1 << 13)];
            reader.read_exact(part)?;
            left -= part.len();
            part.chunks_exact_mut(self.size).for_each(|value| take(self.value(value)));
        }
        Ok(())
    }

    /// One value from its bytes.
    fn value(self, bytes: &mut [u8]) -> Value {
        if self.big_endian {
            bytes.reverse();
        }
        let negative = self.letter == 'i' && bytes.last().is_some_and(|&byte| byte >= 0x80);
        let mut wide = [if negative { 0xff } else { 0 }; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = i128::from_le_bytes(wide);
        match (self.letter, self.size) {
            ('f', 4) => Value::Float(f64::from(f32::from_bits(bits as u32))),
            ('f', _) => Value::Float(f64::from_bits(bits as u64)),
            _ => Value::Integer(bits),
        }
    }
}

/// One value of an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    /// A value of an array of integers or truth values.
    Integer(i128),
    /// A value of an array of floats.
    Float(f64),
}

impl Value {
    /// The value as a feature.
    pub(super) fn as_f32(self) -> f32 {
        match self {
            Value::Integer(value) => value as f32,
            Value::Float(value) => value as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(descr: &str, bytes: &[u8]) -> Vec<Value> {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (), }}");
        let values = Header::parse(&text, 0).unwrap().values;
        let mut found = Vec::new();
        values.read(&mut &bytes[..], bytes.len() / values.size, |value| found.push(value)).unwrap();
        found
    }

    #[test]
    fn every_kind_of_number_is_read() {
        use Value::{Float, Integer};
        assert_eq!(values("|u1", &[255, 1]), [Integer(255), Integer(1)]);
        assert_eq!(values("|b1", &[1]), [Integer(1)]);
        assert_eq!(values("<i2", &[0xfe, 0xff]), [Integer(-2)]);
        assert_eq!(values(">i4", &[0xff, 0xff, 0xff, 0xfd]), [Integer(-3)]);
        assert_eq!(values("<u8", &[0xff; 8]), [Integer(u64::MAX.into())]);
        assert_eq!(values("<f4", &1.5f32.to_le_bytes()), [Float(1.5)]);
        assert_eq!(values(">f8", &(-0.25f64).to_be_bytes()), [Float(-0.25)]);
    }

    #[test]
    fn shapes_and_kinds_are_understood_or_refused() {
        let parse = |descr: &str, order: &str, shape: &str| {
            let text =
                format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
            Header::parse(&text, 0)
        };
        assert_eq!(parse("'<f4'", "False", "(3,)").unwrap().shape, [3]);
        assert_eq!(parse("'<f4'", "True", "(3,)").unwrap().shape, [3]);
        assert_eq!(parse("'<f4'", "False", "(2, 3)").unwrap().file_len(), Some(24));
        assert_eq!(parse("'<f4'", "True", "(2, 3)"), None);
        for descr in ["'<f2'", "'|O'", "'<U3'", "[('a', '<f4')]", "'é'", "''"] {
            assert_eq!(parse(descr, "False", "(2,)"), None, "{descr}");
        }
        for shape in ["(-1,)", "(x,)", "3", "(99999999999999999999,)"] {
            assert_eq!(parse("'<f4'", "False", shape), None, "{shape}");
        }
        let huge = parse("'<f8'", "False", "(4294967296, 4294967296)").unwrap();
        assert_eq!((huge.count(), huge.file_len()), (None, None));
    }
}
