//! The Rust tests: each in a process of its own, several at once, for most of them wait. It says what failed and what was slow; it
//! does not choose which tests there are.

use crate::notes::Notes;
use crate::steps::{cargo, target};
use serde_json::Value;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// So many tests at once for each CPU: most of them sleep most of the time.
const AT_ONCE_PER_CPU: usize = 3;
/// Of these programs one test runs at a time: endpoints that spin take the CPUs from one another, and deaths come at moments that
/// are sought.
const IN_TURN: [&str; 2] = ["--test conformance", "--test deaths"];
/// A test that takes longer hangs. It is no measure of speed: none takes a tenth of it on busy CPUs.
const HANGS_AFTER: Duration = Duration::from_secs(900);
/// A test that takes longer is to say why.
const SLOW: Duration = Duration::from_secs(5);
/// So many of the slowest are printed.
const SHOWN: usize = 10;

/// A program of tests that cargo has built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestProgram {
    package: String,
    /// What cargo's arguments call it: `--lib`, or `--test all`.
    pub selected_by: String,
    path: PathBuf,
    /// Where cargo runs it.
    directory: PathBuf,
}

/// A test.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Test {
    program: TestProgram,
    name: String,
}

impl Test {
    /// Its name among those of all programs.
    fn full_name(&self) -> String {
        format!("{} {} {}", self.program.package, self.program.selected_by, self.name)
    }

    /// Whether it runs while no other test of its program does.
    fn is_in_turn(&self) -> bool {
        IN_TURN.contains(&self.program.selected_by.as_str())
    }

    /// The process that runs it alone. Its output goes to `log`.
    fn command(&self, log: &File, notes: &Notes) -> std::io::Result<Command> {
        let mut command = Command::new(&self.program.path);
        command.args(["--exact", &self.name]).current_dir(&self.program.directory);
        command.env("CARGO_MANIFEST_DIR", &self.program.directory);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
        notes.noted_by(&mut command);
        Ok(command)
    }
}

/// Which tests are run, and how.
#[derive(Clone, Copy)]
pub struct TestSelection {
    /// Whether this test of the program is.
    pub is_wanted: fn(&TestProgram, &str) -> bool,
    /// The environment variables that all of them have.
    pub variables: &'static [(&'static str, &'static str)],
}

/// How a test ended.
struct Ended {
    test: Test,
    took: Duration,
    /// What it printed, if it failed.
    failure: Option<String>,
}

/// Builds the programs of all tests that cargo's `arguments` select.
pub fn build(arguments: &[&str]) -> Result<Vec<TestProgram>, String> {
    let mut build = cargo(&["test", "--no-run", "--message-format", "json-render-diagnostics"]);
    let built = build.args(arguments).stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| format!("cargo test --no-run: {error}"))?;
    if !built.status.success() {
        return Err(format!("cargo test --no-run ended with {}", built.status));
    }
    Ok(String::from_utf8_lossy(&built.stdout).lines().filter_map(program).collect())
}

/// The program of tests of which a line of cargo's messages speaks.
fn program(line: &str) -> Option<TestProgram> {
    let message: Value = serde_json::from_str(line).ok()?;
    let (target, is_test) = (&message["target"], message["profile"]["test"] == true);
    let path = message["executable"].as_str().filter(|_| is_test)?;
    let name = target["name"].as_str()?;
    let selected_by = match target["kind"][0].as_str()? {
        "lib" => "--lib".to_owned(),
        kind => format!("--{kind} {name}"),
    };
    let directory = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
    let package = directory.file_name()?.to_str()?.to_owned();
    Some(TestProgram { package, selected_by, path: path.into(), directory })
}

/// Runs those of the tests of `programs` that are in `selection`.
pub fn run(programs: &[TestProgram], selection: TestSelection, notes: &Notes) -> Result<(), String> {
    let mut tests = Vec::new();
    for program in programs {
        tests
            .extend(tests_of(program)?.into_iter().filter(|test| (selection.is_wanted)(program, &test.name)));
    }
    let ended = run_all(in_order(tests), selection.variables, notes)?;
    print_slowest(&ended);
    let failed: Vec<&Ended> = ended.iter().filter(|one| one.failure.is_some()).collect();
    for Ended { test, failure, .. } in &failed {
        println!("\n-- failed: {}\n{}", test.full_name(), failure.as_deref().unwrap_or_default());
        println!(
            "-- alone: cargo test --workspace --all-features {} -- --exact {}",
            test.program.selected_by, test.name
        );
    }
    failed.iter().for_each(|one| println!("FAILED {}", one.test.full_name()));
    println!("\ntests: {} passed, {} failed\n", ended.len() - failed.len(), failed.len());
    if failed.is_empty() { Ok(()) } else { Err(format!("{} tests failed", failed.len())) }
}

