//! The table: every row that ipcmark knows, one line each. Nothing else names a row.

use crate::coded::Coded;
use crate::connection::Connected;
use crate::contract::{Mechanism, Operation};
use crate::descriptor::PairWith;
use crate::passed::Passed;
use crate::uring::UringEnd;
use crate::wake::Introduced;
use crate::zero_copy::{OverPipes, OverTcp};
use crate::{
    cache_line, clock_gettime, context_switch, create, eventfd, fd_pass, fifo, file_pass, futex, getrusage,
    gettimeofday, kill_self, lock, memcpy, memfd_pass, memory, mmap, mptcp, mutex_cond, null, pidfd_signal,
    pipe, pipe_splice, pipe_uring, pipe_vmsplice, posix_mq, posix_sem, process, process_vm, pty, sctp, semop,
    shm, shm_queue, shm_ring, signal, signalfd, sigqueue, sleep, syscall, sysv_msg, sysv_sem, tcp,
    tcp_sendfile, tcp_uring, tcp_uring_zc, tcp_vmsplice, tcp_zerocopy, tee, times, tipc, tsc, udp, udp_gso,
    udp_unacked, unix_dgram, unix_seqpacket, unix_stream, unix_stream_uring, uring_msg, vsock,
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
        PairWith<pipe_uring::PipeUring, UringEnd>,
        OverPipes<pipe_vmsplice::PipeVmsplice>,
        OverPipes<pipe_splice::PipeSplice>,
        OverPipes<tee::Tee>,
        fifo::Fifo,
        Connected<unix_stream::UnixStream>,
        PairWith<unix_stream_uring::UnixStreamUring, UringEnd>,
        Coded<Connected<unix_seqpacket::UnixSeqpacket>>,
        Coded<unix_dgram::UnixDgram>,
        Passed<file_pass::TemporaryFile>,
        Passed<memfd_pass::SealedMemfd>,
        Connected<tcp::Tcp>,
        Connected<tcp_uring::TcpUring>,
        Connected<tcp_uring_zc::TcpUringZc>,
        Connected<OverTcp<tcp_vmsplice::TcpVmsplice>>,
        Connected<OverTcp<tcp_sendfile::TcpSendfile>>,
        Connected<tcp_zerocopy::TcpZerocopy>,
        Connected<mptcp::Mptcp>,
        Connected<sctp::Sctp>,
        Connected<vsock::Vsock>,
        tipc::Tipc,
        udp::Udp,
        udp_gso::UdpGso,
        udp_unacked::UdpUnacked,
        sysv_msg::SysvMsg,
        posix_mq::PosixMq,
        pty::Pty,
        process_vm::ProcessVm,
        shm_ring::ShmRing,
        shm_queue::ShmQueue,
        futex::Futex,
        eventfd::Eventfd,
        uring_msg::UringMsg,
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
        sleep::Sleep,
        kill_self::KillSelf,
        semop::Semop,
        lock::Lock,
        fd_pass::FdPass,
        create::Create,
        process::Process,
        mmap::Mmap,
        shm::Shm,
        memory::Memory,
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
