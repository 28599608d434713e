//! How many BPF programs there are: of the kernel, and of a control group (bpf(2)). It loads none.

use crate::bpf::bpf;
use rustix::io::Errno;
use std::cell::Cell;
use std::ffi::c_long;
use std::os::fd::{AsFd, AsRawFd};

const PROG_GET_NEXT_ID: c_long = 11;
const PROG_QUERY: c_long = 16;

/// `next_id` is the kernel's to write.
#[repr(C)]
#[derive(Default)]
struct NextIdAttributes {
    start_id: u32,
    next_id: Cell<u32>,
    open_flags: u32,
}

/// `prog_cnt` is the kernel's to write, and `attach_flags`; newer ones write `revision` too, whatever size they were told.
#[repr(C)]
#[derive(Default)]
struct QueryAttributes {
    target_fd: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: Cell<u32>,
    prog_ids: u64,
    prog_cnt: Cell<u32>,
    padding: u32,
    prog_attach_flags: u64,
    link_ids: u64,
    link_attach_flags: u64,
    revision: Cell<u64>,
}

/// How many programs the kernel has loaded.
pub fn loaded_programs() -> Result<u64, Errno> {
    let mut attributes = NextIdAttributes::default();
    for count in 0.. {
        // SAFETY: the attributes are those of the command, and have no pointers; what the kernel writes lies in a cell.
        match unsafe { bpf(PROG_GET_NEXT_ID, &attributes) } {
            Ok(_) => attributes.start_id = attributes.next_id.get(),
            Err(Errno::NOENT) => return Ok(count),
            Err(errno) => return Err(errno),
        }
    }
    Ok(u64::MAX)
}

/// How many programs run for the control group whose directory is `group`, its own and those of the groups around it.
pub fn programs_of_group(group: &impl AsFd) -> Result<u64, Errno> {
    /// More kinds of attaching than any kernel has yet.
    const KINDS: u32 = 80;
    /// `BPF_F_QUERY_EFFECTIVE`.
    const EFFECTIVE: u32 = 1;
    let target_fd = group.as_fd().as_raw_fd() as u32;
    let mut sum = 0;
    for attach_type in 0..KINDS {
        let attributes =
            QueryAttributes { target_fd, attach_type, query_flags: EFFECTIVE, ..QueryAttributes::default() };
        // SAFETY: the attributes are those of the command; the pointers are null, so that only numbers in cells are written.
        match unsafe { bpf(PROG_QUERY, &attributes) } {
            Ok(_) => sum += u64::from(attributes.prog_cnt.get()),
            Err(errno @ (Errno::PERM | Errno::NOSYS | Errno::BADF)) => return Err(errno),
            // This kind is not one of control groups, or not of this kernel.
            Err(_) => {}
        }
    }
    Ok(sum)
}
