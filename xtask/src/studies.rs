//! The table of the studies' conclusions in docs/studies.md, from results files. What is in it is the program's own
//! `report --format conclusions`.

use crate::steps::{cargo, root};
use std::fs;
use std::path::Path;

const PAGE: &str = "docs/studies.md";
/// What stands before and after the table.
const BEGIN: &str = "<!-- conclusions: begin -->\n";
const END: &str = "<!-- conclusions: end -->\n";

/// Puts the conclusions of the results `files` into the page.
pub fn write(files: &[&str]) -> Result<(), String> {
    // Named from where the task was started; the build runs at the root.
    let absolute =
        files.iter().map(|file| Path::new(file).canonicalize().map_err(|error| format!("{file}: {error}")));
    let absolute = absolute.collect::<Result<Vec<_>, String>>()?;
    let mut report =
        cargo(&["run", "--quiet", "--package", "ipcmark", "--", "report", "--format", "conclusions"]);
    let output =
        report.args(absolute).output().map_err(|error| format!("{report:?} cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let path = root().join(PAGE);
    let page = fs::read_to_string(&path).map_err(|error| format!("{PAGE}: {error}"))?;
    let page = with_conclusions(&page, &String::from_utf8_lossy(&output.stdout))?;
    fs::write(&path, page).map_err(|error| format!("{PAGE}: {error}"))
}

/// `page` with `conclusions` between its two marks.
fn with_conclusions(page: &str, conclusions: &str) -> Result<String, String> {
    let (before, rest) = page.split_once(BEGIN).ok_or_else(|| format!("{PAGE} has no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| format!("{PAGE} has no line {END}"))?;
    Ok(format!("{before}{BEGIN}\n{conclusions}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_the_marks_is_replaced() {
        let page = format!("a\n{BEGIN}old\n{END}b\n");
        let once = with_conclusions(&page, "new\n").unwrap();
        assert_eq!(once, format!("a\n{BEGIN}\nnew\n\n{END}b\n"));
        assert_eq!(with_conclusions(&once, "new\n").unwrap(), once);
        assert!(with_conclusions("a\n", "new").unwrap_err().contains(PAGE));
    }

    #[test]
    fn the_page_has_the_marks() {
        let page = fs::read_to_string(root().join(PAGE)).unwrap();
        assert!(with_conclusions(&page, "").is_ok());
    }
}
