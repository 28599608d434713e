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
#[inline(always)]
pub(crate) fn pack(bytes: &[u8]) -> Result<u32, Errno> {
    if bytes.len() > TOKEN_BYTES {
        return Err(Errno::MSGSIZE);
    }
    Ok(bytes.iter().rev().fold(0, |token, byte| token << 8 | u32::from(*byte)))
}

/// Copies the first bytes of `token` to `into`. Returns how many.
#[inline(always)]
pub(crate) fn unpack(token: u32, into: &mut [u8]) -> usize {
    for (at, byte) in into.iter_mut().take(TOKEN_BYTES).enumerate() {
        *byte = (token >> (8 * at)) as u8;
    }
    into.len().min(TOKEN_BYTES)
}
