//! No text commands a terminal: whatever is typed for whatever can be typed, and whatever a file is called.
//!
//! What can be typed is taken from the help, which is made from the definition of the command line: an option that is added is tried.

use crate::cli::{good, results_file};
use crate::common::{IPCMARK, Place, Said, has, run};
use std::ffi::OsStr;

/// Values with what commands a terminal: ESC and what follows it; BEL, C1, DEL, CR and marks of the direction of writing without
/// ESC. No directory is called `none`, so that none of them names a file.
const EVIL: [&str; 2] = [
    "none/a\u{1b}]0;title\u{7}b\u{1b}[2J\u{1b}[31mc\u{1b}Pd",
    "none/a\u{7}b\u{9b}31mc\u{7f}d\u{202e}e\u{2067}f\u{200f}g\rh\u{8}i\u{90}j\nk\u{61c}",
];

/// The first character of `text` that may not be in what is said.
fn command_in(text: &str) -> Option<char> {
    let reorders = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().find(|&c| (c.is_control() && c != '\n' && c != '\t') || reorders(c))
}

#[track_caller]
fn assert_commands_nothing(said: &Said, what: &dyn std::fmt::Debug) {
    let found = command_in(&said.out).or(command_in(&said.err));
    assert_eq!(found, None, "{what:?}\nout: {:?}\nerr: {:?}", said.out, said.err);
    assert!(said.status.code().is_some(), "{what:?}: {said}");
}

/// What follows `heading` in a help text, up to an empty line and a new heading.
fn section<'a>(help: &'a str, heading: &str) -> Vec<&'a str> {
    let after = help.lines().skip_while(|line| line.trim_end() != heading).skip(1);
    after.take_while(|line| line.is_empty() || line.starts_with(' ')).collect()
}

/// Every way to hand a value to the command `words`, and to its sub-commands: the words before the value, and what joins them.
fn places(words: &[String], found: &mut Vec<Vec<String>>) {
    let help =
        run(&mut Place::new().ipcmark(words.iter().map(String::as_str).chain(["--help"]))).expect(0).out;
    for line in section(&help, "Commands:") {
        let indented = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
        if let Some(name) =
            indented.and_then(|rest| rest.split_whitespace().next()).filter(|name| *name != "help")
        {
            places(&[words, &[name.to_owned()]].concat(), found);
        }
    }
    if help.contains("\nArguments:\n") {
        found.push(words.to_vec());
    }
    for line in
        help.lines().map(str::trim_start).filter(|line| line.starts_with('-') && !line.starts_with("- "))
    {
        let long =
            line.split([' ', ',']).find(|word| word.starts_with("--")).unwrap_or_else(|| panic!("{line}"));
        if line.contains(" <") || line.contains("[=<") {
            let name = long.split('[').next().unwrap_or_default();
            found.push([words, &[format!("{name}=")]].concat());
        } else {
            // It takes no value, and says so of one.
            found.push([words, &[format!("{long}=")]].concat());
        }
    }
    // What nobody can type.
    found.push([words, &["--".to_owned()]].concat());
    found.push([words, &["--unknown-".to_owned()]].concat());
}

/// Slow: it types something evil for every option.
#[test]
fn no_argument_commands_a_terminal() {
    let mut found = Vec::new();
    places(&[], &mut found);
    let joined: Vec<String> = found.iter().map(|words| words.join(" ")).collect();
    for known in
        ["run", "run --size=", "compare --fail-above=", "suite check", "man --directory=", "predict --costs="]
    {
        assert!(joined.iter().any(|place| place == known), "{known} is not tried: {joined:#?}");
    }
    assert!(found.len() > 150, "{joined:#?}");
    for words in &found {
        for evil in EVIL {
            let mut words = words.clone();
            match words.last_mut().filter(|word| word.starts_with("--") && *word != "--") {
                Some(option) => option.push_str(evil),
                None => words.push(evil.to_owned()),
            }
            // Nothing is measured where a value is taken after all.
            let dry = if words[0] == "run" { &["--dry-run"][..] } else { &[] };
            let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
            words.splice(at..at, dry.iter().map(|&word| word.to_owned()));
            let said = run(Place::new().ipcmark(&words).env("CLICOLOR_FORCE", "1"));
            assert_commands_nothing(&said, &words);
        }
    }
}

#[test]
fn what_nobody_types_does_not_command_a_terminal() {
    for evil in EVIL {
        for words in [
            &["__tracer", evil][..],
            &["__recorded", evil],
            &["__recorded", "1", evil],
            &["__try_probe", evil],
            &["__hold", evil],
            &["__janitor", evil],
            &["endpoint", "--child-of", evil],
            &["endpoint", evil],
            &[evil],
            &["record", "--time", "1s", "--", evil],
            &["run", "--server-via", evil, "tcp", "--rounds", "1"],
            &["endpoint", "check", evil],
        ] {
            assert_commands_nothing(&run(&mut Place::new().ipcmark(words)), &words);
        }
    }
}

#[test]
fn no_name_of_a_file_commands_a_terminal() {
    for name in EVIL.map(|evil| evil.trim_start_matches("none/")) {
        let place = Place::new();
        results_file(&place, name, good());
        place.file("bad.jsonl", "x");
        for words in [
            &["report", name][..],
            &["report", name, name],
            &["report", "bad.jsonl", name],
            &["report", name, "--html", name],
            &["report", name, "--svg", name],
            &["report", name, "--html", "a\u{1b}[31m\u{202e}.html"],
            &["compare", name, name],
            &["explain", name],
            &["run", name],
            &["run", "./a\u{1b}[31m\u{9b}.toml"],
            &["replay", name],
            &["predict", name, "--set", "a=pipe"],
            &["suite", "check", name],
            &["run", "tsc", "--rounds", "1", "--iterations", "9", "-o", "b\u{1b}[31m\u{9b}\u{202e}.jsonl"],
            &["run", "tsc", "--rounds", "1", "--iterations", "9", "-o", name],
        ] {
            assert_commands_nothing(&run(&mut place.ipcmark(words)), &words);
        }
        // As `report *` names it, where it is taken for what it looks like.
        assert_commands_nothing(
            &run(&mut place.ipcmark([OsStr::new("report"), OsStr::new(&format!("-{name}"))])),
            &name,
        );
        // And the directory for temporary files.
        let run_of =
            ["run", "pipe", "fifo", "-s", "1", "-p", "unpinned", "--rounds", "1", "--iterations", "9"];
        std::fs::create_dir(place.path(&format!("tmp-{name}"))).unwrap();
        assert_commands_nothing(
            &run(place.ipcmark(run_of).env("TMPDIR", place.path(&format!("tmp-{name}")))),
            &name,
        );
    }
}

#[test]
fn colours_that_were_typed_are_not_shown_on_a_terminal() {
    if !has("script", "bsdutils", "what is typed is not tested on a terminal") {
        return;
    }
    // script(1) provides a terminal, on which colours of the program's own are shown.
    let place = Place::new();
    let words = format!("{IPCMARK} run --pre$(printf '\\033[8m')cision");
    let mut command = place.command("script");
    let said = run(command.args(["-qec", &words, "/dev/null"]).env("TERM", "xterm-256color"));
    assert!(said.out.contains("unexpected argument") && !said.out.contains('\u{1b}'), "{said}");
}
