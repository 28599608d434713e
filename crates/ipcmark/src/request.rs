//! What is asked of `run`, `compare` and `explain`: what was typed, checked, with its defaults. Nothing after this sees
//! arguments.
//!
//! It reads the files that are named, and asks nothing else of this host.

use crate::cli::{
    AnswerOptions, AxesOptions, CompareArguments, EffortOptions, ExplainArguments, PageOption,
    ProfileOptions, RemoteOptions, RunArguments, ShowOptions, UndecidedOption,
};
use crate::drivers::TypedDrivers;
use crate::exit::Error;
use crate::selection::{ALL, Axes, by_hand, placements, restrict};
use crate::{drivers, results_file, suites};
use harness::coordinator::driver::DriverSet;
use harness::coordinator::via::Via;
use mechanisms::registry::{self, CARDS};
use model::block::Block;
use model::invalid::printable;
use model::observation::Probe;
use model::suite::Suite;
use model::{Endpoints, HostAddress, Inject, Invalid, Percent, Placements, Precision, Size, Spec};
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
    /// The page to make, and what becomes of files that exist.
    pub page: PageOption,
    /// How to show the results.
    pub show: ShowRequest,
    /// How to explain each case afterwards, if it is to be explained.
    pub explanation: Option<ExplanationRequest>,
    /// The sides that are reached by commands, if any are.
    pub remote: Option<RemoteRequest>,
    /// The drivers that cases have.
    pub drivers: DriverSet,
}

/// The sides that are reached by commands, at least one.
#[derive(Debug)]
pub struct RemoteRequest {
    /// By which the client is reached, unless it is here.
    pub client: Option<Via>,
    /// By which the server is reached, unless it is here.
    pub server: Option<Via>,
    /// The address of the server.
    pub server_address: Option<HostAddress>,
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
    /// Whether the study is the answer.
    pub study: bool,
}

/// What `ipcmark compare` is to do.
#[derive(Debug)]
pub struct CompareRequest {
    /// What is compared.
    pub sides: Sides,
    /// How the comparison is a gate, if it is one.
    pub gate: Option<GateRequest>,
    /// How the answer is printed and kept.
    pub answer: AnswerOptions,
}

/// A gate: what B may be, for the command to succeed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateRequest {
    /// By how much it may be slower.
    pub above: Percent,
    /// What becomes of cases that may be slower than that and of which it is not decided.
    pub undecided: UndecidedOption,
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
    /// The drivers that cases have.
    pub drivers: DriverSet,
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
    /// What they are held against.
    pub against: Option<Against>,
    /// The delay in every iteration of the cases, but not of those that they are held against.
    pub inject: Option<Inject>,
    /// What client and server are.
    pub endpoints: Endpoints,
    /// How to explain them.
    pub explanation: ExplanationRequest,
}

/// What cases are held against.
#[derive(Debug)]
pub enum Against {
    /// Other cases.
    Cases(Vec<Block>),
    /// The same cases with the endpoints of another build.
    Build(PathBuf),
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
    /// How the answer is printed and kept.
    pub answer: AnswerOptions,
    /// Whether everything that was observed is shown.
    pub detail: bool,
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
}

