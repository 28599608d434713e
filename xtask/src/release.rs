//! `cargo xtask release`: what users install, in target/dist: archives, Debian packages and images of static binaries, with completions,
//! manual pages, licences, a bill of materials and checksums; and the tests of these, and of other machine types. It publishes nothing.

mod emulated;
mod files;
mod materials;
mod package;
mod platform;

use crate::notes::Notes;
use crate::steps::{Times, cargo, root, step, target};
use crate::{drivers, programs};
use files::{VERSION, copy, make, said, write};
use platform::{PLATFORMS, Platform, native};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The documents that go with a binary: those for users.
const DOCUMENTS: [&str; 5] = ["tutorial.md", "round-trips.svg", "how-to", "explanation", "reference"];

/// The static binary for this machine, as users install it.
pub fn native_binary() -> Result<PathBuf, String> {
    native()?.binary("packed")
}

/// Makes all of it, for every platform that this machine can build for, and tests what was made. What a machine lacks is listed; with
/// `CI=true` that is a failure.
pub fn all() -> Result<(), String> {
    programs::Installing::start(&programs::OF_A_RELEASE).finish();
    let (notes, mut times) = (Notes::new()?, Times::default());
    let passed = made_and_tested(&notes, &mut times);
    notes.print();
    times.print();
    passed
}

fn made_and_tested(notes: &Notes, times: &mut Times) -> Result<(), String> {
    let own = times.measure("static binary", native_binary)?;
    let dist = Dist::new(&target("dist"), &own)?;
    let native = native()?;
    times.measure("package", || dist.add(native, &own))?;
    for other in PLATFORMS.iter().filter(|platform| !platform.is_native()) {
        match other.lack() {
            None => {
                let binary =
                    times.measure("static binary for another machine type", || other.binary("packed"))?;
                times.measure("package for another machine type", || dist.add(other, &binary))?;
            }
            Some(lack) => notes.tool_is_missing(&format!("{} is not built: {lack}", other.triple))?,
        }
    }
    dist.finish()?;
    times.measure("the package, installed", || tested(&dist.directory.join(package::name(native)), notes))?;
    times.measure("drivers", || drivers::build_and_check(&own, notes))?;
    times.measure("pages in every size", || pages_in_every_size(notes))?;
    times.measure("tests of other machine types, emulated", || emulated::run(notes))
}

/// The pages of reports on desktops and phones, light and dark. With all crates, as they were built for the tests.
fn pages_in_every_size(notes: &Notes) -> Result<(), String> {
    let mut pages = cargo(&["test", "--workspace", "--all-features", "--test", "pages"]);
    pages.args(["--", "the_page_fits_a_phone_and_paper"]).env("IPCMARK_EVERY_PAGE", "1");
    step("pages in every size", notes.noted_by(&mut pages))
}

/// Tests the package at `path`.
fn tested(path: &Path, notes: &Notes) -> Result<(), String> {
    for (tool, of) in [("lintian", "lintian"), ("dpkg-deb", "dpkg")] {
        if said(Command::new(tool).arg("--version")).is_none() {
            return notes
                .tool_is_missing(&format!("{tool} cannot be run: the package is not tested; install {of}"));
        }
    }
    package::check(path)
}

/// What is being made.
struct Dist {
    /// Where it goes.
    directory: PathBuf,
    /// Manual pages, completions and texts, which are the same for every platform.
    shared: PathBuf,
    /// When the commit was made, in seconds since 1970: every file has that date, so that a second build is the same.
    date_s: String,
}

impl Dist {
    /// An empty directory, and what the binary `own`, which runs here, says of itself.
    fn new(directory: &Path, own: &Path) -> Result<Self, String> {
        let _ = fs::remove_dir_all(directory);
        let shared = directory.join("shared");
        for name in ["man", "completions"] {
            make(&shared.join(name))?;
        }
        step("manual pages", Command::new(own).args(["man", "--directory"]).arg(shared.join("man")))?;
        for (shell, file) in [("bash", "ipcmark"), ("zsh", "_ipcmark"), ("fish", "ipcmark.fish")] {
            let script = said(Command::new(own).args(["completions", shell]));
            let script =
                script.ok_or_else(|| format!("{} prints no completions of {shell}", own.display()))?;
            write(&shared.join("completions").join(file), &script)?;
        }
        for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            copy(&root().join(name), &shared.join(name))?;
        }
        // What messages and manual pages point to.
        make(&shared.join("docs"))?;
        let mut documents = Command::new("cp");
        documents.current_dir(root().join("docs")).arg("-R").args(DOCUMENTS).arg(shared.join("docs"));
        step("documents", &mut documents)?;
        let date_s = said(Command::new("git").current_dir(root()).args(["log", "-1", "--format=%ct"]));
        let date_s = date_s.ok_or("git does not say when the last commit was made; build from a clone")?;
        Ok(Self { directory: directory.to_owned(), shared, date_s: date_s.trim().to_owned() })
    }

    /// Adds what is made for `platform`.
    fn add(&self, platform: &Platform, binary: &Path) -> Result<(), String> {
        let name = format!("ipcmark-{VERSION}-{}", platform.triple);
        let materials = materials::listed(platform.triple)?;
        write(&self.directory.join(format!("{name}.cdx.json")), &materials.bill)?;
        let tree = self.directory.join(&name);
        make(&tree)?;
        step("copies", Command::new("cp").arg("-R").arg(self.shared.join(".")).arg(&tree))?;
        copy(binary, &tree.join("ipcmark"))?;
        write(&tree.join("LICENSES-OF-LIBRARIES.txt"), &materials.licences)?;
        self.archive(&name)?;
        package::make(&self.directory, &self.date_s, platform, &tree)?;
        self.image(platform, binary)?;
        fs::remove_dir_all(&tree).map_err(|error| format!("{}: {error}", tree.display()))
    }

    /// Packs the directory `name`.
    fn archive(&self, name: &str) -> Result<(), String> {
        let mut tar = Command::new("tar");
        tar.current_dir(&self.directory).args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
        tar.arg(format!("--mtime=@{}", self.date_s)).args(["--use-compress-program=gzip -9n", "-cf"]);
        step("archive", tar.arg(format!("{name}.tar.gz")).arg(name))
    }

    /// What an image is built from.
    fn image(&self, platform: &Platform, binary: &Path) -> Result<(), String> {
        let context = self.directory.join(format!("image-{}", platform.debian));
        make(&context)?;
        copy(binary, &context.join("ipcmark"))?;
        copy(&root().join("packaging/Containerfile"), &context.join("Containerfile"))
    }

    /// Writes the checksums, and lists what was made.
    fn finish(&self) -> Result<(), String> {
        fs::remove_dir_all(&self.shared).map_err(|error| format!("{}: {error}", self.shared.display()))?;
        let files = "sha256sum -- *.tar.gz *.deb *.cdx.json > SHA256SUMS && ls -lh -- *.tar.gz *.deb *.cdx.json SHA256SUMS";
        step("checksums", Command::new("sh").current_dir(&self.directory).args(["-c", files]))
    }
}
