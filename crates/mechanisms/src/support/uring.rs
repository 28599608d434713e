//! Endpoints that send and receive through io_uring(7). Not a mechanism itself.

use crate::contract::{Endpoint, Shape};
use crate::support::descriptor::{Fds, OverDescriptors};
use model::card::Card;
use model::record::Setting;
use model::{Domain, Param, Params, Size};
use rustix::fs::{FileType, fstat};
use sys::uring::{DescriptorKind, IDLE_MS, PROVIDED_BUFFERS, SubmissionMode, UringBuffers, UringStream};
use sys::{Errno, Failure, OrFail};

/// The parameter that says how often a receive is submitted.
pub(crate) const RECEIVE: Param = Param {
    name: "receive",
    summary: "single: one operation for each receive, into the caller's memory; multishot: one operation for all, which fills buffers of the endpoint, from which bytes are copied",
    domain: Domain::Choice(&["single", "multishot"]),
    default: Some("single"),
};

/// `IORING_REGISTER_BUFFERS`, io_uring_register(2).
pub(crate) const BUFFERS: Param = Param {
    name: "buffers",
    summary: "plain: operations use the caller's memory; registered: buffers that the kernel has pinned, to and from which bytes are copied; not with receive=multishot",
    domain: Domain::Choice(&["plain", "registered"]),
    default: Some("plain"),
};

/// `IORING_SETUP_SQPOLL`, io_uring_setup(2).
pub(crate) const SQPOLL: Param = Param {
    name: "sqpoll",
    summary: "a kernel thread polls for submissions, on the CPUs of its endpoint; its CPU time is not counted; on one CPU an iteration takes milliseconds; endpoints still sleep for completions",
    domain: Domain::Choice(&["off", "on"]),
    default: Some("off"),
};

/// The limits of every endpoint over io_uring.
pub(crate) const LIMITS: &str = "any message size; Linux 6.1, and kernel.io_uring_disabled=0; rings and registered buffers count against RLIMIT_MEMLOCK";

/// The smallest buffer of an endpoint.
const LEAST_BYTES: usize = 4 << 10;
/// The largest buffer of an endpoint.
pub(crate) const MOST_BYTES: usize = 256 << 10;
/// The largest provided buffer. There are many of them.
const MOST_PROVIDED_BYTES: usize = 64 << 10;

/// An endpoint that sends and receives through a ring.
#[derive(Debug)]
pub(crate) struct UringEndpoint {
    stream: UringStream,
    settings: Vec<Setting>,
}

impl OverDescriptors for UringEndpoint {
    fn over(
        fds: Fds,
        params: &Params,
        shape: Shape,
        card: &Card,
        mut settings: Vec<Setting>,
    ) -> Result<Self, Failure> {
        let asks = |param: &Param, value: &str| params.text(card, param.name) == Some(value);
        let (multishot, registered) = (asks(&RECEIVE, "multishot"), asks(&BUFFERS, "registered"));
        if multishot && registered {
            let answer = "multishot needs provided buffers, which cannot be registered";
            let object = "receive=multishot with buffers=registered";
            return Err(Failure::new("make", object, answer, "leave out one of the two"));
        }
        let kind = fstat(&fds.input).or_fail("fstat", card.name)?.st_mode;
        let object = if FileType::from_raw_mode(kind).is_fifo() {
            DescriptorKind::Pipe
        } else {
            DescriptorKind::Socket
        };
        let buffers = if multishot {
            UringBuffers::Provided(buffer_bytes(shape, MOST_PROVIDED_BYTES))
        } else if registered {
            UringBuffers::Registered(buffer_bytes(shape, MOST_BYTES))
        } else {
            UringBuffers::Callers
        };
        match buffers {
            UringBuffers::Callers => {}
            UringBuffers::Registered(size) => settings.push(several("registered buffers", 2, size)),
            UringBuffers::Provided(size) => {
                settings.push(several("provided buffers", PROVIDED_BUFFERS.into(), size));
            }
        }
        let taker = if asks(&SQPOLL, "on") {
            settings.push(own("sqpoll idle", format!("{IDLE_MS}ms")));
            SubmissionMode::KernelThread
        } else {
            SubmissionMode::Caller
        };
        let stream = UringStream::open(fds.input, fds.output, object, buffers, taker)?;
        Ok(Self { stream, settings })
    }
}

/// The size of one of an endpoint's own buffers: the size of a message, in whole pages, within bounds.
pub(crate) fn buffer_bytes(shape: Shape, most_bytes: usize) -> usize {
    shape.size_bytes.clamp(LEAST_BYTES, most_bytes).next_multiple_of(LEAST_BYTES)
}

/// `count` buffers of `size_bytes`, as a setting.
pub(crate) fn several(name: &str, count: usize, size_bytes: usize) -> Setting {
    own(name, format!("{count} of {}", Size(size_bytes as u64)))
}

/// A setting that the endpoint chose itself.
fn own(name: &str, got: String) -> Setting {
    Setting { name: name.to_owned(), asked: None, got, clamped: false, usual: None }
}

impl Endpoint for UringEndpoint {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.stream.send(bytes)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.stream.receive(into)
    }

    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Workload;

    #[test]
    fn buffers_are_whole_pages_within_their_bounds() {
        let bytes = |size_bytes| buffer_bytes(Shape { size_bytes, workload: Workload::Latency }, MOST_BYTES);
        assert_eq!([1, 4096, 4097, 1 << 30].map(bytes), [4096, 4096, 8192, MOST_BYTES]);
    }
}
