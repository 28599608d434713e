//! The queueing discipline of each network interface, as the kernel tells it over netlink (rtnetlink(7)). It changes none.

use super::files::{names, text};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use sys::Errno;

/// Of linux/netlink.h and linux/rtnetlink.h: message types, `NLM_F_REQUEST | NLM_F_DUMP`, the parent of a root, an attribute.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NEW_DISCIPLINE: u16 = 36;
const GET_DISCIPLINE: u16 = 38;
const DUMP: u16 = 0x301;
const ROOT: u32 = u32::MAX;
const KIND: u16 = 1;
/// `struct nlmsghdr`, `struct tcmsg` and `struct rtattr`.
const HEADER_BYTES: usize = 16;
const DISCIPLINE_BYTES: usize = 20;
const ATTRIBUTE_BYTES: usize = 4;
/// The kernel answers at once, or not at all.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The discipline at the root of each interface of this network namespace, by the names that are below `root`.
pub(super) fn disciplines(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let interfaces = "sys/class/net";
    let names = names(root, interfaces)?;
    let number =
        |name: &String| text(root, &format!("{interfaces}/{name}/ifindex")).ok()?.parse::<u32>().ok();
    let by_number: BTreeMap<u32, &String> =
        names.iter().filter_map(|name| Some((number(name)?, name))).collect();
    if !sys::seccomp::outlives(|| _ = ask()) {
        return Err(sys::seccomp::cause());
    }
    let kinds = ask().map_err(|errno| format!("netlink (RTM_GETQDISC): {errno}"))?;
    let named =
        kinds.into_iter().filter_map(|(number, kind)| Some(((*by_number.get(&number)?).clone(), kind)));
    Ok(named.collect())
}

/// The numbers of interfaces, each with the kind of its root.
fn ask() -> Result<Vec<(u32, String)>, Errno> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(TIMEOUT))?;
    let mut request = [0; HEADER_BYTES + DISCIPLINE_BYTES];
    request[..4].copy_from_slice(&((HEADER_BYTES + DISCIPLINE_BYTES) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&GET_DISCIPLINE.to_ne_bytes());
    request[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    send(&socket, &request, SendFlags::empty())?;
    let (mut found, mut answer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let (_, count) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
        if take(&answer[..count], &mut found)? {
            return Ok(found);
        }
    }
}

/// Takes the messages of one datagram, and says whether they were the last.
fn take(mut messages: &[u8], found: &mut Vec<(u32, String)>) -> Result<bool, Errno> {
    while let (Some(len_bytes), Some(kind)) = (u32_at(messages, 0), u16_at(messages, 4)) {
        let message = messages.get(HEADER_BYTES..len_bytes as usize).ok_or(Errno::PROTO)?;
        match kind {
            DONE => return Ok(true),
            ERROR => return Err(u32_at(message, 0).map_or(Errno::PROTO, refused)),
            NEW_DISCIPLINE => found.extend(discipline(message)),
            _ => {}
        }
        messages = messages.get((len_bytes as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(messages.is_empty() && found.is_empty())
}

/// The kernel answers with the negative of an error's number.
fn refused(answer: u32) -> Errno {
    Errno::from_raw_os_error(answer.cast_signed().wrapping_neg())
}

/// The number of the interface and the kind, of a discipline that is a root.
fn discipline(message: &[u8]) -> Option<(u32, String)> {
    let (interface, parent) = (u32_at(message, 4)?, u32_at(message, 12)?);
    let mut attributes = message.get(DISCIPLINE_BYTES..)?;
    while let (Some(len_bytes), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let len_bytes = usize::from(len_bytes);
        let value = attributes.get(ATTRIBUTE_BYTES..len_bytes)?;
        if kind == KIND {
            let text = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned();
            return (parent == ROOT).then_some((interface, text));
        }
        attributes = attributes.get(len_bytes.next_multiple_of(4)..)?;
    }
    None
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A discipline of `interface` below `parent`.
    fn message(kind: u16, interface: u32, parent: u32, name: &str) -> Vec<u8> {
        let mut attribute = ((ATTRIBUTE_BYTES + name.len() + 1) as u16).to_ne_bytes().to_vec();
        attribute.extend(KIND.to_ne_bytes());
        attribute.extend(name.bytes().chain([0]));
        attribute.resize(attribute.len().next_multiple_of(4), 0);
        let body = [[0; 4], interface.to_ne_bytes(), [0; 4], parent.to_ne_bytes(), [0; 4]].concat();
        let len_bytes = (HEADER_BYTES + body.len() + attribute.len()) as u32;
        let header = [len_bytes.to_ne_bytes().as_slice(), &kind.to_ne_bytes(), &[0; 10]].concat();
        [header, body, attribute].concat()
    }

    #[test]
    fn roots_are_taken_until_the_kernel_is_done() {
        let mut found = Vec::new();
        let first = [
            message(NEW_DISCIPLINE, 1, ROOT, "noqueue"),
            message(NEW_DISCIPLINE, 2, ROOT, "mq"),
            message(NEW_DISCIPLINE, 2, 1, "fq_codel"),
        ];
        assert_eq!(take(&first.concat(), &mut found), Ok(false));
        assert_eq!(take(&message(DONE, 0, 0, ""), &mut found), Ok(true));
        assert_eq!(found, [(1, "noqueue".to_owned()), (2, "mq".to_owned())]);
    }

    #[test]
    fn refusals_and_garbled_answers_are_no_disciplines() {
        let refusal = [
            20_u32.to_ne_bytes().to_vec(),
            ERROR.to_ne_bytes().to_vec(),
            vec![0; 10],
            (-1_i32).to_ne_bytes().to_vec(),
        ];
        assert_eq!(take(&refusal.concat(), &mut Vec::new()), Err(Errno::PERM));
        let whole = message(NEW_DISCIPLINE, 1, ROOT, "noqueue");
        for length in 0..whole.len() {
            let mut found = Vec::new();
            assert!(take(&whole[..length], &mut found).is_err() || found.is_empty(), "{length}");
        }
    }

    #[test]
    fn the_kernel_answers_for_this_namespace() {
        // Loopback has a discipline as soon as it is up; no other interface need exist.
        assert!(ask().is_ok());
    }
}
