//! The table: every row that ipcmark knows, one line each. Nothing else names a row.

use crate::coded::Coded;
use crate::connection::Connected;
use crate::contract::{Mechanism, Operation};
use crate::passed::Passed;
use crate::wake::Introduced;
use crate::{
    cache_line, clock_gettime, context_switch, create, eventfd, fifo, file_pass, futex, getrusage,
    gettimeofday, kill_self, memcpy, memfd_pass, mmap, mptcp, mutex_cond, null, pidfd_signal, pipe, posix_mq,
    posix_sem, process, pty, sctp, semop, shm_ring, signal, signalfd, sigqueue, syscall, sysv_msg, sysv_sem,
    tcp, times, tipc, tsc, udp, unix_dgram, unix_seqpacket, unix_stream, vsock,
};
use model::Params;
use model::card::{Card, Support};

/// Code that is compiled once for each row, so that its loop holds no trait object.
pub trait Visitor {
    /// What the visit yields.
    type Output;
    /// The visit of a mechanism.
    fn mechanism<M: Mechanism>(self) -> Self::Output;
    /// The visit of an operation.
    fn operation<O: Operation>(self) -> Self::Output;
}

macro_rules! table {
    (mechanisms: $($mechanism:path,)* ; operations: $($operation:path,)*) => {
        /// The cards of all rows, in the order of lists and reports.
        pub const CARDS: &[Card] = &[
            $(<$mechanism as Mechanism>::CARD,)*
            $(<$operation as Operation>::CARD,)*
        ];

        /// Visits the row `name`; `None` when there is none.
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

table! {
    mechanisms:
        pipe::Pipe,
        fifo::Fifo,
        Connected<unix_stream::UnixStream>,
        Coded<Connected<unix_seqpacket::UnixSeqpacket>>,
        Coded<unix_dgram::UnixDgram>,
        Passed<file_pass::TemporaryFile>,
        Passed<memfd_pass::SealedMemfd>,
        Connected<tcp::Tcp>,
        Connected<mptcp::Mptcp>,
        Connected<sctp::Sctp>,
        udp::Udp,
        Connected<vsock::Vsock>,
        tipc::Tipc,
        sysv_msg::SysvMsg,
        posix_mq::PosixMq,
        pty::Pty,
        shm_ring::ShmRing,
        futex::Futex,
        eventfd::Eventfd,
        sysv_sem::SysvSem,
        posix_sem::PosixSem,
        mutex_cond::MutexCond,
        Introduced<signal::KillAndSuspend>,
        Introduced<sigqueue::Sigqueue>,
        Introduced<signalfd::Signalfd>,
        Introduced<pidfd_signal::PidfdSignal>,
        null::Null,
        cache_line::CacheLine,
        context_switch::ContextSwitch,
    ;
    operations:
        syscall::Syscall,
        clock_gettime::ClockGettime,
        tsc::Tsc,
        gettimeofday::Gettimeofday,
        times::Times,
        getrusage::Getrusage,
        kill_self::KillSelf,
        semop::Semop,
        create::Create,
        process::Process,
        mmap::Mmap,
        memcpy::Memcpy,
}

/// The card of the row `name`.
pub fn card(name: &str) -> Option<&'static Card> {
    CARDS.iter().find(|card| card.name == name)
}

/// Whether the row `name` works on this host with `params`.
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
    visit(name, Probe(params))
}
