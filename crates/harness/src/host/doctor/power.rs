//! Rules about power and frequency: what makes the speed of a CPU vary.

use super::finding::{Finding, Severity};
use super::here::Here;
use crate::host::files::names;
use crate::host::topology::CPUS;
use std::collections::BTreeSet;

/// Mice and headsets have batteries too; their scope is `Device`.
/// `Documentation/ABI/testing/sysfs-class-power`.
pub(super) fn battery(here: &Here<'_>) -> Option<Finding> {
    let supplies = "sys/class/power_supply";
    let discharges = |name: &String| {
        let says = |file: &str, word: &str| {
            here.text(&format!("{supplies}/{name}/{file}")).is_some_and(|text| text == word)
        };
        says("type", "Battery") && says("status", "Discharging") && !says("scope", "Device")
    };
    let name = names(here.root, supplies).ok()?.into_iter().find(discharges)?;
    let what = format!("the host runs on its battery ({name})");
    let why = "on battery, firmware and power daemons lower and vary the frequency; plug it in";
    Some(Finding::new(Severity::Spoils, "battery", what, why))
}

/// `Documentation/admin-guide/pm/cpufreq.rst`.
pub(super) fn governor(here: &Here<'_>) -> Option<Finding> {
    let setting = |cpu: u32, file: &str| here.text(&format!("{CPUS}/cpu{cpu}/cpufreq/{file}"));
    let governors: BTreeSet<String> =
        here.allowed().into_iter().filter_map(|cpu| setting(cpu, "scaling_governor")).collect();
    let varying: Vec<&str> = governors
        .iter()
        .map(String::as_str)
        .filter(|name| !["performance", "userspace"].contains(name))
        .collect();
    if governors.is_empty() {
        return None;
    }
    if varying.is_empty() {
        let all = governors.into_iter().collect::<Vec<_>>().join(", ");
        let what = format!("the frequency governor is {all}");
        return Some(Finding::new(
            Severity::Fine,
            "governor",
            what,
            "the frequency does not follow the load",
        ));
    }
    let available = here.allowed().first().and_then(|cpu| setting(*cpu, "scaling_available_governors"));
    let has_performance =
        available.is_some_and(|names| names.split_whitespace().any(|one| one == "performance"));
    let what = format!("the frequency governor is {}", varying.join(", "));
    let why = "the frequency follows the load: endpoints that wait run slower than endpoints that spin, and \
               the first iterations slower than the last";
    let command = has_performance.then(|| here.as_root("cpupower frequency-set -g performance"));
    Some(Finding::new(Severity::Spoils, "governor", what, why).mended_by(command))
}

/// `Documentation/admin-guide/pm/intel_pstate.rst`, "no_turbo"; `cpufreq.rst`, "boost".
pub(super) fn turbo(here: &Here<'_>) -> Option<Finding> {
    let switches =
        [(format!("{CPUS}/intel_pstate/no_turbo"), "0", "1"), (format!("{CPUS}/cpufreq/boost"), "1", "0")];
    let (path, _, off) =
        switches.iter().find(|(path, on, _)| here.text(path).is_some_and(|now| now == *on))?;
    let why = "the frequency depends on the temperature and on how many cores are busy, also with other work";
    let finding = Finding::new(Severity::Limits, "turbo", "turbo frequencies are allowed", why);
    Some(finding.mended_by(here.write(off, path)))
}

/// `Documentation/admin-guide/pm/cpuidle.rst`: `latency` is the time to leave the state, in microseconds.
pub(super) fn idle_states(here: &Here<'_>) -> Option<Finding> {
    const SLOW_US: u64 = 10;
    let directory = format!("{CPUS}/cpu{}/cpuidle", here.allowed().first()?);
    let slow = |state: &String| {
        let number_in = |file: &str| here.number::<u64>(&format!("{directory}/{state}/{file}"));
        number_in("latency").filter(|us| *us >= SLOW_US && number_in("disable") == Some(0))
    };
    let slowest = names(here.root, &directory).ok()?.iter().filter_map(slow).max()?;
    let what = format!("idle CPUs enter states that take up to {slowest} µs to leave");
    let why = "an endpoint that blocks is woken later the longer it has waited: slow peers look even slower. \
               It is a part of the cost on this host, and varies ('cpupower idle-set -E' allows them again)";
    let command = here.as_root(&format!("cpupower idle-set -D {SLOW_US}"));
    Some(Finding::new(Severity::Limits, "idle-states", what, why).mended_by(command))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{AS_IS, assert_finds, finding};
    use super::*;

    #[test]
    fn a_battery_counts_when_it_discharges_and_is_the_hosts() {
        let supply = |status, scope| {
            [
                ("sys/class/power_supply/BAT0/type", "Battery\n"),
                ("sys/class/power_supply/BAT0/status", status),
                ("sys/class/power_supply/BAT0/scope", scope),
            ]
        };
        let found = finding(battery, AS_IS, &supply("Discharging\n", "System\n"));
        assert_finds(found, Severity::Spoils, "(BAT0)", None);
        assert_eq!(finding(battery, AS_IS, &supply("Charging\n", "System\n")), None);
        assert_eq!(finding(battery, AS_IS, &supply("Discharging\n", "Device\n")), None);
    }

    #[test]
    fn one_varying_governor_spoils() {
        let governors = |second, available| {
            [
                ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
                ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", second),
                ("sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors", available),
            ]
        };
        let command = Some("sudo cpupower frequency-set -g performance");
        let found = finding(governor, AS_IS, &governors("schedutil\n", "performance schedutil\n"));
        assert_finds(found, Severity::Spoils, "governor is schedutil", command);
        let found = finding(governor, AS_IS, &governors("schedutil\n", "schedutil\n"));
        assert_finds(found, Severity::Spoils, "schedutil", None);
        let found = finding(governor, AS_IS, &governors("performance\n", "performance\n"));
        assert_finds(found, Severity::Fine, "performance", None);
    }

    #[test]
    fn turbo_is_switched_where_the_driver_has_its_switch() {
        let intel = |now| [("sys/devices/system/cpu/intel_pstate/no_turbo", now)];
        let command = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo";
        assert_finds(finding(turbo, AS_IS, &intel("0\n")), Severity::Limits, "allowed", Some(command));
        assert_eq!(finding(turbo, AS_IS, &intel("1\n")), None);
        let other = |now| [("sys/devices/system/cpu/cpufreq/boost", now)];
        let command = "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost";
        assert_finds(finding(turbo, AS_IS, &other("1\n")), Severity::Limits, "allowed", Some(command));
        assert_eq!(finding(turbo, AS_IS, &other("0\n")), None);
    }

    #[test]
    fn slow_idle_states_count_unless_disabled() {
        let state = |latency, disable| {
            [
                ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "1\n"),
                ("sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "0\n"),
                ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", latency),
                ("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", disable),
            ]
        };
        let command = Some("sudo cpupower idle-set -D 10");
        assert_finds(
            finding(idle_states, AS_IS, &state("133\n", "0\n")),
            Severity::Limits,
            "133 µs",
            command,
        );
        assert_eq!(finding(idle_states, AS_IS, &state("133\n", "1\n")), None);
        assert_eq!(finding(idle_states, AS_IS, &state("2\n", "0\n")), None);
    }
}
