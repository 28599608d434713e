//! What is asked of `run`, `compare` and `explain`: what was typed, checked, with its defaults. Nothing after this sees
//! arguments.
//!
//! It reads the files that are named, and asks nothing else of this host.

use crate::cli::{
    AxesOptions, CompareArguments, EffortOptions, ExplainArguments, ProfileOptions, RemoteOptions,
    RunArguments, ShowOptions,
};
use crate::selection::{Axes, by_hand, restrict};
use crate::{results_file, suites};
use harness::coordinator::via::Via;
use mechanisms::registry::{self, CARDS};
use model::block::Block;
use model::observation::Probe;
use model::suite::Suite;
use model::{Endpoints, Inject, Invalid, Percent, Placements, Precision, Size, Spec};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is no difference between two sides measured interleaved, and the time to measure them and a pilot, where none is given.
const RATIO_MARGIN: Percent = Percent(0.01);
const RATIO_TIME: Duration = Duration::from_secs(30);
const PILOT_TIME: Duration = Duration::from_secs(5);
/// The precision that no case reaches, so that each takes all its time.
const NEVER_SETTLED: Percent = Percent(0.0);

/// What `ipcmark run` is to do.
#[derive(Debug)]
pub struct RunRequest {
    /// What to measure, and with which effort.
    pub suite: Suite,
    /// The suite's name, unless mechanisms were named instead.
    pub suite_name: Option<String>,
    /// The exact number of iterations of each phase of a trial.
    pub iterations: Option<u64>,
    /// The delay in every iteration of every case.
    pub inject: Option<Inject>,
    /// Whether every byte is checked in the timed phases too.
    pub check: bool,
    /// How long a trial may go without a report.
    pub timeout: Duration,
    /// Whether only to say what would be measured.
    pub dry_run: bool,
    /// Where to keep the results.
    pub output: Option<PathBuf>,
    /// How to show the results.
    pub show: ShowRequest,
    /// How to explain each case afterwards, if it is to be explained.
    pub explanation: Option<ExplanationRequest>,
    /// The sides that are reached by commands, if any are.
    pub remote: Option<RemoteRequest>,
}

/// The sides that are reached by commands, at least one.
#[derive(Debug)]
pub struct RemoteRequest {
    /// By which the client is reached, unless it is here.
    pub client: Option<Via>,
    /// By which the server is reached, unless it is here.
    pub server: Option<Via>,
    /// The address of the server.
    pub server_address: Option<IpAddr>,
    /// The path of ipcmark there.
    pub program: Option<String>,
    /// Whether to copy this program there.
    pub push: bool,
}

/// How results are shown.
#[derive(Debug, Clone)]
pub struct ShowRequest {
    /// The form.
    pub format: report::Format,
    /// Whether every case is shown with all columns.
    pub detail: bool,
    /// Whether charts follow.
    pub plot: bool,
    /// The column that charts show.
    pub metric: Option<String>,
}

/// What `ipcmark compare` is to do.
#[derive(Debug)]
pub struct CompareRequest {
    /// What is compared.
    pub sides: Sides,
    /// By how much B may be slower.
    pub fail_above: Option<Percent>,
    /// Whether to print JSON.
    pub json: bool,
}

/// What is compared: A and B.
#[derive(Debug)]
pub enum Sides {
    /// The results files of each side.
    Files([Vec<PathBuf>; 2]),
    /// Two mechanisms or two builds, measured for it.
    Interleaved(RatioRequest),
}

/// How two mechanisms, or two builds, are measured to be compared.
#[derive(Debug)]
pub struct RatioRequest {
    /// The cases of A and of B.
    pub blocks: [Vec<Block>; 2],
    /// The delay in every iteration of B.
    pub inject: Option<Inject>,
    /// The build whose endpoints A has; that which runs if absent.
    pub against: Option<PathBuf>,
    /// The difference to plan for, where only a plan is asked for.
    pub find: Option<Percent>,
    /// What client and server are.
    pub endpoints: Endpoints,
    /// Differences within this are none.
    pub margin: Percent,
    /// How long measuring may take.
    pub time: Duration,
    /// How long a trial may go without a report.
    pub timeout: Duration,
}

/// What `ipcmark explain` is to do.
#[derive(Debug)]
pub struct ExplainRequest {
    /// The cases.
    pub blocks: Vec<Block>,
    /// The cases that they are held against.
    pub against: Option<Vec<Block>>,
    /// The delay in every iteration of the cases, but not of those that they are held against.
    pub inject: Option<Inject>,
    /// What client and server are.
    pub endpoints: Endpoints,
    /// How to explain them.
    pub explanation: ExplanationRequest,
}

