//! What a message holds: how it is made, and how it is verified when it has come. It moves nothing.

use super::loop_error::LoopError;
use model::Workload;

/// How much of each payload is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// Nothing: the mechanism carries no payload.
    Nothing,
    /// The sequence number in the first eight bytes, or as much of it as the message holds.
    Sequence,
    /// Every byte.
    Everything,
}

/// As much of the number of a message as the message holds and the endpoint checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageNumber {
    mask: u64,
}

impl MessageNumber {
    /// That of a message of `size_bytes`.
    pub(super) fn for_size(size_bytes: usize, check: Check) -> Self {
        let bits = match check {
            Check::Nothing => 0,
            Check::Sequence | Check::Everything => 8 * size_bytes.min(8) as u32,
        };
        Self { mask: u64::MAX.checked_shr(64 - bits).unwrap_or(0) }
    }

    /// Whether `found` is the number of the message of `iteration`, as far as it is checked. It has no branch, and is the same
    /// for messages of every size.
    #[inline(always)]
    pub(super) fn is_that_of(self, iteration: u64, found: u64) -> bool {
        (found ^ iteration) & self.mask == 0
    }
}

/// Makes the part of the message of `iteration` that begins at its byte `offset`: all of it, or its number alone.
#[inline(always)]
pub(crate) fn make(part: &mut [u8], offset: usize, iteration: u64, check: Check, whole: bool) {
    if check == Check::Everything {
        make_all(part, offset, iteration);
    } else if whole {
        part.fill(iteration as u8);
    }
    match part.first_chunk_mut::<8>().filter(|_| offset == 0) {
        Some(number) => *number = iteration.to_le_bytes(),
        None => {
            for (at, byte) in part.iter_mut().enumerate().take(8_usize.saturating_sub(offset)) {
                *byte = (iteration >> (8 * (offset + at))) as u8;
            }
        }
    }
}

/// Every byte but for the number. Out of the loops, so that what they run every time lies in few lines.
#[cold]
#[inline(never)]
pub(super) fn make_all(part: &mut [u8], offset: usize, iteration: u64) {
    for (at, byte) in part.iter_mut().enumerate() {
        *byte = expected(iteration, offset + at);
    }
}

/// Whether the part at `offset` of a received message is that of the message of `iteration`.
#[inline(always)]
pub(crate) fn verify(
    part: &[u8],
    offset: usize,
    iteration: u64,
    check: Check,
    whole: bool,
) -> Result<(), LoopError> {
    if check == Check::Nothing {
        return Ok(());
    }
    let numbered = 8_usize.saturating_sub(offset).min(part.len());
    let right = match part.first_chunk::<8>().filter(|_| offset == 0) {
        Some(found) => u64::from_le_bytes(*found) == iteration,
        None => part[..numbered]
            .iter()
            .enumerate()
            .all(|(at, byte)| *byte == (iteration >> (8 * (offset + at))) as u8),
    };
    if !right {
        return Err(LoopError::Payload { iteration, at: offset });
    }
    if check == Check::Everything {
        return verify_all(part, offset, iteration);
    }
    if whole && !sys::touch::are_all(&part[numbered..], iteration as u8) {
        return Err(LoopError::Payload { iteration, at: offset + numbered });
    }
    Ok(())
}

/// Verifies every byte but for the number.
#[cold]
#[inline(never)]
pub(super) fn verify_all(part: &[u8], offset: usize, iteration: u64) -> Result<(), LoopError> {
    let bytes = part.iter().zip(offset..).skip_while(|(_, at)| *at < 8);
    let wrong = bytes.into_iter().find(|(byte, at)| **byte != expected(iteration, *at));
    wrong.map_or(Ok(()), |(_, at)| Err(LoopError::Payload { iteration, at }))
}

/// The number that `message` carries, at least `least`: as many of its bytes as the message has room for, the others as small as can be.
pub(super) fn number_from(message: &[u8], least: u64) -> u64 {
    let mut bytes = [0; 8];
    let kept = message.len().min(bytes.len());
    bytes[..kept].copy_from_slice(&message[..kept]);
    let mask = u64::MAX.checked_shr(64 - 8 * kept as u32).unwrap_or(0);
    least + (u64::from_le_bytes(bytes).wrapping_sub(least) & mask)
}

