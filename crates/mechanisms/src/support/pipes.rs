//! Pipes and FIFOs: how they are made and sized, and what limits them. Not a mechanism itself.

use crate::support::descriptor::Fds;
use model::card::Card;
use model::record::Setting;
use model::{Domain, Param, Params};
use rustix::fd::OwnedFd;
use rustix::param::page_size;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};
use sys::{Failure, OrFail};

/// The parameter that sizes pipes and FIFOs.
pub(crate) const CAPACITY: Param = Param {
    name: "capacity",
    summary: "bytes that a pipe holds (F_SETPIPE_SZ), or match for the message's size; the kernel rounds up to a power of two of pages",
    domain: Domain::SizeOrMatch,
    default: None,
};

/// What limits pipes and FIFOs.
pub(crate) const LIMITS: &str = "any message size; capacity up to /proc/sys/fs/pipe-max-size, and /proc/sys/fs/pipe-user-pages-soft in all";

/// A pipe for each direction: the descriptors of the client and of the server, and the capacity.
pub(crate) fn pipe_pair(params: &Params, card: &Card) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
    let (server_input, client_output) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", card.name)?;
    let (client_input, server_output) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", card.name)?;
    let capacity = set_capacity(&[&client_output, &client_input], params, card)?;
    let client = Fds { input: client_input, output: client_output };
    Ok((client, Fds { input: server_input, output: server_output }, vec![capacity]))
}

/// The pages that a new pipe has; two, where the pipes of its user have more than pipe-user-pages-soft together (pipe(7)).
const USUAL_PAGES: usize = 16;

/// Sets the capacity of `pipes`, if one is asked for (fcntl(2), `F_SETPIPE_SZ`). Returns what the smallest of them has.
pub(crate) fn set_capacity(pipes: &[&OwnedFd], params: &Params, card: &Card) -> Result<Setting, Failure> {
    let asked = params.size(card, CAPACITY.name);
    let mut least: Option<usize> = None;
    for pipe in pipes {
        if let Some(size) = asked {
            fcntl_setpipe_size(pipe, size.as_usize())
                .or_fail("fcntl(F_SETPIPE_SZ)", format!("{}:capacity={size}", card.name))?;
        }
        let got = fcntl_getpipe_size(pipe).or_fail("fcntl(F_GETPIPE_SZ)", card.name)?;
        least = Some(least.map_or(got, |least| least.min(got)));
    }
    let got = least.unwrap_or(0);
    Ok(Setting {
        name: "pipe capacity".to_owned(),
        asked: asked.map(|size| size.to_string()),
        got: got.to_string(),
        clamped: asked.is_some_and(|size| size.as_usize() != got),
        usual: asked.is_none().then(|| USUAL_PAGES.saturating_mul(page_size()).to_string()),
    })
}
