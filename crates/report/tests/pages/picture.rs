//! Pictures of pages, for people to look at. It takes none itself.

use base64::Engine;
use std::path::Path;

/// Keeps a picture or a print, which is in base64, if that is asked for by `IPCMARK_SCREENSHOTS=DIR`.
pub fn keep(name: &str, base64: &str) {
    let Some(directory) = std::env::var_os("IPCMARK_SCREENSHOTS") else { return };
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64).unwrap();
    std::fs::write(Path::new(&directory).join(name), bytes).unwrap();
}
