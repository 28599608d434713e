//! System V message queues, semaphores and shared memory (sysvipc(7)). They outlive their makers: see [`crate::name`].

use crate::libc_call::checked;
use crate::shared_memory::{Origin, SharedMemory};
use crate::{Errno, Failure, OrFail};
use rustix::io::retry_on_intr;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ptr::NonNull;
use std::str::FromStr;

/// The key of an object. Never `IPC_PRIVATE`, so that whoever knows it finds the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(libc::key_t);

impl Key {
    /// The key that belongs to `what`.
    pub fn of(what: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        Self(((hasher.finish() & 0x7fff_ffff) as libc::key_t).max(1))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Key {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// What a fresh object is asked for: to be new, and for its owner alone.
const CREATE: libc::c_int = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;

/// A message queue.
#[derive(Debug)]
pub struct MessageQueue {
    id: libc::c_int,
    /// A message as the kernel wants it: its type in the first word, then its text.
    buffer: Vec<u64>,
}

impl MessageQueue {
    /// Makes the queue `key` for messages of at most `most_bytes` (msgget(2)).
    pub fn create(key: Key, most_bytes: usize) -> Result<Self, Failure> {
        Self::get(key, CREATE, most_bytes)
    }

    /// Opens the queue that another made.
    pub fn open(key: Key, most_bytes: usize) -> Result<Self, Failure> {
        Self::get(key, 0, most_bytes)
    }

    fn get(key: Key, flags: libc::c_int, most_bytes: usize) -> Result<Self, Failure> {
        // SAFETY: the call takes numbers only.
        let id = checked(unsafe { libc::msgget(key.0, flags) }).or_fail("msgget", format!("key {key}"))?;
        Ok(Self { id, buffer: vec![1; 1 + most_bytes.div_ceil(8)] })
    }

    /// How many bytes of messages it holds, once it was asked to hold `asked_bytes`, if that is given. Above
    /// kernel.msgmnb, which it has from the start, that takes CAP_SYS_RESOURCE (msgctl(2), `IPC_SET`).
    pub fn hold(&self, asked_bytes: Option<u64>) -> Result<u64, Failure> {
        let control = |command, status: &mut libc::msqid_ds| {
            // SAFETY: the status is valid for reads and writes through the call.
            checked(unsafe { libc::msgctl(self.id, command, std::ptr::from_mut(status)) })
        };
        // SAFETY: a zeroed msqid_ds is a valid one.
        let mut status: libc::msqid_ds = unsafe { std::mem::zeroed() };
        control(libc::IPC_STAT, &mut status).or_fail("msgctl(IPC_STAT)", "a queue")?;
        let had_bytes = status.msg_qbytes;
        let Some(asked_bytes) = asked_bytes else { return Ok(had_bytes) };
        status.msg_qbytes = asked_bytes;
        match control(libc::IPC_SET, &mut status) {
            Err(Errno::PERM) => Ok(had_bytes),
            other => other.or_fail("msgctl(IPC_SET)", "a queue").map(|_| asked_bytes),
        }
    }

    fn text_bytes(&self) -> usize {
        8 * (self.buffer.len() - 1)
    }

    /// Sends one message; sleeps while the queue is full (msgsnd(2)).
    ///
    /// One above the limits of the kernel or of this queue is refused with `Errno::MSGSIZE`.
    #[inline(always)]
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if bytes.len() > self.text_bytes() {
            return Err(Errno::MSGSIZE);
        }
        // SAFETY: the text begins after the first word and has room for `bytes`, which is other memory.
        unsafe {
            let text = self.buffer.as_mut_ptr().add(1).cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), text, bytes.len());
        }
        let sent = retry_on_intr(|| {
            // SAFETY: the buffer holds the type and `bytes.len()` bytes of text.
            checked(unsafe { libc::msgsnd(self.id, self.buffer.as_ptr().cast(), bytes.len(), 0) })
        });
        match sent {
            Ok(_) => Ok(bytes.len()),
            Err(Errno::INVAL) => Err(Errno::MSGSIZE),
            Err(errno) => Err(gone(errno)),
        }
    }

    /// Receives one message, of which `into` must hold all; sleeps until there is one (msgrcv(2)).
    #[inline(always)]
    pub fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let most = into.len().min(self.text_bytes());
        let count = retry_on_intr(|| {
            // SAFETY: the buffer has room for the type and `most` bytes of text.
            checked(unsafe { libc::msgrcv(self.id, self.buffer.as_mut_ptr().cast(), most, 0, 0) })
        })
        .map_err(gone)? as usize;
        // SAFETY: the kernel wrote `count` bytes of text, at most `into.len()`, into other memory than `into`.
        unsafe {
            let text = self.buffer.as_ptr().add(1).cast::<u8>();
            std::ptr::copy_nonoverlapping(text, into.as_mut_ptr(), count);
        }
        Ok(count)
    }
}

