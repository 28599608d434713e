//! Programs that the kernel runs for each of what it goes through, such as all threads (bpf(2), `BPF_TRACE_ITER`). What such a program does
//! is not known here.

use crate::bpf::{BpfProgram, TRACE_ITERATOR, bpf, refused};
use crate::{Errno, Failure, OrFail};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ffi::c_long;

/// Commands of bpf(2).
const LINK_CREATE: c_long = 28;
const ITER_CREATE: c_long = 33;

#[repr(C)]
#[derive(Default)]
struct LinkAttributes {
    prog_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
struct IteratorAttributes {
    link_fd: u32,
    flags: u32,
}

/// A program for what the kernel goes through.
#[derive(Debug)]
pub struct BpfIterator {
    link: OwnedFd,
}

impl BpfIterator {
    /// Has `program`, which is for an iterator, run for each of what the kernel goes through, whenever that is asked for.
    pub fn from_program(program: &BpfProgram) -> Result<Self, Failure> {
        let prog_fd = program.as_fd().as_raw_fd().cast_unsigned();
        let attributes = LinkAttributes { prog_fd, attach_type: TRACE_ITERATOR, ..LinkAttributes::default() };
        // SAFETY: the attributes are those of this command, and name no memory.
        let fd = unsafe { bpf(LINK_CREATE, &attributes) };
        let fd = fd.map_err(|errno| refused("an iterator", errno, ""))?;
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(Self { link: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Has the kernel go through all once.
    pub fn run(&self) -> Result<(), Failure> {
        let attributes = IteratorAttributes { link_fd: self.link.as_raw_fd().cast_unsigned(), flags: 0 };
        // SAFETY: the attributes are those of this command, and name no memory.
        let fd = unsafe { bpf(ITER_CREATE, &attributes) };
        let fd = fd.map_err(|errno| refused("an iterator", errno, ""))?;
        // SAFETY: the kernel has just made this descriptor for us.
        let iterator = unsafe { OwnedFd::from_raw_fd(fd) };
        // A program that writes nothing has it end at the first read. One read goes through a million at the most.
        loop {
            match rustix::io::read(&iterator, &mut [0; 16]) {
                Ok(0) => return Ok(()),
                Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(errno).or_fail("read", "an iterator"),
            }
        }
    }
}
