//! `tar | gzip | wc -c`: what pipes of another capacity would give is predicted, and then tried.

use super::costs::{compared, measure_costs, predicted};
use crate::bench::ipcmark::Ipcmark;
use rustix::pipe::{fcntl_setpipe_size, pipe};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// What is packed.
const DIRECTORY: &str = "/usr/share/doc";
/// What is exchanged: the capacity of the first pipe, in bytes.
const CAPACITIES: [usize; 2] = [65_536, 4096];
const PAIRS: usize = 4;
/// What tar writes at once, and gzip.
const TAR_BYTES: u64 = 10_240;
const GZIP_BYTES: u64 = 16_384;

/// Prints one line: the rate of the pipeline.
pub(super) fn run(ipcmark: &Ipcmark) -> Result<(), String> {
    let is_here =
        |program: &&str| Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if let Some(missing) = ["tar", "gzip", "wc"].iter().find(|program| !is_here(program)) {
        println!("pipeline: {missing} is missing; on Debian: apt-get install tar gzip coreutils");
        return Ok(());
    }
    println!(
        "tar {DIRECTORY} | gzip | wc -c: the first pipe of {} bytes, and of {}",
        CAPACITIES[0], CAPACITIES[1]
    );
    let first = tried(CAPACITIES[0])?;
    let file = ipcmark.file("pipeline").with_extension("toml");
    std::fs::write(&file, scenario(&first)).map_err(|error| format!("{}: {error}", file.display()))?;
    let exchanged = format!("pipe:capacity={}", CAPACITIES[1]);
    measure_costs(ipcmark, &["pipe", &exchanged], "10K,16K", 40)?;
    let found = predicted(ipcmark, &file, &[format!("archive={exchanged}")], &[])?;
    let mut ratios = Vec::new();
    for _ in 0..PAIRS {
        let [before, after] = CAPACITIES.map(|capacity| tried(capacity).map(|tried| tried.seconds));
        ratios.push(before? / after?);
    }
    println!("| pipeline | predicted | measured | |\n| --- | --- | --- | --- |");
    println!("{}", compared("bytes a second", &found["prediction"]["flows"][0]["per_s"], &ratios));
    Ok(())
}

/// What a run of the pipeline took.
struct Tried {
    seconds: f64,
    /// The CPU time of tar, gzip and wc, in seconds.
    cpu_s: [f64; 3],
    archive_bytes: u64,
    packed_bytes: u64,
}

/// Runs it with a first pipe of `capacity` bytes.
fn tried(capacity: usize) -> Result<Tried, String> {
    let io = |error: std::io::Error| error.to_string();
    let (tar_end, gzip_end) = pipe().map(|(read, write)| (write, read)).map_err(|error| error.to_string())?;
    fcntl_setpipe_size(&tar_end, capacity).map_err(|error| format!("F_SETPIPE_SZ: {error}"))?;
    let began = Instant::now();
    let mut tar = Command::new("tar");
    let tar = tar
        .args(["-cf", "-", DIRECTORY])
        .stderr(Stdio::null())
        .stdout(Stdio::from(tar_end))
        .spawn()
        .map_err(io)?;
    let mut gzip = Command::new("gzip");
    let mut gzip = gzip.arg("-1").stdin(Stdio::from(gzip_end)).stdout(Stdio::piped()).spawn().map_err(io)?;
    let Some(packed) = gzip.stdout.take() else { return Err("gzip has no output".to_owned()) };
    let wc = Command::new("wc").arg("-c").stdin(packed).stdout(Stdio::piped()).spawn().map_err(io)?;
    let mut cpu_s = [0.0; 3];
    cpu_s[0] = ended(tar)?.0;
    let seconds_of_gzip = ended(gzip)?;
    cpu_s[1] = seconds_of_gzip.0;
    let (of_wc, counted) = ended(wc)?;
    cpu_s[2] = of_wc;
    let seconds = began.elapsed().as_secs_f64();
    let packed_bytes = counted.trim().parse().map_err(|_| format!("wc says {counted}"))?;
    Ok(Tried { seconds, cpu_s, archive_bytes: archive_bytes()?, packed_bytes })
}

/// Waits for `child`: its CPU time, from what all ended children have used, and what it printed.
fn ended(child: Child) -> Result<(f64, String), String> {
    let before = children_cpu_s();
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    Ok((children_cpu_s() - before, String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// The CPU time of all children that have ended, in seconds (proc_pid_stat(5), fields 16 and 17).
fn children_cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(13) + ticks(14)) / 100.0
}

/// How long the archive is.
fn archive_bytes() -> Result<u64, String> {
    let count = format!("tar -cf - {DIRECTORY} 2>/dev/null | wc -c");
    let output = Command::new("sh").args(["-c", &count]).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| format!("wc says {text}"))
}

/// The pipeline as a scenario: the CPU time of each program is divided among its messages.
fn scenario(tried: &Tried) -> String {
    let archive = (tried.archive_bytes / TAR_BYTES).max(1) as f64;
    let packed = (tried.packed_bytes / GZIP_BYTES).max(1) as f64;
    let each_ns = |seconds: f64, messages: f64| (seconds * 1e9 / messages) as u64;
    format!(
        "name = \"pipeline\"\nsummary = \"tar, gzip and wc\"\n[[process]]\nname = \"tar\"\n[[process]]\nname = \"gzip\"\n[[process]]\n\
         name = \"wc\"\n[[flow]]\nname = \"archive\"\nfrom = \"tar\"\nto = \"gzip\"\nmechanism = \"pipe\"\nsize = \"{TAR_BYTES}\"\n\
         client_work = \"{}ns\"\nserver_work = \"{}ns\"\n[flow.recorded]\nmessages = {archive:.0}\nper_s = {}\nclient_waited = 0.0\n\
         server_waited = 0.0\npartial_reads = 0.0\n[[flow]]\nname = \"packed\"\nfrom = \"gzip\"\nto = \"wc\"\nmechanism = \"pipe\"\n\
         size = \"{GZIP_BYTES}\"\nafter = \"archive\"\nper_message = {}\nserver_work = \"{}ns\"\n",
        each_ns(tried.cpu_s[0], archive),
        each_ns(tried.cpu_s[1], archive),
        archive / tried.seconds,
        packed / archive,
        each_ns(tried.cpu_s[2], packed)
    )
}
