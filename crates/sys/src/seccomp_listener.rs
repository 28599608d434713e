//! System calls of other processes that this one answers: a seccomp filter with user notification (seccomp_unotify(2)). Which calls, and
//! what the answers mean, is the caller's business.

use crate::libc_call::checked;
use crate::{Errno, Failure};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::process::Pid;
use rustix::thread::{CapabilitySet, capabilities, set_no_new_privs};
use std::mem::offset_of;

/// The number of this architecture in `seccomp_data.arch` (linux/audit.h, which libc does not name).
#[cfg(target_arch = "x86_64")]
const OWN_ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const OWN_ARCHITECTURE: u32 = 0xC000_00B7;
#[cfg(target_arch = "riscv64")]
const OWN_ARCHITECTURE: u32 = 0xC000_00F3;

/// By which calls programs of this processor's 32-bit architecture connect and listen: `socketcall`, `listen` and `connect` of i386, or
/// those of arm.
#[cfg(target_arch = "x86_64")]
const FOREIGN_CALLS: &[u32] = &[102, 363, 362];
#[cfg(not(target_arch = "x86_64"))]
const FOREIGN_CALLS: &[u32] = &[284, 283];

/// Instructions of the classic BPF (bpf(4) of the BSDs, linux/filter.h).
const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Room for the kernel's `seccomp_notif`, in words: more than any kernel writes (`SECCOMP_GET_NOTIF_SIZES` gives 80 bytes).
const NOTIFICATION_WORDS: usize = 64;

/// The calls that a filter sends to who has the listener.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A call of another process, which waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoppedCall {
    /// By which it is answered.
    pub id: u64,
    /// The thread that makes it, in this process's PID namespace.
    pub thread: Pid,
    /// Its number on this architecture, or `None` of a program of another one.
    pub number: Option<i64>,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// Whether this process may filter without taking rights from what it starts: with CAP_SYS_ADMIN (seccomp(2)).
pub fn keeps_rights() -> bool {
    capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Filters the calls of this thread and of all processes that it starts from now on: each with one of these `numbers` waits for an answer by
/// the listener, but `getsockopt` of `SO_ERROR`, which some programs call for every message: the kernel's answer is right for any socket.
///
/// Without CAP_SYS_ADMIN, programs that get rights from their files (setuid) do not get them any more (`PR_SET_NO_NEW_PRIVS`).
pub fn listen_to(numbers: &[i64]) -> Result<Listener, Failure> {
    const OBJECT: &str = "the program's system calls";
    if !keeps_rights() {
        set_no_new_privs(true)
            .map_err(|errno| Failure::from_errno("prctl(PR_SET_NO_NEW_PRIVS)", OBJECT, errno))?;
    }
    let mut instructions = filter(numbers);
    let program = libc::sock_fprog { len: instructions.len() as u16, filter: instructions.as_mut_ptr() };
    // SAFETY: the program is valid through the call, which copies it.
    let listener = checked(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    });
    match listener {
        // SAFETY: the kernel has just made this descriptor, and nobody else has it.
        Ok(fd) => Ok(Listener(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })),
        Err(errno) => Err(Failure {
            next: next_step(errno).to_owned(),
            ..Failure::from_errno("seccomp", OBJECT, errno)
        }),
    }
}

/// What to do where the filter is refused.
fn next_step(errno: Errno) -> &'static str {
    match errno {
        Errno::BUSY => {
            "somebody else answers the calls of this container already: run it outside of the container"
        }
        Errno::INVAL | Errno::NOSYS => "it takes Linux 5.14 or newer with CONFIG_SECCOMP_FILTER",
        _ => "allow seccomp(2) and prctl(2) in the container",
    }
}

