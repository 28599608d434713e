//! What the hypervisor took of single CPUs, as the kernel counts it. Over all CPUs it is among the host's facts.

use model::CpuPair;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// What was stolen of the CPUs of `cpus` since boot, in nanoseconds, each counted once; `None` where `/proc/stat` does not say.
/// See `proc_stat(5)`. The kernel counts in clock ticks: most slices see none, and a few see one of 10 ms.
///
/// It is asked before and after each slice. The file stays open: what the kernel frees when it is closed would be in the slice.
pub(crate) fn stolen_ns(cpus: CpuPair) -> Option<u64> {
    static STAT: OnceLock<Option<File>> = OnceLock::new();
    let stat = STAT.get_or_init(|| File::open("/proc/stat").ok()).as_ref()?;
    let mut bytes = vec![0; LONGEST_BYTES];
    let read = stat.read_at(&mut bytes, 0).ok()?;
    stolen_in(&String::from_utf8_lossy(&bytes[..read]), cpus)
}

/// As much of the file is read: the lines of some hundred CPUs, which stand first.
const LONGEST_BYTES: usize = 64 << 10;

fn stolen_in(stat: &str, cpus: CpuPair) -> Option<u64> {
    let of_cpu = |cpu: u32| -> Option<u64> {
        let name = format!("cpu{cpu} ");
        let ticks = stat.lines().find_map(|line| line.strip_prefix(&name))?;
        ticks.split_whitespace().nth(7)?.parse().ok()
    };
    let server = if cpus.server == cpus.client { 0 } else { of_cpu(cpus.server)? };
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    Some((of_cpu(cpus.client)? + server) * tick_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stolen_ticks_of_the_cpus_in_use_are_added_up() {
        let stat = "cpu  1 2 3 4 5 6 7 900 0 0\ncpu0 1 2 3 4 5 6 7 3 0 0\ncpu1 1 2 3 4 5 6 7 5 0 0\ncpu10 1 1 1 1 1 1 1 100 0 0\n";
        let stolen_from = |client, server| stolen_in(stat, CpuPair { client, server });
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        assert_eq!((stolen_from(0, 0), stolen_from(1, 0)), (Some(3 * tick_ns), Some(8 * tick_ns)));
        assert_eq!(stolen_from(0, 2), None);
        let first = stolen_ns(CpuPair { client: 0, server: 0 });
        assert!(first.is_some() && stolen_ns(CpuPair { client: 0, server: 0 }) >= first);
    }
}
