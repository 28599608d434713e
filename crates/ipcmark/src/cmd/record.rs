//! `ipcmark record`: from processes that run to the scenario that they are, its file and its pictures.

use crate::cli::RecordArguments;
use crate::derived_file::{self, Existing};
use crate::exit::{Error, Exit};
use crate::output::{command, print, show_answer, style};
use crate::session::watch_signals;
use analysis::recording::{AnalysedScenario, scenario_of, slowdown};
use mechanisms::registry::CARDS;
use model::Scenario;
use model::scenario::Recording;
use observe::recorder::{RecordBy, RecorderOutcome, RecorderTarget, record};
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::Ordering;
use sys::Failure;

/// What a process may be called in the name of a scenario.
const LONGEST_NAME: usize = 60;

/// Records, writes what is asked for, and shows a summary. A command that still runs is waited for afterwards.
pub fn run(arguments: RecordArguments) -> Result<Exit, Error> {
    let target = match arguments.pids.is_empty() {
        true => RecorderTarget::Command(arguments.command.iter().map(OsString::from).collect()),
        false => RecorderTarget::Processes(arguments.pids.clone()),
    };
    let existing = Existing::from(arguments.page.existing);
    let files = arguments.output.iter().chain(&arguments.svg).chain(&arguments.page.html);
    files.clone().try_for_each(|path| derived_file::check(path, existing))?;
    let (name, what) = names(&arguments);
    let stop = watch_signals()?;
    let outcome = record(&target, arguments.by, arguments.time, &|| stop.load(Ordering::Relaxed))?;
    let RecorderOutcome { communication, by, stretches, child, started } = outcome;
    if !started {
        return Err(Error::AlreadySaid);
    }
    let mut recorded = Recording {
        command: what,
        seconds: communication.seconds(),
        by: by.to_string(),
        host: host(),
        slowdown: None,
        slowdown_interval: None,
        unseen: Vec::new(),
    };
    recorded.unseen.extend(not_known_by(by).map(str::to_owned));
    if by != RecordBy::Ptrace {
        match slowdown(&stretches) {
            Ok(found) => {
                recorded.slowdown = Some(found.mean);
                recorded.slowdown_interval = found.interval.map(|(low, high)| [low, high]);
            }
            Err(why) => recorded.unseen.push(why),
        }
    }
    let made = scenario_of(communication, &name, recorded, CARDS);
    let shown = match &made {
        Ok(scenario) => show(&arguments, scenario),
        Err(invalid) => Err(Failure::new("record", &name, &invalid.problem, &invalid.remedy).into()),
    };
    // The command is not ended for the recording's sake. Where Ctrl-C ended the recording, the command got it too.
    if let Some(mut child) = child {
        let _ = child.wait();
    }
    shown?;
    Ok(if stop.load(Ordering::Relaxed) { Exit::Interrupted } else { Exit::Success })
}

/// What is not known of any program where calls are recorded so.
fn not_known_by(by: RecordBy) -> Option<&'static str> {
    match by {
        RecordBy::Bpf => None,
        RecordBy::Tracepoints => Some(
            "by tracepoints, it is not known to what descriptors refer that a process had before (--pid), opened by a path, or has from \
             socket(2) and accept(2), what buffers a program has set, in what memory futexes lie, and who has the other end of what \
             was not recorded: none of that is in a flow; --by bpf tells it",
        ),
        RecordBy::Ptrace => Some(
            "by ptrace, every call is many times slower, and CPU time and sleep are not distinguished: work is the time outside of calls, \
             and what recording cost is not known. Nor is to what descriptors refer that a process with several threads has from \
             before, from a path, socket(2) or accept(2), and who has the other end of what was not recorded; --by bpf tells it",
        ),
    }
}

/// Writes the files that are asked for, and prints the summary.
fn show(arguments: &RecordArguments, scenario: &Scenario) -> Result<(), Error> {
    // What is written is what can be read: nothing else may ever be in a file.
    let text = scenario.to_toml();
    Scenario::parse(&text, CARDS)
        .map_err(|invalid| Failure::new("write", "the scenario", invalid.problem, "report this bug"))?;
    let (analysed, existing) =
        (AnalysedScenario::from_scenario(scenario), Existing::from(arguments.page.existing));
    let mut wrote = String::new();
    if let Some(path) = &arguments.output {
        derived_file::write(path, text.as_bytes(), existing)?;
        wrote += &format!("wrote {}, {} bytes\n", path.display(), text.len());
    }
    let pictures = [
        (&arguments.svg, report::recording_svg as fn(&AnalysedScenario) -> String),
        (&arguments.page.html, |analysed: &AnalysedScenario| report::recording_html(analysed, &command())),
    ];
    for (path, make) in pictures {
        if let Some(path) = path {
            let content = make(&analysed);
            derived_file::write(path, content.as_bytes(), existing)?;
            wrote += &format!("wrote {}, {} bytes\n", path.display(), content.len());
        }
    }
    let document: serde_json::Value = toml::from_str(&text)
        .map_err(|error| Failure::new("write", "the scenario", error.to_string(), "report this bug"))?;
    show_answer(arguments.answer.format, &report::recording(&analysed, &style()), &document, &["flow"])?;
    // Standard output may be read by a program.
    if arguments.answer.format == report::Format::Table { print(&wrote) } else { Ok(()) }
}

/// What the scenario is called, and what was recorded.
fn names(arguments: &RecordArguments) -> (String, String) {
    let pids = || arguments.pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match arguments.command.first() {
        Some(program) => {
            let base = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
            (base.chars().take(LONGEST_NAME).collect(), arguments.command.join(" "))
        }
        None => {
            // They may be gone afterwards.
            let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let mut names: Vec<String> =
                arguments.pids.iter().map(|pid| name(pid).trim_end_matches('\n').to_owned()).collect();
            names.sort_unstable();
            names.dedup();
            (names.join(" and ").chars().take(LONGEST_NAME).collect(), format!("--pid {}", pids()))
        }
    }
}

/// Kernel and processor of this host.
fn host() -> String {
    let host = harness::host::facts::read(Path::new("/"));
    let parts = [&host.kernel, &host.cpu].into_iter().filter_map(|fact| fact.known().cloned());
    parts.collect::<Vec<_>>().join(", ")
}
