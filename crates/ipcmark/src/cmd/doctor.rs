//! `ipcmark doctor`: what on this host spoils or limits measurements, and the command that changes it.

use crate::cli::DoctorArguments;
use crate::exit::{Error, Exit};
use crate::output::{show_answer, style};
use crate::remote::programs;
use crate::request::RemoteRequest;
use harness::clock::Calibration;
use harness::coordinator::remote::RemoteHost;
use harness::coordinator::via::Via;
use harness::host::doctor::finding::{Finding, Severity};
use harness::host::doctor::rules::findings;
use report::Format;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use sys::Failure;

/// Examines the host, which takes about a second, and prints what it found, the worst first; then the server's host likewise, if
/// there is a command that reaches it.
pub fn run(arguments: DoctorArguments) -> Result<Exit, Error> {
    const NEEDED: &[&str] = &[
        "clock_nanosleep",
        #[cfg(target_env = "gnu")]
        "clone3",
        "futex",
        "madvise",
        "prctl",
        "sched_getaffinity",
        "sched_setaffinity",
        "statx",
    ];
    sys::seccomp::require("examine this host", NEEDED)?;
    let root = Path::new("/");
    let host = harness::host::facts::read(root);
    let cpus: Vec<u32> = host.topology.cpus.iter().map(|cpu| cpu.id).collect();
    let readings = harness::host::speed::read(Calibration::choose(root).clock, &cpus);
    let mut found = findings(&host, &readings, root);
    found.sort_by_key(|finding| finding.severity);
    let here = found.iter().map(paragraph).collect::<Vec<_>>().join("\n");
    let Some(via) = &arguments.server_via else {
        show_answer(arguments.answer.format, &here, &found, &[])?;
        return Ok(Exit::Success);
    };
    let there = of_server(&Via::parse(via)?, &arguments)?;
    let found = json!({ "client": found, "server": there.findings });
    let text = format!("this host\n\n{here}\nthe server's host, by {via}\n\n{}", there.text);
    match arguments.answer.format {
        Format::Csv => show_answer(Format::Csv, &text, &of_sides(&found), &[])?,
        format => show_answer(format, &text, &found, &[])?,
    }
    Ok(Exit::Success)
}

/// The findings of both sides in one list, each with its side.
fn of_sides(found: &Value) -> Vec<Value> {
    let of_side = |side: &'static str| {
        let findings = found[side].as_array().into_iter().flatten().cloned();
        findings.map(move |mut finding| {
            finding["side"] = side.into();
            finding
        })
    };
    of_side("client").chain(of_side("server")).collect()
}

/// What the doctor of the server's host says.
#[derive(Default)]
struct OfServer {
    /// In words, where these are asked for.
    text: String,
    /// Or else as its document.
    findings: Value,
}

/// How long the server's host has to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

fn of_server(via: &Via, arguments: &DoctorArguments) -> Result<OfServer, Error> {
    let request = RemoteRequest {
        client: None,
        server: Some(via.clone()),
        server_address: None,
        program: arguments.via_program.clone(),
        push: false,
    };
    let interrupted = AtomicBool::new(false);
    let programs = programs(&request, via, &interrupted, &mut Vec::new())?;
    let server = RemoteHost::reach(via, &programs, ANSWER_WITHIN, None, &interrupted)?;
    let words = vec![server.program(), "doctor"];
    if matches!(arguments.answer.format, Format::Table | Format::Markdown) {
        return Ok(OfServer { text: via.output(&words)?, ..OfServer::default() });
    }
    let said = via.output(&[&words[..], &["--format", "json"]].concat())?;
    let findings = serde_json::from_str(&said).map_err(|error| {
        let next = "let both sides have the same ipcmark";
        Failure::new("read", "what the doctor of the server's host says", error.to_string(), next)
    })?;
    Ok(OfServer { findings, ..OfServer::default() })
}

fn paragraph(finding: &Finding) -> String {
    let label = match finding.severity {
        Severity::Spoils => "spoils",
        Severity::Limits => "limits",
        Severity::Fine => "fine",
    };
    let what = format!("{}: {}", finding.subject, finding.what);
    let mut text = report::wrapped_after(&format!("{label:<6}  "), &what, &style());
    text += &report::wrapped(&finding.why, &style());
    if let Some(command) = &finding.command {
        let label = if finding.severity == Severity::Fine { "to change it" } else { "to fix it" };
        text += &format!("  {label}: {command}\n");
    }
    text
}
