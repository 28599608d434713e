//! Lists of CPUs in the kernel's form, `0-3,8`: the only place that reads and writes them. It asks no kernel which CPUs there are.

use std::collections::BTreeSet;

/// More than any kernel is built for (`NR_CPUS` is at most 8192), so that a garbled range cannot fill memory.
const HIGHEST_CPU: u32 = 65_535;

/// The CPUs of a list in the kernel's form, `0-3,8,10-11`, ascending, each once. An empty list names none.
///
/// The form is that of `cpuset(7)`, "List format". Anything else is refused as a whole: half of a list would
/// put CPUs where they are not.
pub fn parse_cpulist(list: &str) -> Result<Vec<u32>, String> {
    let list = list.trim();
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let refuse = || format!("'{}' is not a list of CPUs", list.escape_debug());
    let number = |text: &str| {
        // `parse` would take a sign too.
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|&id| plain && id <= HIGHEST_CPU).ok_or_else(refuse)
    };
    let mut cpus = BTreeSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (number(first)?, number(last)?);
        if first > last {
            return Err(refuse());
        }
        cpus.extend(first..=last);
    }
    Ok(cpus.into_iter().collect())
}

/// The list of `cpus`, which ascend, in the kernel's form: `0-3,8`. The inverse of [`parse_cpulist`].
pub fn format_cpulist(cpus: &[u32]) -> String {
    let runs: Vec<String> = cpus
        .chunk_by(|a, b| a + 1 == *b)
        .filter_map(|run| match (run.first()?, run.last()?) {
            (first, last) if first == last => Some(first.to_string()),
            (first, last) => Some(format!("{first}-{last}")),
        })
        .collect();
    runs.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_in_the_kernels_form() {
        assert_eq!(parse_cpulist("0-3,8,10-11\n"), Ok(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse_cpulist("7,0,7\n"), Ok(vec![0, 7]));
        assert_eq!(parse_cpulist("\n"), Ok(vec![]));
    }

    #[test]
    fn garbage_is_refused_as_a_whole() {
        let garbage =
            ["(null)", "3-1", "0-", "-1", "1,,2", "0-4294967295", "99999999999", "+1", "0x3", "0 1"];
        for list in garbage {
            assert!(parse_cpulist(list).is_err(), "{list}");
        }
    }

    #[test]
    fn lists_survive_being_written() {
        for list in ["", "0", "0-3,8,10-11", "1,3,5"] {
            assert_eq!(parse_cpulist(list).map(|cpus| format_cpulist(&cpus)), Ok(list.to_owned()));
        }
    }
}
