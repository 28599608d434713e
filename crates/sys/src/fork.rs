//! Processes that do next to nothing: started, and awaited until they end. Not the endpoints of a trial.

use crate::libc_call::checked;
use crate::signal::ThreadId;
use crate::{Errno, Failure, OrFail};
use rustix::fd::{AsFd, AsRawFd};
use rustix::io::retry_on_intr;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Starts a process that ends at once, and awaits its end: fork(2), _exit(2) and waitpid(2).
#[inline(always)]
pub fn fork_and_wait() -> Result<(), Errno> {
    // SAFETY: the child calls nothing but _exit, which is safe after fork whatever the parent's other threads do.
    let child = checked(unsafe { libc::fork() })?;
    if child == 0 {
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    wait_for(child)
}

#[inline(always)]
fn wait_for(child: libc::pid_t) -> Result<(), Errno> {
    // SAFETY: a null pointer says that nobody wants the status.
    retry_on_intr(|| checked(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) })).map(drop)
}

/// A copy of this process that tries something out.
#[derive(Debug)]
pub(crate) struct Child(libc::pid_t);

impl Child {
    /// Forks a copy of this process, which does `work` and ends (fork(2)).
    ///
    /// # Safety
    ///
    /// The copy has no other thread, and a lock that another thread held at this moment stays locked for ever. So
    /// `work` makes system calls only, and neither allocates nor prints.
    pub(crate) unsafe fn start(work: impl FnOnce() -> Result<(), Errno>) -> Result<Self, Errno> {
        // SAFETY: what the child calls is safe after fork, by contract.
        let child = checked(unsafe { libc::fork() })?;
        if child == 0 {
            let answer = work().map_or_else(Errno::raw_os_error, |()| 0);
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(answer) };
        }
        Ok(Self(child))
    }

    /// The only thread of the child.
    pub(crate) fn thread(&self) -> ThreadId {
        ThreadId { pid: self.0, tid: self.0 }
    }

    /// Awaits its end, and returns the result of its work (waitpid(2)).
    pub(crate) fn outcome(self) -> Result<(), Errno> {
        let status = self.status()?;
        match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
            (true, 0) => Ok(()),
            (true, errno) => Err(Errno::from_raw_os_error(errno)),
            // A filter of system calls may answer with a signal.
            (false, _) => Err(Errno::NOSYS),
        }
    }

    /// Awaits its end, and says whether a filter of system calls has killed it.
    pub(crate) fn killed_by_filter(self) -> Result<bool, Errno> {
        let status = self.status()?;
        Ok(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS)
    }

    /// Awaits its end, and returns how it ended.
    fn status(&self) -> Result<libc::c_int, Errno> {
        let mut status = 0;
        // SAFETY: the status is valid for writes.
        retry_on_intr(|| checked(unsafe { libc::waitpid(self.0, &raw mut status, 0) }))?;
        Ok(status)
    }
}

/// The stack of a child that shares its parent's memory.
#[derive(Debug)]
pub struct ChildStack(Vec<u128>);

impl ChildStack {
    /// A stack with room for a signal handler too, because a signal can come while the child runs.
    pub fn new() -> Self {
        const STACK_BYTES: usize = 64 << 10;
        Self(vec![0; STACK_BYTES / size_of::<u128>()])
    }

    /// Starts a process that shares this one's memory and ends at once, while the calling thread is suspended, and
    /// awaits its end: clone(2) with `CLONE_VM` and `CLONE_VFORK`, _exit(2) and waitpid(2). That is what vfork(2)
    /// does, but Rust has no functions that return twice.
    #[inline(always)]
    pub fn share_and_wait(&mut self) -> Result<(), Errno> {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child has a stack of its own, which grows down from this aligned end. Nobody else uses it while
        // `self` is borrowed. The child has ended when the call returns, and touches nothing else.
        let child = checked(unsafe {
            let top = self.0.as_mut_ptr_range().end;
            libc::clone(end_at_once, top.cast(), flags, std::ptr::null_mut())
        })?;
        wait_for(child)
    }
}

impl Default for ChildStack {
    fn default() -> Self {
        Self::new()
    }
}

/// What a child does that shares its parent's memory.
extern "C" fn end_at_once(_: *mut libc::c_void) -> libc::c_int {
    // SAFETY: ends the child without running anything of the parent's.
    unsafe { libc::_exit(0) }
}

/// A child that replies to one request on a connection. Drop awaits it: it ends when it has replied, or when its
/// client has gone.
#[derive(Debug)]
pub struct EchoChild {
    /// `None` once it was awaited: from then on the number may be another process's.
    pid: Option<libc::pid_t>,
}

impl EchoChild {
    /// Forks a child that closes all but `connection`, reads one request of at most 64 bytes from it, writes it back
    /// and ends; or ends at once when there is none.
    #[inline(always)]
    pub fn on(connection: impl AsFd) -> Result<Self, Errno> {
        let connection = connection.as_fd().as_raw_fd();
        // SAFETY: the child makes system calls only, which are safe after fork whatever the parent's other threads do
        // (signal-safety(7)), and never returns from `echo_and_end`.
        let child = checked(unsafe { libc::fork() })?;
        if child == 0 {
            echo_and_end(connection);
        }
        Ok(Self { pid: Some(child) })
    }