/// What `program` has.
fn tests_of(program: &TestProgram) -> Result<Vec<Test>, String> {
    let mut list = Command::new(&program.path);
    let listed = list.args(["--list", "--format", "terse"]).current_dir(&program.directory).output();
    let listed = listed.map_err(|error| format!("{}: {error}", program.path.display()))?;
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names = names.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(|name| Test { program: program.clone(), name: name.to_owned() }).collect())
}

/// The slow ones first, so that none of them is what all wait for at the end: as the last run here found them, and where nothing
/// is known those that run the whole program before those of a library.
fn in_order(mut tests: Vec<Test>) -> VecDeque<Test> {
    let known = fs::read_to_string(times_file()).unwrap_or_default();
    let took_ms = |test: &Test| {
        let name = test.full_name();
        let line = known.lines().find_map(|line| line.strip_suffix(&name)?.trim_end().parse::<u64>().ok());
        let unknown = if test.program.selected_by == "--lib" { 0 } else { SLOW.as_millis() as u64 };
        line.unwrap_or(unknown)
    };
    tests.sort_by_cached_key(|test| std::cmp::Reverse((test.is_in_turn(), took_ms(test))));
    tests.into()
}

/// Where the next run finds how long each test took.
fn times_file() -> PathBuf {
    target("test-times")
}

/// Runs `tests`, several at once.
fn run_all(tests: VecDeque<Test>, variables: &[(&str, &str)], notes: &Notes) -> Result<Vec<Ended>, String> {
    let logs = target("test-logs");
    fs::create_dir_all(&logs).map_err(|error| format!("{}: {error}", logs.display()))?;
    let at_once = std::thread::available_parallelism().map_or(1, usize::from) * AT_ONCE_PER_CPU;
    println!("{} tests, {at_once} at once", tests.len());
    let queue = Mutex::new(Queue { left: tests, in_turn: Vec::new(), ended: Vec::new() });
    let python = python_first();
    let variables: Vec<(&str, &str)> = variables.iter().copied().chain([("PATH", python.as_str())]).collect();
    std::thread::scope(|threads| {
        for nth in 0..at_once {
            let (queue, variables, log) = (&queue, variables.as_slice(), logs.join(nth.to_string()));
            threads.spawn(move || work(queue, |test| run_one(test, &log, variables, notes)));
        }
    });
    let ended = queue.into_inner().expect("nobody panics with it").ended;
    let times: Vec<String> =
        ended.iter().map(|one| format!("{} {}\n", one.took.as_millis(), one.test.full_name())).collect();
    fs::write(times_file(), times.concat())
        .map_err(|error| format!("{}: {error}", times_file().display()))?;
    Ok(ended)
}

/// Where programs are found. Where `python3` is a script that chooses one, as pyenv's, the chosen one comes first: a script takes longer
/// at each of the thousand starts of tests than Python itself.
fn python_first() -> String {
    const FOUND_AND_MEANT: &str = "command -v python3; python3 -c 'import sys; print(sys.executable)'";
    let path = std::env::var("PATH").unwrap_or_default();
    let said = Command::new("sh").args(["-c", FOUND_AND_MEANT]).output();
    let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    match said.lines().collect::<Vec<_>>()[..] {
        [found, meant] if found != meant => {
            let directory = Path::new(meant).parent().unwrap_or(Path::new("/")).display();
            format!("{directory}:{path}")
        }
        _ => path,
    }
}

/// Tests that are still to be run, and those that were.
struct Queue {
    left: VecDeque<Test>,
    /// The programs of the tests that run now and are [`IN_TURN`].
    in_turn: Vec<TestProgram>,
    ended: Vec<Ended>,
}

impl Queue {
    /// The next test that may run now.
    fn next(&mut self) -> Option<Test> {
        let may_run = |test: &Test| !(test.is_in_turn() && self.in_turn.contains(&test.program));
        let test = self.left.remove(self.left.iter().position(may_run)?)?;
        if test.is_in_turn() {
            self.in_turn.push(test.program.clone());
        }
        Some(test)
    }

    fn end(&mut self, ended: Ended) {
        self.in_turn.retain(|program| *program != ended.test.program);
        self.ended.push(ended);
    }
}

