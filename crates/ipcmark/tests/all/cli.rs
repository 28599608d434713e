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
fn good() -> &'static [String] {
    static LINES: OnceLock<Vec<String>> = OnceLock::new();
    LINES.get_or_init(|| {
        let place = Place::new();
        let arguments = ["run", "-m", "pipe", "-m", "unix-stream", "-s", "64", "-p", "unpinned"];
        let effort = ["--iterations", "30", "--rounds", "8", "-o", "good.jsonl"];
        run(&mut place.ipcmark(arguments.iter().chain(&effort))).expect(0);
        let text = fs::read_to_string(place.path("good.jsonl")).unwrap();
        text.lines().map(ToOwned::to_owned).collect()
    })
}

/// A results file of `lines` in `place`.
fn results_file(place: &Place, name: &str, lines: &[String]) {
    place.file(name, lines.join("\n") + "\n");
}

/// The lines of a good file, after `edit` of the JSON of line `at`.
fn edited(at: usize, edit: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut lines = good().to_vec();
    let mut value: Value = serde_json::from_str(&lines[at]).unwrap();
    edit(&mut value);
    lines[at] = value.to_string();
    lines
}

/// The index of the line of the record of `name`.
fn line_of(name: &str) -> usize {
    let is = |line: &String| {
        let value: Value = serde_json::from_str(line).unwrap();
        value["type"] == "record" && value["case"]["spec"]["name"] == name
    };
    good().iter().position(is).unwrap()
}

/// `ipcmark report name`, refused; what it says on standard error.
fn refused(place: &Place, name: &str) -> String {
    let said = run(&mut place.ipcmark(["report", name])).expect(2);
    assert_eq!(said.out, "");
    said.err
}

fn ipcmark<const N: usize>(arguments: [&str; N]) -> Said {
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
            serde_json::from_str(&ipcmark(["list", absent.name, "--json"]).expect(0).out).unwrap();
        assert_eq!(json[0]["absent"]["why"], absent.why);
        ipcmark(["run", "-m", absent.name]).expect(2);
    }
}

