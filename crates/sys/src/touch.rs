//! Reads every byte of a payload, as fast as a library that is made for this processor would.
//!
//! A build for every x86-64 reads 16 bytes at a time. The C library, which copies, chooses its instructions when the
//! program starts, so that a payload that was read where it lies took longer than one that was copied. What is chosen
//! here is the width alone: the loop is one.

/// Whether all `bytes` are `value`. Reads all of them in any case.
#[inline(always)]
pub fn are_all(bytes: &[u8], value: u8) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes.len() >= LEAST_WIDE_BYTES && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions.
        return unsafe { are_all_wide(bytes, value) };
    }
    are_all_in(bytes, value)
}

/// Below this the choice costs more than it gains.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LEAST_WIDE_BYTES: usize = 256;

/// With 32 bytes at a time. 64 were slower where the bytes do not begin on a line, and not faster where they do.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
fn are_all_wide(bytes: &[u8], value: u8) -> bool {
    // Up to the first line, so that no read goes across two.
    let (head, lines) = bytes.split_at(bytes.as_ptr().align_offset(64).min(bytes.len()));
    are_all_in(head, value) & are_all_in(lines, value)
}

/// Without a way out in the middle, so that it reads as fast as memory gives.
#[inline(always)]
fn are_all_in(bytes: &[u8], value: u8) -> bool {
    bytes.iter().fold(0, |differs, byte| differs | (byte ^ value)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_other_byte_is_found_wherever_it_is() {
        let mut bytes = vec![7; 700];
        for start in [0, 1, 8, 63] {
            for len_bytes in [0, 1, 31, 64, 255, 256, 257, 600] {
                assert!(are_all(&bytes[start..start + len_bytes], 7), "{start} {len_bytes}");
                for at in start..start + len_bytes {
                    bytes[at] ^= 0x80;
                    assert!(!are_all(&bytes[start..start + len_bytes], 7), "{start} {len_bytes} {at}");
                    bytes[at] ^= 0x80;
                }
            }
        }
        assert!(!are_all(&bytes, 8));
    }
}
