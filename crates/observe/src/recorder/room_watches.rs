//! Whether epoll(7) wakes who watches a descriptor also when there is room to send, at each change. It examines no descriptor.

use rustix::event::epoll::EventFlags;

/// Whether `events`, for which a descriptor is watched, are these.
pub(super) fn waits_for_room(events: u32) -> bool {
    EventFlags::from_bits_retain(events).contains(EventFlags::IN | EventFlags::OUT | EventFlags::ET)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_that_are_watched_for_room_at_each_change_are_told_from_others() {
        for (events, is) in
            [(0x8000_201d, true), (0x8000_0005, true), (0x19, false), (0x8000_0001, false), (0, false)]
        {
            assert_eq!(waits_for_room(events), is, "{events:x}");
        }
    }
}
