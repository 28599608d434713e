//! The Debian package: where its files go, what it says of itself, and what checks it. dpkg-deb packs it.

use super::files::{VERSION, copy, make as make_directory, said, write};
use super::platform::Platform;
use crate::steps::{root, step};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What lintian is not to say, each with the reason.
const OVERRIDES: &str = "\
# One binary runs on every release, and in containers.
ipcmark: statically-linked-binary
# Flame graphs of ipcmark's endpoints name its functions.
ipcmark: unstripped-binary-or-object
# It is static, and may lie at any address all the same.
ipcmark: shared-library-lacks-prerequisites
# It is not uploaded to Debian, and closes no bug there.
ipcmark: initial-upload-closes-no-bugs
# Who publishes a package names an address with IPCMARK_MAINTAINER; the project has none.
ipcmark: bogus-mail-host
ipcmark: bogus-mail-host-in-debian-changelog
";

/// Who answers for a package; whoever publishes one sets `IPCMARK_MAINTAINER`.
fn maintainer() -> String {
    std::env::var("IPCMARK_MAINTAINER")
        .unwrap_or_else(|_| "the authors of ipcmark <ipcmark@localhost>".to_owned())
}

/// The name of the package's file.
pub fn name(platform: &Platform) -> String {
    format!("ipcmark_{VERSION}_{}.deb", platform.debian)
}

/// Makes the package of what lies in `tree`, in `directory`; its files have the date `date_s`.
pub fn make(directory: &Path, date_s: &str, platform: &Platform, tree: &Path) -> Result<(), String> {
    let stage = directory.join("stage");
    let documents = stage.join("usr/share/doc/ipcmark");
    let place = |from: &str, to: &str| -> Result<PathBuf, String> {
        let to = stage.join(to);
        to.parent().map_or(Ok(()), make_directory)?;
        copy(&tree.join(from), &to)?;
        Ok(to)
    };
    place("ipcmark", "usr/bin/ipcmark")?;
    place("completions/ipcmark", "usr/share/bash-completion/completions/ipcmark")?;
    place("completions/_ipcmark", "usr/share/zsh/vendor-completions/_ipcmark")?;
    place("completions/ipcmark.fish", "usr/share/fish/vendor_completions.d/ipcmark.fish")?;
    place("LICENSES-OF-LIBRARIES.txt", "usr/share/doc/ipcmark/LICENSES-OF-LIBRARIES.txt")?;
    place("README.md", "usr/share/doc/ipcmark/README.md")?;
    let mut packed = vec![place("CHANGELOG.md", "usr/share/doc/ipcmark/NEWS.md")?];
    for page in fs::read_dir(tree.join("man")).map_err(|error| error.to_string())?.flatten() {
        let page = page.file_name().to_string_lossy().into_owned();
        packed.push(place(&format!("man/{page}"), &format!("usr/share/man/man1/{page}"))?);
    }
    let mut pages = Command::new("cp");
    step("documents", pages.arg("-R").arg(tree.join("docs")).arg(documents.join("docs")))?;
    write(&documents.join("changelog"), &changelog(date_s)?)?;
    packed.push(documents.join("changelog"));
    write(&documents.join("copyright"), &copyright(date_s)?)?;
    make_directory(&stage.join("usr/share/lintian/overrides"))?;
    write(&stage.join("usr/share/lintian/overrides/ipcmark"), OVERRIDES)?;
    step("compressed pages", Command::new("gzip").arg("-9n").args(&packed))?;

    make_directory(&stage.join("DEBIAN"))?;
    let sums = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum > DEBIAN/md5sums";
    step("sums", Command::new("sh").current_dir(&stage).args(["-c", sums]))?;
    write(&stage.join("DEBIAN/control"), &control(platform, size_kib(&stage)?))?;
    set_modes(&stage)?;
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "--build"]).arg(&stage).arg(directory.join(name(platform)));
    // Every file has the date of the commit.
    step("package", pack.env("SOURCE_DATE_EPOCH", date_s))?;
    fs::remove_dir_all(&stage).map_err(|error| format!("{}: {error}", stage.display()))
}

fn control(platform: &Platform, size_kib: u64) -> String {
    format!(
        "\
Package: ipcmark
Version: {VERSION}
Architecture: {}
Maintainer: {}
Installed-Size: {size_kib}
Section: utils
Priority: optional
Description: measure, explain and choose ways in which processes communicate
 ipcmark measures what a message costs in each of some 60 mechanisms: pipes,
 sockets, message queues, shared memory, signals and others, on one host or
 between two. It explains where the time goes, compares mechanisms, builds and
 kernels, records what a program says, and helps choose.
",
        platform.debian,
        maintainer()
    )
}

