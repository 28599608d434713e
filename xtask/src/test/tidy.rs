//! `cargo xtask tidy`: what must hold in the sources and no compiler checks. It changes nothing.

mod breach;
mod house;
mod imports;
mod length;
mod links;
mod names;
mod source_file;

use crate::steps::root;
use breach::Breach;
use source_file::SourceFile;
/// A check: what it is called, and what it finds wrong in the sources.
type Check = (&'static str, fn(&[SourceFile]) -> Vec<Breach>);

const CHECKS: [Check; 5] = [
    ("house", house::check),
    ("public types of one name in two crates", names::check),
    ("circles of imports between files", imports::check),
    ("long files", length::check),
    ("links that lead nowhere", links::check),
];

/// Makes every check, and prints all that is wrong.
pub fn check() -> Result<(), String> {
    let sources = source_file::read(root())?;
    let mut counts = Vec::new();
    for (name, check) in CHECKS {
        let breaches = check(&sources);
        breaches.iter().for_each(|breach| println!("{breach}"));
        if !breaches.is_empty() {
            counts.push(format!("{name}: {}", breaches.len()));
        }
    }
    if counts.is_empty() { Ok(()) } else { Err(format!("tidy: {}", counts.join("; "))) }
}
