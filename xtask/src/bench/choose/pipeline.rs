//! `tar | gzip | wc -c`: what a first pipe of another capacity would give is predicted, and then tried.

use super::program::{Program, is_here, tried};
use crate::bench::ipcmark::Ipcmark;
use model::Scenario;
use model::scenario::Flow;
use rustix::pipe::{fcntl_setpipe_size, pipe};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What is packed.
const DIRECTORY: &str = "/usr/share/doc";
/// The capacity of the first pipe, before and after, in bytes.
const CAPACITIES: [usize; 2] = [65_536, 4096];

/// Prints one line: the rate of the pipeline.
pub(super) fn run(ipcmark: &Ipcmark) -> Result<(), String> {
    if let Some(missing) = ["tar", "gzip", "wc"].iter().find(|program| !is_here(program, "--version")) {
        println!("pipeline: {missing} is missing; on Debian: apt-get install tar gzip coreutils");
        return Ok(());
    }
    tried(ipcmark, &Pipeline)
}

struct Pipeline;

impl Program for Pipeline {
    fn name(&self) -> String {
        format!("tar, gzip, wc: first pipe of {} bytes", CAPACITIES[1])
    }

    fn is_exchanged(&self, scenario: &Scenario, flow: &Flow) -> bool {
        scenario.processes[flow.from].name.starts_with("tar")
    }

    fn after(&self) -> &str {
        "pipe:capacity=4K"
    }

    fn record(&self, ipcmark: &Ipcmark, file: &Path) -> Result<(), String> {
        // What is packed is in memory in all runs, also in the one that is recorded.
        self.rate(false)?;
        let mut record = Command::new(&ipcmark.program);
        record.args(["record", "--time", "60s", "-o"]).arg(file).args(["--", "sh", "-c"]);
        record.arg(format!("tar -cf - {DIRECTORY} 2>/dev/null | gzip -1 | wc -c"));
        ipcmark.said_by(&mut record).map(drop)
    }

    fn rate(&self, is_after: bool) -> Result<f64, String> {
        let io = |error: std::io::Error| error.to_string();
        let (gzip_end, tar_end) = pipe().map_err(|error| error.to_string())?;
        fcntl_setpipe_size(&tar_end, CAPACITIES[usize::from(is_after)])
            .map_err(|error| format!("F_SETPIPE_SZ: {error}"))?;
        let began = Instant::now();
        let mut tar = Command::new("tar");
        tar.args(["-cf", "-", DIRECTORY]).stderr(Stdio::null()).stdout(Stdio::from(tar_end));
        let mut tar_child = tar.spawn().map_err(io)?;
        // It holds the writing end, which gzip must see closed.
        drop(tar);
        let mut gzip = Command::new("gzip");
        gzip.arg("-1").stdin(Stdio::from(gzip_end)).stdout(Stdio::piped());
        let mut gzip_child = gzip.spawn().map_err(io)?;
        let Some(packed) = gzip_child.stdout.take() else { return Err("gzip has no output".to_owned()) };
        let wc = Command::new("wc").arg("-c").stdin(packed).stdout(Stdio::piped()).spawn().map_err(io)?;
        wc.wait_with_output().map_err(io)?;
        let seconds = began.elapsed().as_secs_f64();
        tar_child.wait().and_then(|_| gzip_child.wait()).map_err(io)?;
        Ok(1.0 / seconds)
    }
}
