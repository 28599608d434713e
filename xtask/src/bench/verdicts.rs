//! `cargo xtask bench same` and `bench power`: what `ipcmark compare` says where nothing differs, and where something does.
//!
//! They use ipcmark as people do, by its command line. How long they take is for who runs them to say: many short comparisons
//! say how often a verdict comes, one long comparison does not.

use super::ipcmark::Ipcmark;
use super::setup::numbers;
use serde_json::Value;
use std::process::Command;

/// What is compared: a round trip of a byte.
const MECHANISMS: [&str; 10] = [
    "pipe",
    "fifo",
    "unix-stream",
    "unix-dgram",
    "unix-seqpacket",
    "tcp",
    "udp",
    "posix-mq",
    "pty",
    "eventfd",
];

/// Where, and with what delay a comparison is to be tried: interleaved, and between two runs.
const PLACES: [Place; 2] = [
    Place { placement: "same-core", interleaved: "1%", between_runs: "5%" },
    Place { placement: "same-llc", interleaved: "3%", between_runs: "10%" },
];

/// The parts of `bench power`.
const INTERLEAVED: &str = "interleaved";
const BETWEEN_RUNS: &str = "between-runs";

struct Place {
    placement: &'static str,
    /// The delay that an interleaved comparison is to find, and within which it is to find none.
    interleaved: &'static str,
    /// The delay that a comparison of two runs is to find.
    between_runs: &'static str,
}

/// Compares runs of the default suite, each with the next, and as often each mechanism with itself. Arguments: how many runs (2), and
/// the seconds of a run and of the interleaved comparisons of all mechanisms in one placement (60).
pub fn same(arguments: &[&str]) -> Result<(), String> {
    let [runs, seconds] = numbers(arguments, [2, 60])?;
    let ipcmark = Ipcmark::build("bench-same")?;
    let time = format!("{seconds}s");
    for run in 0..runs {
        ipcmark.run(&["--time", &time], &run.to_string())?;
        if run > 0 {
            let verdicts = ipcmark.compare_runs(&(run - 1).to_string(), &run.to_string())?;
            for Place { placement, .. } in PLACES {
                let placed = verdicts.iter().filter(|verdict| verdict.name.ends_with(placement));
                println!("run {run} and the one before, {placement}: {}", Counts::from_verdicts(placed));
            }
            verdicts
                .iter()
                .filter(|verdict| verdict.is_different())
                .for_each(|verdict| println!("  {verdict}"));
        }
    }
    for Place { placement, interleaved, .. } in PLACES {
        let mut verdicts = Vec::new();
        for mechanism in (0..runs).flat_map(|_| MECHANISMS) {
            verdicts.extend(ipcmark.compare(mechanism, placement, seconds, &["--precision", interleaved])?);
        }
        println!("{placement}, each with itself, within {interleaved}: {}", Counts::from_verdicts(&verdicts));
        verdicts.iter().for_each(|verdict| println!("  {verdict}"));
    }
    Ok(())
}

/// Compares each mechanism with itself and an injected delay, interleaved and in two runs. Arguments: how many repetitions of
/// each (20), the seconds of a run and of the interleaved comparisons of one repetition (60), and, to do a part of it,
/// [`INTERLEAVED`] or [`BETWEEN_RUNS`], and a placement.
pub fn power(arguments: &[&str]) -> Result<(), String> {
    let (given, parts) = arguments.split_at(arguments.len().min(2));
    let [repetitions, seconds] = numbers(given, [20, 60])?;
    let known = |part: &str| {
        [INTERLEAVED, BETWEEN_RUNS].contains(&part) || PLACES.iter().any(|place| place.placement == part)
    };
    if let Some(unknown) = parts.iter().find(|part| !known(part)) {
        return Err(format!("'{unknown}' is no part: {INTERLEAVED}, {BETWEEN_RUNS}, same-core, same-llc"));
    }
    // A part that is not restricted is whole.
    let wanted = |part: &str, others: &[&str]| {
        parts.contains(&part) || !others.iter().any(|other| parts.contains(other))
    };
    let ipcmark = Ipcmark::build("bench-power")?;
    for Place { placement, interleaved, between_runs } in PLACES {
        if !wanted(placement, &PLACES.map(|place| place.placement)) {
            continue;
        }
        if wanted(INTERLEAVED, &[BETWEEN_RUNS]) {
            let mut verdicts = Vec::new();
            for mechanism in (0..repetitions).flat_map(|_| MECHANISMS) {
                verdicts.extend(ipcmark.compare(
                    mechanism,
                    placement,
                    seconds,
                    &["--inject", interleaved],
                )?);
            }
            println!(
                "{placement}, {interleaved} injected, interleaved: {}",
                Counts::from_verdicts(&verdicts)
            );
            by_mechanism(&verdicts, repetitions);
        }
        if wanted(BETWEEN_RUNS, &[INTERLEAVED]) {
            let mut verdicts = Vec::new();
            for repetition in 0..repetitions {
                let names = ["without", "with"].map(|delay| format!("{placement}-{repetition}-{delay}"));
                verdicts.extend(ipcmark.two_runs(placement, seconds, between_runs, &names)?);
            }
            println!("{placement}, {between_runs} injected, two runs: {}", Counts::from_verdicts(&verdicts));
            by_mechanism(&verdicts, repetitions);
        }
    }
    Ok(())
}

