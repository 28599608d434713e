//! A System V segment as memory that two processes share.

use super::key::SysvKey;
use super::segment::SysvSegment;
use crate::shared_memory::{Origin, SharedMemory};
use crate::{Errno, Failure, OrFail};

/// Makes the segment `key` of `len_bytes` and attaches it (shmget(2), shmat(2)).
pub fn create_memory(key: SysvKey, len_bytes: usize) -> Result<SharedMemory, Failure> {
    attach(SysvSegment::create(key, len_bytes), key, len_bytes)
}

/// Attaches the segment that a peer has made, which must have at least `len_bytes`: the kernel refuses a smaller one.
pub fn open_memory(key: SysvKey, len_bytes: usize) -> Result<SharedMemory, Failure> {
    attach(SysvSegment::open(key, len_bytes), key, len_bytes)
}

fn attach(
    segment: Result<SysvSegment, Errno>,
    key: SysvKey,
    len_bytes: usize,
) -> Result<SharedMemory, Failure> {
    let segment = segment.or_fail("shmget", format!("{len_bytes} bytes, key {key}")).map_err(|failure| {
        let next = "see kernel.shmmax and kernel.shmall for the limits of this host".to_owned();
        Failure { next, ..failure }
    })?;
    let base = segment.attach().or_fail("shmat", format!("key {key}"))?;
    // SAFETY: the kernel has attached so many bytes there, aligned to a page. This value alone detaches them.
    let memory = unsafe { SharedMemory::new(base, len_bytes, Origin::Attached) };
    memory.populate();
    Ok(memory)
}

/// Removes the name of segment `key`, if this user made it, and not before `since_s`. The segment itself lives until
/// everybody has detached it.
pub(crate) fn remove_memory(key: SysvKey, since_s: i64) -> Result<(), Errno> {
    let segment = SysvSegment::open(key, 0)?;
    segment.check_ours(since_s)?;
    segment.remove()
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_segment_without_a_name_lives_until_everybody_has_detached_it() {
        let key = SysvKey::hashed((std::process::id(), "a segment"));
        let client = create_memory(key, 10_000).unwrap();
        assert!(create_memory(key, 10_000).is_err(), "a segment was made twice");
        assert!(open_memory(key, 100_000).is_err(), "a smaller segment was attach");
        let server = open_memory(key, 10_000).unwrap();
        remove_memory(key, 0).unwrap();
        assert!(open_memory(key, 10_000).is_err(), "the name is still there");
        client.u64_at(9_992).store(7, Ordering::Relaxed);
        assert_eq!(server.u64_at(9_992).load(Ordering::Relaxed), 7);
        let attach = || std::fs::read_to_string("/proc/self/maps").unwrap().matches("/SYSV").count();
        let before = attach();
        drop((client, server));
        assert_eq!(attach(), before - 2);
    }
}
