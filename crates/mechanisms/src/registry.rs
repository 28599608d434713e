//! The registry: every mechanism, floor and operation that ipcmark knows, one line each, in the order of lists and reports.
//!
//! Nothing else in the program names one.

use crate::contract::{Mechanism, Operation};
use crate::support::coded::Coded;
use crate::support::connected::Connected;
use crate::support::file_per_message::FilePerMessage;
use crate::support::pair::PairWith;
use crate::support::uring::UringEndpoint;
use crate::support::wake::Introduced;
use crate::support::zero_copy::{OverPipes, OverTcp};
use crate::{floors, mechanisms, operations};
use model::Params;
use model::card::{Card, Support};
use std::sync::{PoisonError, RwLock};

/// Code that is compiled once for each entry of the registry, so that its loop has no trait object.
pub trait Visitor {
    /// What a visit returns.
    type Output;
    /// Visits a mechanism or a floor.
    fn mechanism<M: Mechanism>(self) -> Self::Output;
    /// Visits an operation.
    fn operation<O: Operation>(self) -> Self::Output;
}

macro_rules! registry {
    (mechanisms and floors: $($mechanism:path,)* ; operations: $($operation:path,)*) => {
        /// The cards of all entries, in the order of lists and reports.
        pub const CARDS: &[Card] = &[
            $(<$mechanism as Mechanism>::CARD,)*
            $(<$operation as Operation>::CARD,)*
        ];

        /// Visits the entry `name`. `None` if there is none.
        pub fn visit<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            $(if name == <$mechanism as Mechanism>::CARD.name {
                return Some(visitor.mechanism::<$mechanism>());
            })*
            $(if name == <$operation as Operation>::CARD.name {
                return Some(visitor.operation::<$operation>());
            })*
            None
        }
    };
}

registry! {
    mechanisms and floors:
        mechanisms::pipe::Pipe,
        PairWith<mechanisms::pipe_uring::PipeUring, UringEndpoint>,
        OverPipes<mechanisms::pipe_vmsplice::PipeVmsplice>,
        OverPipes<mechanisms::pipe_splice::PipeSplice>,
        OverPipes<mechanisms::tee::Tee>,
        mechanisms::fifo::Fifo,
        Connected<mechanisms::unix_stream::UnixStream>,
        PairWith<mechanisms::unix_stream_uring::UnixStreamUring, UringEndpoint>,
        Coded<Connected<mechanisms::unix_seqpacket::UnixSeqpacket>>,
        Coded<mechanisms::unix_dgram::UnixDgram>,
        FilePerMessage<mechanisms::file_pass::TemporaryFile>,
        FilePerMessage<mechanisms::memfd_pass::SealedMemfd>,
        Connected<mechanisms::tcp::Tcp>,
        Connected<mechanisms::tcp_uring::TcpUring>,
        Connected<mechanisms::tcp_uring_zc::TcpUringZc>,
        Connected<OverTcp<mechanisms::tcp_vmsplice::TcpVmsplice>>,
        Connected<OverTcp<mechanisms::tcp_sendfile::TcpSendfile>>,
        Connected<mechanisms::tcp_zerocopy::TcpZerocopy>,
        Connected<mechanisms::mptcp::Mptcp>,
        Connected<mechanisms::sctp::Sctp>,
        Connected<mechanisms::vsock::Vsock>,
        mechanisms::tipc::Tipc,
        mechanisms::udp::Udp,
        mechanisms::udp_gso::UdpGso,
        mechanisms::udp_unacked::UdpUnacked,
        mechanisms::sysv_msg::SysvMsg,
        mechanisms::posix_mq::PosixMq,
        mechanisms::pty::Pty,
        mechanisms::process_vm::ProcessVm,
        mechanisms::shm_ring::ShmRing,
        mechanisms::shm_queue::ShmQueue,
        mechanisms::futex::Futex,
        mechanisms::eventfd::Eventfd,
        mechanisms::uring_msg::UringMsg,
        mechanisms::sysv_sem::SysvSem,
        mechanisms::posix_sem::PosixSem,
        mechanisms::mutex_cond::MutexCond,
        Introduced<mechanisms::signal::KillAndSuspend>,
        Introduced<mechanisms::sigqueue::Sigqueue>,
        Introduced<mechanisms::signalfd::Signalfd>,
        Introduced<mechanisms::pidfd_signal::PidfdSignal>,
        mechanisms::null::Null,
        floors::cache_line::CacheLine,
        floors::shared_copy::SharedCopy,
        floors::remote_wake::RemoteWake,
        floors::context_switch::ContextSwitch,
    ;
    operations:
        operations::syscall::Syscall,
        operations::clock_gettime::ClockGettime,
        operations::tsc::Tsc,
        operations::gettimeofday::Gettimeofday,
        operations::times::Times,
        operations::getrusage::Getrusage,
        operations::sleep::Sleep,
        operations::kill_self::KillSelf,
        operations::semop::Semop,
        operations::lock::Lock,
        operations::fd_pass::FdPass,
        operations::create::Create,
        operations::process::Process,
        operations::mmap::Mmap,
        operations::shm::Shm,
        operations::memory::Memory,
        operations::memcpy::Memcpy,
}

/// The cards of mechanisms that drivers have of their own, beside those of the registry.
static OF_DRIVERS: RwLock<Vec<&'static Card>> = RwLock::new(Vec::new());

/// The card of the entry `name`, or of the mechanism that a driver has of its own under that name.
pub fn card(name: &str) -> Option<&'static Card> {
    let of_drivers = || OF_DRIVERS.read().unwrap_or_else(PoisonError::into_inner);
    CARDS
        .iter()
        .find(|card| card.name == name)
        .or_else(|| of_drivers().iter().find(|card| card.name == name).copied())
}

/// Makes the mechanism of `card` known, which a driver has of its own, unless one of that name is known already.
pub fn add(new: Card) {
    if card(new.name).is_none() {
        OF_DRIVERS.write().unwrap_or_else(PoisonError::into_inner).push(Box::leak(Box::new(new)));
    }
}

/// The cards of all entries, and of what drivers have of their own.
pub fn cards() -> Vec<Card> {
    let of_drivers = OF_DRIVERS.read().unwrap_or_else(PoisonError::into_inner);
    CARDS.iter().chain(of_drivers.iter().copied()).copied().collect()
}

/// Visits the skeleton, which is no entry: the conformance suite checks it too.
#[doc(hidden)]
pub fn visit_skeleton<V: Visitor>(visitor: V) -> V::Output {
    visitor.mechanism::<mechanisms::skeleton::Skeleton>()
}

/// The card of the skeleton.
#[doc(hidden)]
pub const SKELETON: &Card = &mechanisms::skeleton::Skeleton::CARD;

/// Whether the entry `name` works on this host with `params`. `None` if there is none. What a filter of system calls may kill is tried by a
/// child first.
pub fn probe(name: &str, params: &Params) -> Option<Support> {
    struct Probe<'a>(&'a Params);
    impl Visitor for Probe<'_> {
        type Output = Support;
        fn mechanism<M: Mechanism>(self) -> Support {
            M::probe(self.0)
        }
        fn operation<O: Operation>(self) -> Support {
            O::probe(self.0)
        }
    }
    let is_killed = !sys::seccomp::outlives(|| drop(visit(name, Probe(params))));
    if is_killed && card(name).is_some() {
        let remedy = sys::seccomp::REMEDY.to_owned();
        return Some(Support::No { reason: sys::seccomp::cause(), remedy });
    }
    visit(name, Probe(params))
}
