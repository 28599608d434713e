//! Drivers: their manifests, where they lie when they are built, and which of them a selection has. How one is talked to is for
//! the harness to know.

use crate::cli::EndpointOptions;
use crate::exit::Error;
use crate::session::watch_signals;
use crate::shipped::{DriverFile, SHIPPED, Shipped, file_name};
use harness::coordinator::driver::{Driver, DriverSet};
use harness::coordinator::via::Via;
use mechanisms::registry;
use model::block::Block;
use model::card::{Card, CardKind};
use model::{ByName, CODEC, CaseDrivers, DriverName, Framing, Invalid, Payload, Reach, Spec, Workload};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;
use sys::{Failure, OrFail};

/// The file that says what a driver is.
pub const MANIFEST: &str = "driver.toml";

/// What a driver's manifest says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Its name.
    pub name: DriverName,
    /// What it is, in a line.
    pub summary: String,
    /// What a host needs for it, in words.
    pub needs: String,
    /// The command, for a shell, that builds it in its directory.
    #[serde(default)]
    pub build: Option<String>,
    /// The command, for a shell, that succeeds where the host has what it needs.
    #[serde(rename = "try")]
    pub tried_by: String,
    /// The command that is the endpoint, in its directory: words, as in a shell.
    pub run: String,
    /// What it measures.
    #[serde(default, rename = "mechanism")]
    pub mechanisms: Vec<ManifestMechanism>,
}

/// A mechanism of a manifest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestMechanism {
    /// Its name.
    pub name: DriverName,
    /// What can be measured of it.
    pub workloads: Vec<Workload>,
    /// What it stands on: the mechanism that is left when what it `adds` is left out. One of ipcmark's own needs none: it is left without the driver.
    #[serde(default)]
    pub without: Option<String>,
    /// What it adds to that, in a few words.
    #[serde(default)]
    pub adds: String,
    /// What it is, of one of the driver's own.
    #[serde(default)]
    pub summary: String,
}

impl Manifest {
    /// Parses the text of one, from `of`.
    pub fn parse(text: &str, of: &str) -> Result<Self, Invalid> {
        toml::from_str(text).map_err(|error| {
            let problem = format!("{of}: {}", error.message());
            Invalid::new(problem, "see drivers/python/driver.toml for one that is right")
        })
    }
}

impl Shipped {
    /// What it says of itself.
    pub fn manifest(&self) -> Result<Manifest, Invalid> {
        Manifest::parse(self.manifest_text(), self.name)
    }
}

/// Where built drivers lie: the user's directory of data (XDG Base Directory Specification).
pub fn home() -> Result<PathBuf, Invalid> {
    let directory_in =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = directory_in("XDG_DATA_HOME").or_else(|| Some(directory_in("HOME")?.join(".local/share")));
    let data =
        data.ok_or_else(|| Invalid::new("there is no directory for drivers", "set HOME or XDG_DATA_HOME"))?;
    Ok(data.join("ipcmark/drivers"))
}

/// The command of the driver `name`, if it is built.
pub fn built(name: &DriverName) -> Result<Option<Via>, Invalid> {
    let directory = home()?.join(name.as_str());
    let Ok(text) = std::fs::read_to_string(directory.join(MANIFEST)) else { return Ok(None) };
    command_of(&Manifest::parse(&text, &directory.display().to_string())?, &directory).map(Some)
}

/// What the driver `name` says of itself: the one that is built, else the one that comes with the program.
pub fn manifest(name: &DriverName) -> Result<Option<Manifest>, Invalid> {
    let built = std::fs::read_to_string(home()?.join(name.as_str()).join(MANIFEST));
    match (built, SHIPPED.iter().find(|shipped| shipped.name == name.as_str())) {
        (Ok(text), _) => Manifest::parse(&text, name.as_str()).map(Some),
        (Err(_), Some(shipped)) => shipped.manifest().map(Some),
        (Err(_), None) => Ok(None),
    }
}

/// The command of what `manifest` describes and lies in `directory`. Words that name files there, and a dot, are paths in it.
pub fn command_of(manifest: &Manifest, directory: &Path) -> Result<Via, Invalid> {
    let Some(words) = shlex::split(&manifest.run) else {
        return Err(Invalid::new(
            format!("the command of the driver {} ends within a quotation", manifest.name),
            "close it",
        ));
    };
    let in_directory = |word: String| {
        let file = if word == "." { directory.to_owned() } else { directory.join(&word) };
        if word == "." || file.is_file() { file.to_string_lossy().into_owned() } else { word }
    };
    Via::from_words(words.into_iter().map(in_directory).collect())
}

