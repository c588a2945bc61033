//! TensorBoard's event files, for those who use it.
//!
//! A file is a sequence of records: length (u64), a checksum of it (u32), the bytes, a checksum of
//! those (u32), all little-endian; the checksum is CRC-32C, rotated and offset so that a checksum
//! of data that holds checksums stays useful ("masked"). The bytes are the protocol buffer `Event`
//! with a `Summary` of named scalars inside. Sources: TensorFlow, `core/lib/io/record_writer.h`,
//! `core/lib/hash/crc32c.h`, `core/util/event.proto`, `core/framework/summary.proto`.

use fedstay::record::{Header, RoundLine, Spread, called_briefly};
use fedstay::{Book, Error, RoundRecord};
use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many agents get a curve of their own; TensorBoard does not draw more of them well.
const AGENTS: usize = 50;

/// Writes scalars of every round into an event file. It is a [`Book`].
#[derive(Debug)]
pub struct TensorBoard {
    path: PathBuf,
    file: File,
    left: usize,
    agents: usize,
}

impl TensorBoard {
    /// Creates an event file in a folder, which is created if need be. `agents` take part, and the
    /// next round is `round`; curves of an earlier run in the same folder end there.
    ///
    /// # Errors
    /// When the folder cannot be written to; the message names it.
    pub fn create(folder: &Path, agents: usize, round: u32) -> io::Result<Self> {
        let named = |path: &Path, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        std::fs::create_dir_all(folder).map_err(|error| named(folder, error))?;
        let start = now();
        let (mut path, mut file) = (PathBuf::new(), None);
        // Two runs that start in the same second must not share a file.
        for number in 0..1000 {
            path = folder.join(format!("events.out.tfevents.{}.fedstay.{number}", start as u64));
            match File::options().write(true).create_new(true).open(&path) {
                Ok(new) => file = Some(new),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(named(&path, error)),
            }
            break;
        }
        let file = file.ok_or_else(|| io::Error::other(format!("{}: full", folder.display())))?;
        let mut board = Self { path, file, left: 0, agents };
        let mut version = event(start, 0);
        bytes(&mut version, 3, b"brain.Event:2");
        board.write(&version)?;
        // A session's start tells a reader to drop what an earlier file has from this step onwards.
        let mut session = event(start, i64::from(round));
        bytes(&mut session, 7, &[0x08, 1]);
        board.write(&session)?;
        Ok(board)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        let length = (record.len() as u64).to_le_bytes();
        let mut framed = length.to_vec();
        framed.extend(masked(&length).to_le_bytes());
        framed.extend(record);
        framed.extend(masked(record).to_le_bytes());
        self.file.write_all(&framed)
    }

    fn scalars(&mut self, header: &Header, line: &RoundLine) -> Vec<(String, f64)> {
        self.left += line.left.len();
        let exact = |index: usize| match line.at_least.contains(&line.agents[index]) {
            true => None,
            false => line.loss[index],
        };
        let mut scalars: Vec<(String, f64)> = vec![
            ("agents/about_to_leave".into(), line.d.len() as f64),
            ("agents/left".into(), self.left as f64),
            ("agents/did_not_answer".into(), line.faults.len() as f64),
            ("step/size".into(), line.step_size),
            ("step/length".into(), line.step_norm),
        ];
        let mut add = |name: &str, value: Option<f64>| {
            scalars.extend(value.map(|value| (name.to_owned(), value)));
        };
        add("step/case", line.case.map(f64::from));
        if let Some(assessment) = &line.assessment {
            let spread = assessment.spread();
            add("loss/mean", spread.as_ref().map(|score| score.loss.mean));
            add("loss/worst", spread.as_ref().map(|score| score.loss.max));
            for (measure, over) in spread.iter().flat_map(|score| score.measures.iter()) {
                let worst = header.measures.iter().find(|known| known.name == measure);
                add(&format!("{measure}/mean"), Some(over.mean));
                add(
                    &format!("{measure}/worst"),
                    Some(worst.map_or(over.min, |known| known.worse(over.min, over.max))),
                );
            }
            let population = assessment.population.as_ref();
            add("population/loss", population.map(|score| score.loss));
            for (measure, value) in population.iter().flat_map(|score| score.measures.iter()) {
                add(&format!("population/{measure}"), Some(*value));
            }
        } else if line.at_least.is_empty() {
            let told = Spread::of(line.loss.iter().flatten().copied());
            add("loss_of_those_in/mean", told.map(|loss| loss.mean));
            add("loss_of_those_in/worst", told.map(|loss| loss.max));
        }
        if self.agents <= AGENTS {
            for (index, agent) in line.agents.iter().enumerate() {
                let called = called_briefly(*agent, header.name(*agent));
                add(&format!("agent_loss/{called}"), exact(index));
            }
        }
        scalars.retain(|(_, value)| value.is_finite());
        scalars
    }
}