/// An object that is removed while one sleeps in it, or before, is a peer that closed.
#[cold]
fn gone(errno: Errno) -> Errno {
    if matches!(errno, Errno::IDRM | Errno::INVAL) { Errno::PIPE } else { errno }
}

/// A set of semaphores.
#[derive(Debug)]
pub struct Semaphores {
    id: libc::c_int,
    flags: libc::c_short,
}

impl Semaphores {
    /// Makes the set `key` of `count` semaphores, all zero (semget(2)). With `undo` the kernel notes each
    /// operation, to undo it when the process ends (`SEM_UNDO`, semop(2)).
    pub fn create(key: Key, count: u16, undo: bool) -> Result<Self, Failure> {
        Self::get(key, count, CREATE, undo)
    }

    /// Opens the set that another made.
    pub fn open(key: Key, count: u16, undo: bool) -> Result<Self, Failure> {
        Self::get(key, count, 0, undo)
    }

    fn get(key: Key, count: u16, flags: libc::c_int, undo: bool) -> Result<Self, Failure> {
        // SAFETY: the call takes numbers only.
        let id = checked(unsafe { libc::semget(key.0, count.into(), flags) })
            .or_fail("semget", format!("key {key}"))?;
        Ok(Self { id, flags: if undo { libc::SEM_UNDO as libc::c_short } else { 0 } })
    }

    /// Adds `change` to semaphore `at`; sleeps while that would make it negative (semop(2)).
    #[inline(always)]
    pub fn add(&self, at: u16, change: i16) -> Result<(), Errno> {
        let mut operation = libc::sembuf { sem_num: at, sem_op: change, sem_flg: self.flags };
        // SAFETY: one operation is valid through the call.
        retry_on_intr(|| checked(unsafe { libc::semop(self.id, &raw mut operation, 1) }))
            .map_err(gone)
            .map(drop)
    }
}

/// A segment of shared memory, which need not be attached.
#[derive(Debug)]
pub(crate) struct Segment {
    id: libc::c_int,
}

impl Segment {
    /// Makes the segment `key` of `len_bytes` of zeroes (shmget(2)).
    pub(crate) fn create(key: Key, len_bytes: usize) -> Result<Self, Errno> {
        // SAFETY: the call takes numbers only.
        checked(unsafe { libc::shmget(key.0, len_bytes, CREATE) }).map(|id| Self { id })
    }

    /// The segment `key`, which has at least `len_bytes` (shmget(2)).
    pub(crate) fn open(key: Key, len_bytes: usize) -> Result<Self, Errno> {
        // SAFETY: the call takes numbers only.
        checked(unsafe { libc::shmget(key.0, len_bytes, 0) }).map(|id| Self { id })
    }

    /// Where all of it is attached now (shmat(2)), until [`detach`] is called on that.
    pub(crate) fn attach(&self) -> Result<NonNull<u8>, Errno> {
        // SAFETY: the kernel chooses the address, so that no existing mapping is touched.
        let base = unsafe { libc::shmat(self.id, std::ptr::null(), 0) };
        // It answers -1 as a pointer.
        checked(base as isize)?;
        NonNull::new(base.cast()).ok_or(Errno::FAULT)
    }

    /// Removes it, which lives on until it is detached everywhere (shmctl(2), `IPC_RMID`).
    pub(crate) fn remove(self) -> Result<(), Errno> {
        // SAFETY: the call takes numbers; IPC_RMID ignores the buffer.
        checked(unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) }).map(drop)
    }
}

/// Detaches what was attached at `base` (shmdt(2)).
///
/// # Safety
///
/// [`Segment::attach`] returned `base`, it was not detached since, and nothing refers to its bytes any more.
pub(crate) unsafe fn detach(base: NonNull<u8>) -> Result<(), Errno> {
    // SAFETY: by the caller's word.
    checked(unsafe { libc::shmdt(base.as_ptr().cast()) }).map(drop)
}

/// Makes the segment `key` of `len_bytes` and attaches it (shmget(2), shmat(2)).
pub fn create_memory(key: Key, len_bytes: usize) -> Result<SharedMemory, Failure> {
    attached(Segment::create(key, len_bytes), key, len_bytes)
}

/// Attaches the segment that another made, which has at least `len_bytes`: the kernel refuses a smaller one.
pub fn open_memory(key: Key, len_bytes: usize) -> Result<SharedMemory, Failure> {
    attached(Segment::open(key, len_bytes), key, len_bytes)
}

fn attached(segment: Result<Segment, Errno>, key: Key, len_bytes: usize) -> Result<SharedMemory, Failure> {
    let segment = segment.or_fail("shmget", format!("{len_bytes} bytes, key {key}")).map_err(|failure| {
        let next = "see kernel.shmmax and kernel.shmall for the limits of this host".to_owned();
        Failure { next, ..failure }
    })?;
    let base = segment.attach().or_fail("shmat", format!("key {key}"))?;
    // SAFETY: the kernel attached so many bytes there, aligned to a page, for this value alone to detach.
    let memory = unsafe { SharedMemory::new(base, len_bytes, Origin::Attached) };
    memory.populate();
    Ok(memory)
}

