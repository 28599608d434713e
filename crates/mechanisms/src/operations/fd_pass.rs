//! Descriptors sent over a Unix socket to the process itself, received, and closed: no other process, and no sleep.

use crate::contract::{Operation, TrialContext};
use crate::support::probe::support_of;
use model::card::{Card, Support};
use model::{Domain, Param, Params};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{IoSlice, IoSliceMut, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::mem::MaybeUninit;
use sys::{Errno, Failure, OrFail};

/// `SCM_RIGHTS`, unix(7).
#[derive(Debug)]
pub(crate) struct FdPass {
    sends: OwnedFd,
    receives: OwnedFd,
    /// What is sent. It is no socket, because the kernel would search those for cycles.
    object: OwnedFd,
    fds: usize,
}

/// The most descriptors that the kernel passes with one message (`SCM_MAX_FD`).
const MOST_FDS: usize = 253;
/// The room that these take beside the message.
const SPACE_BYTES: usize = rustix::cmsg_space!(ScmRights(MOST_FDS));

impl Operation for FdPass {
    const CARD: Card = Card {
        name: "fd-pass",
        summary: "send descriptors over a Unix socket, receive them, and close them",
        params: &[Param {
            name: "fds",
            summary: "how many descriptors go with a message of one byte, all of one eventfd; up to 253",
            domain: Domain::Count,
            default: Some("1"),
        }],
        limits: "253 descriptors a message (SCM_MAX_FD); 'ulimit -n' for those received and for those in flight",
        man: &["unix(7)", "sendmsg(2)", "recvmsg(2)", "cmsg(3)"],
        ..Card::OPERATION
    };

    fn probe(params: &Params) -> Support {
        match fds(params) {
            fds if fds > MOST_FDS => Support::No {
                reason: format!("the kernel passes at most {MOST_FDS} descriptors with a message, not {fds}"),
                remedy: format!("give at most fds={MOST_FDS}"),
            },
            fds => support_of(
                FdPass::new(fds).and_then(|mut pass| pass.call().or_fail("pass descriptors", "fd-pass")),
            ),
        }
    }

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        FdPass::new(fds(trial.params))
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        let fds = [self.object.as_fd(); MOST_FDS];
        let mut space = [MaybeUninit::uninit(); SPACE_BYTES];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        // The buffer has room for all of them.
        beside.push(SendAncillaryMessage::ScmRights(&fds[..self.fds]));
        retry_on_intr(|| sendmsg(&self.sends, &[IoSlice::new(&[1])], &mut beside, SendFlags::empty()))?;
        self.receive()
    }
}

impl FdPass {
    fn new(fds: usize) -> Result<Self, Failure> {
        let (sends, receives) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .or_fail("socketpair", "fd-pass")?;
        let object = eventfd(0, EventfdFlags::CLOEXEC).or_fail("eventfd", "fd-pass")?;
        Ok(Self { sends, receives, object, fds })
    }

    #[inline(always)]
    fn receive(&self) -> Result<(), Errno> {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); SPACE_BYTES];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        retry_on_intr(|| {
            let into = &mut [IoSliceMut::new(&mut byte)];
            recvmsg(&self.receives, into, &mut beside, RecvFlags::CMSG_CLOEXEC)
        })?;
        let arrived: usize = beside
            .drain()
            .map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => fds.map(drop).count(),
                _ => 0,
            })
            .sum();
        // The kernel silently leaves out descriptors for which this process has no number left.
        if arrived == self.fds { Ok(()) } else { Err(Errno::MFILE) }
    }
}

fn fds(params: &Params) -> usize {
    // The card has a default, so that there is always a count.
    params.count(&FdPass::CARD, "fds").unwrap_or(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_pass_as_the_kernel_says_and_no_more() {
        let params = |fds: usize| Params::parse(&format!("fds={fds}"), &FdPass::CARD).unwrap();
        assert_eq!(FdPass::probe(&params(MOST_FDS)), Support::UNLIMITED);
        assert!(matches!(FdPass::probe(&params(MOST_FDS + 1)), Support::No { .. }));
    }

    #[test]
    fn descriptors_that_do_not_arrive_are_missed() {
        let pass = FdPass::new(2).unwrap();
        let (mut space, fds) = ([MaybeUninit::uninit(); SPACE_BYTES], [pass.object.as_fd()]);
        let mut beside = SendAncillaryBuffer::new(&mut space);
        beside.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&pass.sends, &[IoSlice::new(&[1])], &mut beside, SendFlags::empty()).unwrap();
        assert_eq!(pass.receive(), Err(Errno::MFILE));
    }
}
