//! The servers of `cargo xtask bench try`: from the file that describes them to programs that can be started.

use crate::steps::root;
use harness::programs::Programs;
use harness::programs::ready::{Ready, words};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Where the file and the small servers are.
const DIRECTORY: &str = "xtask/src/bench/tried";

/// How a server that refuses to be root is started by root.
const AS_POSTGRES: &str = "setpriv --reuid=postgres --regid=postgres --clear-groups";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    workload: Vec<Workload>,
}

/// Servers and their client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Workload {
    pub(super) name: String,
    packages: Vec<String>,
    #[serde(default)]
    prepare: String,
    /// A regular expression for the rate that the client prints.
    pub(super) metric: String,
    /// What `try` exchanges.
    #[serde(default = "all_connections")]
    pub(super) exchanges: String,
    tcp: Commands,
    unix: Commands,
    /// The values of the variables for each run.
    #[serde(rename = "run")]
    pub(super) runs: Vec<BTreeMap<String, u32>>,
}

fn all_connections() -> String {
    "tcp=unix-stream".to_owned()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Commands {
    servers: Vec<String>,
    ready: Option<String>,
    client: String,
}

/// A workload whose files are there.
pub(super) struct Prepared<'a> {
    workload: &'a Workload,
    directory: TempDir,
}

/// All workloads whose name begins with `only`.
pub(super) fn read(only: &str) -> Result<Vec<Workload>, String> {
    let path = root().join(DIRECTORY).join("workloads.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let document: Document = toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let workloads: Vec<Workload> =
        document.workload.into_iter().filter(|workload| workload.name.starts_with(only)).collect();
    match workloads.is_empty() {
        true => Err(format!("no workload of {} begins with '{only}'", path.display())),
        false => Ok(workloads),
    }
}

impl Workload {
    /// Makes its files.
    pub(super) fn prepare(&self) -> Result<Prepared<'_>, String> {
        let said = |error: std::io::Error| format!("{}: {error}", self.name);
        let directory = tempfile::Builder::new().prefix("try-").tempdir_in("/tmp").map_err(said)?;
        // Servers that become another user read it.
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).map_err(said)?;
        let prepared = Prepared { workload: self, directory };
        let script = prepared.filled_in(&self.prepare, &BTreeMap::new());
        let output = Command::new("sh").args(["-ec", &script]).output().map_err(said)?;
        match output.status.success() {
            true => Ok(prepared),
            false => Err(format!(
                "prepare {}: {}; apt-get install {}",
                self.name,
                String::from_utf8_lossy(&output.stderr).trim(),
                self.packages.join(" ")
            )),
        }
    }
}

impl Prepared<'_> {
    /// The programs by TCP, and by their own Unix socket.
    pub(super) fn programs(&self, run: &BTreeMap<String, u32>) -> Result<[Programs; 2], String> {
        Ok([self.started_by(&self.workload.tcp, run)?, self.started_by(&self.workload.unix, run)?])
    }

    fn started_by(&self, commands: &Commands, run: &BTreeMap<String, u32>) -> Result<Programs, String> {
        let said = |error: model::Invalid| format!("{}: {error}", self.workload.name);
        let split = |text: &String| words(&self.filled_in(text, run)).map_err(said);
        let ready = match &commands.ready {
            Some(command) => Ready::Command(split(command)?),
            None => Ready::Listening,
        };
        Ok(Programs {
            servers: commands.servers.iter().map(split).collect::<Result<_, _>>()?,
            ready,
            command: split(&commands.client)?,
            timeout: Duration::from_secs(60),
        })
    }

    /// `text` with the variables replaced by their values.
    fn filled_in(&self, text: &str, run: &BTreeMap<String, u32>) -> String {
        let programs: PathBuf = root().join(DIRECTORY).join("programs");
        let as_postgres = if rustix::process::geteuid().is_root() { AS_POSTGRES } else { "" };
        let text = text
            .replace("$DIR", &self.directory.path().to_string_lossy())
            .replace("$PROGRAMS", &programs.to_string_lossy())
            .replace("$AS_POSTGRES", as_postgres);
        run.iter().fold(text, |text, (name, value)| text.replace(&format!("${name}"), &value.to_string()))
    }
}