impl RunRequest {
    /// What `arguments` ask for.
    pub fn new(arguments: RunArguments) -> Result<Self, Error> {
        let RunArguments { what, axes, effort, quick, observe, programs, .. } = arguments;
        drivers::register()?;
        let typed = TypedDrivers::meet(&programs, effort.timeout)?;
        let axes = Axes::try_from(axes)?;
        let is_named = named_suite(&what)?.is_some();
        if !is_named && (quick || observe.is_some()) {
            let option = if quick { "--quick" } else { "--observe" };
            return Err(Invalid::new(
                format!("{option} is about a suite, and mechanisms are named"),
                "leave it out, or name a suite instead; --time 10s makes any run short",
            )
            .into());
        }
        let mut suite = suite_of(&what, &axes)?;
        let EffortOptions { precision, time, endpoints, timeout } = effort;
        suite.precision = precision.unwrap_or(suite.precision);
        let time = time.unwrap_or(if quick { quick_time(&suite)? } else { suite.time });
        suite.observe = Some(observe.unwrap_or(suite.observe_in(time)));
        suite.time = time;
        suite.rounds = arguments.rounds.or(suite.rounds);
        suite.total = arguments.total.or(suite.total);
        suite.endpoints = endpoints.map(Into::into).or(suite.endpoints);
        let remote = RemoteRequest::new(arguments.remote)?;
        let drivers = drivers::meet(typed, timeout, &mut suite.blocks)?;
        if remote.is_some() && programs.are_typed() {
            return Err(Invalid::new(
                "endpoints that are other programs are of this host",
                "leave out --endpoint, or --server-via and --client-via",
            )
            .into());
        }
        if remote.is_some() && (suite.endpoints == Some(Endpoints::Threads) || arguments.explain) {
            return Err(Invalid::new(
                "threads of one process, and explanations, are of one host",
                "leave out --endpoints threads and --explain, or --server-via and --client-via",
            )
            .into());
        }
        Ok(Self {
            remote,
            drivers,
            suite_name: is_named.then(|| suite.name.clone()),
            suite,
            iterations: arguments.iterations,
            inject: arguments.inject,
            check: arguments.check,
            timeout,
            dry_run: arguments.dry_run,
            output: arguments.output,
            page: arguments.page,
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

/// How long `--quick` takes.
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
        let AxesOptions { workloads, sizes, placements: places, think_times, rates, peers } = typed;
        let placements = placements(&places)?;
        let paces = model::suite::paces(think_times.as_deref(), rates.as_deref())?;
        let is_paced = think_times.is_some() || rates.is_some();
        let sizes = sizes.map(|sizes| sizes.0);
        Ok(Self { workloads, sizes, placements, paces: is_paced.then_some(paces), peers })
    }
}

/// The suite that `what` names, if it names one: nothing is the default suite, and a suite is named alone.
fn named_suite(what: &[String]) -> Result<Option<&str>, Invalid> {
    match what {
        [] => Ok(Some(suites::DEFAULT)),
        [only] => Ok(suites::is_named(only).then_some(only)),
        several => match several.iter().find(|word| suites::is_named(word)) {
            None => Ok(None),
            Some(suite) => Err(Invalid::new(
                format!("'{}' is a suite, and a suite is measured alone", printable(suite)),
                "leave out the others, or name mechanisms only",
            )),
        },
    }
}

/// What `what` names, with `axes`.
fn suite_of(what: &[String], axes: &Axes) -> Result<Suite, Error> {
    match named_suite(what)? {
        Some(suite) => Ok(restrict(suites::find(suite)?, axes)?),
        None => {
            if let [only] = what {
                refuse_unknown(only)?;
            }
            Ok(by_hand(what, axes)?)
        }
    }
}

/// Refuses a `word` that names neither a mechanism nor a suite.
fn refuse_unknown(word: &str) -> Result<(), Invalid> {
    if word.contains(':') || word == ALL || drivers::are_named(word) || registry::card(word).is_some() {
        return Ok(());
    }
    let suites = suites::SUITES.iter().map(|(name, _)| *name);
    let known = CARDS.iter().map(|card| card.name).chain(suites);
    Err(Invalid::unknown_mechanism("mechanism or suite", word, known))
}

impl From<ShowOptions> for ShowRequest {
    fn from(ShowOptions { format, detail, plot, metric }: ShowOptions) -> Self {
        Self { format, detail, plot, metric, study: false }
    }
}

impl CompareRequest {
    /// What `arguments` ask for.
    pub fn new(arguments: CompareArguments) -> Result<Self, Error> {
        let CompareArguments { fail_above, undecided, answer, .. } = arguments;
        let gate = fail_above.map(|above| GateRequest { above, undecided });
        let CompareArguments { what, against, plan, find, axes, inject, effort, .. } = arguments;
        let find = plan.then_some(find);
        let axes = Axes::try_from(axes)?;
        drivers::register()?;
        if let Some(program) = against {
            let blocks = suite_of(&what, &axes)?.blocks;
            let request = RatioRequest::new([blocks.clone(), blocks], Some(program), find, inject, effort)?;
            return Ok(Self { sides: Sides::Interleaved(request), gate, answer });
        }
        let [before, after] = two_sides(what)?;
        let sides = match (side(&before)?, side(&after)?) {
            (Some(before), Some(after)) => {
                let blocks = |spec: Spec| by_hand(&[spec.to_string()], &axes).map(|suite| suite.blocks);
                let blocks = [blocks(before)?, blocks(after)?];
                Sides::Interleaved(RatioRequest::new(blocks, None, find, inject, effort)?)
            }
            (None, None) if inject.is_some() => {
                return Err(Invalid::new(
                    "no delay can be injected in what was measured already",
                    "give --inject to 'ipcmark run'; its cases pair with those of a run without",
                )
                .into());
            }
            (None, None) if plan => {
                return Err(Invalid::new(
                    "--plan plans what is to be measured, and results files are measured already",
                    "name two mechanisms, or give --against BINARY",
                )
                .into());
            }
            (None, None) => Sides::Files([files(&before), files(&after)]),
            (Some(mechanism), None) | (None, Some(mechanism)) => {
                let file = if mechanism.to_string() == before { &after } else { &before };
                return Err(Invalid::new(
                    format!("'{mechanism}' is a mechanism, and '{}' a file", printable(file)),
                    "name two mechanisms, or two results files",
                )
                .into());
            }
        };
        Ok(Self { sides, gate, answer })
    }
}

/// The files that `text` names: one whose name has commas in it, or those between commas.
fn files(text: &str) -> Vec<PathBuf> {
    if Path::new(text).exists() {
        return vec![text.into()];
    }
    text.split(',').map(PathBuf::from).collect()
}

/// A and B.
fn two_sides(what: Vec<String>) -> Result<[String; 2], Invalid> {
    <[String; 2]>::try_from(what).map_err(|what| {
        let many = what.len();
        let problem = match many {
            1 => "there is nothing to compare it with".to_owned(),
            _ => format!("{many} are named, and a comparison is of two"),
        };
        Invalid::new(
            problem,
            "name two mechanisms, or two results files; of several runs with commas: a1.jsonl,a2.jsonl",
        )
    })
}

/// The mechanism or operation that `text` names; `None` where it names results files.
fn side(text: &str) -> Result<Option<Spec>, Invalid> {
    let is_path = |text: &str| text.contains(['/', '.']) || Path::new(text).exists();
    let is_file = !drivers::are_named(text) && text.split(',').any(is_path);
    if is_file { Ok(None) } else { Spec::parse(text, &registry::cards()).map(Some) }
}

impl RatioRequest {
    fn new(
        blocks: [Vec<Block>; 2],
        against: Option<PathBuf>,
        find: Option<Percent>,
        inject: Option<Inject>,
        effort: EffortOptions,
    ) -> Result<Self, Error> {
        let margin = effort.precision.unwrap_or(RATIO_MARGIN.into());
        if margin.on_two_cpus.is_some() {
            let problem =
                format!("'{margin}' is not one percentage: both sides of a comparison have the same margin");
            return Err(
                Invalid::new(problem, format!("give one, such as --precision {}", margin.least)).into()
            );
        }
        let time = if find.is_some() { PILOT_TIME } else { RATIO_TIME };
        let [mut both, mut after] = blocks;
        let before = both.len();
        both.append(&mut after);
        let drivers = drivers::meet(TypedDrivers::default(), effort.timeout, &mut both)?;
        let after = both.split_off(before);
        Ok(Self {
            drivers,
            blocks: [both, after],
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
    pub fn new(arguments: ExplainArguments) -> Result<Self, Error> {
        let ExplainArguments { what, case, against, inject, axes, effort, profile } = arguments;
        profile.counters.iter().try_for_each(|counter| check_counter(counter))?;
        let axes = Axes::try_from(axes)?;
        let blocks = match (what.as_slice(), case) {
            ([file], Some(key)) => blocks_of_case(Path::new(file), &key)?,
            (_, Some(_)) => {
                return Err(Invalid::new(
                    "--case is of one results file",
                    "name the file that has it, and no other",
                )
                .into());
            }
            ([only], None) if Path::new(only).is_file() => {
                return Err(Invalid::new(
                    format!("'{}' is a file, and no case of it is named", printable(only)),
                    "add --case 'pipe latency 1 same-core', as the file has it",
                )
                .into());
            }
            (mechanisms, None) => by_hand(mechanisms, &axes)?.blocks,
        };
        let against = against.map(|text| Against::new(&blocks, &text, &axes)).transpose()?;
        Ok(Self {
            blocks,
            against,
            inject,
            endpoints: effort.endpoints.map(Into::into).unwrap_or_default(),
            explanation: ExplanationRequest::new(effort, profile),
        })
    }
}

impl Against {
    /// The same mechanisms at the size `text`, the build at the path `text`, or the mechanism `text`.
    fn new(blocks: &[Block], text: &str, axes: &Axes) -> Result<Self, Invalid> {
        if let Ok(size) = text.parse::<Size>() {
            let of_size = |block: &Block| Block { sizes: vec![size], ..block.clone() };
            return Ok(Self::Cases(blocks.iter().map(of_size).collect()));
        }
        // A path has a slash in it; as a mechanism it would be unknown.
        let name = text.split(':').next().unwrap_or(text);
        let is_path = text.contains('/') || Path::new(text).is_file() && registry::card(name).is_none();
        match is_path {
            true => Ok(Self::Build(text.into())),
            false => Ok(Self::Cases(by_hand(&[text.to_owned()], axes)?.blocks)),
        }
    }
}

fn check_counter(counter: &str) -> Result<(), Invalid> {
    observe::check_counter(counter)
        .map_err(|failure| Invalid::new(format!("--counter {counter}: {}", failure.answer), failure.next))
}

/// The case called `key` of a results file, to be planned again: its CPUs are those of this host.
fn blocks_of_case(file: &Path, key: &str) -> Result<Vec<Block>, Error> {
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
        let ProfileOptions { iterations, probes, counters, answer, detail, traces, timelines, flames } =
            profile;
        Self {
            time,
            // A control case that is settled would have no trials in the rounds in which the others are compared with it.
            precision: precision.unwrap_or(NEVER_SETTLED.into()),
            timeout,
            iterations,
            probes: if probes.is_empty() { Probe::explaining() } else { probes },
            counters,
            answer,
            detail,
            files: ExplanationFiles { traces, timelines, flames },
        }
    }
}

#[cfg(test)]
mod tests;
