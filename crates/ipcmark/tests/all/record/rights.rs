//! ptrace takes from a program the rights that its file gives: it is not recorded so unless that was asked for, and it is said.

use super::Place;
use crate::common::{run, skip};
use crate::restricted::{open_place, ordinary, root};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A program of root's whose file gives its rights, in `place`.
fn privileged(place: &Place) {
    let path = place.path("privileged");
    assert!(Command::new("cp").arg("/bin/cat").arg(&path).status().unwrap().success());
    std::fs::set_permissions(&path, Permissions::from_mode(0o4755)).unwrap();
}

#[test]
fn who_would_lose_rights_is_not_traced_unless_that_was_asked_for() {
    if !root() {
        return skip(
            "it takes root to make a file that gives its rights; run `sudo cargo xtask test`",
            "recording a setuid program",
        );
    }
    let place = open_place();
    privileged(&place);
    let record = |arguments: &[&str]| run(ordinary(&place, "./ipcmark").arg("record").args(arguments));
    // All that is left to an ordinary user is ptrace.
    let refused = record(&["--", "./privileged", "/dev/null"]).expect(1);
    for word in ["./privileged", "setuid", "--by ptrace"] {
        assert!(refused.err.contains(word), "{word}: {refused}");
    }
    let asked = record(&["--by", "ptrace", "--", "./privileged", "/dev/null"]).expect(1);
    assert!(asked.err.contains("1 × runs of") && asked.err.contains("ptrace takes"), "{asked}");
    let child = record(&["--", "sh", "-c", "seq 1 999 | ./privileged | wc -l >/dev/null"]).expect(0);
    let said = child.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("1 × runs of") && said.contains("privileged were without the rights"), "{child}");
}
