//! Files of the kernel, read below a root, which is `/` but in tests. What they mean is for others to say.

use std::io::ErrorKind;
use std::path::Path;

/// What the file at `path`, relative to `root`, says, or why it says nothing.
///
/// White space around it is dropped, and NUL bytes too: some kernels end a node's `cpulist` with one.
pub(crate) fn text(root: &Path, path: &str) -> Result<String, String> {
    match std::fs::read(root.join(path)) {
        Ok(bytes) => {
            let padding = |c: char| c.is_whitespace() || c == '\0';
            Ok(String::from_utf8_lossy(&bytes).trim_matches(padding).to_owned())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(format!("/{path}: no such file")),
        Err(error) => Err(format!("/{path}: {error}")),
    }
}

/// The names in the directory at `path`, relative to `root`, sorted.
pub(crate) fn names(root: &Path, path: &str) -> Result<Vec<String>, String> {
    let refuse = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => format!("/{path}: no such directory"),
        _ => format!("/{path}: {error}"),
    };
    let entries = std::fs::read_dir(root.join(path)).map_err(refuse)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<Result<_, _>>().map_err(refuse)?;
    names.sort_unstable();
    Ok(names)
}

/// The values of `key` in `/proc/cpuinfo`, one a CPU where the kernel gives it for each.
pub(crate) fn cpuinfo<'a>(cpuinfo: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    cpuinfo.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value.trim())
    })
}

/// An entry of `/proc/meminfo`, which is in KiB whatever it says: `proc_meminfo(5)`.
pub(crate) fn meminfo_bytes(root: &Path, key: &str) -> Result<u64, String> {
    let info = text(root, "proc/meminfo")?;
    let value = info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let kib = value.and_then(|value| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.and_then(|kib| kib.checked_mul(1024)).ok_or_else(|| format!("/proc/meminfo: no {key}"))
}

/// Processor time since boot in clock ticks, summed over all CPUs.
pub(crate) struct Ticks {
    pub(crate) steal: u64,
    pub(crate) busy: u64,
    pub(crate) idle: u64,
}

impl Ticks {
    pub(crate) fn read(root: &Path) -> Option<Self> {
        let stat = text(root, "proc/stat").ok()?;
        let cpu = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = cpu.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        // Guest time, in the columns after steal, is part of user and nice already.
        let &[user, nice, system, idle, iowait, irq, softirq, steal] = ticks.first_chunk()?;
        Some(Ticks { steal, busy: user + nice + system + irq + softirq, idle: idle + iowait })
    }
}
