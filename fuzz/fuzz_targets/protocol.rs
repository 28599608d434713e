//! The control channel: whatever a peer sends, either side reads messages or refuses, and what was read is written as the same.

#![no_main]

use harness::protocol::stream::{Speaker, messages};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for speaker in [Speaker::Coordinator, Speaker::Endpoint] {
        let _ = messages(bytes, speaker);
        // Without its length, so that the fuzzer need not find one that fits.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        assert!(messages(&[&length, bytes].concat(), speaker) <= 1);
    }
});