/// Debian's form of a changelog, with the one entry that this package needs.
fn changelog(date_s: &str) -> Result<String, String> {
    let date = dated(date_s, "+%a, %d %b %Y %H:%M:%S +0000")?;
    Ok(format!(
        "ipcmark ({VERSION}) unstable; urgency=medium\n\n  * Release {VERSION}. NEWS.md has the changes.\n\n -- {}  {}\n",
        maintainer(),
        date
    ))
}

/// A time in seconds since 1970 in a form of date(1).
fn dated(date_s: &str, form: &str) -> Result<String, String> {
    let said = said(Command::new("date").env("LC_ALL", "C").args(["-u", form, "-d", &format!("@{date_s}")]));
    said.map(|date| date.trim().to_owned()).ok_or_else(|| "date(1) does not know this time".to_owned())
}

/// In the form that Debian's machine-readable copyright files have, version 1.0.
fn copyright(date_s: &str) -> Result<String, String> {
    let year = dated(date_s, "+%Y")?;
    let mit =
        fs::read_to_string(root().join("LICENSE-MIT")).map_err(|error| format!("LICENSE-MIT: {error}"))?;
    let indented: String = mit
        .lines()
        .map(|line| if line.trim().is_empty() { " .\n".to_owned() } else { format!(" {line}\n") })
        .collect();
    Ok(format!(
        "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ipcmark
Comment: LICENSES-OF-LIBRARIES.txt has the licences of the libraries in it.

Files: *
Copyright: {year} the authors of ipcmark
License: Apache-2.0 or Expat

License: Apache-2.0
 On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.

License: Expat
{indented}"
    ))
}

/// The KiB of all files, as dpkg counts them.
fn size_kib(stage: &Path) -> Result<u64, String> {
    let said = said(Command::new("du").args(["-sk", "--apparent-size", "--exclude=DEBIAN"]).arg(stage));
    let said = said.ok_or("du does not tell the size")?;
    said.split_whitespace().next().and_then(|size| size.parse().ok()).ok_or_else(|| format!("du says {said}"))
}

/// Directories and the binary may be entered and run by everybody; files are read. The umask of who builds changes nothing.
fn set_modes(directory: &Path) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).map_err(wrong)?;
    for entry in fs::read_dir(directory).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.is_dir() {
            set_modes(&path)?;
        } else {
            let mode = if path.ends_with("usr/bin/ipcmark") { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(wrong)?;
        }
    }
    Ok(())
}

/// Has Debian's checker look at the package, puts its files into an empty tree, runs what is there, and removes them.
pub fn check(package: &Path) -> Result<(), String> {
    step("lintian", Command::new("lintian").args(["--fail-on", "error,warning"]).arg(package))?;
    let tree = package.with_extension("installed");
    let database = tree.join("var/lib/dpkg");
    for name in ["info", "updates", "triggers"] {
        make_directory(&database.join(name))?;
    }
    write(&database.join("status"), "")?;
    write(&database.join("available"), "")?;
    let dpkg = |arguments: &[&str]| {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", tree.display()));
        // Documents are left out of images of containers; here every file is to come.
        command.args(["--force-not-root", "--path-include=*"]).args(arguments);
        command
    };
    step("install", dpkg(&["--install"]).arg(package))?;
    let installed = tree.join("usr/bin/ipcmark");
    let version = said(Command::new(&installed).arg("--version")).unwrap_or_default();
    if version.trim() != format!("ipcmark {VERSION}") {
        return Err(format!("the installed {} says '{version}'", installed.display()));
    }
    let files = [
        "man/man1/ipcmark.1.gz",
        "doc/ipcmark/copyright",
        "doc/ipcmark/docs/reference/scenario.md",
        "bash-completion/completions/ipcmark",
    ];
    for file in files {
        if !tree.join("usr/share").join(file).is_file() {
            return Err(format!("the package installs no usr/share/{file}"));
        }
    }
    step("a trial", Command::new(&installed).args(["run", "pipe", "-s", "1", "--rounds", "1"]))?;
    step("remove", &mut dpkg(&["--purge", "ipcmark"]))?;
    if tree.join("usr").exists() {
        return Err("something of the package is left when it is removed".to_owned());
    }
    Ok(())
}
