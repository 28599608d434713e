//! What becomes of results files that are broken, foreign, cut off or hostile: each is refused by name, or read as far as it is
//! whole. The fuzz targets try more of them; here the binary says what a user reads.

use crate::cli::{edited, good, line_of, refused, results_file};
use crate::common::{Place, run};
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};
use std::fs::{self, File};

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
            assert!(text.contains("The run was cut off."), "{said}");
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
fn json_may_not_be_nested_without_end() {
    let place = Place::new();
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let with = |name: &str, line: usize, field: &str, value: &str| {
        let mut lines = good().to_vec();
        lines[line] = lines[line].replacen('{', &format!("{{\"{field}\":{value},"), 1);
        results_file(&place, name, &lines);
    };
    // What is not known is skipped, without a stack, and a small one is enough.
    for line in [0, line_of("pipe")] {
        with("unknown", line, "nobody-knows", &nested(1_000_000));
        let small = "ulimit -s 128; exec \"$@\"";
        let report = ["-c", small, "sh", crate::common::IPCMARK, "report", "unknown"];
        run(place.command("sh").args(report)).expect(0);
    }
    // What is known and may be of several forms is read into memory first.
    let study = |cell: &str| {
        format!(
            "{{\"title\":\"t\",\"source\":\"s\",\"table\":[{{\"name\":\"n\",\"title\":\"t\",\"columns\":[\"c\"],\
             \"rows\":[{{\"name\":\"r\",\"cells\":[{cell}]}}]}}]}}"
        )
    };
    let mut lines = edited(0, |header| drop(header.as_object_mut().unwrap().remove("study")));
    let bare = lines[0].clone();
    for depth in [130, 1_000_000] {
        lines[0] = bare.replacen('{', &format!("{{\"study\":{},", study(&nested(depth))), 1);
        results_file(&place, "deep", &lines);
        assert!(refused(&place, "deep").contains("'deep' is broken at line 1: "), "{depth}");
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

/// Names of files, and what errors quote of suites: nothing between the error and the terminal filters it.
#[test]
fn no_name_and_no_error_commands_a_terminal() {
    const EVIL: &str = "\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}31m\u{202e}";
    let place = Place::new();
    let missing = format!("{EVIL}.jsonl");
    let suite = place
        .file(&format!("{EVIL}.toml"), format!("name = \"{EVIL}\"\n[[block]]\nmechanisms = [\"{EVIL}\"]"));
    let suite = suite.to_str().unwrap();
    place.file(&missing, "{\"format\": \"\\u001b[2J\\u009b\"}\n");
    for arguments in [
        &["report", &missing][..],
        &["report", EVIL],
        &["run", suite],
        &["run", EVIL],
        &["run", "pipe", "-o", &format!("/nonexistent/{EVIL}")],
        &["compare", EVIL, EVIL],
        &["list", EVIL],
    ] {
        let said = run(place.ipcmark(arguments).env("CLICOLOR_FORCE", "1")).expect(2);
        let commands = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(
            !said.out.contains(commands) && !said.err.contains(commands),
            "{arguments:?}: {:?}",
            said.err
        );
    }
}

/// Numbers without end, a plan of very many cases, and nesting: refused or read, and in memory that the file's own size bounds.
#[test]
fn what_is_large_in_a_line_is_refused_or_read() {
    let place = Place::new();
    let number = "9".repeat(4 << 20);
    let endless = good()[0].replacen("\"precision_ns\":", &format!("\"precision_ns\":{number}."), 1);
    place.file("number", format!("{endless}\n"));
    refused(&place, "number");
    let fraction = good()[0].replacen("\"precision_ns\":", &format!("\"precision_ns\":0.{number}"), 1);
    place.file("fraction", format!("{fraction}\n"));
    run(&mut place.ipcmark(["report", "fraction"]));
    let cases = edited(0, |header| {
        let case = header["plan"]["cases"][0].clone();
        let many = (0..20_000).map(|size| {
            let mut case = case.clone();
            case["size_bytes"] = size.into();
            case
        });
        header["plan"]["cases"] = many.collect();
    });
    place.file("cases", format!("{}\n", cases[0]));
    run(&mut place.ipcmark(["report", "cases"])).expect(0);
    place.file("same", format!("{}\n", cases[0].replace("\"size_bytes\":", "\"size_bytes\":1,\"was\":")));
    refused(&place, "same");
    let deep = good()[0].replacen(
        "\"run\":",
        &format!("\"unknown\":{}{},\"run\":", "[".repeat(1 << 20), "]".repeat(1 << 20)),
        1,
    );
    place.file("deep", format!("{deep}\n"));
    run(&mut place.ipcmark(["report", "deep"]));
}

/// A host whose readings never change is one of which nothing is known: every number is the same as without readings. The samples are
/// measured, their readings are set to one value, and the summaries are made anew, as of a run that was cut off.
/// Slow: it measures, and reads the file in every form.
#[test]
fn readings_that_never_change_change_nothing() {
    let place = Place::new();
    let mechanisms = ["pipe", "eventfd", "-s", "1", "-w", "latency"];
    let mut command = place.ipcmark(["run", "--rounds", "24", "-o", "measured.jsonl", "-p", "same-core"]);
    run(command.args(["-p", "same-llc|cross-llc"]).args(mechanisms)).expect(0);
    let measured = fs::read_to_string(place.path("measured.jsonl")).unwrap();
    let lines: Vec<Value> = measured.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["sample"]["speed"]["client"].is_object()), "readings were taken");
    let shown = |name: &str, edit: &dyn Fn(&mut Value)| {
        let kept = lines.iter().filter(|line| line["type"] != "record" && line["type"] != "end");
        let edited = kept.cloned().map(|mut line| {
            line.get_mut("sample").into_iter().for_each(edit);
            line.to_string() + "\n"
        });
        place.file(name, edited.collect::<String>());
        [vec![], vec!["--detail"], vec!["--format", "csv"]].map(|form| {
            let said = run(place.ipcmark(["report", name]).args(form)).expect(0);
            assert!(said.out.contains("eventfd"), "{said}");
            said.out
        })
    };
    let without = shown("without.jsonl", &|sample| sample["speed"] = Value::Null);
    let all_readings = |sample: &mut Value, ns: f64| {
        let readings = sample["speed"].as_object_mut().into_iter().flatten();
        readings.for_each(|(_, reading)| *reading = json!({"before_ns": ns, "after_ns": ns}));
    };
    assert_eq!(shown("forced.jsonl", &|sample| all_readings(sample, 6000.0)), without);
    // Readings that go with the times do change something: the comparison above could fail.
    let with_times = |sample: &mut Value| {
        let ns = sample["elapsed_ns"].as_f64().unwrap() / sample["iterations"].as_f64().unwrap();
        all_readings(sample, ns);
    };
    assert_ne!(shown("with_times.jsonl", &with_times), without);
}