/// How cases are explained.
#[derive(Debug, Clone)]
pub struct ExplanationRequest {
    /// The time for all cases; as much as each needs where there is none.
    pub time: Option<Duration>,
    /// The half-width of its interval at which a case is settled.
    pub precision: Precision,
    /// How long a trial may go without a report.
    pub timeout: Duration,
    /// The exact number of iterations of a trial with a probe.
    pub iterations: Option<u64>,
    /// The probes to try.
    pub probes: Vec<Probe>,
    /// Counters asked for by name.
    pub counters: Vec<String>,
    /// Whether to print JSON.
    pub json: bool,
    /// The files to make.
    pub files: ExplanationFiles,
}

/// The files to make of explanations.
#[derive(Debug, Clone, Default)]
pub struct ExplanationFiles {
    /// The directory of traces.
    pub traces: Option<PathBuf>,
    /// The directory of timelines.
    pub timelines: Option<PathBuf>,
    /// The directory of flame graphs.
    pub flames: Option<PathBuf>,
    /// The page.
    pub html: Option<PathBuf>,
}

impl RunRequest {
    /// What `arguments` ask for.
    pub fn new(arguments: RunArguments) -> Result<Self, Invalid> {
        let RunArguments { suite, mechanisms, axes, effort, quick, observe, .. } = arguments;
        let axes = Axes::try_from(axes)?;
        let is_named = mechanisms.is_empty();
        let mut suite = match is_named {
            true => restrict(suites::find(&suite)?, &axes)?,
            false => by_hand(&mechanisms, &axes)?,
        };
        let EffortOptions { precision, time, endpoints, timeout } = effort;
        suite.precision = precision.unwrap_or(suite.precision);
        let time = time.unwrap_or(if quick { quick_time(&suite)? } else { suite.time });
        suite.observe = Some(observe.unwrap_or(suite.observe_in(time)));
        suite.time = time;
        suite.rounds = arguments.rounds.or(suite.rounds);
        suite.total = arguments.total.or(suite.total);
        suite.endpoints = endpoints.map(Into::into).or(suite.endpoints);
        let remote = RemoteRequest::new(arguments.remote)?;
        if remote.is_some() && (suite.endpoints == Some(Endpoints::Threads) || arguments.explain) {
            return Err(Invalid::new(
                "threads of one process, and explanations, are of one host",
                "leave out --endpoints threads and --explain, or --server-via and --client-via",
            ));
        }
        Ok(Self {
            remote,
            suite_name: is_named.then(|| suite.name.clone()),
            suite,
            iterations: arguments.iterations,
            inject: arguments.inject,
            check: arguments.check,
            timeout,
            dry_run: arguments.dry_run,
            output: arguments.output,
            show: arguments.show.into(),
            explanation: arguments.explain.then(|| ExplanationRequest::with_timeout(timeout)),
        })
    }
}

impl RemoteRequest {
    /// What `options` ask for; `None` where both sides are here.
    pub fn new(options: RemoteOptions) -> Result<Option<Self>, Invalid> {
        let RemoteOptions { server_via, client_via, server_address, via_program: program, push } = options;
        let via = |text: Option<String>| text.map(|text| Via::parse(&text)).transpose();
        let (client, server) = (via(client_via)?, via(server_via)?);
        if client.is_some() || server.is_some() {
            return Ok(Some(Self { client, server, server_address, program, push }));
        }
        match server_address.is_some() || program.is_some() || push {
            false => Ok(None),
            true => Err(Invalid::new(
                "--server-address, --via-program and --push are about a second host, and none is named",
                "name one with --server-via 'ssh HOST'",
            )),
        }
    }
}

fn quick_time(suite: &Suite) -> Result<Duration, Invalid> {
    suite.quick.ok_or_else(|| {
        Invalid::new(
            format!("the suite '{}' has no quick time", suite.name),
            "give it one as quick = \"20s\", or give --time",
        )
    })
}

impl TryFrom<AxesOptions> for Axes {
    type Error = Invalid;

    fn try_from(typed: AxesOptions) -> Result<Self, Invalid> {
        let AxesOptions { workloads, sizes, placements, think_times, rates, peers } = typed;
        let paces = model::suite::paces(think_times.as_deref(), rates.as_deref())?;
        let is_paced = think_times.is_some() || rates.is_some();
        let sizes = sizes.map(|sizes| sizes.0);
        Ok(Self { workloads, sizes, placements, paces: is_paced.then_some(paces), peers })
    }
}

