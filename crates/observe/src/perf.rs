//! The kernel's performance events (perf_event_open(2)) on the calling thread: what all probes over them share.

use perf_event::events::Event;
use perf_event::{Builder, Clock, Counter, Sampler};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use sys::Failure;

/// The room for the records of one kind of event. The kernel gives unprivileged users less: then the most that it gives is
/// taken.
pub(crate) const RING_BYTES: usize = 4 << 20;
/// By default every user may have 516 KiB for all rings together (kernel.perf_event_mlock_kb).
pub(crate) const LEAST_RING_BYTES: usize = 128 << 10;

/// Nanoseconds of `CLOCK_MONOTONIC_RAW`, by which every record is stamped.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicRaw);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A builder for `event` on the calling thread, wherever it runs, stamped by our clock.
pub(crate) fn on_this_thread<'a>(event: impl Event) -> Builder<'a> {
    let mut builder = Builder::new(event);
    builder.observe_self().any_cpu().clockid(Clock::MONOTONIC_RAW);
    builder
}

/// Opens what `builder` describes for counting.
pub(crate) fn counter(builder: &Builder<'_>, what: &str) -> Result<Counter, Failure> {
    builder.build().map_err(|error| refused(what, &error))
}

/// Opens what `builder` describes for records, with as large a ring as the kernel permits. In a group it is on when its
/// leader is, and so at the same times as all others.
pub(crate) fn ring(
    builder: &mut Builder<'_>,
    mut leader: Option<&mut Counter>,
    what: &str,
) -> Result<Sampler, Failure> {
    builder.enabled(leader.is_some());
    let mut bytes = RING_BYTES;
    loop {
        let opened = match &mut leader {
            Some(leader) => builder.build_with_group(&mut **leader),
            None => builder.build(),
        };
        match opened.map_err(|error| refused(what, &error))?.sampled(bytes) {
            Ok(sampler) => return Ok(sampler),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && bytes > LEAST_RING_BYTES => {
                bytes /= 2;
            }
            Err(error) => {
                return Err(Failure::new(
                    "map",
                    format!("the ring of {what}"),
                    error.to_string(),
                    "raise it: sudo sysctl kernel.perf_event_mlock_kb=8192",
                ));
            }
        }
    }
}

/// Why the kernel does not offer `what`, and what grants it.
pub(crate) fn refused(what: &str, error: &io::Error) -> Failure {
    let next = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "run as root, or grant it: sudo sysctl kernel.perf_event_paranoid=-1, or setcap cap_perfmon+ep on the program"
        }
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => {
            "this processor, or the virtual machine, offers no such counter; have the hypervisor give the guest a PMU (QEMU: -cpu host,pmu=on), or use a machine that is not shared"
        }
        _ => "see perf_event_open(2); a container may forbid it (seccomp)",
    };
    Failure::new("perf_event_open", what, error.to_string(), next)
}

/// The outcome of switching an event on or off.
pub(crate) fn switched(outcome: io::Result<()>, what: &str) -> Result<(), Failure> {
    outcome.map_err(|error| Failure::new("ioctl", what, error.to_string(), "report this bug"))
}
