//! Takes the chart library out of the crate that carries it and packs it for the page. It draws nothing.
//!
//! The `plotly` crate carries plotly.js, with MathJax beside it, which no page of ours needs. It is a
//! dependency of this script alone, so that a program that makes pages holds the packed library only:
//! less than half of its size, in every page too.

#![expect(clippy::disallowed_macros, reason = "what a build script prints is for cargo")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    const SCRIPT: &str = "src/html/page.js";
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SCRIPT}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?);
    let sources = plotly::Plot::offline_js_sources();
    let library =
        library(&sources).ok_or("the plotly crate no longer carries plotly.js in a script element")?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(library.as_bytes())?;
    std::fs::write(out.join("plotly.js.gz.base64"), STANDARD.encode(packed.finish()?))?;
    // The page's policy names the scripts that may run by these hashes.
    std::fs::write(out.join("plotly.js.sha256"), STANDARD.encode(Sha256::digest(library)))?;
    std::fs::write(out.join("page.js.sha256"), STANDARD.encode(Sha256::digest(std::fs::read(SCRIPT)?)))?;
    Ok(())
}

/// The text of the script element that holds plotly.js.
fn library(sources: &str) -> Option<&str> {
    const START: &str = "<script type=\"text/javascript\">";
    let scripts = sources.split(START).skip(1).filter_map(|rest| rest.split_once("</script>"));
    scripts.map(|(script, _)| script.trim()).find(|script| script.contains("plotly.js v"))
}