impl From<ShowOptions> for ShowRequest {
    fn from(ShowOptions { format, detail, plot, metric }: ShowOptions) -> Self {
        Self { format, detail, plot, metric }
    }
}

impl CompareRequest {
    /// What `arguments` ask for.
    pub fn new(arguments: CompareArguments) -> Result<Self, Invalid> {
        let CompareArguments {
            before,
            after,
            against,
            mechanisms,
            plan,
            find,
            fail_above,
            json,
            axes,
            inject,
            effort,
        } = arguments;
        let find = plan.then_some(find);
        let axes = Axes::try_from(axes)?;
        if let Some(program) = against {
            let blocks = match mechanisms.is_empty() {
                true => restrict(suites::find(suites::DEFAULT)?, &axes)?.blocks,
                false => by_hand(&mechanisms, &axes)?.blocks,
            };
            let request = RatioRequest::new([blocks.clone(), blocks], Some(program), find, inject, effort)?;
            return Ok(Self { sides: Sides::Interleaved(request), fail_above, json });
        }
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let sides = match (mechanism(&before), mechanism(&after)) {
            (Some(before), Some(after)) => {
                let blocks = |spec: Spec| by_hand(&[spec.to_string()], &axes).map(|suite| suite.blocks);
                let blocks = [blocks(before?)?, blocks(after?)?];
                Sides::Interleaved(RatioRequest::new(blocks, None, find, inject, effort)?)
            }
            (None, None) if inject.is_some() => {
                return Err(Invalid::new(
                    "no delay can be injected in what was measured already",
                    "give --inject to 'ipcmark run'; its cases pair with those of a run without",
                ));
            }
            (None, None) if plan => {
                return Err(Invalid::new(
                    "--plan plans what is to be measured, and results files are measured already",
                    "name two mechanisms, or give --against BINARY",
                ));
            }
            (None, None) => Sides::Files([files(&before), files(&after)]),
            _ => {
                return Err(Invalid::new(
                    format!("'{before}' and '{after}' are not of one kind"),
                    "name two results files, or two mechanisms",
                ));
            }
        };
        Ok(Self { sides, fail_above, json })
    }
}

/// The files that `text` names: one whose name has commas in it, or those between commas.
fn files(text: &str) -> Vec<PathBuf> {
    if Path::new(text).exists() {
        return vec![text.into()];
    }
    text.split(',').map(PathBuf::from).collect()
}

/// The mechanism or operation that `text` names, unless it is the name of a file; `None` for files.
fn mechanism(text: &str) -> Option<Result<Spec, Invalid>> {
    let name = text.split(':').next().unwrap_or(text);
    let is_named = registry::card(name).is_some() && !Path::new(text).exists();
    is_named.then(|| Spec::parse(text, CARDS))
}

impl RatioRequest {
    fn new(
        blocks: [Vec<Block>; 2],
        against: Option<PathBuf>,
        find: Option<Percent>,
        inject: Option<Inject>,
        effort: EffortOptions,
    ) -> Result<Self, Invalid> {
        let margin = effort.precision.unwrap_or(RATIO_MARGIN.into());
        if margin.on_two_cpus.is_some() {
            let problem =
                format!("'{margin}' is not one percentage: both sides of a comparison have the same margin");
            return Err(Invalid::new(problem, format!("give one, such as --precision {}", margin.least)));
        }
        let time = if find.is_some() { PILOT_TIME } else { RATIO_TIME };
        Ok(Self {
            blocks,
            against,
            find,
            inject,
            endpoints: effort.endpoints.map(Into::into).unwrap_or_default(),
            margin: margin.least,
            time: effort.time.unwrap_or(time),
            timeout: effort.timeout,
        })
    }
}

