#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fedstay_fuzz::bodies::table(bytes));
