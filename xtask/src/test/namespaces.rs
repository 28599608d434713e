//! Two network namespaces with a link between them, which stand for two hosts. It needs root. What runs in them is for others.

use std::process::{Command, Stdio};

/// The namespaces. They are removed when this is dropped.
pub struct Namespaces {
    names: [String; 2],
    /// The address of each.
    pub addresses: [String; 2],
}

impl Namespaces {
    /// Fresh ones, whose names begin with `name`, in the network `net` of three bytes.
    pub fn new(name: &str, net: &str) -> Result<Self, String> {
        let names = ["a", "b"].map(|side| format!("{name}-{side}"));
        let made = Self { names, addresses: [1, 2].map(|host| format!("{net}.{host}")) };
        // What somebody left who was killed.
        made.remove();
        let [a, b] = &made.names;
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("link add eth0 netns {a} type veth peer name eth0 netns {b}"))?;
        for (name, address) in made.names.iter().zip(&made.addresses) {
            ip(&format!("-n {name} addr add {address}/24 dev eth0"))?;
            ip(&format!("-n {name} link set lo up"))?;
            ip(&format!("-n {name} link set eth0 up"))?;
            // The kernel's default. bbr estimates what the link carries, and of streams over the same pair of devices it was seen to pace one
            // at 2 GB/s and another at 5.
            ip(&format!("-n {name} route replace {net}.0/24 dev eth0 src {address} congctl cubic"))?;
        }
        Ok(made)
    }

    /// The words before a command that is to run in the one of `side`, 0 or 1.
    pub fn inside(&self, side: usize) -> [&str; 4] {
        ["ip", "netns", "exec", &self.names[side]]
    }

    /// Cuts the link, or mends it.
    pub fn link(&self, is_up: bool) -> Result<(), String> {
        ip(&format!("-n {} link set eth0 {}", self.names[0], if is_up { "up" } else { "down" }))
    }

    fn remove(&self) {
        for name in &self.names {
            // One that was not made cannot be removed.
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        self.remove();
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("ip: {error}: it is in the package iproute2"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("ip {arguments}: {}", said.trim())) }
}
