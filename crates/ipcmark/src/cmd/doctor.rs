//! `ipcmark doctor`: what on this host spoils or limits measurements, and the command that changes it.

use crate::cli::DoctorArguments;
use crate::exit::{Error, Exit};
use crate::output::{print, style};
use harness::clock::Calibration;
use harness::host::doctor::finding::{Finding, Severity};
use harness::host::doctor::rules::findings;
use std::path::Path;

/// Examines the host, which takes about a second, and prints what it found, the worst first.
pub fn run(arguments: DoctorArguments) -> Result<Exit, Error> {
    let root = Path::new("/");
    let host = harness::host::facts::read(root);
    let cpus: Vec<u32> = host.topology.cpus.iter().map(|cpu| cpu.id).collect();
    let readings = harness::host::speed::read(Calibration::choose(root).clock, &cpus);
    let mut found = findings(&host, &readings, root);
    found.sort_by_key(|finding| finding.severity);
    let text = if arguments.json {
        format!("{:#}\n", serde_json::json!(found))
    } else {
        found.iter().map(paragraph).collect::<Vec<_>>().join("\n")
    };
    print(&text)?;
    Ok(Exit::Success)
}

fn paragraph(finding: &Finding) -> String {
    let label = match finding.severity {
        Severity::Spoils => "spoils",
        Severity::Limits => "limits",
        Severity::Fine => "fine",
    };
    let mut text = format!("{label:<6}  {}: {}\n", finding.subject, finding.what);
    text += &report::wrapped(&finding.why, &style());
    if let Some(command) = &finding.command {
        let label = if finding.severity == Severity::Fine { "to change it" } else { "to fix it" };
        text += &format!("  {label}: {command}\n");
    }
    text
}