/// Makes the mechanisms that drivers have of their own known to the registry: those of all that come with the program or are built. What is wrong
/// with one that is built is said when it is used.
pub fn register() -> Result<(), Invalid> {
    for shipped in SHIPPED {
        register_all(&shipped.manifest()?);
    }
    let built = home().ok().and_then(|home| std::fs::read_dir(home).ok()).into_iter().flatten().flatten();
    let manifests =
        built.filter_map(|directory| std::fs::read_to_string(directory.path().join(MANIFEST)).ok());
    manifests
        .filter_map(|text| Manifest::parse(&text, MANIFEST).ok())
        .for_each(|manifest| register_all(&manifest));
    Ok(())
}

/// The endpoints of commands that are typed, once they are met.
#[derive(Debug, Default)]
pub struct TypedDrivers {
    set: DriverSet,
    drivers: CaseDrivers,
}

impl TypedDrivers {
    /// Starts what `typed` names, each command once, and makes the mechanisms that it has of its own known to the registry.
    pub fn meet(typed: &EndpointOptions, timeout: Duration) -> Result<Self, Error> {
        let mut all = Self::default();
        let or_both = |own: &Option<String>| own.clone().or_else(|| typed.endpoint.clone());
        all.drivers.client = all.add(or_both(&typed.client_endpoint), timeout)?;
        all.drivers.server = all.add(or_both(&typed.server_endpoint), timeout)?;
        Ok(all)
    }

    fn add(&mut self, command: Option<String>, timeout: Duration) -> Result<Option<DriverName>, Error> {
        let Some(text) = command else { return Ok(None) };
        let command = Via::parse(&text)?;
        if let Some(known) = self.set.started_by(&command) {
            return Ok(Some(known.name.clone()));
        }
        let driver = met(&command, timeout)?;
        let own = driver.hello.mechanisms.iter();
        own.for_each(|own| registry::add(card(&own.name, &own.summary, &own.workloads)));
        let name = driver.name.clone();
        self.set.add(driver)?;
        Ok(Some(name))
    }
}

/// The driver that `command` starts. What it started must not outlive a process that a signal ends.
fn met(command: &Via, timeout: Duration) -> Result<Driver, Error> {
    let stop = watch_signals()?;
    let met = Driver::meet(command, timeout, &stop);
    met.map_err(|invalid| if stop.load(Ordering::Relaxed) { Error::Interrupted } else { invalid.into() })
}

fn register_all(manifest: &Manifest) {
    for ManifestMechanism { name, workloads, summary, .. } in &manifest.mechanisms {
        registry::add(card(name.as_str(), summary, workloads));
    }
}

/// The card of a mechanism that a driver has of its own.
fn card(name: &str, summary: &str, workloads: &[Workload]) -> Card {
    Card {
        // As long as the program, as those of the registry.
        name: String::from(name).leak(),
        kind: CardKind::Mechanism,
        summary: String::from(summary).leak(),
        framing: Framing::Message,
        reach: Reach::Host,
        by_name: ByName::Never,
        payload: Payload::Bytes,
        workloads: workloads.to_vec().leak(),
        sized: true,
        limits: "those of its library",
        ..Card::OPERATION
    }
}

/// Whether `word` names a mechanism of a driver, and no file: `python/tcp`.
pub fn are_named(word: &str) -> bool {
    let is_path = word.starts_with(['.', '/']) || word.ends_with(".toml") || Path::new(word).exists();
    let is_mechanism = || {
        let name = word.rsplit('/').next().unwrap_or(word);
        registry::card(name.split(':').next().unwrap_or(name)).is_some()
    };
    // One of another spelling is no driver, and is said to be none.
    !is_path
        && word.contains('/')
        && match Spec::split_drivers(word) {
            Ok((drivers, _)) => !drivers.are_none() || word.starts_with("ipcmark/"),
            Err(_) => is_mechanism(),
        }
}