#[test]
fn list_has_every_row_of_the_table_in_its_order() {
    let said = ipcmark(["list"]).expect(0);
    let mut lines = said.out.lines();
    for card in CARDS {
        let is_row = |line: &str| {
            line.split_once(' ').is_some_and(|(name, rest)| name == card.name && rest.trim() == card.summary)
        };
        assert!(lines.any(is_row), "{} is missing or out of order\n{said}", card.name);
    }
    let rows: Value = serde_json::from_str(&ipcmark(["list", "--json"]).expect(0).out).unwrap();
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
    let said = ipcmark(["run", "--dry-run", "-m", "pipe", "-p", "cross-node"]);
    if said.code() == 0 {
        assert!(said.out.contains("cross-node"), "{said}");
    } else {
        let expected = str![[r#"
ipcmark: nothing that was asked for can be measured here
  pipe latency cross-node: cross-node: this process may use [..]

"#]];
        assert_data_eq!(said.expect(2).err, expected);
    }
}

#[test]
fn completions_name_the_rows_of_the_table() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = ipcmark(["completions", shell]).expect(0);
        assert!(said.out.contains("ipcmark"), "{shell}: {said}");
        assert!(said.out.contains("mechanism"), "{shell}: {said}");
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
    let said = run(&mut place.ipcmark(["man", "--directory", "none"])).expect(2);
    assert_data_eq!(
        said.err,
        str![[r#"
ipcmark: the pages cannot be written to none: No such file or directory (os error 2)
  name a directory that exists and that you may write

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
fn results_are_never_overwritten_and_a_bad_place_for_them_is_said_before_measuring() {
    let place = Place::new();
    place.file("old.jsonl", "precious");
    let to = |file: &str| {
        let said = run(&mut place.ipcmark(["run", "-m", "tsc", "--rounds", "1", "-o", file])).expect(2);
        assert_eq!(said.out, "");
        said.err
    };
    assert_data_eq!(
        to("old.jsonl"),
        str![[r#"
ipcmark: old.jsonl exists, and results are never overwritten
  name another file with -o, or remove it

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
}

#[test]
fn bad_input_makes_no_results_file() {
    let place = Place::new();
    run(&mut place.ipcmark(["run", "-m", "pipe", "-p", "cpus=9999,9999", "-o", "new.jsonl"])).expect(2);
    assert!(!place.path("new.jsonl").exists());
    let mut homeless = place.ipcmark(["run", "-m", "tsc", "--rounds", "1", "-o", "new.jsonl"]);
    let said = run(homeless.env("TMPDIR", "/nonexistent"));
    // Whether a run does without names or not: a run that is refused leaves no file that stands in the way of the next.
    assert_eq!(place.path("new.jsonl").exists(), said.code() == 0, "{said}");
}

#[test]
fn a_results_file_that_refuses_is_said_and_what_was_measured_is_shown() {
    let said =
        ipcmark(["run", "-m", "tsc", "--rounds", "1", "--iterations", "9", "-o", "/dev/full"]).expect(1);
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
    let arguments = ["run", "-m", "tsc", "--rounds", "1", "--iterations", "9", "-o"].map(OsStr::new);
    run(&mut place.ipcmark(arguments.iter().copied().chain([name]))).expect(0);
    run(&mut place.ipcmark([OsStr::new("report"), name])).expect(0);
    for arguments in [["run", "-m"], ["run", "-s"], ["run", "-w"], ["run", "-p"], ["list", "--json"]] {
        run(&mut place.ipcmark(arguments.map(OsStr::new).iter().copied().chain([name]))).expect(2);
    }
}

// Files that are read.

#[test]
fn what_is_no_results_file_is_refused_by_name() {
    let place = Place::new();
    place.file("empty", "");
    place.file("blank", "\n \n");
    place.file("random", [0x93, 0x00, 0xff, 0x0a, 0x7b, 0x1b, 0x5b, 0x33, 0x31, 0x6d]);
    place.file("foreign.json", "{\"name\": \"left-pad\", \"version\": \"1.3.0\"}\n");
    place.file("array.json", "[{\"type\": \"header\"}]\n");
    place.file("other.jsonl", "{\"format\": \"other-results\", \"version\": 1}\n");
    fs::create_dir(place.path("directory")).unwrap();
    assert_data_eq!(
        refused(&place, "missing"),
        str![[r#"
ipcmark: missing cannot be read: No such file or directory (os error 2)
  name a file that exists and that you may read

"#]]
    );
    assert_data_eq!(
        refused(&place, "directory"),
        str![[r#"
ipcmark: directory cannot be read: it is a directory
  name a file that exists and that you may read

"#]]
    );
    assert_data_eq!(
        refused(&place, "/dev/zero"),
        str![[r#"
ipcmark: '/dev/zero' is not a results file of ipcmark: it does not begin with a JSON object
  give a file that 'ipcmark run' wrote

"#]]
    );
    for empty in ["/dev/null", "empty"] {
        assert_data_eq!(
            refused(&place, empty),
            str![[r#"
ipcmark: '[..]' is empty
  the run may have failed: measure again

"#]]
        );
    }
    for foreign in ["blank", "random", "array.json"] {
        assert_data_eq!(
            refused(&place, foreign),
            str![[r#"
ipcmark: '[..]' is not a results file of ipcmark: it does not begin with a JSON object
  give a file that 'ipcmark run' wrote

"#]]
        );
    }
    assert_data_eq!(
        refused(&place, "foreign.json"),
        str![[r#"
ipcmark: 'foreign.json' is not a results file of ipcmark: [..]
  give a file that 'ipcmark run' wrote

"#]]
    );
    assert_data_eq!(
        refused(&place, "other.jsonl"),
        str![[r#"
ipcmark: 'other.jsonl' is not a results file of ipcmark: its format is 'other-results'
  give a file that 'ipcmark run' wrote

"#]]
    );
}

#[test]
fn other_versions_are_refused_with_what_to_do() {
    let place = Place::new();
    results_file(&place, "older.jsonl", &edited(0, |header| header["version"] = 0.into()));
    results_file(&place, "newer.jsonl", &edited(0, |header| header["version"] = 1000.into()));
    assert_data_eq!(
        refused(&place, "older.jsonl"),
        str![[r#"
ipcmark: 'older.jsonl' has version 0 of the results format; this ipcmark reads version [..]
  read it with the ipcmark that wrote it, or measure again with this one

"#]]
    );
    assert_data_eq!(
        refused(&place, "newer.jsonl"),
        str![[r#"
ipcmark: 'newer.jsonl' has version 1000 of the results format; this ipcmark reads version [..]
  read it with the ipcmark that wrote it, or a later one

"#]]
    );
}

#[test]
fn a_last_line_that_was_cut_off_is_left_out_and_said() {
    let place = Place::new();
    let lines = good();
    for (name, kept) in [("end", lines.len() - 1), ("record", lines.len() - 2)] {
        let whole = lines[..kept].join("\n");
        let next = &lines[kept];
        for cut in [1, next.len() / 2, next.len() - 1] {
            place.file(name, format!("{whole}\n{}", &next[..cut]));
            let said = run(&mut place.ipcmark(["report", name])).expect(0);
            let text: String = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
            let note = format!("line {}, the last, was cut off and is left out", kept + 1);
            assert!(text.contains(&note), "cut at {cut} of {}: {said}", next.len());
            assert!(text.contains("cut off: no end line"), "{said}");
        }
    }
    place.file("header", &lines[0][..lines[0].len() / 2]);
    assert_data_eq!(
        refused(&place, "header"),
        str![[r#"
ipcmark: 'header' was cut off within its header
  nothing was measured: measure again

"#]]
    );
}

#[test]
fn any_other_broken_line_is_an_error_with_its_number() {
    let place = Place::new();
    let broken_at_2 = |name: &str, line: String| {
        let mut lines = good().to_vec();
        lines[1] = line;
        results_file(&place, name, &lines);
        let err = refused(&place, name);
        let start = format!("ipcmark: '{name}' is broken at line 2: ");
        assert!(err.starts_with(&start), "{err}");
        assert!(err.len() < 1000, "a flood of {} bytes", err.len());
        err
    };
    let line = &good()[1];
    assert_data_eq!(
        broken_at_2("cut", line[..line.len() / 2].to_owned()),
        str![[r#"
ipcmark: 'cut' is broken at line 2: it is not JSON: [..]
  take the file from its source again, or remove that line if you can do without it

"#]]
    );
    assert_data_eq!(
        broken_at_2("kind", "{\"type\":\"gossip\"}".to_owned()),
        str![[r#"
ipcmark: 'kind' is broken at line 2: its type 'gossip' is unknown
  take the file from its source again, or remove that line if you can do without it

"#]]
    );
    broken_at_2("deep", format!("{{\"type\":\"record\",\"case\":{}", "[".repeat(100_000)));
    broken_at_2("no-number", line.replacen("\"iterations\":", "\"iterations\":-", 1));
    broken_at_2("no-time", line.replacen("\"elapsed_ns\":", "\"elapsed_ns\":0e", 1));
    broken_at_2("escape", "{\"type\":\"\\u001b[31mred\"}".to_owned());
}

#[test]
fn a_line_without_end_is_refused_and_not_read_to_its_end() {
    const LONGER_THAN_ANY: u64 = 80 << 20;
    let place = Place::new();
    for (name, start) in [("first", "{".to_owned()), ("second", format!("{}\n{{", good()[0]))] {
        let path = place.file(name, start);
        // A hole reads as zeros and takes no room on the disk.
        File::options().write(true).open(path).unwrap().set_len(LONGER_THAN_ANY).unwrap();
        let err = refused(&place, name);
        assert!(err.contains("the line is longer than 64M bytes"), "{err}");
    }
}

#[test]
fn text_in_a_results_file_cannot_command_a_terminal() {
    /// A name, the line, and what is put into it.
    type Edit = (&'static str, usize, fn(&mut Value));
    const EVIL: &str = "\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}31m\r\u{8}";
    let place = Place::new();
    let fields: [Edit; 7] = [
        ("run", 0, |header| header["run"] = EVIL.into()),
        ("started", 0, |header| header["started_at"] = EVIL.into()),
        ("tool", 0, |header| header["tool"]["version"] = EVIL.into()),
        ("host", 0, |header| header["host"]["name"] = serde_json::json!({ "known": EVIL })),
        ("cpu", 0, |header| header["host"]["cpu"] = serde_json::json!({ "unknown": EVIL })),
        ("suite", 0, |header| header["settings"]["suite"] = EVIL.into()),
        ("dropped", 0, |header| {
            header["plan"]["dropped"] = serde_json::json!([{ "case": EVIL, "reason": EVIL }]);
        }),
    ];
    let in_record: [Edit; 3] = [
        ("error", line_of("pipe"), |record| {
            record["outcome"] = serde_json::json!({ "failed": { "error": EVIL } });
        }),
        ("name", line_of("pipe"), |record| record["case"]["spec"]["name"] = EVIL.into()),
        ("setting", line_of("pipe"), |record| {
            record["warnings"] =
                serde_json::json!([{ "kind": "clamped", "name": EVIL, "asked": EVIL, "got": EVIL }]);
        }),
    ];
    for (name, at, edit) in fields.into_iter().chain(in_record) {
        results_file(&place, name, &edited(at, edit));
        for format in ["table", "markdown"] {
            // Colour is forced, so that nothing between the report and the terminal filters it.
            let mut command = place.ipcmark(["report", "--format", format, name]);
            let said = run(command.env("CLICOLOR_FORCE", "1"));
            let commands = |c: char| c.is_control() && c != '\n';
            assert!(said.code() == 0 || said.code() == 2, "{name}: {said}");
            assert!(!said.out.contains(commands), "{name} as {format}: {:?}", said.out);
            assert!(!said.err.contains(commands), "{name} as {format}: {:?}", said.err);
        }
    }
}

#[test]
fn text_in_a_suite_cannot_command_a_terminal() {
    let place = Place::new();
    for (name, text) in [
        ("string.toml", "name = \"\u{1b}[31mred\u{7}\""),
        ("key.toml", "\u{1b}]0;title\u{7} = 1"),
        (
            "row.toml",
            "name='n'\nsummary='s'\nprecision='2%'\ntime='1s'\n[[block]]\nrows=[\"\\u001b[31m\"]\nworkloads=['latency']\nplacements=['smt']",
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
    for _ in 0..2 {
        let said = run(&mut place.ipcmark(["report", "good.jsonl", "--html", "page.html"])).expect(0);
        assert!(said.out.starts_with("wrote page.html, "), "{said}");
    }
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.len() < 6_000_000);
    assert!(page.contains("ipcmark report good.jsonl --html page.html"), "the command is not on the page");
    let listed: Vec<_> =
        fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(listed.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{listed:?}");
}

#[test]
fn what_is_no_page_is_not_replaced_and_a_bad_place_is_said() {
    let place = Place::new();
    results_file(&place, "good.jsonl", good());
    let before = fs::read_to_string(place.path("good.jsonl")).unwrap();
    let to = |option: &str, file: &str| {
        run(&mut place.ipcmark(["report", "good.jsonl", option, file])).expect(2).err
    };
    assert_data_eq!(
        to("--html", "good.jsonl"),
        str![[r#"
ipcmark: good.jsonl exists and is not a page that ipcmark made
  name another file, or remove it

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

/// A good file in which every trial of `name` takes `iteration_ns`, but for a trace of noise.
fn steady(name: &str, iteration_ns: f64) -> Vec<String> {
    edited(line_of(name), |record| {
        for (at, sample) in record["samples"].as_array_mut().unwrap().iter_mut().enumerate() {
            let iterations = sample["iterations"].as_f64().unwrap();
            sample["elapsed_ns"] = (iterations * iteration_ns * (1.0 + 0.001 * at as f64)).into();
            sample["floor_ns"] = 1000.0.into();
        }
    })
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
    assert!(slower.out.contains("1 slower"), "{slower}");
    compare("a.jsonl", "b.jsonl", &["--fail-above", "0.001%"]).expect(3);
    compare("a.jsonl", "b.jsonl", &["--fail-above", "50%", "--json"]).expect(3);
    compare("a.jsonl", "b.jsonl", &[]).expect(0);
    let faster = compare("b.jsonl", "a.jsonl", &["--fail-above", "1%"]).expect(0);
    assert!(faster.out.contains("1 faster"), "{faster}");
    compare("a.jsonl", "a.jsonl", &["--fail-above", "0.001%"]).expect(0);
}

#[test]
fn a_file_is_not_compared_with_a_mechanism() {
    let place = Place::new();
    results_file(&place, "a.jsonl", good());
    for (before, after) in [("a.jsonl", "pipe"), ("pipe", "a.jsonl")] {
        assert_data_eq!(
            run(&mut place.ipcmark(["compare", before, after])).expect(2).err,
            str![[r#"
ipcmark: '[..]' and '[..]' are not of one kind
  name two results files, or two mechanisms

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
    &["list", "--json"],
    &["doctor"],
    &["schema"],
    &["man"],
    &["completions", "bash"],
    &["clean"],
    &["report", "good.jsonl"],
    &["run", "-m", "tsc", "--rounds", "1", "--iterations", "9"],
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
        (["run", "-m", "tsc", "--rounds", "1", "--iterations", "9"].as_slice(), 0),
        (&["run", "-m", "zzz"], 2),
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
        let arguments = ["run", "-m", "pipe", "-p", "unpinned", "--rounds", "1", "--iterations", "9"];
        let forever = ["--timeout", timeout, "--time", timeout, "-o", timeout];
        run(&mut place.ipcmark(arguments.iter().chain(&forever))).expect(0);
        common::assert_none_failed(&read(&place.path(timeout)));
    }
    let mut forever = place.ipcmark(["compare", "null", "null:delay=1us", "-p", "same-core"]);
    let running = Running::start(forever.args(["--time", "584000000000y", "--precision", "100%"]));
    let said = running.finish().expect(0);
    assert!(said.out.contains("null"), "{said}");
}
