//! `cargo xtask dist`: what users install, in target/dist: archives, Debian packages and images of static binaries, with completions,
//! manual pages, licences, a bill of materials and checksums. It publishes nothing.

mod materials;
mod package;

use crate::skipped::Skipped;
use crate::steps::{cargo, root, step, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of every crate of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A machine type for which there is a static binary.
struct Platform {
    triple: &'static str,
    /// Debian's name of it, and an image's.
    debian: &'static str,
    /// The C compiler, for one of the codecs, and the package that it comes with.
    compiler: (&'static str, &'static str),
    /// The program that runs its binaries on another machine type, and its package.
    emulator: (&'static str, &'static str),
}

const PLATFORMS: [Platform; 2] = [
    Platform {
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
        compiler: ("musl-gcc", "musl-tools"),
        emulator: ("qemu-x86_64", "qemu-user"),
    },
    Platform {
        triple: "aarch64-unknown-linux-musl",
        debian: "arm64",
        compiler: ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
        emulator: ("qemu-aarch64", "qemu-user"),
    },
];

impl Platform {
    fn is_native(&self) -> bool {
        self.triple.starts_with(std::env::consts::ARCH)
    }

    /// What this machine lacks to build for it, and what to install. The standard library is fetched, if that can be done.
    fn lack(&self) -> Option<String> {
        if said(Command::new("rustup").args(["target", "add", self.triple])).is_none() {
            return Some(format!("its standard library; run `rustup target add {}`", self.triple));
        }
        let (compiler, package) = self.compiler;
        said(Command::new(compiler).arg("--version"))
            .is_none()
            .then(|| format!("{compiler}; install {package}"))
    }

    /// A cargo command whose target is this platform.
    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo(arguments);
        let variable = self.triple.replace('-', "_");
        command.args(["--target", self.triple]).env(format!("CC_{variable}"), self.compiler.0);
        // Headers of the GNU C library would ask for functions that musl has not.
        command.env(format!("CFLAGS_{variable}"), "-U_FORTIFY_SOURCE");
        if !self.is_native() {
            let variable = variable.to_uppercase();
            // The linker that comes with Rust; the libraries that it needs come with the target.
            command.env(format!("CARGO_TARGET_{variable}_LINKER"), "rust-lld");
            command.env(format!("CARGO_TARGET_{variable}_RUNNER"), self.emulator.0);
        }
        command
    }

    /// Its binary, built with `profile`.
    fn binary(&self, profile: &str) -> Result<PathBuf, String> {
        let mut build = self.cargo(&["build", "--package", "ipcmark", "--locked", "--profile", profile]);
        step(&format!("a static binary for {}", self.debian), &mut build)?;
        let directory = if profile == "dev" { "debug" } else { profile };
        Ok(target(&format!("{}/{directory}/ipcmark", self.triple)))
    }
}

/// The platform of this machine, which can be built for.
fn native() -> Result<&'static Platform, String> {
    let native = PLATFORMS.iter().find(|platform| platform.is_native());
    let native = native.ok_or_else(|| format!("nothing is made for {}", std::env::consts::ARCH))?;
    match native.lack() {
        None => Ok(native),
        Some(lack) => Err(format!("{} is not built: this machine lacks {lack}", native.triple)),
    }
}

/// The static binary for this machine, as users install it.
pub fn native_binary() -> Result<PathBuf, String> {
    native()?.binary("packed")
}

/// Makes all of it, for every platform that this machine can build for.
pub fn all() -> Result<(), String> {
    let native = native()?;
    let own = native_binary()?;
    let dist = Dist::new(&target("dist"), &own)?;
    dist.add(native, &own)?;
    for other in PLATFORMS.iter().filter(|platform| !platform.is_native()) {
        match other.lack() {
            None => dist.add(other, &other.binary("packed")?)?,
            Some(lack) => println!("== not built: {}: this machine lacks {lack}", other.triple),
        }
    }
    dist.finish()
}

/// Runs the unit tests and the conformance suite of a platform that is not this machine's, under its emulator.
pub fn emulated() -> Result<(), String> {
    for other in PLATFORMS.iter().filter(|platform| !platform.is_native()) {
        let (emulator, package) = other.emulator;
        if said(Command::new(emulator).arg("--version")).is_none() {
            return Err(format!("{emulator} cannot be run; install {package}"));
        }
        if let Some(lack) = other.lack() {
            return Err(format!("{} is not built: this machine lacks {lack}", other.triple));
        }
        let tests = ["test", "--no-fail-fast", "--lib", "--package"];
        for package in ["model", "sys", "mechanisms", "analysis", "report"] {
            let name = format!("{package} under {emulator}");
            step(&name, &mut other.cargo(&[&tests[..], &[package]].concat()))?;
        }
    }
    Ok(())
}

/// Packs a binary that is quickly built, for this machine alone, and tests what was packed.
pub fn check(skipped: &Skipped) -> Result<(), String> {
    let untested = "the package is not tested";
    let native = match native() {
        Ok(native) => native,
        Err(lack) => return skipped.tool_is_missing(&format!("{lack}: {untested}")),
    };
    for (tool, package) in [("lintian", "lintian"), ("dpkg-deb", "dpkg")] {
        if said(Command::new(tool).arg("--version")).is_none() {
            return skipped.tool_is_missing(&format!("{tool} cannot be run: {untested}; install {package}"));
        }
    }
    let own = native.binary("dev")?;
    let dist = Dist::new(&target("dist-check"), &own)?;
    dist.add(native, &own)?;
    dist.finish()?;
    package::check(&dist.directory.join(package::name(native)))
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
        let date_s = said(Command::new("git").current_dir(root()).args(["log", "-1", "--format=%ct"]));
        let date_s = date_s.ok_or("git does not say when the last commit was made; build from a clone")?;
        Ok(Self { directory: directory.to_owned(), shared, date_s: date_s.trim().to_owned() })
    }

    /// Adds what is made for `platform`.
    fn add(&self, platform: &Platform, binary: &Path) -> Result<(), String> {
        let name = format!("ipcmark-{VERSION}-{}", platform.triple);
        let materials = materials::of(platform.triple)?;
        write(&self.directory.join(format!("{name}.cdx.json")), &materials.bill)?;
        let tree = self.directory.join(&name);
        make(&tree)?;
        step("copies", Command::new("cp").arg("-R").arg(self.shared.join(".")).arg(&tree))?;
        copy(binary, &tree.join("ipcmark"))?;
        write(&tree.join("LICENSES-OF-LIBRARIES.txt"), &materials.licences)?;
        self.archive(&name)?;
        package::make(self, platform, &tree)?;
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

/// What `command` writes to its standard output; `None` if it cannot be run, or fails.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

fn make(directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