/// Meets the drivers of a selection: those that are `typed` are those of all mechanisms of `blocks` that name none, and `blocks` name others. One
/// that is not built is met by nobody, and what names it is dropped from the plan with that as the reason.
pub fn meet(typed: TypedDrivers, timeout: Duration, blocks: &mut [Block]) -> Result<DriverSet, Error> {
    let TypedDrivers { mut set, drivers } = typed;
    for spec in blocks.iter_mut().flat_map(|block| &mut block.specs) {
        if spec.drivers.are_none()
            && registry::card(&spec.name).is_some_and(|card| card.kind == CardKind::Mechanism)
        {
            spec.drivers = drivers.clone();
        }
        for name in spec.drivers.names() {
            if set.get(name).is_none()
                && let Some(command) = built(name)?
            {
                set.add(met(&command, timeout)?)?;
            }
        }
    }
    Ok(set)
}

/// Why the drivers of `spec` cannot measure it, if they cannot; and in which workloads they can.
pub fn workloads_of(spec: &Spec, set: &DriverSet, card: &Card) -> Result<Vec<Workload>, Invalid> {
    let mut workloads = card.workloads.to_vec();
    for name in spec.drivers.names() {
        let driver = set.get(name).ok_or_else(|| not_built(name))?;
        let offered = driver.mechanism(&spec.name).ok_or_else(|| {
            let all: Vec<String> =
                driver.hello.mechanisms.iter().map(|offered| offered.name.clone()).collect();
            Invalid::new(
                format!("the driver {name} has no {}", spec.name),
                format!("it has {}", listed(&all)),
            )
        })?;
        workloads.retain(|workload| offered.workloads.contains(workload));
        if let Some(codec) = spec.params.given(CODEC.name)
            && !offered.codecs.iter().any(|offered| offered == codec)
        {
            let problem = format!("the driver {name} has no codec {codec} for {}", spec.name);
            return Err(Invalid::new(problem, format!("it has {}", listed(&offered.codecs))));
        }
    }
    if spec.params.given(CODEC.name).is_some() && spec.drivers.names().count() < 2 {
        let problem = format!("{spec} has an endpoint of ipcmark's own, which has bytes and no objects");
        return Err(Invalid::new(problem, "leave out the codec, or name a driver for both endpoints"));
    }
    // What the core of the protocol has words for, whatever the card has beside it.
    workloads
        .retain(|workload| matches!(workload, Workload::Latency | Workload::Transfer | Workload::Throughput));
    Ok(workloads)
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// That the driver `name` cannot be had.
pub fn not_built(name: &DriverName) -> Invalid {
    let is_shipped = SHIPPED.iter().any(|shipped| shipped.name == name.as_str());
    let remedy = match is_shipped {
        true => format!("type 'ipcmark driver build {name}'"),
        false => "see 'ipcmark driver list', or name its command with --endpoint".to_owned(),
    };
    Invalid::new(format!("the driver {name} is not built here"), remedy)
}

/// Writes the files of `shipped` into `directory`, which is made.
pub fn write(shipped: &Shipped, directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).or_fail("make", directory.display())?;
    write_files(shipped.files, directory)
}

/// Writes `files` into `directory`.
pub fn write_files(files: &[DriverFile], directory: &Path) -> Result<(), Failure> {
    for source in files {
        let file = directory.join(file_name(source));
        std::fs::write(&file, source.1).or_fail("write", file.display())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mechanisms::registry::CARDS;

    #[test]
    fn every_driver_that_comes_with_the_program_is_described() {
        for shipped in SHIPPED {
            let manifest = shipped.manifest().unwrap_or_else(|invalid| panic!("{invalid}"));
            assert_eq!(manifest.name.as_str(), shipped.name);
            assert!(
                !manifest.mechanisms.is_empty() && !manifest.needs.is_empty() && !manifest.summary.is_empty()
            );
            for mechanism in &manifest.mechanisms {
                let is_known = CARDS.iter().any(|card| card.name == mechanism.name.as_str());
                assert!(is_known || !mechanism.summary.is_empty(), "{}", mechanism.name);
            }
        }
    }

    #[test]
    fn a_mechanism_of_a_driver_is_told_from_a_path() {
        for (word, is_driver) in [
            ("python/tcp", true),
            ("python+go/tcp:nodelay=off", true),
            ("ipcmark+go/pipe", true),
            ("./python/tcp", false),
            ("/etc/passwd", false),
            ("suites/my.toml", false),
            ("pipe:capacity=1M", false),
            ("tcp", false),
        ] {
            assert_eq!(are_named(word), is_driver, "{word}");
        }
    }
}
