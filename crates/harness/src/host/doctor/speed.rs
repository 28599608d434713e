//! The rule about the speed of the CPUs, over readings of the same short work.

use super::finding::{Finding, Severity};
use super::here::Here;
use crate::host::speed::CpuReadings;

/// A reading this close to the fastest is of a CPU at full speed.
const FULL_SPEED: f64 = 1.05;
/// Fewer readings do not say how fast a CPU can be.
const LEAST_READINGS: usize = 20;
/// A CPU whose readings are seldomer at full speed wanders. Below half of them the median itself is of a slow CPU.
const STEADY: f64 = 0.8;
const MOSTLY_SLOW: f64 = 0.5;

pub(super) fn speed(here: &Here<'_>) -> Option<Finding> {
    let mut speeds: Vec<Speed> = here.readings.iter().filter_map(Speed::from_readings).collect();
    speeds.sort_by(|a, b| a.full_share.total_cmp(&b.full_share));
    let worst = speeds.first()?;
    let severity = match worst.full_share {
        share if share >= STEADY => Severity::Fine,
        share if share >= MOSTLY_SLOW => Severity::Limits,
        _ => Severity::Spoils,
    };
    if severity == Severity::Fine {
        let what = format!("the CPUs keep their speed: {}", worst.described());
        let why =
            "the same short work takes the same time now and later; a host may be busier at another hour";
        return Some(Finding::new(Severity::Fine, "speed", what, why));
    }
    let wandering = speeds.iter().filter(|speed| speed.full_share < STEADY).count();
    let changing = if speeds.len() > 1 {
        format!("; {wandering} of {} CPUs change their speed", speeds.len())
    } else {
        String::new()
    };
    let what = format!("the speed wanders: {}{changing}", worst.described());
    let who = if here.is_guest() {
        "a neighbour shares the core: the hypervisor runs another guest on its other hardware thread, and the \
         steal time does not count that"
    } else {
        "a neighbour shares the core: another process runs on its other hardware thread, or the clock frequency \
         changes"
    };
    let why = format!(
        "{who}. All times change with it. Compare two mechanisms in one run, which measures them in turn, and \
         measure longer, or at a quieter hour, or on a dedicated host"
    );
    Some(Finding::new(severity, "speed", what, why))
}

/// How the readings of one CPU lie to its fastest.
struct Speed {
    cpu: u32,
    /// The share of readings at full speed.
    full_share: f64,
    /// How much longer than the fastest the median is, as a fraction.
    median_above: f64,
}

impl Speed {
    fn from_readings(one: &CpuReadings) -> Option<Self> {
        let mut readings_ns = one.readings_ns.clone();
        if readings_ns.len() < LEAST_READINGS {
            return None;
        }
        readings_ns.sort_by(f64::total_cmp);
        let (fastest_ns, median_ns) = (readings_ns[0], readings_ns[readings_ns.len() / 2]);
        let full = readings_ns.partition_point(|reading_ns| *reading_ns <= FULL_SPEED * fastest_ns);
        Some(Self {
            cpu: one.cpu,
            full_share: full as f64 / readings_ns.len() as f64,
            median_above: median_ns / fastest_ns - 1.0,
        })
    }

    fn described(&self) -> String {
        format!(
            "on CPU {} {:.0}% of the readings are within 5% of the fastest, and the median is {:.0}% above it",
            self.cpu,
            100.0 * self.full_share,
            100.0 * self.median_above
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Finding, Severity};
    use super::super::testing::{assert_finds, good, root};
    use super::*;
    use model::record::Fact;

    /// A CPU of whose 100 readings `full` are of 5 µs or little more and the others `slow_ns`.
    fn cpu(cpu: u32, full: usize, slow_ns: f64) -> CpuReadings {
        let reading = |n: usize| if n < full { 5000.0 + (n % 3) as f64 * 50.0 } else { slow_ns };
        // The fast ones are spread as those of a host are.
        CpuReadings { cpu, readings_ns: (0..100).map(|n| reading(n * 37 % 100)).collect() }
    }

    fn found(readings: &[CpuReadings], virtualisation: &str) -> Option<Finding> {
        let mut host = good();
        host.virtualisation = Fact::Known(virtualisation.to_owned());
        speed(&Here { host: &host, root: root(&[]).path(), readings })
    }

    #[test]
    fn a_steady_host_is_fine() {
        let found = found(&[cpu(0, 97, 7000.0), cpu(1, 90, 7000.0)], "none");
        assert_finds(
            found,
            Severity::Fine,
            "on CPU 1 90% of the readings are within 5% of the fastest",
            None,
        );
    }

    #[test]
    fn the_cpu_that_wanders_most_is_named() {
        let found = found(&[cpu(0, 95, 7000.0), cpu(1, 18, 6650.0), cpu(2, 60, 7000.0)], "kvm").unwrap();
        let what = "on CPU 1 18% of the readings are within 5% of the fastest, and the median is 33% above it; \
                    2 of 3 CPUs change their speed";
        assert!(found.why.contains("a neighbour shares the core: the hypervisor"), "{found:?}");
        assert_finds(Some(found), Severity::Spoils, what, None);
    }

    #[test]
    fn a_host_that_is_mostly_fast_is_limited_and_bare_hardware_has_no_hypervisor() {
        let found = found(&[cpu(0, 60, 7000.0)], "none").unwrap();
        assert!(found.what.ends_with("the median is 2% above it"), "{found:?}");
        assert!(!found.why.contains("hypervisor"), "{found:?}");
        assert_finds(Some(found), Severity::Limits, "60%", None);
    }

    #[test]
    fn few_readings_decide_nothing() {
        let mut few = cpu(0, 10, 9000.0);
        few.readings_ns.truncate(LEAST_READINGS - 1);
        assert_eq!(found(&[few], "kvm"), None);
        assert_eq!(found(&[], "kvm"), None);
    }
}
