#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| vellum_testkit::fuzz::headers(input));
