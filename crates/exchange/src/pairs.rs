//! pipe(2), pipe2(2) and socketpair(2): what has two ends from the beginning, made by the supervisor where it is exchanged.

use crate::answering::{Answering, Asked, Reply};
use crate::exchange::Source;
use crate::settings::Setting;
use crate::target::Target;
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair as pair_of_sockets,
};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use sys::Errno;

/// pipe2(2) with these `flags`.
pub(crate) fn pipe(at: &Answering, asked: &Asked<'_>, flags: u64) -> Reply {
    at.sockets.table().observed.pipes += 1;
    let Some(exchange) = at.sockets.exchanges.for_source(&Source::Pipe) else { return Reply::Kernel };
    let flags = PipeFlags::from_bits_retain(flags as u32);
    // Packets and notifications are pipes' own.
    if !(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).contains(flags) {
        return Reply::Kernel;
    }
    let ends = match exchange.target {
        Target::UnixStream => sockets_like_a_pipe(flags),
        _ => pipe_with(flags | PipeFlags::CLOEXEC),
    };
    let Ok((output, input)) = ends else { return Reply::Kernel };
    if let Some(capacity) = exchange.settings.iter().find_map(Setting::capacity_bytes) {
        // Beyond the limit of its user a pipe stays as it is, as where the program asks.
        let _ = fcntl_setpipe_size(&input, capacity);
    }
    exchange.apply(&input);
    let closes = flags.contains(PipeFlags::CLOEXEC);
    let given = at.give_two(asked, [&output, &input], asked.call.arguments[0], closes);
    at.sockets.table().observed.exchanged += 1;
    given.map_or_else(Reply::Error, |()| Reply::Value(0))
}

/// A pair of Unix sockets of which the first only receives, as the end of a pipe that is read.
fn sockets_like_a_pipe(flags: PipeFlags) -> Result<(OwnedFd, OwnedFd), Errno> {
    let mut of_both = SocketFlags::CLOEXEC;
    if flags.contains(PipeFlags::NONBLOCK) {
        of_both |= SocketFlags::NONBLOCK;
    }
    let (output, input) = pair_of_sockets(AddressFamily::UNIX, SocketType::STREAM, of_both, None)?;
    shutdown(&output, Shutdown::Write)?;
    Ok((output, input))
}

/// socketpair(2).
pub(crate) fn socketpair(at: &Answering, asked: &Asked<'_>) -> Reply {
    /// The bits of the type that are flags.
    const FLAGS: u32 = (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) as u32;
    let [family, kind, protocol, at_address, ..] = asked.call.arguments;
    let (kind, flags) = (kind as u32 & !FLAGS, kind as u32 & FLAGS);
    let source = match kind {
        kind if kind == SocketType::STREAM.as_raw() => Source::UnixStream,
        kind if kind == SocketType::DGRAM.as_raw() => Source::UnixDgram,
        _ => return Reply::Kernel,
    };
    if family as u16 != AddressFamily::UNIX.as_raw() || protocol != 0 {
        return Reply::Kernel;
    }
    match source {
        Source::UnixStream => at.sockets.table().observed.unix_stream += 1,
        _ => at.sockets.table().observed.unix_dgram += 1,
    }
    let Some(exchange) = at.sockets.exchanges.for_source(&source) else { return Reply::Kernel };
    let flags = SocketFlags::from_bits_retain(flags);
    let made =
        pair_of_sockets(AddressFamily::UNIX, SocketType::from_raw(kind), flags | SocketFlags::CLOEXEC, None);
    let Ok((first, second)) = made else { return Reply::Kernel };
    exchange.apply(&first);
    exchange.apply(&second);
    let closes = flags.contains(SocketFlags::CLOEXEC);
    let given = at.give_two(asked, [&first, &second], at_address, closes);
    at.sockets.table().observed.exchanged += 1;
    given.map_or_else(Reply::Error, |()| Reply::Value(0))
}