/// The filter: calls of this architecture that are wanted, and those by which programs of the other one connect, are notified.
fn filter(numbers: &[i64]) -> Vec<libc::sock_filter> {
    let load = |offset: usize| instruction(LOAD_WORD, offset as u32, 0, 0);
    let answer = |action: u32| instruction(RETURN, action, 0, 0);
    // How far it is from comparison `at` of `among` to the notification behind the allowance.
    let jumps = |numbers: Vec<u32>| -> Vec<libc::sock_filter> {
        let among = numbers.len();
        let jump = |(at, number): (usize, u32)| instruction(JUMP_IF_EQUAL, number, (among - at) as u8, 0);
        numbers.into_iter().enumerate().map(jump).collect()
    };
    let choice = |numbers: Vec<u32>| {
        let mut part = vec![load(offset_of!(libc::seccomp_data, nr))];
        part.extend(jumps(numbers));
        part.extend([answer(libc::SECCOMP_RET_ALLOW), answer(libc::SECCOMP_RET_USER_NOTIF)]);
        part
    };
    let foreign = choice(FOREIGN_CALLS.to_vec());
    let mut own = so_error();
    own.extend(choice(numbers.iter().map(|number| *number as u32).collect()));
    let mut all = vec![load(offset_of!(libc::seccomp_data, arch))];
    all.push(instruction(JUMP_IF_EQUAL, OWN_ARCHITECTURE, foreign.len() as u8, 0));
    all.extend(foreign);
    all.extend(own);
    all
}

/// Allows `getsockopt` of `SO_ERROR`. Level and option are ints: the lower halves of their words.
fn so_error() -> Vec<libc::sock_filter> {
    let load = |offset: usize| instruction(LOAD_WORD, offset as u32, 0, 0);
    let half = if cfg!(target_endian = "big") { 4 } else { 0 };
    let argument = |nth: usize| load(offset_of!(libc::seccomp_data, args) + 8 * nth + half);
    // Whatever does not match goes on behind this part.
    vec![
        load(offset_of!(libc::seccomp_data, nr)),
        instruction(JUMP_IF_EQUAL, libc::SYS_getsockopt as u32, 0, 5),
        argument(1),
        instruction(JUMP_IF_EQUAL, libc::SOL_SOCKET as u32, 0, 3),
        argument(2),
        instruction(JUMP_IF_EQUAL, libc::SO_ERROR as u32, 0, 1),
        instruction(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
    ]
}

fn instruction(code: u16, k: u32, if_true: u8, if_false: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt: if_true, jf: if_false, k }
}

