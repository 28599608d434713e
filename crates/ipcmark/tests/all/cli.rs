//! What the binary says and how it ends: transcripts, and what becomes of bad input, bad files and bad outputs.
//!
//! The transcripts in `cli/*.md` hold all that is the same on every host; `TRYCMD=overwrite` and
//! `SNAPSHOTS=overwrite` write them and the texts in this file anew. No number that was measured is tested
//! here.

use crate::common::{self, IPCMARK, Place, Running, Said, TIMEOUT, has, read, run};
use mechanisms::registry::CARDS;
use serde_json::Value;
use snapbox::{assert_data_eq, str};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

#[test]
fn transcripts() {
    trycmd::TestCases::new()
        .register_bin("ipcmark", Path::new(IPCMARK))
        .env("COLUMNS", "100")
        .timeout(TIMEOUT)
        .case("tests/cli/*.md");
}

/// The lines of a good results file: one short run of two cases, made once.
pub fn good() -> &'static [String] {
    static LINES: OnceLock<Vec<String>> = OnceLock::new();
    LINES.get_or_init(|| {
        let place = Place::new();
        let arguments = ["run", "pipe", "unix-stream", "-s", "64", "-p", "unpinned"];
        let effort = ["--iterations", "30", "--rounds", "8", "-o", "good.jsonl"];
        run(&mut place.ipcmark(arguments.iter().chain(&effort))).expect(0);
        let text = fs::read_to_string(place.path("good.jsonl")).unwrap();
        text.lines().map(ToOwned::to_owned).collect()
    })
}

/// A results file of `lines` in `place`.
pub fn results_file(place: &Place, name: &str, lines: &[String]) {
    place.file(name, lines.join("\n") + "\n");
}

/// The lines of a good file, after `edit` of the JSON of line `at`.
pub fn edited(at: usize, edit: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut lines = good().to_vec();
    let mut value: Value = serde_json::from_str(&lines[at]).unwrap();
    edit(&mut value);
    lines[at] = value.to_string();
    lines
}

/// The index of the line of the record of `name`.
pub fn line_of(name: &str) -> usize {
    let is = |line: &String| {
        let value: Value = serde_json::from_str(line).unwrap();
        value["type"] == "record" && value["case"]["spec"]["name"] == name
    };
    good().iter().position(is).unwrap()
}

/// `ipcmark report name`, refused; what it says on standard error.
pub fn refused(place: &Place, name: &str) -> String {
    let said = run(&mut place.ipcmark(["report", name])).expect(2);
    assert_eq!(said.out, "");
    said.err
}

pub fn ipcmark<const N: usize>(arguments: [&str; N]) -> Said {
    run(&mut Place::new().ipcmark(arguments))
}

// What it says of itself.

#[test]
fn list_says_why_a_known_name_is_no_row() {
    let all = ipcmark(["list"]).expect(0).out;
    for absent in mechanisms::absent::ABSENT {
        assert!(all.lines().any(|line| line.starts_with(absent.name) && line.contains(absent.why)), "{all}");
        let full = ipcmark(["list", absent.name]).expect(0).out;
        assert!(full.starts_with(&format!("{}: {}\n", absent.name, absent.summary)), "{full}");
        let json: Value =
            serde_json::from_str(&ipcmark(["list", absent.name, "--format=json"]).expect(0).out).unwrap();
        assert_eq!(json[0]["absent"]["why"], absent.why);
        ipcmark(["run", absent.name]).expect(2);
    }
}