fn by_mechanism(verdicts: &[Verdict], repetitions: u64) {
    for mechanism in MECHANISMS {
        let is_of = |verdict: &&Verdict| verdict.name.split(' ').next() == Some(mechanism);
        let of: Vec<&Verdict> = verdicts.iter().filter(is_of).collect();
        let count = |is: fn(&Verdict) -> bool| of.iter().filter(|verdict| is(verdict)).count();
        let ratios = of.iter().filter_map(|verdict| verdict.ratio).map(|ratio| format!("{ratio:.3}"));
        println!(
            "  {mechanism:<16} found in {} of {repetitions}, called faster in {}: {}",
            count(Verdict::is_slower),
            count(|verdict| verdict.is_different() && !verdict.is_slower()),
            ratios.collect::<Vec<_>>().join(" ")
        );
    }
}

/// What a comparison says of one case.
struct Verdict {
    name: String,
    verdict: String,
    ratio: Option<f64>,
}

impl Verdict {
    /// Of the JSON of a case, or of an interleaved pair, that has its name in `name` and its ratio at the pointer `ratio`.
    fn from_case(case: &Value, name: &str, ratio: &str) -> Result<Self, String> {
        let text = |key: &str| {
            let text = case[key].as_str().ok_or_else(|| format!("ipcmark said no '{key}': {case}"))?;
            Ok::<String, String>(text.to_owned())
        };
        Ok(Self {
            name: text(name)?,
            verdict: text("verdict")?,
            ratio: case.pointer(ratio).and_then(Value::as_f64),
        })
    }

    fn is_slower(&self) -> bool {
        self.verdict == "slower"
    }

    fn is_different(&self) -> bool {
        self.is_slower() || self.verdict == "faster"
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ratio = self.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
        write!(f, "{:<60} {ratio:>6}  {}", self.name, self.verdict)
    }
}

/// How often each verdict came.
struct Counts {
    of: usize,
    faster: usize,
    slower: usize,
    no_difference: usize,
}

impl Counts {
    fn from_verdicts<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Self {
        let verdicts: Vec<&str> = verdicts.into_iter().map(|one| one.verdict.as_str()).collect();
        let count = |verdict: &str| verdicts.iter().filter(|one| **one == verdict).count();
        Self {
            of: verdicts.len(),
            faster: count("faster"),
            slower: count("slower"),
            no_difference: count("no-difference"),
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { of, faster, slower, no_difference } = self;
        let undecided = of - faster - slower - no_difference;
        write!(
            f,
            "{faster} faster, {slower} slower, {no_difference} no difference, {undecided} cannot tell, of {of}"
        )
    }
}

impl Ipcmark {
    /// The verdicts on the cases of two runs.
    fn compare_runs(&self, a: &str, b: &str) -> Result<Vec<Verdict>, String> {
        let mut command = Command::new(&self.program);
        let said =
            self.said_by(command.arg("compare").arg(self.file(a)).arg(self.file(b)).arg("--format=json"))?;
        let comparison: Value = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
        let cases = comparison["cases"].as_array().ok_or("ipcmark compared no cases")?;
        cases.iter().map(|case| Verdict::from_case(case, "key", "/ratio/ratio")).collect()
    }

    /// The verdicts on a run of all mechanisms, and one with `inject` in each iteration, kept by these `names`.
    fn two_runs(
        &self,
        placement: &str,
        seconds: u64,
        inject: &str,
        [without, with]: &[String; 2],
    ) -> Result<Vec<Verdict>, String> {
        let time = format!("{seconds}s");
        // A run has its time: it does not end when its intervals are narrow enough to be read.
        let mut arguments =
            vec!["-w", "latency", "-s", "1", "-p", placement, "--time", &time, "--precision", "0.1%"];
        arguments.extend(MECHANISMS);
        self.run(&arguments, without)?;
        self.run(&[&arguments[..], &["--inject", inject]].concat(), with)?;
        self.compare_runs(without, with)
    }

    /// The verdict on a mechanism beside itself, interleaved, in its part of `seconds`.
    fn compare(
        &self,
        mechanism: &str,
        placement: &str,
        seconds: u64,
        further: &[&str],
    ) -> Result<Vec<Verdict>, String> {
        let time = format!("{}ms", 1000 * seconds / MECHANISMS.len() as u64);
        let mut command = Command::new(&self.program);
        command.args([
            "compare",
            mechanism,
            mechanism,
            "--format=json",
            "-w",
            "latency",
            "-s",
            "1",
            "-p",
            placement,
        ]);
        let said = self.said_by(command.args(["--time", &time]).args(further))?;
        let pairs: Vec<Value> = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
        pairs.iter().map(|pair| Verdict::from_case(pair, "name", "/ratio/median")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn verdicts_are_counted_by_what_ipcmark_calls_them() {
        let case =
            |verdict: &str| json!({"key": "pipe latency 1", "verdict": verdict, "ratio": {"ratio": 1.25}});
        let verdicts: Vec<Verdict> = ["slower", "slower", "faster", "no-difference", "undecided"]
            .map(|verdict| Verdict::from_case(&case(verdict), "key", "/ratio/ratio").unwrap())
            .into();
        let counts = Counts::from_verdicts(&verdicts).to_string();
        assert_eq!(counts, "1 faster, 2 slower, 1 no difference, 1 cannot tell, of 5");
        assert_eq!(
            (verdicts[0].ratio, verdicts[0].is_slower(), verdicts[3].is_different()),
            (Some(1.25), true, false)
        );
        assert!(Verdict::from_case(&json!({"key": "pipe"}), "key", "/ratio").is_err());
    }

    /// The names of verdicts are ipcmark's own.
    #[test]
    fn the_verdicts_of_a_comparison_have_these_names() {
        use analysis::compare::ComparisonVerdict::{Faster, NoDifference, Slower, Undecided};
        assert_eq!(
            json!([Slower, Faster, NoDifference, Undecided]),
            json!(["slower", "faster", "no-difference", "undecided"])
        );
    }
}