    /// Whether it has ended. If so, no zombie is left of it (waitpid(2), `WNOHANG`).
    #[inline(always)]
    pub fn has_ended(&mut self) -> bool {
        if let Some(pid) = self.pid {
            // SAFETY: a null pointer says that nobody wants the status. Nobody has awaited the child, so that the
            // number is still its own. If somebody else awaits it after all, it has ended too.
            if unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) } != 0 {
                self.pid = None;
            }
        }
        self.pid.is_none()
    }
}

impl Drop for EchoChild {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            // Nobody else awaits it: this cannot fail.
            let _ = wait_for(pid);
        }
    }
}

/// What an [`EchoChild`] does. Nothing here allocates, locks or unwinds: when the parent forked, its other threads
/// may have held any lock.
///
/// Like the child of a real server, it closes the descriptors that it does not need. The other end of its own
/// connection may be among them: a child that held that open would wait for itself.
fn echo_and_end(connection: libc::c_int) -> ! {
    let mut request = [0_u8; 64];
    // SAFETY: bare system calls, which are safe after fork. Nothing in this process uses the descriptors that are
    // closed, the buffer has the given length, and `_exit` runs nothing of the parent's.
    unsafe {
        libc::syscall(libc::SYS_close_range, connection + 1, libc::c_int::MAX, 0);
        if connection > 0 {
            libc::syscall(libc::SYS_close_range, 0, connection - 1, 0);
        }
        let count = libc::read(connection, request.as_mut_ptr().cast(), request.len());
        if let Ok(count @ 1..) = usize::try_from(count) {
            libc::write(connection, request.as_ptr().cast(), count);
        }
        libc::_exit(0)
    }
}

/// A program that can be spawned.
#[derive(Debug)]
pub struct Program(CString);

impl Program {
    /// The program at `path`.
    pub fn at(path: &Path) -> Result<Self, Failure> {
        let name = CString::new(path.as_os_str().as_bytes());
        name.map(Self).map_err(|_| Failure::from_errno("spawn", path.display(), Errno::INVAL))
    }

    /// Runs it without arguments and environment, and awaits its end: posix_spawn(3) and waitpid(2).
    #[inline(always)]
    pub fn spawn_and_wait(&self) -> Result<(), Errno> {
        let mut child = 0;
        let arguments = [self.0.as_ptr().cast_mut(), std::ptr::null_mut()];
        let environment = [std::ptr::null_mut()];
        // SAFETY: the path ends with a zero byte and both arrays with a null pointer, and they outlive the call,
        // which copies them. There are no attributes and no file actions.
        let error = unsafe {
            libc::posix_spawn(
                &raw mut child,
                self.0.as_ptr(),
                std::ptr::null(),
                std::ptr::null(),
                arguments.as_ptr(),
                environment.as_ptr(),
            )
        };
        if error != 0 {
            return Err(Errno::from_raw_os_error(error));
        }
        wait_for(child)
    }

    /// Runs it once, to see whether it can be run.
    pub fn probe(&self) -> Result<(), Failure> {
        self.spawn_and_wait().or_fail("posix_spawn", self.0.to_string_lossy())
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use rustix::io::{read, write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn children_end_and_are_awaited() {
        let mut stack = ChildStack::new();
        for _ in 0..100 {
            fork_and_wait().unwrap();
            stack.share_and_wait().unwrap();
        }
    }

    #[test]
    fn a_child_reports_the_result_of_its_work() {
        for outcome in [Ok(()), Err(Errno::PERM), Err(Errno::MFILE)] {
            // SAFETY: the child does nothing.
            let child = unsafe { Child::start(|| outcome) }.unwrap();
            assert_eq!(child.outcome(), outcome);
        }
        let killed = || {
            // SAFETY: ends the child.
            unsafe { libc::raise(libc::SIGKILL) };
            Ok(())
        };
        // SAFETY: the child makes a system call only.
        assert_eq!(unsafe { Child::start(killed) }.unwrap().outcome(), Err(Errno::NOSYS));
    }

    #[test]
    fn an_echo_child_replies_once_and_ends() {
        let (client, server) = UnixStream::pair().unwrap();
        let mut child = EchoChild::on(&server).unwrap();
        assert!(!child.has_ended());
        drop(server);
        write(&client, b"a request").unwrap();
        let mut answer = [0; 100];
        assert_eq!(read(&client, &mut answer), Ok(9));
        assert_eq!(&answer[..9], b"a request");
        assert_eq!(
            read(&client, &mut answer),
            Ok(0),
            "the child ends, and its end of the connection is closed"
        );
        let has_ended = (0..10_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            child.has_ended()
        });
        assert!(has_ended, "the child has closed and does not end");
        assert!(child.has_ended(), "a child that has ended is reported as running");
    }

    #[test]
    fn an_echo_child_whose_client_has_gone_ends() {
        let (client, server) = UnixStream::pair().unwrap();
        let mut child = EchoChild::on(&server).unwrap();
        assert!(!child.has_ended());
        drop(client);
        drop(child);
        assert_eq!(read(&server, &mut [0]), Ok(0));
    }
}
