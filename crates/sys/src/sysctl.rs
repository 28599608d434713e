//! Limits that the running kernel keeps in /proc/sys. Reads only.

/// The number at `path` in /proc/sys, where the kernel has it (proc_sys(5)).
pub fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/{path}")).ok()?.trim().parse().ok()
}
