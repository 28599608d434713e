//! Each message in a sealed memfd of its own, whose descriptor is sent over a Unix socket; the receiver maps it.

use crate::contract::{StepTrace, TrialContext};
use crate::support::cards::FILE_PER_MESSAGE;
use crate::support::file_per_message::{MessageFile, write_all};
use crate::support::probe::support_of;
use crate::support::wait::WAIT;
use model::Params;
use model::card::{Card, Support};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};
use sys::sealed::{SEALS, SealedMemory};
use sys::{Errno, Failure, OrFail};

/// memfd_create(2), sealed.
#[derive(Debug)]
pub(crate) struct SealedMemfd;

impl MessageFile for SealedMemfd {
    const CARD: Card = Card {
        name: "memfd-pass",
        summary: "each message in a sealed memfd, whose descriptor is sent",
        params: &[WAIT],
        limits: "memory; a new memfd for each message, which the receiver maps and copies from",
        man: &["memfd_create(2)", "fcntl(2)", "unix(7)", "mmap(2)"],
        ..FILE_PER_MESSAGE
    };

    fn probe(_: &Params) -> Support {
        support_of(create().or_fail("memfd_create", "a message"))
    }

    fn prepare(_: &TrialContext<'_>, _: &'static str) -> Result<Self, Failure> {
        Ok(Self)
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8], trace: &mut impl StepTrace) -> Result<OwnedFd, Errno> {
        let file = create()?;
        trace.step_ended("memfd_create");
        write_all(&file, bytes)?;
        trace.step_ended("write");
        fcntl_add_seals(&file, SEALS)?;
        trace.step_ended("fcntl");
        Ok(file)
    }

    #[inline(always)]
    fn read(file: &OwnedFd, into: &mut [u8], trace: &mut impl StepTrace) -> Result<usize, Errno> {
        let message = SealedMemory::map(file)?;
        trace.step_ended("mmap");
        let count = message.bytes().len().min(into.len());
        into[..count].copy_from_slice(&message.bytes()[..count]);
        trace.step_ended("copy");
        drop(message);
        trace.step_ended("munmap");
        Ok(count)
    }
}

fn create() -> Result<OwnedFd, Errno> {
    memfd_create("ipcmark-message", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
}
