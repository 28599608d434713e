//! A token of up to four bytes, as a number that one instruction stores, and the memory that carries it. Not a
//! mechanism itself.

use crate::support::probe::support_of;
use model::card::Support;
use sys::Errno;
use sys::shared_memory::SharedMemory;

/// The size of the shared memory that carries a token: one page.
pub(crate) const MEMORY_BYTES: usize = 4096;
/// The size of the largest token.
pub(crate) const TOKEN_BYTES: usize = 4;

/// Whether shared memory can be had. The largest message is a token.
pub(crate) fn probe_token() -> Support {
    match SharedMemory::create("ipcmark-probe", MEMORY_BYTES) {
        Ok(_) => Support::Yes { largest_bytes: Some(TOKEN_BYTES as u64) },
        failed => support_of(failed),
    }
}

/// `bytes`, at most four, as a number.
///
/// Each length has a line of its own, here and in [`unpack`]: of a loop over so few bytes the compiler makes vectors, which is
/// several times as much code.
#[inline(always)]
pub(crate) fn pack(bytes: &[u8]) -> Result<u32, Errno> {
    Ok(match *bytes {
        [] => 0,
        [a] => u32::from(a),
        [a, b] => u32::from_le_bytes([a, b, 0, 0]),
        [a, b, c] => u32::from_le_bytes([a, b, c, 0]),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
        _ => return Err(Errno::MSGSIZE),
    })
}

/// Copies the first bytes of `token` to `into`. Returns how many.
#[inline(always)]
pub(crate) fn unpack(token: u32, into: &mut [u8]) -> usize {
    let [a, b, c, d] = token.to_le_bytes();
    match into {
        [] => 0,
        [w] => {
            *w = a;
            1
        }
        [w, x] => {
            [*w, *x] = [a, b];
            2
        }
        [w, x, y] => {
            [*w, *x, *y] = [a, b, c];
            3
        }
        [w, x, y, z, ..] => {
            [*w, *x, *y, *z] = [a, b, c, d];
            4
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked_and_longer_messages_are_refused() {
        let bytes = [1, 2, 3, 4, 5];
        for len in 0..=TOKEN_BYTES {
            let mut into = [9; 5];
            assert_eq!(pack(&bytes[..len]).map(|token| unpack(token, &mut into[..len])), Ok(len));
            assert_eq!(into[..len], bytes[..len]);
            assert!(into[len..].iter().all(|byte| *byte == 9), "{into:?}");
        }
        assert_eq!(pack(&bytes), Err(Errno::MSGSIZE));
        assert_eq!(unpack(0x0403_0201, &mut [0; 5]), TOKEN_BYTES);
    }
}