impl Book for TensorBoard {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        let line = &record.line;
        let mut summary = Vec::new();
        for (tag, value) in self.scalars(record.header, line) {
            let mut scalar = Vec::new();
            bytes(&mut scalar, 1, tag.as_bytes());
            scalar.push(2 << 3 | 5);
            scalar.extend((value as f32).to_le_bytes());
            bytes(&mut summary, 1, &scalar);
        }
        let mut event = event(now(), i64::from(line.round));
        bytes(&mut event, 5, &summary);
        self.write(&event).map_err(|error| {
            Error::Book(format!("{}: {error}; continue without --tensorboard", self.path.display()))
        })?;
        Ok(ControlFlow::Continue(()))
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// The beginning of an `Event`: wall time and step.
fn event(time: f64, step: i64) -> Vec<u8> {
    let mut event = vec![1 << 3 | 1];
    event.extend(time.to_le_bytes());
    event.push(2 << 3);
    varint(&mut event, step as u64);
    event
}

/// A field of bytes: its number and type, its length, itself.
fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend(value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bit by bit: a round has a few hundred bytes.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::record::HeaderAgent;
    use fedstay::{About, AgentId};

    #[test]
    fn the_checksum_is_castagnolis() {
        // RFC 3720, B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn an_agents_curve_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut board = TensorBoard::create(folder.path(), 2, 1).unwrap();
        let agent = |(id, name): (u64, Option<&str>)| HeaderAgent {
            id: AgentId(id),
            epsilon: 0.1,
            name: name.map(str::to_owned),
        };
        let agents = [(0, Some("NSW")), (1, None)].map(agent).to_vec();
        let header = Header::new(&About::default(), 1, agents);
        let line = r#"{"round":1,"agents":[0,1],"loss":[0.5,0.4],"d":[],"nd":[],"left":[],"step_norm":1,
            "step_size":1,"case":null,"tau":[null,null]}"#;
        let line: RoundLine = serde_json::from_str(line).unwrap();
        let tags: Vec<String> =
            board.scalars(&header, &line).into_iter().map(|(tag, _)| tag).collect();
        assert!(tags.contains(&"agent_loss/NSW".to_owned()), "{tags:?}");
        assert!(tags.contains(&"agent_loss/1".to_owned()), "{tags:?}");
    }

    #[test]
    fn varints() {
        let mut out = Vec::new();
        varint(&mut out, 300);
        varint(&mut out, 127);
        assert_eq!(out, [0xac, 2, 0x7f]);
    }

    #[test]
    fn two_runs_in_one_second_have_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let first = TensorBoard::create(&folder.path().join("a/b"), 2, 1).unwrap();
        let second = TensorBoard::create(&folder.path().join("a/b"), 2, 1).unwrap();
        assert_ne!(first.path(), second.path());
        assert!(std::fs::metadata(first.path()).unwrap().len() > 30);
        let error = TensorBoard::create(Path::new("/proc/nowhere"), 2, 1).unwrap_err();
        assert!(error.to_string().contains("/proc/nowhere"), "{error}");
    }
}
