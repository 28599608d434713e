//! What results say of the host, as a cell of a table.

use model::fact::Fact;
use model::invalid::printable;
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
        HostFact::CpuMode => machine(&host.arch).map(|(bits, _)| format!("{bits}-bit")),
        HostFact::ByteOrder => machine(&host.arch).map(|(_, order)| format!("{order} endian")),
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
        HostFact::CacheLine => match &host.cache_line_bytes {
            Fact::Known(bytes) => Ok(Size(*bytes).to_string()),
            Fact::Unknown(why) => Err(why.clone()),
        },
        HostFact::Memory => match &host.memory_bytes {
            Fact::Known(bytes) => Ok(format!("{} MiB", bytes >> 20)),
            Fact::Unknown(why) => Err(why.clone()),
        },
    }
}

/// How many bits addresses have on `arch`, as uname(2) calls it, and which byte of a number comes first.
fn machine(arch: &str) -> Result<(u32, &'static str), String> {
    Ok(match arch {
        "x86_64" | "aarch64" | "riscv64" | "ppc64le" | "loongarch64" | "mips64el" => (64, "little"),
        "i386" | "i486" | "i586" | "i686" | "armv6l" | "armv7l" | "armv8l" => (32, "little"),
        "s390x" | "ppc64" | "aarch64_be" | "sparc64" => (64, "big"),
        _ => return Err(format!("the machine '{}' is not known", printable(arch))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_says_its_mode_and_its_byte_order() {
        let host = model::testing::results().header.host;
        let fact_of_host = |fact| host_fact(fact, &host);
        assert_eq!(fact_of_host(HostFact::CpuMode), Ok("64-bit".to_owned()));
        assert_eq!(fact_of_host(HostFact::ByteOrder), Ok("little endian".to_owned()));
        assert_eq!(machine("s390x"), Ok((64, "big")));
        assert!(machine("pdp11").is_err());
        // Results of an earlier version have no cache line.
        assert_eq!(fact_of_host(HostFact::CacheLine), Err("these results do not record it".to_owned()));
    }
}
