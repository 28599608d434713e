//! What people type most, at 80 columns, as transcripts on disk: `tests/usual/*.txt`. Each is no longer than its bound.
//!
//! Where a command reads files, those beside the transcripts, every digit of its transcript counts. Where it measures, what depends on
//! the host stands as `[..]` within a line and as `...` for lines: what such commands print in full is in the tests of `report`.
//! `SNAPSHOTS=overwrite` writes transcripts anew.

use crate::common::{Place, has, run};
use flate2::read::GzDecoder;
use snapbox::data::DataFormat;
use snapbox::{Data, assert_data_eq};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A program with a server, which `try` and `record` can have, in one line of Python each.
const SERVER: &str = "import socket; l = socket.create_server(('127.0.0.1', 21019)); l.listen()\nwhile True:\n    c, _ = l.accept()\n    while c.recv(1): c.sendall(b'x')\n";
const CLIENT: &str = "import socket; s = socket.create_connection(('127.0.0.1', 21019))\nfor _ in range(500):\n    s.sendall(b'x'); s.recv(1)\n";
const SCENARIO: &str = "name = \"pair\"\n[[process]]\nname = \"a\"\n[[process]]\nname = \"b\"\n[[flow]]\nname = \"query\"\nfrom = \"a\"\nto = \"b\"\nmechanism = \"tcp\"\nsize = \"64\"\nreply = \"64\"\n";

/// The transcripts in which every digit counts, and how many lines each may have.
const OF_FILES: [(&str, usize); 3] = [("report", 25), ("compare-files", 55), ("suite-list", 16)];
/// The others. That a whole run of the default suite fits 50 lines is tested in `report`: in four seconds a busy host leaves cases unmeasured,
/// which are named.
const MEASURED: [(&str, usize); 9] = [
    ("default", 60),
    ("run", 25),
    ("compare", 30),
    ("explain", 90),
    ("advise", 35),
    ("record", 30),
    ("replay", 30),
    ("replay-against", 45),
    ("try", 35),
];

#[test]
fn what_is_typed_to_read_files_prints_the_same_to_the_digit() {
    let place = Place::new();
    for name in ["a.jsonl", "b.jsonl"] {
        let mut packed = GzDecoder::new(File::open(beside(&format!("{name}.gz"))).unwrap());
        io::copy(&mut packed, &mut File::create(place.path(name)).unwrap()).unwrap();
    }
    for (name, most_lines) in OF_FILES {
        let (said, transcript) = typed(&place, name, most_lines);
        assert_data_eq!(said, transcript.raw());
    }
}

/// Slow: it measures by nine commands.
/// On a busy host the default suite may measure no round trip in 4 s, so that its answer is not said to begin in any way.
#[test]
fn what_is_typed_to_measure_prints_its_answer_first() {
    if !has("python3", "python3", "a program under record and try") {
        return;
    }
    let place = Place::new();
    place.file("server.py", SERVER);
    place.file("client.py", CLIENT);
    place.file("pair.toml", SCENARIO);
    fs::copy(beside("recorded.toml"), place.path("recorded.toml")).unwrap();
    for (name, most_lines) in MEASURED {
        let (said, transcript) = typed(&place, name, most_lines);
        assert_data_eq!(said, transcript);
    }
}

/// The transcript of what `NAME.txt` says is typed, which has at most `most_lines` lines of output, none too wide; and the one on disk.
fn typed(place: &Place, name: &str, most_lines: usize) -> (String, Data) {
    let path = beside(&format!("{name}.txt"));
    let transcript = fs::read_to_string(&path).unwrap();
    let typed = transcript.lines().next().and_then(|line| line.strip_prefix("$ ipcmark ")).unwrap();
    let said = run(place.ipcmark(shlex::split(typed).unwrap()).env("COLUMNS", "80")).expect(0);
    assert!(said.out.lines().count() <= most_lines, "{typed}: more than {most_lines} lines: {said}");
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{typed}: {said}");
    (format!("$ ipcmark {typed}\n{}", said.out), Data::read_from(&path, Some(DataFormat::Text)))
}

/// The file `name` beside the transcripts.
fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/usual").join(name)
}
