#![no_main]
use fedstay_fuzz::{bodies, draw::Draw, steps};

// The bytes as they are, and the same bytes as choices of a valid case.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    bodies::step(bytes);
    let fault = steps::play(&mut Draw::from_bytes(bytes)).fault;
    assert!(fault.is_none(), "{fault:?}");
});