impl ExplainRequest {
    /// What `arguments` ask for.
    pub fn new(arguments: ExplainArguments) -> Result<Self, Invalid> {
        let ExplainArguments { what, case, against, inject, mechanisms, axes, effort, profile } = arguments;
        profile.counters.iter().try_for_each(|counter| check_counter(counter))?;
        let axes = Axes::try_from(axes)?;
        let blocks = match (&what, case) {
            (Some(file), Some(key)) => blocks_of_case(Path::new(file), &key)?,
            (Some(what), None) if Path::new(what).exists() => {
                return Err(Invalid::new(
                    format!("'{what}' is a file, and no case of it is named"),
                    "add --case 'pipe latency 1 same-core', as the file has it",
                ));
            }
            (Some(what), None) => by_hand(std::slice::from_ref(what), &axes)?.blocks,
            (None, _) => by_hand(&mechanisms, &axes)?.blocks,
        };
        let against = against.map(|text| blocks_against(&blocks, &text, &axes)).transpose()?;
        Ok(Self {
            blocks,
            against,
            inject,
            endpoints: effort.endpoints.map(Into::into).unwrap_or_default(),
            explanation: ExplanationRequest::new(effort, profile),
        })
    }
}

/// The cases that `blocks` are held against: of the mechanism `text`, or of the same mechanisms at the size `text`.
fn blocks_against(blocks: &[Block], text: &str, axes: &Axes) -> Result<Vec<Block>, Invalid> {
    match text.parse::<Size>() {
        Ok(size) => Ok(blocks.iter().map(|block| Block { sizes: vec![size], ..block.clone() }).collect()),
        Err(_) => Ok(by_hand(&[text.to_owned()], axes)?.blocks),
    }
}

fn check_counter(counter: &str) -> Result<(), Invalid> {
    observe::check_counter(counter)
        .map_err(|failure| Invalid::new(format!("--counter {counter}: {}", failure.answer), failure.next))
}

/// The case called `key` of a results file, to be planned again: its CPUs are those of this host.
fn blocks_of_case(file: &Path, key: &str) -> Result<Vec<Block>, Invalid> {
    let results = results_file::read(file)?;
    let keys: Vec<String> = results.records.iter().map(|record| record.case.key()).collect();
    let found = results.records.iter().find(|record| record.case.key() == key);
    let case = &found.ok_or_else(|| Invalid::unknown("case", key, keys.iter().map(String::as_str)))?.case;
    let block = Block {
        specs: vec![Spec::parse(&case.spec.to_string(), CARDS)?],
        workloads: vec![case.workload],
        sizes: case.size_bytes.into_iter().collect(),
        placements: vec![case.placement.to_string().parse::<Placements>()?],
        paces: vec![case.pace],
        peers: vec![case.peers],
    };
    Ok(vec![block])
}

impl ExplanationRequest {
    /// With every default, as `run --explain` takes it.
    fn with_timeout(timeout: Duration) -> Self {
        let effort = EffortOptions { precision: None, time: None, endpoints: None, timeout };
        Self::new(effort, ProfileOptions::default())
    }

