//! What results say of the host, as a cell of a table.

use model::fact::Fact;
use model::record::Host;
use model::study::HostFact;
use model::units::Size;

/// `fact` of `host` in words, or why it is not known.
pub(super) fn host_fact(fact: HostFact, host: &Host) -> Result<String, String> {
    let text = |fact: &Fact<String>| match fact {
        Fact::Known(text) => Ok(text.clone()),
        Fact::Unknown(why) => Err(why.clone()),
    };
    let cache = |level: &str| match &host.caches_bytes {
        Fact::Known(caches) => match caches.get(level) {
            Some(bytes) => Ok(Size(*bytes).to_string()),
            None => Err(format!("the kernel reports no {level} cache")),
        },
        Fact::Unknown(why) => Err(why.clone()),
    };
    match fact {
        HostFact::Arch => Ok(host.arch.clone()),
        HostFact::Cpu => text(&host.cpu),
        HostFact::Cpus => Ok(host.topology.cpus.len().to_string()),
        HostFact::Smt => match &host.smt {
            Fact::Known(true) => Ok("more than 1".to_owned()),
            Fact::Known(false) => Ok("1".to_owned()),
            Fact::Unknown(why) => Err(why.clone()),
        },
        HostFact::Kernel => text(&host.kernel),
        HostFact::Virtualisation => text(&host.virtualisation),
        HostFact::L1d => cache("L1d"),
        HostFact::L1i => cache("L1i"),
        HostFact::L2 => cache("L2"),
        HostFact::L3 => cache("L3"),
        HostFact::Memory => match &host.memory_bytes {
            Fact::Known(bytes) => Ok(format!("{} MiB", bytes >> 20)),
            Fact::Unknown(why) => Err(why.clone()),
        },
    }
}
