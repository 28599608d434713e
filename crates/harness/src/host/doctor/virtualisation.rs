//! Rules about what stands between this program and the machine: emulators, imitated kernels, hypervisors.

use super::finding::{Finding, Severity};
use super::here::{Here, family};
use crate::host::files::{Ticks, cpuinfo};

/// A kernel that reports another architecture than `uname(2)` runs this program through a translator.
/// `/proc/sys/kernel/arch` is there since Linux 6.1.
pub(super) fn emulation(here: &Here<'_>) -> Option<Finding> {
    let info = here.text("proc/cpuinfo").unwrap_or_default();
    let kernel = here.text("proc/sys/kernel/arch");
    let foreign = kernel.filter(|kernel| family(kernel) != family(&here.host.arch));
    let cpu = here.host.cpu.known().map_or("", String::as_str);
    let what = if let Some(kernel) = foreign {
        format!("this {} program is emulated on {kernel}", here.host.arch)
    } else if cpuinfo(&info, "vendor_id").next() == Some("VirtualApple") {
        "this program is translated by Rosetta".to_owned()
    } else if cpu.contains("QEMU TCG") {
        "the processor is emulated by QEMU".to_owned()
    } else {
        return None;
    };
    let why = "every instruction is translated: the times are the emulator's, not the mechanisms'";
    Some(Finding::new(Severity::Spoils, "emulation", what, why))
}

/// gVisor's release ends in `-gvisor`; that of the first WSL in `-Microsoft`, while the second has a true kernel.
pub(super) fn kernel_imitation(here: &Here<'_>) -> Option<Finding> {
    let kernel = here.host.kernel.known()?;
    let name = if kernel.contains("gvisor") {
        "gVisor"
    } else if kernel.contains("-Microsoft") {
        "WSL 1"
    } else {
        return None;
    };
    let what = format!("{name} answers the system calls, not Linux");
    let why = "the results hold for programs under it and say nothing about a Linux kernel";
    Some(Finding::new(Severity::Limits, "kernel", what, why))
}

/// A guest seldom uses all its time, so the time stolen is divided by the time that it used or would have used.
pub(super) fn steal(here: &Here<'_>) -> Option<Finding> {
    let ticks = Ticks::read(here.root)?;
    let share = ticks.steal as f64 / (ticks.steal + ticks.busy).max(1) as f64;
    if share < 0.01 {
        return None;
    }
    let what = format!("{:.1}% of the processor time wanted since boot was stolen", share * 100.0);
    let why = "the hypervisor ran something else meanwhile: times change. Trust multiples of the floor more \
               than absolute times, or measure on a dedicated host";
    Some(Finding::new(Severity::Spoils, "steal", what, why))
}

pub(super) fn virtualisation(here: &Here<'_>) -> Option<Finding> {
    let hypervisor = here.host.virtualisation.known()?;
    if hypervisor == "none" {
        return Some(Finding::new(
            Severity::Fine,
            "virtualisation",
            "bare hardware",
            "no hypervisor steals time",
        ));
    }
    let what = format!("the host is a virtual machine ({hypervisor})");
    let why = "waking another CPU, halting and timers may go through the hypervisor, which may also take \
               the processor away without telling";
    Some(Finding::new(Severity::Limits, "virtualisation", what, why))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{AS_IS, assert_finds, finding};
    use super::*;
    use model::record::Fact;
    use model::record::Host;

    #[test]
    fn emulation_is_known_by_the_kernel_or_the_processor() {
        let arch = |name| [("proc/sys/kernel/arch", name)];
        assert_finds(
            finding(emulation, AS_IS, &arch("aarch64")),
            Severity::Spoils,
            "emulated on aarch64",
            None,
        );
        assert_eq!(finding(emulation, |host| host.arch = "i686".to_owned(), &arch("x86_64")), None);
        assert_eq!(finding(emulation, |host| host.arch = "armv7l".to_owned(), &arch("aarch64")), None);
        let rosetta = [("proc/cpuinfo", "vendor_id\t: VirtualApple\n")];
        assert_finds(finding(emulation, AS_IS, &rosetta), Severity::Spoils, "Rosetta", None);
        let tcg = |host: &mut Host| host.cpu = Fact::Known("QEMU TCG CPU version 2.5+".to_owned());
        assert_finds(finding(emulation, tcg, &[]), Severity::Spoils, "QEMU", None);
    }

    #[test]
    fn kernels_that_are_not_linux_are_named() {
        let kernel =
            |release: &'static str| move |host: &mut Host| host.kernel = Fact::Known(release.to_owned());
        assert_finds(
            finding(kernel_imitation, kernel("4.19.0-gvisor #1"), &[]),
            Severity::Limits,
            "gVisor",
            None,
        );
        assert_finds(
            finding(kernel_imitation, kernel("4.4.0-19041-Microsoft"), &[]),
            Severity::Limits,
            "WSL 1",
            None,
        );
        assert_eq!(finding(kernel_imitation, kernel("5.15.90.1-microsoft-standard-WSL2"), &[]), None);
    }

    #[test]
    fn steal_is_set_against_wanted_time() {
        let stat = |line| [("proc/stat", line)];
        let found = finding(steal, AS_IS, &stat("cpu  900 0 70 900000 0 0 0 30 0 0\n"));
        assert_finds(found, Severity::Spoils, "3.0%", None);
        assert_eq!(finding(steal, AS_IS, &stat("cpu  900 0 95 900000 0 0 0 5 0 0\n")), None);
    }

    #[test]
    fn a_guest_is_limited() {
        let guest = |host: &mut Host| host.virtualisation = Fact::Known("kvm".to_owned());
        assert_finds(finding(virtualisation, guest, &[]), Severity::Limits, "(kvm)", None);
    }
}
