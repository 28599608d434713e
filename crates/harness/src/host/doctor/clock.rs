//! Rules about clocks: what readings cost, and how CPU time is accounted.

use super::finding::{Finding, Severity};
use super::here::{Here, family, without_tick};
use crate::host::files::cpuinfo;
use model::units::format_ns;

/// Which sources `clock_gettime(2)` reads without entering the kernel: `vdso(7)` and the clock source drivers.
pub(super) fn clock_source(here: &Here<'_>) -> Option<Finding> {
    let directory = "sys/devices/system/clocksource/clocksource0";
    let source = here.host.clocksource.known()?.as_str();
    let what = format!("the clock source is {source}");
    let (severity, why) = match source {
        "tsc" | "arch_sys_counter" | "timebase" | "tod" | "riscv_clocksource" => {
            let why = "clock_gettime reads a counter of the processor without entering the kernel";
            return Some(Finding::new(Severity::Fine, "clock-source", what, why));
        }
        "hpet" | "acpi_pm" | "pit" | "jiffies" | "refined-jiffies" | "hyperv_clocksource_msr" => (
            Severity::Spoils,
            "every clock reading is a system call that asks a slow device, or steps by a whole tick",
        ),
        _ => (
            Severity::Limits,
            "clock readings cost more than those of the processor's counter, and may enter the kernel",
        ),
    };
    let available = here.text(&format!("{directory}/available_clocksource")).unwrap_or_default();
    let has_tsc = available.split_whitespace().any(|one| one == "tsc");
    let command = has_tsc.then(|| here.write("tsc", &format!("{directory}/current_clocksource")));
    Some(Finding::new(severity, "clock-source", what, why).mended_by(command))
}

pub(super) fn tsc(here: &Here<'_>) -> Option<Finding> {
    let info = here.text("proc/cpuinfo")?;
    let flags: Vec<&str> = cpuinfo(&info, "flags").next()?.split_whitespace().collect();
    let lacking: Vec<&str> =
        ["constant_tsc", "nonstop_tsc"].into_iter().filter(|flag| !flags.contains(flag)).collect();
    if lacking.is_empty() {
        return None;
    }
    let what = format!("the time-stamp counter is not {}", lacking.join(", nor "));
    let why = "it cannot time iterations: its rate follows the frequency, or it stops in idle states. The clock is \
               then clock_gettime, which costs more";
    Some(Finding::new(Severity::Limits, "tsc", what, why))
}

/// `VIRT_CPU_ACCOUNTING_GEN` counts every change of mode, but only on CPUs without tick;
/// `VIRT_CPU_ACCOUNTING_NATIVE` of POWER and s390 does on all, and no file tells whether it is built in.
pub(super) fn cpu_split(here: &Here<'_>) -> Option<Finding> {
    if ["power", "s390"].contains(&family(&here.host.arch)) {
        return None;
    }
    let tickless = without_tick(here);
    let sampled: Vec<u32> = here.allowed().into_iter().filter(|cpu| !tickless.contains(cpu)).collect();
    if sampled.is_empty() {
        let what = "user and system CPU time are distinguished at every change of mode";
        return Some(Finding::new(Severity::Fine, "cpu-split", what, "both are exact, not only their sum"));
    }
    let every =
        here.host.tick_ns.known().map_or(String::new(), |ns| format!(", every {}", format_ns(*ns as f64)));
    let what = format!("user and system CPU time are distinguished by the tick{every}");
    let why = "their sum is exact; the split counts where the process was at each tick, so it is good only over \
               many ticks. A kernel with VIRT_CPU_ACCOUNTING_GEN counts it on CPUs booted with nohz_full=";
    Some(Finding::new(Severity::Limits, "cpu-split", what, why))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{AS_IS, assert_finds, finding};
    use super::*;
    use model::record::Fact;
    use model::record::Host;

    #[test]
    fn clock_sources_have_three_grades() {
        let source =
            |name: &'static str| move |host: &mut Host| host.clocksource = Fact::Known(name.to_owned());
        let directory = "/sys/devices/system/clocksource/clocksource0";
        let available = format!("{}/available_clocksource", &directory[1..]);
        let command = format!("echo tsc | sudo tee {directory}/current_clocksource");
        let found = finding(clock_source, source("hpet"), &[(&available, "tsc hpet acpi_pm\n")]);
        assert_finds(found, Severity::Spoils, "hpet", Some(&command));
        let found = finding(clock_source, source("hpet"), &[(&available, "hpet acpi_pm\n")]);
        assert_finds(found, Severity::Spoils, "hpet", None);
        assert_finds(finding(clock_source, source("kvm-clock"), &[]), Severity::Limits, "kvm-clock", None);
        let found = finding(clock_source, source("arch_sys_counter"), &[]);
        assert_finds(found, Severity::Fine, "arch_sys_counter", None);
    }

    #[test]
    fn a_counter_that_varies_cannot_time() {
        let flags = [("proc/cpuinfo", "flags\t\t: fpu tsc constant_tsc\n")];
        assert_finds(finding(tsc, AS_IS, &flags), Severity::Limits, "not nonstop_tsc", None);
        assert_eq!(finding(tsc, AS_IS, &[("proc/cpuinfo", "CPU implementer\t: 0x41\n")]), None);
    }

    #[test]
    fn the_split_is_sampled_where_the_tick_runs() {
        let ticking = [("sys/devices/system/cpu/nohz_full", "1\n")];
        assert_finds(finding(cpu_split, AS_IS, &ticking), Severity::Limits, "every 4.00 ms", None);
        assert_eq!(finding(cpu_split, |host| host.arch = "s390x".to_owned(), &ticking), None);
    }
}