/// The low byte of a product with the golden ratio: neighbouring bytes and neighbouring messages differ.
fn expected(iteration: u64, at: usize) -> u8 {
    ((iteration.wrapping_add(at as u64)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// How many bytes the server answers to a message of `size_bytes`.
pub(crate) fn answer_bytes(workload: Workload, size_bytes: usize) -> usize {
    match workload {
        Workload::Latency | Workload::Connect => size_bytes,
        Workload::Transfer
        | Workload::Throughput
        | Workload::Session(_)
        | Workload::Cost
        | Workload::Accuracy => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_that_of_its_iteration_and_of_no_other() {
        for check in [Check::Sequence, Check::Everything] {
            for length in [1, 7, 8, 9, 100] {
                let mut message = vec![0xa5; length];
                make(&mut message, 0, 300, check, false);
                assert!(verify(&message, 0, 300, check, false).is_ok(), "{check:?} {length}");
                assert!(verify(&message, 0, 301, check, false).is_err(), "{check:?} {length}");
            }
        }
    }

    #[test]
    fn of_a_number_as_much_is_checked_as_the_message_holds() {
        for size_bytes in 0..=9 {
            let number = MessageNumber::for_size(size_bytes, Check::Sequence);
            assert_eq!(MessageNumber::for_size(size_bytes, Check::Everything), number);
            for bit in 0..64 {
                let is_held = bit < 8 * size_bytes;
                assert_eq!(number.is_that_of(300, 300 ^ (1 << bit)), !is_held, "{size_bytes} {bit}");
                assert!(
                    MessageNumber::for_size(size_bytes, Check::Nothing).is_that_of(300, 300 ^ (1 << bit))
                );
            }
        }
    }

    #[test]
    fn one_changed_byte_is_found_where_everything_is_checked() {
        let mut message = vec![0; 100];
        make(&mut message, 0, 5, Check::Everything, false);
        for at in 0..message.len() {
            message[at] ^= 1;
            assert!(verify(&message, 0, 5, Check::Everything, false).is_err(), "byte {at}");
            message[at] ^= 1;
        }
        message[50] ^= 1;
        assert!(verify(&message, 0, 5, Check::Sequence, false).is_ok());
        assert!(verify(&message, 0, 6, Check::Nothing, false).is_ok());
    }

    #[test]
    fn a_message_made_in_pieces_is_the_same_message() {
        let mut whole = vec![0; 40];
        make(&mut whole, 0, 77, Check::Everything, false);
        for cut in [1, 3, 8, 20] {
            let mut pieces = vec![0; 40];
            make(&mut pieces[..cut], 0, 77, Check::Everything, false);
            make(&mut pieces[cut..], cut, 77, Check::Everything, false);
            assert_eq!(pieces, whole, "{cut}");
            assert!(verify(&pieces[..cut], 0, 77, Check::Everything, false).is_ok());
            assert!(verify(&pieces[cut..], cut, 77, Check::Everything, false).is_ok());
        }
    }

    #[test]
    fn a_payload_that_is_touched_in_place_is_filled_and_read_as_a_whole() {
        let mut message = vec![0; 32];
        make(&mut message, 0, 9, Check::Sequence, true);
        assert_eq!(message[8..], [9; 24]);
        assert!(verify(&message, 0, 9, Check::Sequence, true).is_ok());
        message[31] = 0;
        assert!(verify(&message, 0, 9, Check::Sequence, true).is_err());
    }

    #[test]
    fn the_number_of_a_short_message_is_the_next_that_has_its_low_bytes() {
        assert_eq!(number_from(&5_u64.to_le_bytes(), 3), 5);
        // One byte says the number modulo 256.
        assert_eq!((number_from(&[5], 3), number_from(&[5], 6), number_from(&[0], 255)), (5, 261, 256));
        // An empty message has no number.
        assert_eq!(number_from(&[], 42), 42);
    }

    #[test]
    fn answers_are_as_long_as_messages_only_in_a_round_trip() {
        assert_eq!((answer_bytes(Workload::Latency, 100), answer_bytes(Workload::Transfer, 100)), (100, 1));
    }
}
