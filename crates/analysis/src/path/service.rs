//! Whom the server of several clients serves in each of its calls.
//!
//! It is known from descriptors: each client's messages come on one of its own, and on one the server waits for all.

use model::observation::CpuTrace;

/// Whom the server serves from the beginning of a call on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// The client with this thread.
    Of(u32),
    /// No client: the server waits for all of them.
    None,
    /// Whom it served before: the call is on a descriptor of which nothing is known, such as that on which it answers.
    AsBefore,
}

/// Whom the thread `tid` serves when it begins a call whose first argument is `first`.
pub(super) fn service(trace: &CpuTrace, tid: u32, first: u64) -> Service {
    if !trace.server_tids.contains(&tid) {
        return Service::AsBefore;
    }
    let known = trace.clients.iter().filter_map(|client| Some((client.tid, client.served_on?)));
    for (client, served_on) in known {
        if first == u64::from(served_on.input) {
            return Service::Of(client);
        }
        if first == u64::from(served_on.event_loop) {
            return Service::None;
        }
    }
    Service::AsBefore
}
