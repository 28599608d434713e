//! The commands that people type most, at 80 columns: each answers in its first lines, is no longer than its bound, and no wider than the terminal.
//! No number that was measured is tested here.

use crate::common::{Place, has, run};

/// A program with a server, which `try` and `record` can have, in one line of Python each.
const SERVER: &str = "import socket; l = socket.create_server(('127.0.0.1', 21019)); l.listen()\nwhile True:\n    c, _ = l.accept()\n    while c.recv(1): c.sendall(b'x')\n";
const CLIENT: &str = "import socket; s = socket.create_connection(('127.0.0.1', 21019))\nfor _ in range(500):\n    s.sendall(b'x'); s.recv(1)\n";
const SCENARIO: &str = "name = \"pair\"\n[[process]]\nname = \"a\"\n[[process]]\nname = \"b\"\n[[flow]]\nname = \"query\"\nfrom = \"a\"\nto = \"b\"\nmechanism = \"tcp\"\nsize = \"64\"\nreply = \"64\"\n";

/// What is typed, how many lines it may print, and how the answer begins. A busy host measures no round trip of the default suite in 4 s.
const USUAL: [(&str, usize, &str); 12] = [
    ("--time 4s", 50, "Fastest round trip|Highest rate|Nothing was measured long enough"),
    ("run pipe unix-stream -s 64 --time 3s -o a.jsonl", 25, "Fastest round trip"),
    ("report a.jsonl", 25, "Fastest round trip"),
    ("run pipe unix-stream -s 64 --time 3s -o b.jsonl", 25, "Fastest round trip"),
    ("compare a.jsonl b.jsonl", 55, "Of 4 cases B is slower in "),
    ("compare pipe tcp -s 64 --time 3s", 30, "latency 64 same-core: "),
    ("explain pipe -s 64 --time 6s", 90, "pipe latency 64 same-core"),
    ("advise --pattern request-reply -s 64 pipe tcp --time 3s", 35, "request-reply of 64, best in latency"),
    ("record -- sh -c 'seq 100000 | cat > out'", 30, "2 processes and 1 flow over pipe, recorded for "),
    ("replay pair.toml --against query=unix-stream --time 4s", 45, "pair against pair"),
    (
        "try --time 2s --set tcp=unix-stream --server 'python3 server.py' -- python3 client.py",
        35,
        "python3 client.py",
    ),
    ("suite list", 16, "default  "),
];

/// Slow: it measures by a dozen commands.
#[test]
fn the_usual_commands_are_brief_and_begin_with_the_answer() {
    if !has("python3", "python3", "a program under record and try") {
        return;
    }
    let place = Place::new();
    place.file("server.py", SERVER);
    place.file("client.py", CLIENT);
    place.file("pair.toml", SCENARIO);
    for (typed, most_lines, beginning) in USUAL {
        let said = run(&mut place.ipcmark(words(typed)));
        let lines: Vec<&str> = said.out.lines().collect();
        assert!(lines.len() <= most_lines, "{typed}: {} lines: {said}", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{typed}: {said}");
        let is_begun = beginning.split('|').any(|beginning| said.out.starts_with(beginning));
        assert!(is_begun, "{typed}: {said}");
    }
}

/// Words as a shell has them, with quotes around some.
fn words(typed: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (at, part) in typed.split('\'').enumerate() {
        match at % 2 {
            0 => found.extend(part.split_whitespace().map(str::to_owned)),
            _ => found.push(part.to_owned()),
        }
    }
    found
}
