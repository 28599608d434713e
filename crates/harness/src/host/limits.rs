//! How much a container, or a limit of the user, leaves to a run: processes and memory. What to do with that is for others.

use super::files::{names, text};
use rustix::process::{Resource, geteuid, getrlimit};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How many more processes this one may start; `None` where nothing limits them.
pub(crate) fn free_processes(root: &Path) -> Option<u64> {
    let in_cgroup = least(root, "pids", |at| {
        let most = number(root, &format!("{at}/pids.max"))?;
        Some(most.saturating_sub(number(root, &format!("{at}/pids.current")).unwrap_or(0)))
    });
    in_cgroup.into_iter().chain(free_of_user(root)).min()
}

/// How much memory the control group of this process may have; `None` where nothing limits it.
pub(crate) fn memory_bytes(root: &Path) -> Option<u64> {
    least(root, "memory", |at| {
        ["memory.max", "memory.limit_in_bytes"]
            .into_iter()
            .find_map(|file| number(root, &format!("{at}/{file}")))
    })
}

/// How many CPUs' time the control group of this process may have; `None` where nothing limits it.
pub(crate) fn cpus(root: &Path) -> Option<f64> {
    /// `least` compares whole numbers.
    const MILLIS: u64 = 1000;
    let millis = least(root, "cpu", |at| {
        let (quota, period) = match text(root, &format!("{at}/cpu.max")) {
            Ok(max) => {
                max.split_once(' ').map(|(quota, period)| (quota.parse().ok(), period.parse().ok()))?
            }
            Err(_) => (
                number(root, &format!("{at}/cpu.cfs_quota_us")),
                number(root, &format!("{at}/cpu.cfs_period_us")),
            ),
        };
        let (quota, period): (u64, u64) = (quota?, period?);
        (quota.saturating_mul(MILLIS)).checked_div(period)
    });
    millis.map(|millis| millis as f64 / MILLIS as f64)
}

/// How many processes the control group of this process may have; `None` where nothing limits it.
pub(crate) fn processes(root: &Path) -> Option<u64> {
    least(root, "pids", |at| number(root, &format!("{at}/pids.max")))
}

/// What is left of the processes that this user may have (getrlimit(2), `RLIMIT_NPROC`). It does not limit root.
fn free_of_user(root: &Path) -> Option<u64> {
    let most = getrlimit(Resource::Nproc).current.filter(|_| !geteuid().is_root())?;
    let is_own = |pid: &&String| {
        let process = root.join("proc").join(pid);
        process.metadata().is_ok_and(|found| found.uid() == geteuid().as_raw())
    };
    let all = names(root, "proc").ok()?;
    let processes = all.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    Some(most.saturating_sub(processes.filter(is_own).count() as u64))
}

/// The least that `limit` finds in the control group of this process and those around it, in either version (cgroups(7)).
fn least(root: &Path, controller: &str, limit: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let own = text(root, "proc/self/cgroup").ok()?;
    let mut found = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let mount = match controllers {
            "" => "sys/fs/cgroup".to_owned(),
            controllers if controllers.split(',').any(|name| name == controller) => {
                format!("sys/fs/cgroup/{controller}")
            }
            _ => continue,
        };
        // Where a container sees its own group at the mount, the path may not exist there.
        let groups = Path::new(path).ancestors().map(|group| group.display().to_string());
        found.extend(groups.filter_map(|group| limit(&format!("{mount}{}", group.trim_end_matches('/')))));
    }
    found.into_iter().min()
}

/// The number in the file at `path`; `None` where there is none, or it says `max`.
fn number(root: &Path, path: &str) -> Option<u64> {
    text(root, path).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        root
    }

    #[test]
    fn the_least_of_all_groups_around_counts_in_either_version() {
        let unified = host(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/pids.max", "16\n"),
            ("sys/fs/cgroup/a/pids.current", "3\n"),
            ("sys/fs/cgroup/a/b/pids.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.max", "67108864\n"),
            ("sys/fs/cgroup/a/memory.max", "max\n"),
        ]);
        let pids = least(unified.path(), "pids", |at| number(unified.path(), &format!("{at}/pids.max")));
        assert_eq!((pids, memory_bytes(unified.path())), (Some(16), Some(64 << 20)));
        assert!(free_processes(unified.path()).is_some_and(|free| free <= 13));

        let separate = host(&[
            ("proc/self/cgroup", "9:cpu,cpuacct:/x\n4:memory:/docker/1\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n"),
        ]);
        assert_eq!(memory_bytes(separate.path()), Some(1000));
        assert_eq!(memory_bytes(host(&[]).path()), None);
    }
}
