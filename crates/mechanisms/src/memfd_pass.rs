//! Each message in a sealed memfd of its own, whose descriptor is sent over a Unix socket; the receiver maps it.

use crate::contract::{Steps, Trial};
use crate::descriptor::{WAIT, supported};
use crate::passed::{Letter, PASSED};
use model::Params;
use model::card::{Card, Support};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};
use rustix::io::write;
use sys::sealed::{SEALS, SealedMemory};
use sys::{Errno, Failure, OrFail};

/// memfd_create(2), sealed.
#[derive(Debug)]
pub struct SealedMemfd;

impl Letter for SealedMemfd {
    const CARD: Card = Card {
        name: "memfd-pass",
        summary: "each message in a sealed memfd, whose descriptor is sent",
        params: &[WAIT],
        limits: "memory; a new memfd for each message, which the receiver maps and copies from",
        man: &["memfd_create(2)", "fcntl(2)", "unix(7)", "mmap(2)"],
        ..PASSED
    };

    fn probe(_: &Params) -> Support {
        supported(create().or_fail("memfd_create", "a message"))
    }

    fn prepare(_: &Trial<'_>, _: &'static str) -> Result<Self, Failure> {
        Ok(Self)
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8], steps: &mut impl Steps) -> Result<OwnedFd, Errno> {
        let file = create()?;
        steps.done("memfd_create");
        write_all(&file, bytes)?;
        steps.done("write");
        fcntl_add_seals(&file, SEALS)?;
        steps.done("fcntl");
        Ok(file)
    }

    #[inline(always)]
    fn read(file: &OwnedFd, into: &mut [u8], steps: &mut impl Steps) -> Result<usize, Errno> {
        let letter = SealedMemory::map(file)?;
        steps.done("mmap");
        let count = letter.bytes().len().min(into.len());
        into[..count].copy_from_slice(&letter.bytes()[..count]);
        steps.done("copy");
        drop(letter);
        steps.done("munmap");
        Ok(count)
    }
}

fn create() -> Result<OwnedFd, Errno> {
    memfd_create("ipcmark-letter", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
}

/// Writes all of `bytes` to `file`; in one call, too, where there are none.
#[inline(always)]
pub(crate) fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    loop {
        match write(file, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        }
        if bytes.is_empty() {
            return Ok(());
        }
    }
}
