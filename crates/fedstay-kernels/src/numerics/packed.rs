//! Vectors of `f64` inside JSON, bit for bit: base64 of their little-endian bytes.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Writes a vector.
///
/// # Errors
/// If the format cannot hold a string.
pub fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    STANDARD.encode(bytes).serialize(serializer)
}

/// Reads back what [`serialize`] wrote.
///
/// # Errors
/// If the string is not a vector of floats.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
    let (chunks, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(D::Error::custom(format!(
            "{} bytes are not a whole number of floats",
            bytes.len()
        )));
    }
    Ok(chunks.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect())
}
