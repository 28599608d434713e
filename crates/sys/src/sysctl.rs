//! Limits of the running kernel in /proc/sys: read, never set.

/// The number at `path` in /proc/sys. `None` if this kernel does not have it (proc_sys(5)).
pub fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/{path}")).ok()?.trim().parse().ok()
}
