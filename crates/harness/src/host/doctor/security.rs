//! Rules about what security costs: mitigations and filters.

use super::finding::{Finding, Severity};
use super::here::Here;

/// `seccomp(2)`: in mode 2 the kernel runs a filter before every system call. Containers have one.
pub(super) fn seccomp(here: &Here<'_>) -> Option<Finding> {
    here.status("Seccomp").filter(|mode| mode == "2")?;
    let filters = here.status("Seccomp_filters").map_or(String::new(), |count| format!(" ({count})"));
    let what = format!("system calls are filtered by seccomp{filters}, as in containers");
    let why = "the filter costs time at every system call, and may forbid some; compare with hosts that have \
               none by multiples of the floor";
    Some(Finding::new(Severity::Limits, "seccomp", what, why))
}

pub(super) fn mitigations(here: &Here<'_>) -> Option<Finding> {
    let states = here.host.mitigations.known()?;
    let active = states.iter().filter(|(_, state)| state.starts_with("Mitigation"));
    let active: Vec<&str> = active.map(|(name, _)| name.as_str()).collect();
    let what = match active.as_slice() {
        [] => "no processor vulnerability is mitigated".to_owned(),
        active => format!("mitigated processor vulnerabilities: {}", active.join(", ")),
    };
    let why = "mitigations are a part of what system calls and switches cost here; a host with others has other \
               costs, and so may published numbers";
    Some(Finding::new(Severity::Fine, "mitigations", what, why))
}

/// `Documentation/admin-guide/LSM`. What every kernel has by itself asks little.
pub(super) fn modules(here: &Here<'_>) -> Option<Finding> {
    const LIGHT: [&str; 6] = ["capability", "lockdown", "landlock", "yama", "ima", "evm"];
    let modules = here.host.security_modules.known()?;
    let asked: Vec<&str> = modules.split(',').filter(|module| !LIGHT.contains(module)).collect();
    if asked.is_empty() {
        return None;
    }
    let what = format!("security modules: {}", asked.join(", "));
    let why = "they are asked at system calls, at each message of sockets among them; a host with others has other costs, \
               and they may forbid mechanisms";
    Some(Finding::new(Severity::Fine, "security-modules", what, why))
}

/// `bpf(2)`: programs that run for packets and sockets of a control group.
pub(super) fn programs(here: &Here<'_>) -> Option<Finding> {
    let programs = here.host.bpf_programs.known()?;
    let of_group = programs.get("control_group").filter(|count| **count > 0)?;
    let what = format!("BPF programs run for this control group: {of_group}");
    let why =
        "some run at each packet, connection or message of sockets, and are a part of what those cost here";
    Some(Finding::new(Severity::Fine, "bpf-programs", what, why))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{AS_IS, STATUS, assert_finds, finding};
    use super::*;
    use model::record::Fact;
    use model::record::Host;

    #[test]
    fn filters_of_system_calls_are_found() {
        let status = STATUS.replace("Seccomp:\t0\nSeccomp_filters:\t0", "Seccomp:\t2\nSeccomp_filters:\t3");
        let found = finding(seccomp, AS_IS, &[("proc/self/status", &status)]);
        assert_finds(found, Severity::Limits, "seccomp (3)", None);
    }

    #[test]
    fn modules_and_programs_that_have_a_part_in_calls_are_found() {
        let modules = |names: &'static str| {
            move |host: &mut Host| host.security_modules = Fact::Known(names.to_owned())
        };
        let found = finding(super::modules, modules("capability,landlock,yama,apparmor"), &[]);
        assert_finds(found, Severity::Fine, "security modules: apparmor", None);
        assert_eq!(finding(super::modules, modules("capability,yama"), &[]), None);
        let attached = |count| {
            move |host: &mut Host| {
                host.bpf_programs = Fact::Known([("control_group".to_owned(), count)].into());
            }
        };
        assert_finds(finding(programs, attached(2), &[]), Severity::Fine, "control group: 2", None);
        assert_eq!(finding(programs, attached(0), &[]), None);
    }

    #[test]
    fn mitigations_are_a_fact_and_no_problem() {
        let some = |host: &mut Host| {
            let states =
                [("mds", "Not affected"), ("meltdown", "Mitigation: PTI"), ("retbleed", "Vulnerable")];
            let states = states.map(|(name, state)| (name.to_owned(), state.to_owned()));
            host.mitigations = Fact::Known(states.into());
        };
        assert_finds(finding(mitigations, some, &[]), Severity::Fine, "vulnerabilities: meltdown", None);
        assert_finds(finding(mitigations, AS_IS, &[]), Severity::Fine, "no processor vulnerability", None);
    }
}
