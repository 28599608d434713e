//! Three examples for each command, at the end of its help and of its manual page.

use crate::exit;

/// `examples` and the exit codes, for the long help.
pub(super) fn with_codes(examples: &str) -> String {
    format!("{examples}\n\n{}", exit::CODES)
}

pub(super) const IPCMARK: &str = "\
Examples:
  ipcmark                          the default suite, in a minute
  ipcmark pipe tcp -s 1,64K        two mechanisms, two sizes
  ipcmark help compare             what a command takes";

pub(super) const RUN: &str = "\
Examples:
  ipcmark run --time 10s -o x.jsonl           the default suite, kept in a file
  ipcmark run pipe tcp:nodelay=off -s 1..64K  mechanisms with parameters, sizes doubling
  ipcmark run barefoot --quick                what a published study measured";

pub(super) const LIST: &str = "\
Examples:
  ipcmark list                     every mechanism and operation, a line each
  ipcmark list pipe unix-stream    two in full
  ipcmark list --format json       for other programs";

pub(super) const DOCTOR: &str = "\
Examples:
  ipcmark doctor                           this host
  ipcmark doctor --server-via 'ssh HOST'   another host too
  ipcmark doctor --format json             for other programs";

pub(super) const REPORT: &str = "\
Examples:
  ipcmark report x.jsonl                     the answer and its tables
  ipcmark report x.jsonl --detail            every case with all its columns
  ipcmark report x.jsonl --html x.html       a page that needs no other file";

pub(super) const COMPARE: &str = "\
Examples:
  ipcmark compare pipe unix-stream -s 1,4K                  two mechanisms
  ipcmark compare before.jsonl after.jsonl --fail-above 5%  two runs, in a pipeline
  ipcmark compare --against old/ipcmark pipe tcp            two builds";

pub(super) const EXPLAIN: &str = "\
Examples:
  ipcmark explain pipe -s 1 -p same-core              where the time goes
  ipcmark explain unix-stream --against pipe -s 1     why one is slower
  ipcmark explain x.jsonl --case 'pipe latency 1 same-core'";

pub(super) const RECORD: &str = "\
Examples:
  ipcmark record -o app.toml -- COMMAND        a command and all that it starts
  ipcmark record --pid 1234 --time 5s          processes that run
  ipcmark record --html app.html -- COMMAND    a page with a picture";

pub(super) const TRY: &str = "\
Examples:
  ipcmark try --server 'redis-server --port 7777' -- redis-benchmark -p 7777 -t get
  ipcmark try --set tcp:7777=unix-stream --metric 'rps=([0-9.]+) requests' …
  ipcmark try -- sh -c 'tar c dir | gzip -1 | wc -c'";

pub(super) const REPLAY: &str = "\
Examples:
  ipcmark replay app.toml                             the scenario as it is
  ipcmark replay app.toml --set query=unix-stream     with another mechanism
  ipcmark replay app.toml --against query=pipe        both in turn, and how they differ";

pub(super) const PREDICT: &str = "\
Examples:
  ipcmark predict app.toml --set query=pipe                 measures what it needs
  ipcmark predict app.toml --set query=pipe --costs x.jsonl from a results file
  ipcmark predict app.toml --set 'query-*=unix-stream'      all such flows";

pub(super) const ADVISE: &str = "\
Examples:
  ipcmark advise --pattern request-reply -s 4K           for a need
  ipcmark advise --pattern stream -s 64K --needs hosts   with a condition
  ipcmark advise app.toml                                for each flow of a scenario";

pub(super) const SUITE: &str = "\
Examples:
  ipcmark suite list               the suites that come with the program
  ipcmark suite check mueller      what one measures and draws
  ipcmark suite check ./my.toml    whether a file of yours is valid";

pub(super) const ENDPOINT: &str = "\
Examples:
  ipcmark endpoint                               for a coordinator
  ipcmark endpoint check ipcmark endpoint        this program's own
  ipcmark endpoint check ssh HOST ipcmark endpoint";

pub(super) const DRIVER: &str = "\
Examples:
  ipcmark driver list                    what there is, and what is built here
  ipcmark driver build python go         then: ipcmark python/tcp go/tcp tcp
  ipcmark driver new python mine         a directory with one that works";

pub(super) const SCHEMA: &str = "\
Examples:
  ipcmark schema                   of a line of a results file
  ipcmark schema scenario          of a scenario file
  ipcmark schema results | jq .    for other programs";

pub(super) const COMPLETIONS: &str = "\
Examples:
  ipcmark completions bash > ~/.local/share/bash-completion/completions/ipcmark
  ipcmark completions zsh > ~/.zfunc/_ipcmark
  ipcmark completions fish > ~/.config/fish/completions/ipcmark.fish";

pub(super) const MAN: &str = "\
Examples:
  ipcmark man | man -l -                        the manual page
  ipcmark man --directory ~/.local/share/man/man1
  ipcmark help run                              the help of a command";