    fn new(effort: EffortOptions, profile: ProfileOptions) -> Self {
        let EffortOptions { precision, time, timeout, .. } = effort;
        let ProfileOptions { iterations, probes, counters, json, traces, timelines, flames, html } = profile;
        Self {
            time,
            // A control case that is settled would have no trials in the rounds in which the others are compared with it.
            precision: precision.unwrap_or(NEVER_SETTLED.into()),
            timeout,
            iterations,
            probes: if probes.is_empty() { Probe::ALL.to_vec() } else { probes },
            counters,
            json,
            files: ExplanationFiles { traces, timelines, flames, html },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use model::{Pace, Peers, Workload};

    fn typed(line: &str) -> Command {
        let cli = Cli::try_parse_from(format!("ipcmark {line}").split_whitespace());
        cli.unwrap_or_else(|error| panic!("{line}: {error}")).command.unwrap_or_default()
    }

    fn run(line: &str) -> Result<RunRequest, Invalid> {
        let Command::Run(arguments) = typed(line) else { panic!("{line}") };
        RunRequest::new(arguments)
    }

    fn compare(line: &str) -> Result<CompareRequest, Invalid> {
        let Command::Compare(arguments) = typed(line) else { panic!("{line}") };
        CompareRequest::new(arguments)
    }

    fn explain(line: &str) -> Result<ExplainRequest, Invalid> {
        let Command::Explain(arguments) = typed(line) else { panic!("{line}") };
        ExplainRequest::new(arguments)
    }

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn nothing_typed_is_a_run_of_the_default_suite_as_it_is() {
        let suite = suites::find(suites::DEFAULT).unwrap();
        for line in ["", "run", "run default"] {
            let request = run(line).unwrap();
            assert_eq!(request.suite_name.as_deref(), Some("default"));
            assert_eq!((request.suite.time, &request.suite.blocks), (suite.time, &suite.blocks));
            assert_eq!((request.timeout, request.iterations, request.check), (seconds(10), None, false));
            assert!(!request.dry_run && request.output.is_none() && request.explanation.is_none());
            assert!(request.show.format == report::Format::Table && !request.show.plot);
        }
    }

    #[test]
    fn what_is_typed_replaces_what_the_suite_says() {
        let line = "run barefoot --precision 5% --time 7s --rounds 3 --total 1M --endpoints threads --timeout 2s \
                    --observe 0s -s 64 --think-time 1us --iterations 9";
        let Err(_) = Cli::try_parse_from(format!("ipcmark {line}").split_whitespace()) else {
            panic!("--total and --iterations contradict each other")
        };
        let request = run(line.trim_end_matches(" --iterations 9")).unwrap();
        let suite = request.suite;
        assert_eq!((suite.precision, suite.time), (Percent(0.05).into(), seconds(7)));
        assert_eq!((suite.rounds, suite.total), (Some(3), Some(Size(1 << 20))));
        assert_eq!((suite.endpoints, request.timeout), (Some(Endpoints::Threads), seconds(2)));
        assert_eq!(suite.observe, Some(Duration::ZERO));
        assert!(suite.blocks.iter().all(|block| block.sizes == [Size(64)]));
        assert!(suite.blocks.iter().all(|block| block.paces == [Pace::think_time("1us").unwrap()]));
    }

    #[test]
    fn a_shorter_run_observes_for_as_much_less() {
        let whole = suites::find("l41").unwrap();
        let half = run(&format!("run l41 --time {}s", whole.time.as_secs() / 2)).unwrap().suite;
        let observe = half.observe.unwrap();
        assert!(observe < whole.observe.unwrap() && !observe.is_zero(), "{observe:?}");
        let quick = run("run l41 --quick").unwrap().suite;
        assert_eq!(Some(quick.time), whole.quick);
    }

    #[test]
    fn mechanisms_by_hand_are_no_suite_and_have_no_quick_time() {
        let request = run("run -m pipe -m unix-stream -s 1,4K -p unpinned").unwrap();
        assert_eq!(request.suite_name, None);
        assert_eq!(request.suite.blocks.len(), 2);
        assert!(request.suite.blocks.iter().all(|block| block.sizes == [Size(1), Size(4096)]));
        assert!(quick_time(&request.suite).unwrap_err().problem.contains("no quick time"));
    }

    #[test]
    fn an_explanation_after_a_run_has_its_timeout_and_every_probe() {
        let explanation = run("run -m pipe --explain --timeout 3s").unwrap().explanation.unwrap();
        assert_eq!((explanation.timeout, explanation.time), (seconds(3), None));
        assert_eq!((explanation.probes.as_slice(), explanation.json), (&Probe::ALL[..], false));
    }

    #[test]
    fn a_second_host_is_named_by_a_command() {
        let remote = run("run -m tcp --server-via ssh --push").unwrap().remote.unwrap();
        assert_eq!((remote.server.unwrap().words().len(), remote.client, remote.push), (1, None, true));
        assert!(run("run -m tcp --push").unwrap_err().problem.contains("about a second host"));
        run("run -m tcp --server-via ssh --endpoints threads").unwrap_err();
    }

    #[test]
    fn paces_that_are_none_are_refused() {
        for line in
            ["run -m pipe --think-time never", "compare pipe fifo --rate 0", "explain -m pipe --rate x"]
        {
            let invalid = match typed(line) {
                Command::Run(arguments) => RunRequest::new(arguments).err(),
                Command::Compare(arguments) => CompareRequest::new(arguments).err(),
                Command::Explain(arguments) => ExplainRequest::new(arguments).err(),
                _ => None,
            };
            assert!(invalid.is_some(), "{line}");
        }
    }

    #[test]
    fn two_mechanisms_are_measured_and_two_other_names_are_files() {
        let request = compare("compare pipe unix-stream:wait=spin -w throughput --fail-above 5%").unwrap();
        let Sides::Interleaved(ratio) = &request.sides else { panic!("{request:?}") };
        let [a, b] = &ratio.blocks;
        assert_eq!((a[0].specs[0].to_string(), b[0].specs[0].to_string()), {
            ("pipe".to_owned(), "unix-stream:wait=spin".to_owned())
        });
        assert_eq!(
            (&a[0].workloads, &b[0].workloads),
            (&vec![Workload::Throughput], &vec![Workload::Throughput])
        );
        assert_eq!((ratio.margin, ratio.time), (RATIO_MARGIN, RATIO_TIME));
        assert_eq!((request.fail_above, request.json), (Some(Percent(0.05)), false));

        let request = compare("compare before.jsonl after.jsonl --json").unwrap();
        assert!(
            matches!(&request.sides, Sides::Files([a, b]) if a[0].ends_with("before.jsonl") && b[0].ends_with("after.jsonl"))
        );
        assert!(request.json);
        let request = compare("compare one.jsonl,two.jsonl after.jsonl").unwrap();
        assert!(matches!(&request.sides, Sides::Files([a, b]) if a.len() == 2 && b.len() == 1));
        compare("compare pipe after.jsonl").unwrap_err();
        compare("compare before.jsonl pipe").unwrap_err();
        compare("compare pipe pipe:wait=sleep").unwrap_err();
    }

    #[test]
    fn two_builds_are_compared_in_the_same_cases_of_the_default_suite_unless_mechanisms_are_named() {
        let sides = |line: &str| {
            let Sides::Interleaved(request) = compare(line).unwrap().sides else { panic!("{line}") };
            assert_eq!(request.blocks[0], request.blocks[1]);
            assert_eq!(request.against.as_deref(), Some(Path::new("old/ipcmark")));
            request
        };
        let named = sides("compare --against old/ipcmark -m pipe -m tcp -s 64");
        assert_eq!((named.blocks[0].len(), named.find), (2, None));
        let all = sides("compare --against old/ipcmark");
        assert_eq!(all.blocks[0], suites::find(suites::DEFAULT).unwrap().blocks);
        let planned = sides("compare --against old/ipcmark --plan --find 2%");
        assert_eq!((planned.find, planned.time), (Some(Percent(0.02)), PILOT_TIME));
        for line in [
            "compare pipe",
            "compare pipe fifo --against x",
            "compare pipe fifo -m tcp",
            "compare pipe fifo --find 2%",
        ] {
            Cli::try_parse_from(format!("ipcmark {line}").split_whitespace()).unwrap_err();
        }
        compare("compare a.jsonl b.jsonl --plan").unwrap_err();
    }

    #[test]
    fn an_explanation_takes_all_its_time_and_tries_every_probe_unless_told_otherwise() {
        let request = explain("explain -m pipe -s 64 -p unpinned --peers pairs=2").unwrap();
        assert_eq!(request.blocks[0].sizes, [Size(64)]);
        assert_eq!(request.blocks[0].peers, [Peers::Pairs(2)]);
        assert_eq!((request.explanation.precision, request.explanation.time), (Percent(0.0).into(), None));
        assert_eq!(request.explanation.probes, Probe::ALL);
        let request = explain("explain -m pipe --probes ptrace,faults --time 3s --html page.html").unwrap();
        assert_eq!(request.explanation.probes, [Probe::Ptrace, Probe::Faults]);
        assert_eq!(request.explanation.time, Some(seconds(3)));
        assert!(request.explanation.files.html.is_some_and(|path| path.ends_with("page.html")));
    }

    #[test]
    fn a_counter_or_a_results_file_that_is_none_is_refused() {
        let invalid = explain("explain -m pipe --counter cycle").unwrap_err();
        assert!(invalid.problem.starts_with("--counter cycle: "), "{invalid}");
        explain("explain /nonexistent.jsonl --case pipe").unwrap_err();
        let invalid = explain("explain Cargo.toml").unwrap_err();
        assert!(invalid.remedy.contains("--case"), "{invalid}");
        explain("explain pip").unwrap_err();
    }

    #[test]
    fn an_explanation_is_of_what_is_named_and_against_a_mechanism_or_a_size() {
        let request = explain("explain unix-stream --against pipe:capacity=1M -s 64").unwrap();
        let name = |blocks: &[Block]| blocks[0].specs[0].to_string();
        let against = request.against.unwrap();
        assert_eq!(
            (name(&request.blocks), name(&against)),
            ("unix-stream".into(), "pipe:capacity=1M".into())
        );
        assert_eq!((&request.blocks[0].sizes, &against[0].sizes), (&vec![Size(64)], &vec![Size(64)]));
        let request = explain("explain pipe --against 1 -s 64K").unwrap();
        let against = request.against.unwrap();
        assert_eq!((name(&against), &against[0].sizes), ("pipe".into(), &vec![Size(1)]));
        assert!(explain("explain pipe").unwrap().against.is_none());
        explain("explain pipe --against nothing").unwrap_err();
    }
}
