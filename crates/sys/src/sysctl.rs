//! Limits of the running kernel in /proc/sys: read, never set.

/// The number at `path` in /proc/sys. `None` if this kernel does not have it (proc_sys(5)).
pub fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/{path}")).ok()?.trim().parse().ok()
}

/// The last of several numbers at `path`, as of `net/ipv4/tcp_wmem`, where it is the greatest (tcp(7)).
pub fn last_number(path: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/{path}")).ok()?.split_whitespace().last()?.parse().ok()
}
