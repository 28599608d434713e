//! Why a trial has no sample.

use crate::protocol::error::EndpointError;
use model::Workload;
use std::fmt;
use std::time::Duration;
use sys::Failure;

/// Why a trial has no sample. Displays in words for the record.
#[derive(Debug, Clone, PartialEq)]
pub enum TrialError {
    /// The run is to end.
    Interrupted,
    /// An endpoint failed and said why.
    Endpoint(EndpointError),
    /// The kernel refused something to the coordinator.
    Coordinator(Failure),
    /// An endpoint ended without a report.
    Died {
        /// How, as the kernel says.
        status: String,
    },
    /// What an endpoint said cannot be read.
    Unreadable {
        /// Why.
        failure: Failure,
    },
    /// An endpoint speaks another version of the protocol, or another protocol.
    Refused(String),
    /// A command does not reach its endpoint any more.
    Unreachable {
        /// What was found.
        why: String,
    },
    /// The endpoints made no report in time.
    Silent {
        /// How long they had.
        limit: Duration,
    },
    /// The clients were never at work at the same time.
    NeverTogether,
    /// No client was over with an iteration while all were at work.
    NothingTogether,
    /// The trial had a probe, and its workload has no iterations of one kind that a probe could observe.
    NotObservable(Workload),
    /// An endpoint was moved away from its CPU.
    Elsewhere {
        /// Where it was found.
        cpu: u32,
    },
    /// No endpoint reported a sample.
    NoSample,
}

impl fmt::Display for TrialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("the run was interrupted"),
            Self::Endpoint(error) => error.fmt(f),
            Self::Coordinator(failure) => failure.fmt(f),
            Self::Died { status } => {
                write!(f, "an endpoint died without a report ({status}); what it said is on standard error")
            }
            Self::Unreadable { failure } => {
                write!(f, "an endpoint was killed: what it reported cannot be read: {failure}")
            }
            Self::Refused(refusal) => {
                write!(f, "{refusal} (install the same version on both hosts, or give --push)")
            }
            Self::Unreachable { why } => {
                write!(
                    f,
                    "an endpoint cannot be reached any more: {why} (see that its command and the network work)"
                )
            }
            Self::Silent { limit } => write!(
                f,
                "the endpoints made no report within {:.1} s and were killed: they wait for each other, or what they send is \
                 lost, as where a firewall drops it (try --timeout or --time with a longer time, or a smaller size)",
                limit.as_secs_f64()
            ),
            Self::NeverTogether => {
                f.write_str("the peers were never at work at the same time; try fewer peers")
            }
            Self::NothingTogether => {
                f.write_str("no client was over with an iteration while all were at work; try fewer peers")
            }
            Self::NotObservable(workload) => {
                write!(f, "{workload} cannot be observed: it has no iterations of one kind")
            }
            Self::Elsewhere { cpu } => write!(
                f,
                "an endpoint was moved away from the CPU of its placement, to CPU {cpu} (see who does that: taskset, a \
                 cpuset, or a CPU that goes offline)"
            ),
            Self::NoSample => f.write_str("no endpoint measured anything; report this bug"),
        }
    }
}

impl From<Failure> for TrialError {
    fn from(failure: Failure) -> Self {
        TrialError::Coordinator(failure)
    }
}