/// Has `run` run one test of `queue` after the other until there is none.
fn work(queue: &Mutex<Queue>, run: impl Fn(Test) -> Ended) {
    loop {
        let (test, is_empty) = {
            let mut queue = queue.lock().expect("nobody panics with it");
            (queue.next(), queue.left.is_empty())
        };
        match test {
            Some(test) => {
                let ended = run(test);
                queue.lock().expect("nobody panics with it").end(ended);
            }
            None if is_empty => return,
            // Others of its program run first.
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Runs `test`; what it prints is in the file `log` until the next one.
fn run_one(test: Test, log: &Path, variables: &[(&str, &str)], notes: &Notes) -> Ended {
    let began = Instant::now();
    let status =
        File::create(log).and_then(|log| ended(test.command(&log, notes)?.envs(variables.iter().copied())));
    let took = began.elapsed();
    let printed = || String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let failure = match status {
        Ok(Some(status)) if status.success() => None,
        Ok(Some(status)) => Some(format!("{}{status}", printed())),
        Ok(None) => Some(format!("{}it did not end within {HANGS_AFTER:?}, and was killed", printed())),
        Err(error) => Some(error.to_string()),
    };
    let (seconds, name) = (took.as_secs_f64(), test.full_name());
    if failure.is_none() {
        println!("{seconds:>7.1} s  ok  {name}");
    } else {
        // Whoever waits for the others may begin to look.
        let kept = log.with_file_name(name.replace(' ', "."));
        println!("{seconds:>7.1} s  FAILED  {name}: see {}", kept.display());
        let _ = fs::rename(log, kept);
    }
    Ended { test, took, failure }
}

/// How `command` ended; `None` if it did not.
fn ended(command: &mut Command) -> std::io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    let began = Instant::now();
    while began.elapsed() < HANGS_AFTER {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// The slowest of them, and those that took long and do not say why.
fn print_slowest(ended: &[Ended]) {
    let mut slowest: Vec<&Ended> = ended.iter().filter(|one| one.took > SLOW).collect();
    slowest.sort_by_key(|one| std::cmp::Reverse(one.took));
    println!("\n== the slowest tests");
    for (nth, one) in slowest.into_iter().enumerate() {
        let reason = reason(&one.test);
        if nth < SHOWN || reason.is_none() {
            let reason = reason.as_deref().unwrap_or("it does not say why");
            println!("{:>7.1} s  {}: {reason}", one.took.as_secs_f64(), one.test.full_name());
        }
    }
}

/// Why `test` is slow: what a comment above it says.
fn reason(test: &Test) -> Option<String> {
    let name = test.name.rsplit("::").next()?;
    let mut directories = vec![test.program.directory.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && let Some(reason) = reason_in(&fs::read_to_string(path).unwrap_or_default(), name)
            {
                return Some(reason);
            }
        }
    }
    None
}

/// What the comment above the test `name` in the source `text` says after `Slow: `.
fn reason_in(text: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let begins = [format!("fn {name}("), format!("check!({name},")];
    // One that is named elsewhere too is public.
    let is_it = |line: &&str| {
        let line = line.trim_start_matches("pub ");
        begins.iter().any(|begin| line.starts_with(begin))
    };
    let at = lines.iter().position(is_it)?;
    let above = lines[..at].iter().rev().take_while(|line| line.starts_with("//") || line.starts_with('#'));
    above.filter_map(|line| line.split_once("Slow: ")).map(|(_, reason)| reason.to_owned()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_tests_are_found_in_what_cargo_says() {
        let line = |test: bool, kind: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml",
                "target":{{"kind":["{kind}"],"name":"n"}},"profile":{{"test":{test}}},"executable":"/r/target/n-1"}}"#
            )
            .replace('\n', "")
        };
        let found = program(&line(true, "test")).unwrap();
        assert_eq!((found.package.as_str(), found.selected_by.as_str()), ("a", "--test n"));
        assert_eq!(program(&line(true, "lib")).unwrap().selected_by, "--lib");
        // The program that users run is no program of tests.
        assert_eq!(program(&line(false, "bin")), None);
        assert_eq!(program("Compiling"), None);
    }

    #[test]
    fn the_reason_of_a_slow_test_stands_above_it() {
        let text = "/// Of a.\n/// Slow: it waits.\n#[test]\nfn a() {}\n\n#[test]\nfn b() {}\n\n// Slow: all of them.\ncheck!(c, |x| {});\n/// Slow: it is shown.\n#[test]\npub fn d() {}\n";
        assert_eq!(reason_in(text, "a").as_deref(), Some("it waits."));
        assert_eq!(reason_in(text, "b"), None);
        assert_eq!(reason_in(text, "c").as_deref(), Some("all of them."));
        assert_eq!(reason_in(text, "d").as_deref(), Some("it is shown."));
    }
}
