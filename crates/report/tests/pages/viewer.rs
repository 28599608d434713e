//! Where the trace viewer of Chromium's developers (Catapult, the page `chrome://tracing`) lies on this machine. It opens nothing.
//!
//! Debian builds Chromium without that page. Go's sources have it as a file, for `go tool trace`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The viewer, and what it needs of browsers that browsers no longer have.
pub const FILES: [&str; 2] = ["webcomponents.min.js", "trace_viewer_full.html"];
/// What puts it there on Debian and its kin.
pub const PACKAGE: &str = "golang-src";

/// Where Go's sources have it, the newer place first.
const WITHIN: [&str; 2] = ["src/internal/trace/traceviewer/static", "src/cmd/trace/static"];

/// The directory that has [`FILES`].
pub fn directory() -> Option<PathBuf> {
    let go = Command::new("go").args(["env", "GOROOT"]).output().ok();
    let go = go.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let packaged = std::fs::read_dir("/usr/share").into_iter().flatten().flatten();
    let packaged = packaged.filter(|entry| entry.file_name().to_string_lossy().starts_with("go-"));
    let roots = go.into_iter().chain(packaged.map(|entry| entry.path()));
    let places = roots.flat_map(|root| WITHIN.map(|within| root.join(within)));
    places.into_iter().find(|place| has_all(place))
}

fn has_all(place: &Path) -> bool {
    FILES.iter().all(|file| place.join(file).is_file())
}
