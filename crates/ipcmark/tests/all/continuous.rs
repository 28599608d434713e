//! The scripts of `ci/`, as the action and the template run them, with builds that only copy the binary under test. The services that
//! run them are played: a program for GitHub's `gh`, a listener for GitLab's API.

use crate::common::{IPCMARK, Place, Said, run, tool_is_missing};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci");
/// What `build` runs: the binary, where the scripts look for it.
const BUILD: &str = "mkdir -p out && cp \"$TESTED\" out/ipcmark";

/// A clone with a base, `base`, and one more commit.
fn clone(place: &Place) -> bool {
    let script = "git init -q -b main clone && cd clone && git config user.email a@localhost && git config user.name a &&
        echo out > .gitignore && git add . && git commit -qm base && git tag base && git commit -qm head --allow-empty";
    if Command::new("git").arg("--version").output().is_err() {
        tool_is_missing("git", "git", "the scripts of ci/ are not tested");
        return false;
    }
    run(place.command("sh").args(["-c", script])).expect(0);
    true
}

/// `ci/NAME ARGUMENTS` in the clone.
fn script(place: &Place, name: &str, arguments: &[&str]) -> Command {
    let mut command = place.command("sh");
    command.arg(Path::new(SCRIPTS).join(name)).args(arguments).current_dir(place.path("clone"));
    command.env("TESTED", IPCMARK).env("IPCMARK_BUILD", BUILD).env("IPCMARK_BINARY", "out/ipcmark");
    command.env("IPCMARK_BASE", "base");
    command
}

fn compare(place: &Place, arguments: &str) -> Said {
    let arguments = format!("pipe -s 1 -p same-core {arguments}");
    run(script(place, "compare.sh", &[]).env("IPCMARK_ARGUMENTS", arguments))
}

fn comment(place: &Place) -> String {
    fs::read_to_string(place.path("clone/ipcmark-comparison/comment.md")).unwrap()
}

/// Nothing of the base's tree is left, neither its files nor what git knows of it.
fn assert_only_the_clone_is_left(place: &Place) {
    let trees =
        run(place.command("git").args(["worktree", "list"]).current_dir(place.path("clone"))).expect(0);
    assert_eq!(trees.out.lines().count(), 1, "{}", trees.out);
    place.assert_nothing_is_left("a comparison");
}

/// Slow: it measures two builds.
#[test]
fn a_slower_build_is_told_by_status_and_comment() {
    let place = Place::new();
    if !clone(&place) {
        return;
    }
    let said = compare(&place, "--inject 60% --time 5m").expect(3);
    let comment = comment(&place);
    assert!(comment.starts_with("<!-- ipcmark -->\n"), "{comment}");
    assert!(comment.contains("**A case is slower by more than 5%.**"), "{comment}");
    assert!(comment.contains(said.out.trim_end()), "{comment}");
    assert_only_the_clone_is_left(&place);

    let said = compare(&place, "--no-such-option").expect(2);
    assert!(said.err.contains("ipcmark refused what it was asked for"), "{said}");
    assert_only_the_clone_is_left(&place);
}

#[test]
fn what_cannot_be_built_or_found_is_named() {
    let place = Place::new();
    if !clone(&place) {
        return;
    }
    let said = run(script(&place, "compare.sh", &[]).env("IPCMARK_BASE", "nowhere")).expect(2);
    assert!(said.err.contains("git knows no commit nowhere; fetch it first"), "{said}");
    let said = run(script(&place, "compare.sh", &[]).env("IPCMARK_BUILD", "false")).expect(1);
    assert!(said.err.contains("'false' failed"), "{said}");
    let said = run(script(&place, "compare.sh", &[]).env("IPCMARK_BUILD", "true")).expect(1);
    assert!(said.err.contains("made no"), "{said}");
    assert_only_the_clone_is_left(&place);
    let said = run(&mut script(&place, "comment.sh", &["github"])).expect(2);
    assert!(said.err.contains("comment.md is missing; run compare.sh first"), "{said}");
}

/// A clone in which a comparison has left a comment.
fn commented(place: &Place) -> bool {
    clone(place) && {
        fs::create_dir(place.path("clone/ipcmark-comparison")).unwrap();
        fs::write(place.path("clone/ipcmark-comparison/comment.md"), "<!-- ipcmark -->\na & b = 5%\n")
            .unwrap();
        true
    }
}

#[test]
fn a_comment_goes_to_github_by_its_program() {
    let place = Place::new();
    if !commented(&place) {
        return;
    }
    let gh = place.file("gh", "#!/bin/sh\nprintf '%s\\n' \"$@\"\n");
    fs::set_permissions(&gh, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", gh.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let said = run(script(&place, "comment.sh", &["github"]).env("PATH", path).env("IPCMARK_REQUEST", "23"));
    let expected =
        "pr\ncomment\n23\n--body-file\nipcmark-comparison/comment.md\n--edit-last\n--create-if-none\n";
    assert_eq!(said.expect(0).out, expected);
    let said = run(&mut script(&place, "comment.sh", &["github"])).expect(2);
    assert!(said.err.contains("IPCMARK_REQUEST is not set"), "{said}");
}

#[test]
fn a_comment_goes_to_gitlab_by_its_api() {
    let place = Place::new();
    if !commented(&place) {
        return;
    }
    if Command::new("curl").arg("--version").output().is_err() {
        return tool_is_missing("curl", "curl", "a comment on GitLab is not tested");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        let mut head = Vec::new();
        while head.last().is_none_or(|line: &String| line != "\r\n") {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            head.push(line);
        }
        let length = head
            .iter()
            .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap()];
        reader.read_exact(&mut body).unwrap();
        (&stream).write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        (head, String::from_utf8(body).unwrap())
    });
    let mut command = script(&place, "comment.sh", &["gitlab"]);
    command.env("CI_API_V4_URL", format!("http://{address}/api/v4")).env("CI_PROJECT_ID", "7");
    let said = run(&mut command).expect(2);
    assert!(said.err.contains("IPCMARK_TOKEN is not set"), "{said}");
    run(command.env("CI_MERGE_REQUEST_IID", "23").env("IPCMARK_TOKEN", "secret")).expect(0);
    let (head, body) = server.join().unwrap();
    assert_eq!(head[0], "POST /api/v4/projects/7/merge_requests/23/notes HTTP/1.1\r\n");
    assert!(head.iter().any(|line| line == "PRIVATE-TOKEN: secret\r\n"), "{head:?}");
    // A blank has two forms, and curl has used both.
    assert_eq!(body.replace("%20", "+"), "body=%3C%21--+ipcmark+--%3E%0Aa+%26+b+%3D+5%25%0A");
}