impl Listener {
    /// The listener that another process has sent.
    pub fn from_descriptor(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Waits for the next call. `None` where whoever made it has been interrupted in between; `Errno::NOENT` never.
    pub fn receive(&self) -> Result<Option<StoppedCall>, Errno> {
        let mut words = [0_u64; NOTIFICATION_WORDS];
        // SAFETY: the kernel writes a seccomp_notif, for which there is room and alignment, and which must be zero before.
        let received = checked(unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, words.as_mut_ptr())
        });
        match received {
            Ok(_) => {}
            Err(Errno::NOENT | Errno::INTR) => return Ok(None),
            Err(errno) => return Err(errno),
        }
        // SAFETY: the kernel has written a seccomp_notif there, which is plain numbers.
        let call = unsafe { words.as_ptr().cast::<libc::seccomp_notif>().read() };
        let thread = i32::try_from(call.pid).ok().and_then(Pid::from_raw);
        // A caller of a PID namespace beside ours has no number here.
        let Some(thread) = thread else {
            self.go_on(call.id)?;
            return Ok(None);
        };
        let number = (call.data.arch == OWN_ARCHITECTURE).then_some(i64::from(call.data.nr));
        Ok(Some(StoppedCall { id: call.id, thread, number, arguments: call.data.args }))
    }

    /// Whether the call with this `id` still waits: its process has not died, nor been interrupted by a signal.
    pub fn is_waiting(&self, id: u64) -> bool {
        // SAFETY: the kernel reads a number that is valid through the call.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) })
            .is_ok()
    }

    /// Lets the kernel do the call, as if there were no filter. `Errno::NOENT`: nobody waits for it any more.
    pub fn go_on(&self, id: u64) -> Result<(), Errno> {
        self.send(libc::seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        })
    }

    /// Answers the call with what it returns, or with why it failed. `Errno::NOENT` as above.
    pub fn answer(&self, id: u64, returned: Result<i64, Errno>) -> Result<(), Errno> {
        let (val, error) = match returned {
            Ok(value) => (value, 0),
            Err(errno) => (0, -errno.raw_os_error()),
        };
        self.send(libc::seccomp_notif_resp { id, val, error, flags: 0 })
    }

    fn send(&self, response: libc::seccomp_notif_resp) -> Result<(), Errno> {
        // SAFETY: the kernel reads a response that is valid through the call.
        checked(unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response)
        })
        .map(drop)
    }

    /// Gives the process of a call that waits a descriptor of `file`: in the place of `number`, whose file is then closed there, or the
    /// lowest that is free. Returns its number there.
    pub fn give(
        &self,
        id: u64,
        file: BorrowedFd<'_>,
        number: Option<RawFd>,
        close_on_exec: bool,
    ) -> Result<RawFd, Errno> {
        let flags = if number.is_some() { libc::SECCOMP_ADDFD_FLAG_SETFD } else { 0 };
        self.add(id, file, number, close_on_exec, flags)
    }

    /// The same with the lowest number that is free, which is also what the call returns: in one step, so that no signal comes between.
    pub fn give_and_answer(
        &self,
        id: u64,
        file: BorrowedFd<'_>,
        close_on_exec: bool,
    ) -> Result<RawFd, Errno> {
        self.add(id, file, None, close_on_exec, libc::SECCOMP_ADDFD_FLAG_SEND)
    }

    fn add(
        &self,
        id: u64,
        file: BorrowedFd<'_>,
        number: Option<RawFd>,
        close_on_exec: bool,
        flags: libc::c_ulong,
    ) -> Result<RawFd, Errno> {
        let request = libc::seccomp_notif_addfd {
            id,
            flags: flags as u32,
            srcfd: file.as_raw_fd() as u32,
            newfd: number.unwrap_or(0) as u32,
            newfd_flags: if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 },
        };
        // SAFETY: the kernel reads a request that is valid through the call.
        checked(unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const request)
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// What the filter says of a call, by executing its instructions.
    fn action(filter: &[libc::sock_filter], arch: u32, nr: u32) -> u32 {
        action_with(filter, arch, nr, [0; 2])
    }

    /// The same of a call with these second and third arguments.
    fn action_with(filter: &[libc::sock_filter], arch: u32, nr: u32, arguments: [u32; 2]) -> u32 {
        let mut word = 0;
        let mut at = 0;
        loop {
            let it = filter[at];
            at += 1;
            match it.code {
                LOAD_WORD if it.k as usize == offset_of!(libc::seccomp_data, arch) => word = arch,
                LOAD_WORD if it.k as usize == offset_of!(libc::seccomp_data, nr) => word = nr,
                LOAD_WORD => word = arguments[(it.k as usize - offset_of!(libc::seccomp_data, args)) / 8 - 1],
                JUMP_IF_EQUAL => at += usize::from(if word == it.k { it.jt } else { it.jf }),
                RETURN => return it.k,
                code => panic!("{code}"),
            }
        }
    }

    #[test]
    fn the_filter_notifies_of_what_is_asked_for_alone() {
        let wanted = [libc::SYS_bind, libc::SYS_listen, libc::SYS_connect];
        let filter = filter(&wanted);
        for number in 0..500_u32 {
            let is_wanted = wanted.contains(&i64::from(number));
            let expected = if is_wanted { libc::SECCOMP_RET_USER_NOTIF } else { libc::SECCOMP_RET_ALLOW };
            assert_eq!(action(&filter, OWN_ARCHITECTURE, number), expected, "{number}");
            let expected = if FOREIGN_CALLS.contains(&number) {
                libc::SECCOMP_RET_USER_NOTIF
            } else {
                libc::SECCOMP_RET_ALLOW
            };
            assert_eq!(action(&filter, 3, number), expected, "{number}");
        }
    }
    #[test]
    fn the_error_of_a_socket_is_asked_of_the_kernel() {
        let filter = filter(&[libc::SYS_getsockopt]);
        let [level, option] = [libc::SOL_SOCKET, libc::SO_ERROR].map(|number| number as u32);
        let number = libc::SYS_getsockopt as u32;
        let action = |arguments| action_with(&filter, OWN_ARCHITECTURE, number, arguments);
        assert_eq!(action([level, option]), libc::SECCOMP_RET_ALLOW);
        assert_eq!(action([level, option + 1]), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(action([level + 1, option]), libc::SECCOMP_RET_USER_NOTIF);
    }
}
