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
