//! Documents as the program writes or expects them, and ways to damage them: most random bytes are
//! refused at the first one, a damaged document much later.

use super::draw::Draw;

/// A step.
pub const STEP: &str = r#"{"rule":{"kind":"ada-gd","delta":0.05},"policy":{"kind":"guard"},"step_size":0.1,"reports":[{"agent":0,"loss":0.2,"epsilon":0.1,"direction":[1.0,0.0],"samples":3},{"agent":1,"loss":3.0,"epsilon":0.1,"direction":[1.0,1.0],"standard_error":0.01}]}"#;

/// An experiment with most of its tables.
pub const EXPERIMENT: &str = r#"seed = 3
rounds = 20
step_size = 0.1
epsilon = [0.2, 0.3, 0.2]
agents = 3
population = 5
participation = 0.5
[rule]
kind = "ada-gd"
delta = 0.01
[policy]
kind = "early-stop"
margin = 0.0
[behaviour]
kind = "mixed"
of = [{ kind = "threshold", share = 0.5 }, { kind = "two-sided", share = 0.5, alone = 3 }]
[privacy]
clip = 1.0
loss_clip = 2.0
noise = 0.5
delta = 1e-5
[data]
kind = "digits"
classes = [0, 1, 2]
per_agent = 20
[partition]
kind = "by-class"
q = 0.9
map = [[0], [1], [2]]
[model]
kind = "mlp"
hidden = [8, 4]
[local]
steps = 2
batch = 5
mu = 0.1
"#;

/// A run's lines.
pub const ROUNDS: &str = r#"{"schema":"fedstay.rounds/1","version":"0.1.0","rule":"fedavg","on":"digits","seed":0,"rounds":9,"agents":[{"id":0,"epsilon":0.2},{"id":1,"epsilon":0.2}]}
{"round":1,"agents":[0,1],"loss":[1.5,null],"d":[],"case":null,"left":[],"step_size":0.1,"step_norm":0.2,"stop":null,"kept":true}
{"round":2,"agents":[0],"loss":[0.7],"at_least":[0],"d":[0],"case":1,"left":[1],"step_size":0.1,"step_norm":null,"stop":null,"assessment":{"loss":[0.7,0.1],"accuracy":[0.5,1.0],"population":{"loss":1.0,"accuracy":0.25}}}
{"round":3,"agents":[],"loss":[],"left":[0],"returned":[1],"faults":[[1,"late"]],"flags":[{"agent":0,"doubt":"below-tangent","by":0.5}],"case":null,"stop":"round-limit","weights":[1.0,2.0]}
"#;

/// A table, preceded by the byte that says how to read it.
pub const CSV: &str = "\0height,width,class\n1.5,2,a\n-3,4e3,b\n5,0.1,\"a\"\n1,1,b\n2,2,a\n";

/// A table with texts, blanks and days; its third column is the label.
pub const TABLE: &str = "\u{3}site,age,seen,died\nOslo,1.5,2024-05-31,no\nBern,NA,2024-06-01,yes\n\
    Oslo,4e3,,no\nBern,\"7\",2024-06-02T10:00:00Z,yes\n";

/// When agents are there.
pub const TRACE: &str = "agent,from,to\n0,1,40\n0,61,\n# away at first\n3,10,20\n";

/// An NPY header for values of a kind, in a shape.
pub fn npy_header(descr: &str, shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.as_bytes());
    header
}

/// One array of four rows.
pub fn npy(draw: &mut Draw<'_>) -> Vec<u8> {
    let descr = draw.of(&["<f4", ">f4", "<f8", "|u1", "<i2", ">u4", "<i8", "|b1", "<f2", "<U3"]);
    let shape = draw.of(&["(4, 3)", "(4,)", "(4, 2, 2)", "(4, 1, 2, 2)", "(0, 3)", "(4, 0)", "()"]);
    let mut array = npy_header(descr, shape);
    array.extend((0..draw.below(160)).map(|_| draw.below(256) as u8));
    array
}

/// Files in a ZIP archive without compression, as `numpy.savez` writes it.
pub fn stored(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let offset = archive.len() as u32;
        let mut about = Vec::new();
        about.extend([20, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        about.extend(crc32(content).to_le_bytes());
        about.extend((content.len() as u32).to_le_bytes());
        about.extend((content.len() as u32).to_le_bytes());
        about.extend((name.len() as u16).to_le_bytes());
        about.extend([0, 0]);
        archive.extend(b"PK\x03\x04");
        archive.extend(&about);
        archive.extend(name.as_bytes());
        archive.extend(*content);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&about);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (start, count) = (archive.len() as u32, files.len() as u16);
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    archive.extend((directory.len() as u32).to_le_bytes());
    archive.extend(start.to_le_bytes());
    archive.extend([0, 0]);
    archive
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// An archive of `x` and `y`, whole.
pub fn npz(draw: &mut Draw<'_>) -> Vec<u8> {
    let mut labels = npy_header("<i8", "(4,)");
    (0..4).for_each(|_| labels.extend((draw.below(3) as i64).to_le_bytes()));
    stored(&[("x.npy", &npy(draw)), ("y.npy", &labels)])
}

/// Four IDX files, each after its length: three images of 2×2 to train with, one to test.
pub fn idx() -> Vec<u8> {
    let file = |dimensions: &[u32], content: &[u8]| -> Vec<u8> {
        let mut file = (0x0800 + dimensions.len() as u32).to_be_bytes().to_vec();
        dimensions.iter().for_each(|n| file.extend(n.to_be_bytes()));
        file.extend(content);
        file
    };
    let files = [
        file(&[3, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        file(&[3], &[7, 0, 9]),
        file(&[1, 2, 2], &[13, 14, 15, 16]),
        file(&[1], &[4]),
    ];
    files.iter().flat_map(|file| [&(file.len() as u16).to_be_bytes()[..], file].concat()).collect()
}

/// Replacements for numbers and words.
const TOKENS: [&str; 30] = [
    "0",
    "-1",
    "1e999",
    "-0.0",
    "1e-320",
    "1e308",
    "9223372036854775807",
    "18446744073709551616",
    "4294967296",
    "nan",
    "inf",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "[[]]",
    "\"\u{1b}[31m\"",
    "\u{7}",
    "\"fedavg\"",
    "\"retain\"",
    "\"observation-4\"",
    "0.5",
    "3",
    "1000000",
    "-7.25",
    "\"a\\nb\"",
    "\n",
    ",",
    "\u{fffd}",
];

/// Damages a document in one to four places.
pub fn damaged(draw: &mut Draw<'_>, document: &[u8]) -> Vec<u8> {
    let mut bytes = document.to_vec();
    for _ in 0..1 + draw.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = draw.below(bytes.len());
        match draw.below(8) {
            0 => bytes[at] ^= 1 << draw.below(8),
            1 => bytes[at] = draw.below(256) as u8,
            2 => bytes.truncate(at),
            3 => {
                let end = (at + 1 + draw.below(12)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let end = (at + 1 + draw.below(40)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = draw.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            // A whole word or number becomes another.
            _ => {
                let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._\"".contains(byte);
                let start = bytes[..at].iter().rposition(|byte| !word(byte)).map_or(0, |at| at + 1);
                let end = bytes[at..].iter().position(|byte| !word(byte));
                let end = end.map_or(bytes.len(), |length| at + length).max(start);
                bytes.splice(start..end, draw.of(&TOKENS).bytes());
            }
        }
    }
    bytes
}
