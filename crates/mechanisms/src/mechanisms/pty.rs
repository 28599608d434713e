//! A pseudo-terminal in raw mode: the client is its master, the server its slave.

use crate::contract::Mechanism;
use crate::support::cards::STREAM;
use crate::support::descriptor::Fds;
use crate::support::pair::Pair;
use crate::support::probe::support_of;
use crate::support::wait::WAIT;
use model::Params;
use model::card::{Card, Support};
use model::record::Setting;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use sys::{Failure, OrFail};

/// pty(7).
#[derive(Debug)]
pub(crate) struct Pty;

impl Pair for Pty {
    const CARD: Card = Card {
        name: "pty",
        summary: "a pseudo-terminal in raw mode",
        hangup: false,
        params: &[WAIT],
        limits: "any message size; the line discipline passes some 4 KiB at a time",
        man: &["pty(7)", "termios(3)"],
        ..STREAM
    };

    fn probe(params: &Params) -> Support {
        support_of(Self::open(params))
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
        // Without raw mode the terminal would echo, and change some bytes.
        let mut terminal = tcgetattr(&slave).or_fail("tcgetattr", name)?;
        terminal.make_raw();
        tcsetattr(&slave, OptionalActions::Now, &terminal).or_fail("tcsetattr", name)?;
        Ok((Fds::both_ways(master, name)?, Fds::both_ways(slave, name)?, Vec::new()))
    }
}