/// Removes the segment `key`, which lives on until it is detached everywhere (shmctl(2), `IPC_RMID`).
pub(crate) fn remove_memory(key: Key) -> Result<(), Errno> {
    Segment::open(key, 0)?.remove()
}

/// Removes the queue `key`, wherever it came from (msgctl(2), `IPC_RMID`).
pub(crate) fn remove_queue(key: Key) -> Result<(), Errno> {
    // SAFETY: the calls take numbers; IPC_RMID ignores the buffer.
    unsafe {
        let id = checked(libc::msgget(key.0, 0))?;
        checked(libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut())).map(drop)
    }
}

/// Removes the set `key` (semctl(2), `IPC_RMID`).
pub(crate) fn remove_semaphores(key: Key) -> Result<(), Errno> {
    // SAFETY: the calls take numbers; IPC_RMID needs no argument.
    unsafe {
        let id = checked(libc::semget(key.0, 0, 0))?;
        checked(libc::semctl(id, 0, libc::IPC_RMID)).map(drop)
    }
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;
    use crate::name::Name;
    use std::sync::atomic::Ordering;

    #[test]
    fn keys_differ_and_survive_their_text() {
        let keys: std::collections::BTreeSet<i32> = (0..1000).map(|number| Key::of(number).0).collect();
        assert!(keys.len() > 998 && keys.iter().all(|key| *key > 0), "{} of 1000", keys.len());
        assert_eq!(Key::of(1).to_string().parse(), Ok(Key::of(1)));
    }

    #[test]
    fn a_queue_that_is_removed_is_a_peer_that_closed() {
        let key = Key::of((std::process::id(), "a queue"));
        let mut client = MessageQueue::create(key, 8).unwrap();
        let mut server = MessageQueue::open(key, 8).unwrap();
        assert_eq!(client.send(b"12345678"), Ok(8));
        let mut into = [0; 8];
        assert_eq!((server.receive(&mut into), &into), (Ok(8), b"12345678"));
        assert_eq!(client.send(&[0; 9]), Err(Errno::MSGSIZE));
        Name::SysvMsg(key).remove().unwrap();
        assert_eq!(server.receive(&mut into), Err(Errno::PIPE));
    }

    #[test]
    fn a_queue_holds_what_it_says() {
        let key = Key::of((std::process::id(), "a small queue"));
        let mut queue = MessageQueue::create(key, 8).unwrap();
        assert_eq!(Some(queue.hold(None).unwrap()), crate::sysctl::number("kernel/msgmnb"));
        assert_eq!(queue.hold(Some(16)).unwrap(), 16);
        assert_eq!(queue.hold(None).unwrap(), 16);
        // With or without the capability.
        let got = queue.hold(Some(1 << 30)).unwrap();
        assert_eq!(queue.hold(None).unwrap(), got);
        assert_eq!(queue.hold(Some(16)).unwrap(), 16);
        queue.send(&[1; 8]).unwrap();
        queue.send(&[2; 8]).unwrap();
        // SAFETY: the buffer holds the type and 8 bytes of text.
        let full =
            checked(unsafe { libc::msgsnd(queue.id, queue.buffer.as_ptr().cast(), 8, libc::IPC_NOWAIT) });
        Name::SysvMsg(key).remove().unwrap();
        assert_eq!(full, Err(Errno::AGAIN));
    }

    #[test]
    fn a_segment_lives_without_its_name_until_nobody_has_it() {
        let key = Key::of((std::process::id(), "a segment"));
        let client = create_memory(key, 10_000).unwrap();
        assert!(create_memory(key, 10_000).is_err(), "a segment was made twice");
        assert!(open_memory(key, 100_000).is_err(), "a smaller segment was attached");
        let server = open_memory(key, 10_000).unwrap();
        Name::SysvShm(key).remove().unwrap();
        assert!(open_memory(key, 10_000).is_err(), "the name is still there");
        client.u64_at(9_992).store(7, Ordering::Relaxed);
        assert_eq!(server.u64_at(9_992).load(Ordering::Relaxed), 7);
        let attached = || std::fs::read_to_string("/proc/self/maps").unwrap().matches("/SYSV").count();
        let before = attached();
        drop((client, server));
        assert_eq!(attached(), before - 2);
    }

    #[test]
    fn semaphores_count() {
        let key = Key::of((std::process::id(), "a set"));
        let client = Semaphores::create(key, 2, true).unwrap();
        let server = Semaphores::open(key, 2, false).unwrap();
        client.add(1, 2).unwrap();
        server.add(1, -1).unwrap();
        server.add(1, -1).unwrap();
        Name::SysvSem(key).remove().unwrap();
        assert_eq!(server.add(1, -1), Err(Errno::PIPE));
    }
}
