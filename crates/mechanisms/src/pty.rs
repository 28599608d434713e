//! A pseudo-terminal in raw mode: client is its master, server its slave.

use crate::contract::Mechanism;
use crate::descriptor::{Fds, Pair, WAIT, supported};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::record::Setting;
use model::{Params, Workload};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use sys::{Failure, OrFail};

/// pty(7).
#[derive(Debug)]
pub struct Pty;

impl Pair for Pty {
    const CARD: Card = Card {
        name: "pty",
        kind: CardKind::Mechanism,
        summary: "a pseudo-terminal in raw mode",
        framing: Framing::Stream,
        reach: Reach::Related,
        payload: Payload::Bytes,
        fds: false,
        hangup: false,
        polled: true,
        one_endpoint: false,
        empty: false,
        params: &[WAIT],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "any message size; the line discipline hands over some 4 KiB at a time",
        man: &["pty(7)", "termios(3)"],
    };

    fn probe(params: &Params) -> Support {
        supported(Self::open(params))
    }

    fn open(_: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
        let name = <Self as Mechanism>::CARD.name;
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .or_fail("posix_openpt", "/dev/ptmx")?;
        grantpt(&master).or_fail("grantpt", name)?;
        unlockpt(&master).or_fail("unlockpt", name)?;
        let path = ptsname(&master, Vec::new()).or_fail("ptsname", name)?;
        let slave = open(path.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())
            .or_fail("open", path.to_string_lossy())?;
        // As a terminal it would echo, and iteration some bytes into others.
        let mut terminal = tcgetattr(&slave).or_fail("tcgetattr", name)?;
        terminal.make_raw();
        tcsetattr(&slave, OptionalActions::Now, &terminal).or_fail("tcsetattr", name)?;
        Ok((Fds::both_ways(master, name)?, Fds::both_ways(slave, name)?, Vec::new()))
    }
}