#[test]
fn list_has_every_entry_of_the_registry_in_its_order() {
    let said = ipcmark(["list"]).expect(0);
    let mut lines = said.out.lines();
    for card in CARDS {
        let is_row = |line: &str| {
            line.split_once(' ').is_some_and(|(name, rest)| name == card.name && rest.trim() == card.summary)
        };
        assert!(lines.any(is_row), "{} is missing or out of order\n{said}", card.name);
    }
    let rows: Value = serde_json::from_str(&ipcmark(["list", "--format=json"]).expect(0).out).unwrap();
    let names: Vec<&str> =
        rows.as_array().unwrap().iter().map(|row| row["card"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, CARDS.iter().map(|card| card.name).collect::<Vec<_>>());
    for card in CARDS {
        let full = ipcmark(["list", card.name]).expect(0);
        assert!(full.out.starts_with(&format!("{}: {}\n", card.name, card.summary)), "{full}");
        assert!(card.params.iter().all(|param| full.out.contains(&format!("{}=", param.name))), "{full}");
        assert!(full.out.lines().all(|line| line.trim_end() == line), "blank fields\n{full}");
    }
}

#[test]
fn a_placement_that_no_host_has_is_refused_with_the_reason() {
    // A host with two nodes has it; none has a thousand CPUs more than it says.
    let said = ipcmark(["run", "--dry-run", "pipe", "-p", "cross-node"]);
    if said.code() == 0 {
        assert!(said.out.contains("cross-node"), "{said}");
    } else {
        let expected = str![[r#"
ipcmark: nothing that was asked for can be measured here
  pipe latency cross-node: this process may use [..]

"#]];
        assert_data_eq!(said.expect(2).err, expected);
    }
}

#[test]
fn completions_name_the_entries_of_the_registry() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = ipcmark(["completions", shell]).expect(0);
        assert!(said.out.contains("ipcmark"), "{shell}: {said}");
        assert!(said.out.contains("overwrite"), "{shell}: {said}");
    }
    // These two complete values, so that every row can be completed there.
    for shell in ["bash", "zsh"] {
        let said = ipcmark(["completions", shell]).expect(0);
        for card in CARDS {
            assert!(said.out.contains(card.name), "{shell} does not know {}", card.name);
        }
    }
    let place = Place::new();
    place.file("ipcmark.bash", ipcmark(["completions", "bash"]).out);
    run(place.command("bash").args(["-n", "ipcmark.bash"])).expect(0);
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let page = ipcmark(["man"]).expect(0);
    assert!(page.out.contains(".TH ipcmark 1"), "{page}");
    assert!(page.out.contains("bad input"), "the exit codes are missing\n{page}");
    let place = Place::new();
    fs::create_dir(place.path("man1")).unwrap();
    run(&mut place.ipcmark(["man", "--directory", "man1"])).expect(0);
    for command in ["run", "list", "doctor", "report", "compare", "clean", "schema", "completions", "man"] {
        let page = fs::read_to_string(place.path(&format!("man1/ipcmark-{command}.1"))).unwrap();
        assert!(page.contains(".TH"), "{page}");
    }
    let said = run(&mut place.ipcmark(["man", "--directory", "none/such"])).expect(2);
    assert_data_eq!(
        said.err,
        str![[r#"
ipcmark: none/such/ipcmark-run.1 cannot be written: No such file or directory (os error 2)
  name a file in a directory that exists and that you may write

"#]]
    );
}

#[test]
fn the_schema_describes_the_lines_that_are_written() {
    let schema: Value = serde_json::from_str(&ipcmark(["schema"]).expect(0).out).unwrap();
    let kinds = schema["oneOf"].as_array().unwrap();
    for line in good() {
        let line: Value = serde_json::from_str(line).unwrap();
        let of_kind = |kind: &&Value| kind["properties"]["type"]["const"] == line["type"];
        let kind = kinds.iter().find(of_kind).unwrap_or_else(|| panic!("no schema for {line}"));
        let reference = kind["$ref"].as_str().unwrap();
        let described = schema.pointer(reference.trim_start_matches('#')).unwrap();
        let known = described["properties"].as_object().unwrap();
        for name in line.as_object().unwrap().keys().filter(|name| *name != "type") {
            assert!(known.contains_key(name), "{reference} does not know {name}");
        }
        for name in described["required"].as_array().unwrap() {
            assert!(line.get(name.as_str().unwrap()).is_some(), "{reference} requires {name}");
        }
    }
}

// Where results go.

#[test]
fn results_are_overwritten_only_if_asked_for_and_a_bad_place_for_them_is_said_before_measuring() {
    let place = Place::new();
    place.file("old.jsonl", "precious");
    let to = |file: &str| {
        let said = run(&mut place.ipcmark(["run", "tsc", "--rounds", "1", "-o", file])).expect(2);
        assert_eq!(said.out, "");
        said.err
    };
    assert_data_eq!(
        to("old.jsonl"),
        str![[r#"
ipcmark: old.jsonl exists
  name another file, or replace it with --overwrite

"#]]
    );
    assert_eq!(fs::read_to_string(place.path("old.jsonl")).unwrap(), "precious");
    assert_data_eq!(
        to("none/new.jsonl"),
        str![[r#"
ipcmark: none/new.jsonl cannot be written: No such file or directory (os error 2)
  name a file in a directory that exists and that you may write

"#]]
    );
    assert_data_eq!(
        to("tmp"),
        str![[r#"
ipcmark: tmp is a directory
  name a file in it with -o

"#]]
    );
    assert!(place.leftovers().is_empty());
    let line = ["tsc", "--rounds", "1", "--iterations", "9", "-o", "old.jsonl", "--overwrite"];
    run(&mut place.ipcmark(line)).expect(0);
    run(&mut place.ipcmark(["report", "old.jsonl"])).expect(0);
}

#[test]
fn bad_input_makes_no_results_file() {
    let place = Place::new();
    run(&mut place.ipcmark(["run", "pipe", "-p", "cpus=9999,9999", "-o", "new.jsonl"])).expect(2);
    assert!(!place.path("new.jsonl").exists());
    let mut homeless = place.ipcmark(["run", "tsc", "--rounds", "1", "-o", "new.jsonl"]);
    let said = run(homeless.env("TMPDIR", "/nonexistent"));
    // Whether a run does without names or not: a run that is refused leaves no file that stands in the way of the next.
    assert_eq!(place.path("new.jsonl").exists(), said.code() == 0, "{said}");
}

#[test]
fn a_results_file_that_refuses_is_said_and_what_was_measured_is_shown() {
    let said = ipcmark(["run", "tsc", "--rounds", "1", "--iterations", "9", "-o", "/dev/full"]).expect(1);
    assert!(said.out.contains("tsc"), "{said}");
    assert!(said.out.contains("the results file is incomplete"), "{said}");
    assert_data_eq!(
        said.err.lines().last().unwrap().to_owned(),
        str!["ipcmark: write /dev/full: No space left on device (os error 28) ([..])"]
    );
}

#[test]
fn names_that_are_not_utf8_are_names_all_the_same() {
    let place = Place::new();
    let name = OsStr::from_bytes(b"\xff\xfe.jsonl");
    let arguments = ["run", "tsc", "--rounds", "1", "--iterations", "9", "-o"].map(OsStr::new);
    run(&mut place.ipcmark(arguments.iter().copied().chain([name]))).expect(0);
    run(&mut place.ipcmark([OsStr::new("report"), name])).expect(0);
    for arguments in [["run", "-s"], ["run", "-w"], ["run", "-p"], ["list", "--format=json"]] {
        run(&mut place.ipcmark(arguments.map(OsStr::new).iter().copied().chain([name]))).expect(2);
    }
}

// Files that are read.

#[test]
fn text_in_a_suite_cannot_command_a_terminal() {
    let place = Place::new();
    for (name, text) in [
        ("string.toml", "name = \"\u{1b}[31mred\u{7}\""),
        ("key.toml", "\u{1b}]0;title\u{7} = 1"),
        (
            "list.toml",
            "name='n'\nsummary='s'\nprecision='2%'\ntime='1s'\n[[block]]\nmechanisms=[\"\\u001b[31m\"]\nworkloads=['latency']\nplacements=['smt']",
        ),
    ] {
        place.file(name, text);
        let said = run(place.ipcmark(["run", name]).env("CLICOLOR_FORCE", "1")).expect(2);
        assert!(!said.err.contains(|c: char| c.is_control() && c != '\n'), "{name}: {:?}", said.err);
    }
}

// Pages and figures.

#[test]
fn pages_and_figures_are_made_and_can_be_made_again() {
    let place = Place::new();
    results_file(&place, "good.jsonl", good());
    let line = ["report", "good.jsonl", "--html", "page.html"];
    run(&mut place.ipcmark(line)).expect(0);
    run(&mut place.ipcmark(line)).expect(2);
    let said = run(place.ipcmark(line).arg("--overwrite")).expect(0);
    assert!(said.out.starts_with("wrote page.html, "), "{said}");
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.len() < 6_000_000);
    assert!(page.contains("ipcmark report good.jsonl --html page.html"), "the command is not on the page");
    let listed: Vec<_> =
        fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(listed.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{listed:?}");
}

#[test]
fn what_exists_is_not_replaced_and_a_bad_place_is_said() {
    let place = Place::new();
    results_file(&place, "good.jsonl", good());
    let before = fs::read_to_string(place.path("good.jsonl")).unwrap();
    let to = |option: &str, file: &str| {
        run(&mut place.ipcmark(["report", "good.jsonl", option, file])).expect(2).err
    };
    assert_data_eq!(
        to("--html", "good.jsonl"),
        str![[r#"
ipcmark: good.jsonl exists
  name another file, or replace it with --overwrite

"#]]
    );
    assert_eq!(fs::read_to_string(place.path("good.jsonl")).unwrap(), before);
    assert_data_eq!(
        to("--html", "none/such/page.html"),
        str![[r#"
ipcmark: none/such/page.html cannot be written: No such file or directory (os error 2)
  name a file in a directory that exists and that you may write

"#]]
    );
    assert!(to("--metric", "p9").contains("did you mean 'p99'?"));
    let full = run(&mut place.ipcmark(["report", "good.jsonl", "--html", "/dev/full"])).expect(1);
    assert!(full.err.contains("write /dev/full: No space left on device"), "{full}");
}

// Comparisons.

/// A good file in which every slice of `name` takes `iteration_ns`, but for a trace of noise.
fn steady(name: &str, iteration_ns: f64) -> Vec<String> {
    let lines: Vec<Value> = good().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cases = lines[0]["plan"]["cases"].as_array().unwrap();
    let place = cases.iter().position(|case| case["spec"]["name"] == name).unwrap();
    let mut slices = 0;
    let steady = |mut line: Value| {
        if line["type"] == "sample" && line["case"] == place {
            let sample = &mut line["sample"];
            let iterations = sample["iterations"].as_f64().unwrap();
            sample["elapsed_ns"] = (iterations * iteration_ns * (1.0 + 0.001 * f64::from(slices))).into();
            sample["floor_ns"] = 1000.0.into();
            slices += 1;
        }
        line.to_string()
    };
    let steady = lines.into_iter().map(steady).collect();
    assert_eq!(slices, 8, "slices of {name}");
    steady
}

#[test]
fn a_comparison_fails_only_when_b_is_slower_than_is_allowed() {
    let place = Place::new();
    results_file(&place, "a.jsonl", &steady("pipe", 5000.0));
    results_file(&place, "b.jsonl", &steady("pipe", 10_000.0));
    let compare = |before: &str, after: &str, more: &[&str]| {
        run(&mut place.ipcmark(["compare", before, after].iter().chain(more)))
    };
    let slower = compare("a.jsonl", "b.jsonl", &["--fail-above", "50%"]).expect(3);
    assert!(slower.out.contains("2.0 times as long"), "{slower}");
    compare("a.jsonl", "b.jsonl", &["--fail-above", "0.001%"]).expect(3);
    compare("a.jsonl", "b.jsonl", &["--fail-above", "50%", "--format=json"]).expect(3);
    compare("a.jsonl", "b.jsonl", &[]).expect(0);
    let faster = compare("b.jsonl", "a.jsonl", &["--fail-above", "1%", "--undecided", "pass"]).expect(0);
    assert!(faster.out.contains("50% less"), "{faster}");
    // Nothing is known so well.
    compare("a.jsonl", "a.jsonl", &["--fail-above", "0.001%"]).expect(4);
    compare("a.jsonl", "a.jsonl", &["--fail-above", "0.001%", "--undecided", "pass"]).expect(0);
}

#[test]
fn a_comparison_has_a_page_with_its_answer_and_its_ratios() {
    let place = Place::new();
    results_file(&place, "a.jsonl", &steady("pipe", 5000.0));
    results_file(&place, "b.jsonl", &steady("pipe", 10_000.0));
    let arguments = ["compare", "a.jsonl", "b.jsonl", "--html", "page.html"];
    run(&mut place.ipcmark(arguments)).expect(0);
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains("2.0 times as long") && page.contains("time of B over that of A"), "{page}");
    assert!(page.contains("<svg") && !page.contains("<script"), "{page}");
    let said = run(&mut place.ipcmark(arguments)).expect(2);
    assert!(said.err.contains("page.html exists") && said.out.is_empty(), "{said}");
    run(place.ipcmark(arguments).arg("--overwrite")).expect(0);
    run(place.ipcmark(arguments).arg("--plan")).expect(2);
}

#[test]
fn an_answer_is_kept_as_json_beside_what_is_printed() {
    let place = Place::new();
    results_file(&place, "a.jsonl", &steady("pipe", 5000.0));
    results_file(&place, "b.jsonl", &steady("pipe", 10_000.0));
    let arguments = ["compare", "a.jsonl", "b.jsonl", "-o", "answer.json"];
    let printed = run(&mut place.ipcmark(arguments)).expect(0);
    assert!(printed.out.contains("2.0 times as long"), "{printed}");
    let kept = fs::read_to_string(place.path("answer.json")).unwrap();
    let json = run(&mut place.ipcmark(["compare", "a.jsonl", "b.jsonl", "--format=json"])).expect(0);
    assert_eq!(kept, json.out);
    let said = run(&mut place.ipcmark(arguments)).expect(2);
    assert!(said.err.contains("answer.json exists") && said.out.is_empty(), "{said}");
    // What cannot be kept is printed all the same.
    for option in ["-o", "--html"] {
        let said = run(&mut place.ipcmark(["compare", "a.jsonl", "b.jsonl", option, "/dev/full"])).expect(1);
        assert!(said.out == printed.out && said.err.contains("/dev/full"), "{said}");
    }
}

#[test]
fn a_file_is_not_compared_with_a_mechanism() {
    let place = Place::new();
    results_file(&place, "a.jsonl", good());
    for (before, after) in [("a.jsonl", "pipe"), ("pipe", "a.jsonl")] {
        assert_data_eq!(
            run(&mut place.ipcmark(["compare", before, after])).expect(2).err,
            str![[r#"
ipcmark: 'pipe' is a mechanism, and 'a.jsonl' a file
  name two mechanisms, or two results files

"#]]
        );
    }
    // A file that is called like a mechanism is a file.
    results_file(&place, "pipe", good());
    run(&mut place.ipcmark(["compare", "a.jsonl", "pipe"])).expect(0);
}

// Where output goes.

/// Commands that print much and little.
const PRINTING: [&[&str]; 9] = [
    &["list"],
    &["list", "--format=json"],
    &["doctor"],
    &["schema"],
    &["man"],
    &["completions", "bash"],
    &["clean"],
    &["report", "good.jsonl"],
    &["run", "tsc", "--rounds", "1", "--iterations", "9"],
];

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let place = Place::new();
    results_file(&place, "good.jsonl", good());
    for arguments in PRINTING {
        // The reading end is closed before anything is written, so that the very first write meets it.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let said = Running::start_with(place.ipcmark(arguments).stdout(writer)).finish().expect(0);
        assert!(!said.err.contains("ipcmark:"), "{arguments:?}: {said}");
    }
    let mut shell = place.command("sh");
    let said = run(shell.args(["-c", "{ \"$0\" list; echo $? >&2; } | head -1", IPCMARK])).expect(0);
    assert_eq!((said.out.lines().count(), said.err.trim()), (1, "0"), "{said}");
}

#[test]
fn a_full_standard_output_is_an_error_and_no_panic() {
    let place = Place::new();
    results_file(&place, "good.jsonl", good());
    for arguments in PRINTING {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let said = Running::start_with(place.ipcmark(arguments).stdout(full)).finish().expect(1);
        assert_data_eq!(
            said.err.lines().last().unwrap().to_owned(),
            str!["ipcmark: write standard output: No space left on device (os error 28) (send it elsewhere)"]
        );
    }
    place.assert_nothing_is_left("a full standard output");
}

#[test]
fn nobody_who_reads_standard_error_is_no_reason_to_fail() {
    let place = Place::new();
    for (arguments, code) in [
        (["run", "tsc", "--rounds", "1", "--iterations", "9"].as_slice(), 0),
        (&["run", "zzz"], 2),
        (&["run", "-s", "0..4"], 2),
        (&["report", "missing"], 2),
    ] {
        for sink in ["closed", "full"] {
            let mut command = place.ipcmark(arguments);
            if sink == "full" {
                command.stderr(File::options().write(true).open("/dev/full").unwrap());
            } else {
                let (reader, writer) = std::io::pipe().unwrap();
                drop(reader);
                command.stderr(writer);
            }
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{arguments:?} with standard error {sink}");
        }
    }
    place.assert_nothing_is_left("a standard error that nobody reads");
}

#[test]
fn output_that_is_piped_or_not_to_be_coloured_has_no_escape_codes() {
    let place = Place::new();
    results_file(&place, "good.jsonl", good());
    for arguments in PRINTING {
        let said = run(&mut place.ipcmark(arguments)).expect(0);
        assert!(!said.out.contains('\u{1b}') && !said.err.contains('\u{1b}'), "{arguments:?}: {said}");
    }
    // script(1) provides a terminal, on which colour would be shown.
    let on_a_terminal = |no_color: Option<&str>| {
        let mut command = place.command("script");
        command
            .args(["-qec", &format!("{IPCMARK} report good.jsonl"), "/dev/null"])
            .env("TERM", "xterm-256color");
        no_color.map(|value| command.env("NO_COLOR", value));
        run(&mut command)
    };
    if !has("script", "bsdutils", "NO_COLOR is not tested on a terminal") {
        return;
    }
    let plain = on_a_terminal(Some("1"));
    assert!(plain.out.contains("pipe") && !plain.out.contains('\u{1b}'), "{plain}");
    let coloured = on_a_terminal(None);
    assert!(
        coloured.out.contains('\u{1b}'),
        "colour is never shown, so that NO_COLOR shows nothing: {coloured}"
    );
}

#[test]
fn times_that_no_clock_holds_are_as_good_as_for_ever() {
    let place = Place::new();
    for timeout in ["300000000000y", "584000000000y"] {
        let arguments = ["run", "pipe", "-p", "unpinned", "--rounds", "1", "--iterations", "9"];
        let forever = ["--timeout", timeout, "--time", timeout, "-o", timeout];
        run(&mut place.ipcmark(arguments.iter().chain(&forever))).expect(0);
        common::assert_none_failed(&read(&place.path(timeout)));
    }
    let mut forever = place.ipcmark(["compare", "null", "null:delay=1us", "-p", "same-core"]);
    let running = Running::start(forever.args(["--time", "584000000000y", "--precision", "100%"]));
    let said = running.finish().expect(0);
    assert!(said.out.contains("null"), "{said}");
}
