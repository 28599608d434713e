//! What `ipcmark try` is asked for: from arguments to the programs, their exchanges and their numbers.

use crate::cli::TryArguments;
use crate::try_metric::PrintedMetric;
use exchange::ProgramExchange;
use harness::programs::Programs;
use harness::programs::ready::{Ready, words};
use model::invalid::printable;
use model::{Invalid, Percent};
use observe::recorder::privileged;
use std::ffi::OsString;
use std::time::Duration;
use sys::seccomp_listener::keeps_rights;

/// What is tried.
#[derive(Debug)]
pub struct TryRequest {
    /// The servers, and the command that is run again and again.
    pub programs: Programs,
    /// What each variant exchanges; empty: it is to be found out.
    pub variants: Vec<Vec<ProgramExchange>>,
    /// The numbers that the command prints.
    pub metrics: Vec<PrintedMetric>,
    /// How long it may take.
    pub time: Duration,
    /// What is no change.
    pub margin: Percent,
}

/// Refuses a program that its file gives rights, where the kernel would not give them under a filter (execve(2), `PR_SET_NO_NEW_PRIVS`).
fn check_rights(command: &[OsString]) -> Result<(), Invalid> {
    let file = command.first().filter(|_| !keeps_rights()).and_then(|word| privileged::program(word));
    match file.filter(|file| privileged::gives_rights(file)) {
        None => Ok(()),
        Some(file) => Err(Invalid::new(
            format!("{} gets rights from its file (setuid), which it would lose here", file.display()),
            "try it as root, or as the user whose rights it gets",
        )),
    }
}

/// What runs already cannot be exchanged: how it is started so that it can.
fn runs_already(pid: u32) -> Invalid {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> = bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let problem = format!("process {pid} runs already, and only what is started here can be exchanged");
    match shlex::try_join(words.iter().map(String::as_str)) {
        Ok(line) if !words.is_empty() => {
            let server = shlex::try_quote(&line).map(|quoted| printable(&quoted)).unwrap_or_default();
            Invalid::new(problem, format!("end it, and type: ipcmark try --server {server} -- COMMAND"))
        }
        _ => Invalid::new(format!("there is no process {pid}, or it may not be looked at"), "name another"),
    }
}

impl TryRequest {
    /// What `arguments` ask for.
    pub fn new(arguments: TryArguments) -> Result<Self, Invalid> {
        if let Some(pid) = arguments.pid {
            return Err(runs_already(pid));
        }
        let TryArguments { servers, ready, exchanges, metrics, time, timeout, margin, command, .. } =
            arguments;
        let servers: Vec<Vec<OsString>> =
            servers.iter().map(|server| words(server)).collect::<Result<_, _>>()?;
        if servers.is_empty() && ready.is_some() {
            return Err(Invalid::new(
                "--ready is of servers, and there is none",
                "name one with --server, or leave out --ready",
            ));
        }
        let variant = |text: &String| -> Result<Vec<ProgramExchange>, Invalid> {
            let exchanges: Vec<ProgramExchange> =
                text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
            if exchanges.is_empty() {
                return Err(Invalid::new("--set '' exchanges nothing", "give it as tcp:7777=unix-stream"));
            }
            Ok(exchanges)
        };
        let ready = ready.unwrap_or(Ready::Listening);
        let command: Vec<OsString> = command.into_iter().map(OsString::from).collect();
        let asked = if let Ready::Command(asked) = &ready { Some(asked) } else { None };
        servers.iter().chain([&command]).chain(asked).try_for_each(|command| check_rights(command))?;
        Ok(Self {
            programs: Programs { servers, ready, command, timeout },
            variants: exchanges.iter().map(variant).collect::<Result<_, _>>()?,
            metrics,
            time,
            margin,
        })
    }
}
