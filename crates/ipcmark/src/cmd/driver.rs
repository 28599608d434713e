//! `ipcmark driver`: which endpoints in other languages there are, how they are built for this user, and how one of one's own begins.

use crate::cli::{DriverArguments, DriverCommand};
use crate::drivers::{MANIFEST, Manifest, command_of, home, write};
use crate::exit::{Error, Exit};
use crate::output::{print, style};
use crate::shipped::{SHIPPED, Shipped, Template, file_name};
use crate::streams::complain;
use harness::coordinator::driver::Driver;
use model::invalid::printable;
use model::{DriverName, Invalid};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use sys::{Failure, OrFail};

/// How long a driver may take to say what it is: a runtime that compiles first takes a second.
const GREETS_WITHIN: Duration = Duration::from_secs(30);

/// Does what is asked for.
pub fn run(arguments: &DriverArguments) -> Result<Exit, Error> {
    match &arguments.command {
        DriverCommand::List => list(),
        DriverCommand::Build { names } => build(names),
        DriverCommand::New { language, name } => begin(language, name),
    }
}

fn list() -> Result<Exit, Error> {
    let home = home()?;
    let mut text = String::new();
    for shipped in SHIPPED {
        let manifest = shipped.manifest()?;
        let state = match (home.join(shipped.name).join(MANIFEST).is_file(), has_what_it_needs(&manifest)) {
            (true, _) => "built".to_owned(),
            (false, true) => format!("not built: ipcmark driver build {}", shipped.name),
            (false, false) => format!("not built, and this host lacks {}", manifest.needs),
        };
        let mechanisms: Vec<&str> = manifest.mechanisms.iter().map(|offered| offered.name.as_str()).collect();
        text += &format!("{:<9} {}\n", manifest.name, manifest.summary);
        text += &report::wrapped_after("          ", &mechanisms.join(", "), &style());
        text += &format!("          {state}\n");
    }
    text += "\nname one before a mechanism: ipcmark python/tcp tcp, or python+go/tcp for client\nand server; one of your own begins with 'ipcmark driver new python NAME'\n";
    print(&text)?;
    Ok(Exit::Success)
}

/// Whether this host has what the driver of `manifest` needs.
fn has_what_it_needs(manifest: &Manifest) -> bool {
    let mut tries = Command::new("sh");
    tries.args(["-c", &manifest.tried_by]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    tries.status().is_ok_and(|status| status.success())
}

fn build(names: &[String]) -> Result<Exit, Error> {
    let mut all_well = true;
    for shipped in chosen(names)? {
        let manifest = shipped.manifest()?;
        if !has_what_it_needs(&manifest) {
            complain(&format!("{}: not built: this host lacks {}\n", shipped.name, manifest.needs));
            // Who names it wants it; of all, those that can be are.
            all_well &= names.is_empty();
            continue;
        }
        match build_one(shipped, &manifest) {
            Ok(place) => print(&format!("{}: built in {}\n", shipped.name, place.display()))?,
            Err(failure) => {
                complain(&format!("{}: {failure}\n", shipped.name));
                all_well = false;
            }
        }
    }
    Ok(if all_well { Exit::Success } else { Exit::CaseFailed })
}

/// The drivers of these names, or all.
fn chosen(names: &[String]) -> Result<Vec<&'static Shipped>, Invalid> {
    if names.is_empty() {
        return Ok(SHIPPED.iter().collect());
    }
    let known = || SHIPPED.iter().map(|shipped| shipped.name);
    let shipped_as = |name: &String| {
        let found = SHIPPED.iter().find(|shipped| shipped.name == *name);
        found.ok_or_else(|| Invalid::unknown("driver", name, known()))
    };
    names.iter().map(shipped_as).collect()
}

/// Builds one beside its place, tries it, and moves it there: what is interrupted leaves what was there before.
fn build_one(shipped: &Shipped, manifest: &Manifest) -> Result<PathBuf, Failure> {
    let home =
        home().map_err(|Invalid { problem, remedy }| Failure::new("find", "the drivers", problem, remedy))?;
    let place = home.join(shipped.name);
    let beside = home.join(format!(".{}.{}", shipped.name, std::process::id()));
    remove_what_is_left(&home, shipped.name);
    let built = write(shipped, &beside)
        .and_then(|()| compile(manifest, &beside))
        .and_then(|()| greets(manifest, &beside));
    if let Err(failure) = built {
        let _ = std::fs::remove_dir_all(&beside);
        return Err(failure);
    }
    // What was built before; where there was nothing, there is nothing to remove.
    let _ = std::fs::remove_dir_all(&place);
    std::fs::rename(&beside, &place).or_fail("rename", place.display())?;
    Ok(place)
}

/// Removes what builds of the driver `name` have left that were killed. What cannot be removed is in nobody's way.
fn remove_what_is_left(home: &Path, name: &str) {
    let prefix = format!(".{name}.");
    for left in std::fs::read_dir(home).into_iter().flatten().flatten() {
        let file = left.file_name();
        let builder = file.to_str().and_then(|file| file.strip_prefix(&prefix));
        let is_dead = |pid: &str| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists();
        if builder.is_some_and(is_dead) {
            let _ = std::fs::remove_dir_all(left.path());
        }
    }
}

fn compile(manifest: &Manifest, directory: &Path) -> Result<(), Failure> {
    let Some(build) = &manifest.build else { return Ok(()) };
    let status = Command::new("sh").args(["-c", build]).current_dir(directory).stdin(Stdio::null()).status();
    let status = status.or_fail("start", "sh")?;
    if status.success() {
        return Ok(());
    }
    let next = "see what it says above";
    Err(Failure::new("build", format!("with '{build}'"), status.to_string(), next))
}

/// Whether what was built says what it is.
fn greets(manifest: &Manifest, directory: &Path) -> Result<(), Failure> {
    let command = command_of(manifest, directory);
    let met = command.and_then(|command| Driver::meet(&command, GREETS_WITHIN, &AtomicBool::new(false)));
    met.map(drop).map_err(|Invalid { problem, remedy }| Failure::new("try", "the driver", problem, remedy))
}

fn begin(language: &str, name: &str) -> Result<Exit, Error> {
    let shipped = chosen(&[language.to_owned()])?;
    let Some(shipped) = shipped.first() else { return Ok(Exit::CaseFailed) };
    let name = DriverName::try_from(name.to_owned())?;
    let directory = Path::new(name.as_str());
    if directory.exists() {
        let problem = format!("'{}' exists already", printable(name.as_str()));
        return Err(Invalid::new(problem, "choose another name, or remove it").into());
    }
    let Template { files, build, run, program } = shipped.template;
    std::fs::create_dir(directory).or_fail("make", directory.display())?;
    for source in files {
        let place = directory.join(file_name(source));
        let text = source.1.replace(&format!("\"{program}\""), &format!("\"{name}\""));
        std::fs::write(&place, text).or_fail("write", place.display())?;
    }
    let built = build.map(|build| format!("  {build}\n")).unwrap_or_default();
    let first = files.first().map(file_name).unwrap_or_default();
    print(&format!(
        "wrote {name}/{first}, {} files in all\n\nchange it, check it, and measure it:\n  cd {name}\n{built}  \
         ipcmark endpoint check {run}\n  ipcmark pipe --endpoint '{run}'\n",
        files.len()
    ))?;
    Ok(Exit::Success)
}
