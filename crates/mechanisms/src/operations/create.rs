//! What it costs to make a kernel object for two endpoints, and to close it again.

use crate::contract::{Operation, TrialContext};
use model::card::Card;
use model::{Domain, Param};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{CWD, FileType, MemfdFlags, Mode, OFlags, memfd_create, mknodat, open, unlink};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::path::PathBuf;
use sys::{Errno, Failure};

/// pipe(2), mkfifo(3), socketpair(2), eventfd(2) and memfd_create(2).
#[derive(Debug)]
pub(crate) struct Create {
    object: Object,
    /// The path of an object that has a name.
    path: PathBuf,
}

#[derive(Debug, Clone, Copy)]
enum Object {
    Pipe,
    Fifo,
    Socketpair,
    Eventfd,
    Memfd,
}

impl Operation for Create {
    const CARD: Card = Card {
        name: "create",
        summary: "make a kernel object, open it for both endpoints, and close it",
        params: &[Param {
            name: "object",
            summary: "what is made; a fifo is unlinked too",
            domain: Domain::Choice(&["pipe", "fifo", "socketpair", "eventfd", "memfd"]),
            default: Some("pipe"),
        }],
        man: &["pipe(2)", "mkfifo(3)", "socketpair(2)", "eventfd(2)", "memfd_create(2)"],
        ..Card::OPERATION
    };

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        let object = match trial.params.text(&Self::CARD, "object") {
            Some("fifo") => Object::Fifo,
            Some("socketpair") => Object::Socketpair,
            Some("eventfd") => Object::Eventfd,
            Some("memfd") => Object::Memfd,
            _ => Object::Pipe,
        };
        Ok(Self { object, path: trial.path() })
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        match self.object {
            Object::Pipe => pipe_with(PipeFlags::CLOEXEC).map(drop),
            Object::Socketpair => {
                socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).map(drop)
            }
            Object::Eventfd => eventfd(0, EventfdFlags::CLOEXEC).map(drop),
            Object::Memfd => memfd_create("ipcmark-create", MemfdFlags::CLOEXEC).map(drop),
            Object::Fifo => {
                mknodat(CWD, &self.path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
                let reads = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let reader = open(&self.path, reads, Mode::empty())?;
                let writer = open(&self.path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
                unlink(&self.path)?;
                drop((reader, writer));
                Ok(())
            }
        }
    }
}
