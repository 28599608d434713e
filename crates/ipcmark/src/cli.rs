//! What can be typed, with its help. What it means is for `request` to say; values are parsed by the types of `model`.
//!
//! One grammar for all commands: mechanisms and files are words, everything else is an option that means the same everywhere.

mod choosing;
mod endpoints;
mod examples;

pub use self::choosing::*;
pub use self::endpoints::*;
use self::examples::with_codes;
use crate::derived_file::Existing;
use clap::{Args, Parser, Subcommand, ValueEnum};
use model::observation::{Probe, parse_probe};
use model::suite::parse_total;
use model::units::{parse_duration, parse_sizes, parse_some_time};
use model::{HostAddress, Inject, Invalid, Peers, Percent, Precision, Size, Workload};
use std::path::PathBuf;
use std::time::Duration;

/// Measure the ways in which processes communicate on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "ipcmark",
    version,
    after_help = examples::IPCMARK,
    after_long_help = with_codes(examples::IPCMARK),
    override_usage = "ipcmark [OPTIONS] [MECHANISM|SUITE]...\n       ipcmark <COMMAND>"
)]
pub struct Cli {
    /// What to do; `run` when no command is typed.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The sub-commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure mechanisms, or a suite; what happens without a command
    Run(RunArguments),
    /// List every mechanism and operation, and whether it works here
    List(ListArguments),
    /// Report what on this host spoils or limits measurements, and how to change it
    Doctor(DoctorArguments),
    /// Show results files, or make pages and figures of them
    Report(ReportArguments),
    /// Compare results files, or two mechanisms or two builds measured interleaved
    Compare(CompareArguments),
    /// Explain where the time of a case goes, and what to try
    Explain(ExplainArguments),
    /// Record which processes talk to each other, through what and how, as a scenario
    Record(RecordArguments),
    /// Run a program with other mechanisms in the place of its own, unmodified, and say what changes
    Try(TryArguments),
    /// Run the processes of a scenario, which exchange the messages that a recorded program did
    Replay(ReplayArguments),
    /// Say between which bounds the rate of a recorded program would lie with other mechanisms, without running it
    Predict(PredictArguments),
    /// Recommend a mechanism for a need, or for each flow of a scenario
    Advise(AdviseArguments),
    /// List the suites, or print what one would measure and draw
    Suite(SuiteArguments),
    /// Take part in trials that a coordinator leads over standard input and output
    Endpoint(EndpointArguments),
    /// List and build endpoints in other languages, or begin one of your own
    Driver(DriverArguments),
    /// Remove what killed runs left behind
    Clean,
    /// Print the JSON Schema of the results file, a scenario or the endpoint protocol
    Schema(SchemaArguments),
    /// Print a completion script for a shell
    Completions(CompletionsArguments),
    /// Print the manual page, or write the pages of all commands
    Man(ManArguments),
}

impl Default for Command {
    fn default() -> Self {
        Command::Run(RunArguments::default())
    }
}

/// `ipcmark run`.
#[derive(Debug, Args)]
#[command(after_help = examples::RUN, after_long_help = with_codes(examples::RUN))]
pub struct RunArguments {
    /// Mechanisms and operations to measure, as NAME or NAME:key=value,…, or all; or one suite, by its name or the path of its
    /// file [default: the suite default]
    #[arg(value_name = "MECHANISM|SUITE")]
    pub what: Vec<String>,
    #[command(flatten)]
    pub axes: AxesOptions,
    #[command(flatten)]
    pub effort: EffortOptions,
    /// Run this many trials of each case; fewer if it settles, or time runs out, before that
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,
    /// Make exactly this many iterations in each phase of a trial [default: as many as its time allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub iterations: Option<u64>,
    /// Send this many bytes in each trial of throughput; ignored for empty messages [default: the suite's, or as many as
    /// the trial's time allows]
    #[arg(long, value_name = "SIZE", value_parser = parse_total, conflicts_with = "iterations")]
    pub total: Option<Size>,
    /// Take the suite's short time: enough to see whether everything works, too short for numbers to rely on
    #[arg(long, conflicts_with = "time")]
    pub quick: bool,
    /// After measuring, have the probes that the suite's study needs observe cases for this long; 0s for no probes
    /// [default: the suite's, shortened as --quick and --time shorten the run]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub observe: Option<Duration>,
    /// Delay every iteration by this much, as 5% (of what the case takes without) or 200ns; server:200ns delays the server,
    /// sleep:50us and server:sleep:50us delay asleep; it is in the name of every case, and shows what a gate of yours would find
    #[arg(long, value_name = "DELAY", conflicts_with = "explain", allow_hyphen_values = true)]
    pub inject: Option<Inject>,
    /// Check every byte of every message in the timed phases too; without this, only sequence numbers are checked there
    #[arg(long)]
    pub check: bool,
    /// Print what would be measured, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Afterwards explain each case as `ipcmark explain` does, which takes about 20 seconds a case
    #[arg(long, conflicts_with = "format")]
    pub explain: bool,
    /// Keep the results in this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub page: PageOption,
    #[command(flatten)]
    pub show: ShowOptions,
    #[command(flatten, next_help_heading = "If endpoints are other programs")]
    pub programs: EndpointOptions,
    #[command(flatten, next_help_heading = "If client and server are on two hosts")]
    pub remote: RemoteOptions,
}

impl Default for RunArguments {
    fn default() -> Self {
        /// `run` with nothing typed after it, so that every default is in one place.
        #[derive(Parser)]
        struct Nothing {
            #[command(flatten)]
            run: RunArguments,
        }
        Nothing::parse_from(["ipcmark"]).run
    }
}

/// The cases in which mechanisms are measured: each workload at each size, in each placement, at each pace, with each
/// number of peers.
#[derive(Debug, Default, Args)]
pub struct AxesOptions {
    /// Workloads, with commas between: latency, throughput, transfer, connect, session, cost, accuracy; session:5x4 is a
    /// session of 5 messages with 4 descriptors each
    #[arg(short, long = "workload", value_name = "WORKLOAD", value_delimiter = ',')]
    pub workloads: Vec<Workload>,
    /// Message sizes in bytes or binary units: 1,64,4K; 1..1M doubles from 1 to 1M; 1..max doubles up to the largest
    /// message of each mechanism; 0 is an empty message
    #[arg(short, long = "size", value_name = "SIZES", value_parser = SizesParser, allow_hyphen_values = true)]
    pub sizes: Option<SizesOption>,
    /// CPUs of client and server, with commas between: same-core, smt, same-llc, cross-llc, cross-node, unpinned or
    /// cpus=CLIENT,SERVER; smt|same-llc takes the first that this host has
    #[arg(short, long = "placement", value_name = "PLACEMENTS", value_delimiter = ',')]
    pub placements: Vec<String>,
    /// How long the client waits, busy, before each iteration, so that the server falls asleep: 0,1us,10ms; 0 starts each
    /// iteration at once
    #[arg(long = "think-time", value_name = "DURATIONS", allow_hyphen_values = true)]
    pub think_times: Option<String>,
    /// How many iterations are due each second, at even intervals: 1000,10k; 10k-poisson at random intervals. Each is timed
    /// from when it was due
    #[arg(long = "rate", value_name = "RATES", allow_hyphen_values = true)]
    pub rates: Option<String>,
    /// How many clients and servers run at once: pairs=4 (4 of each), fan-in=4 (4 clients; one server answers whichever is
    /// ready), fan-out=4 (one client asks 4 servers)
    #[arg(long, value_name = "PEERS", value_delimiter = ',')]
    pub peers: Vec<Peers>,
}

/// The sides that are reached by commands.
#[derive(Debug, Default, Args)]
pub struct RemoteOptions {
    /// Run the server through this command, to which `ipcmark endpoint` is appended: 'ssh HOST', 'ip netns exec NAME',
    /// 'docker exec -i CONTAINER', 'sudo -u USER'; quotes work as in a shell
    #[arg(long, value_name = "COMMAND")]
    pub server_via: Option<String>,
    /// Run the client through this command
    #[arg(long, value_name = "COMMAND")]
    pub client_via: Option<String>,
    /// Address of the server, as the client reaches it, of IPv4 or IPv6; or vsock:CID, its context id [default: the first of its
    /// host's addresses that works, for each of both]
    #[arg(long, value_name = "ADDRESS")]
    pub server_address: Option<HostAddress>,
    /// Path of ipcmark on the other side [default: the path of this program, or else ipcmark]
    #[arg(long, value_name = "PATH")]
    pub via_program: Option<String>,
    /// Copy this program to the other side for the run, and remove it afterwards
    #[arg(long, conflicts_with = "via_program")]
    pub push: bool,
}

/// How precise results are to be, and what measuring may take.
#[derive(Debug, Args)]
pub struct EffortOptions {
    /// A case is settled when its 95% interval is within ± this; 3%,5% asks for 5% of cases on two CPUs [default: the
    /// suite's, or 2%; compare: 1%, the margin of no difference; explain: measures until its time is up]
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    pub precision: Option<Precision>,
    /// Time that measuring may take [default: the suite's, or 60s; compare: 30s; explain: 20s a case]
    #[arg(long, value_name = "DURATION", value_parser = parse_some_time, allow_hyphen_values = true)]
    pub time: Option<Duration>,
    /// What client and server are [default: the suite's, or processes]
    #[arg(long, value_name = "KIND")]
    pub endpoints: Option<EndpointsOption>,
    /// Kill a trial that goes this long without a report
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10s")]
    pub timeout: Duration,
}

/// What the endpoints are.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum EndpointsOption {
    /// Two fresh processes
    Processes,
    /// Two threads of one fresh process
    Threads,
}

impl From<EndpointsOption> for model::Endpoints {
    fn from(typed: EndpointsOption) -> Self {
        match typed {
            EndpointsOption::Processes => model::Endpoints::Processes,
            EndpointsOption::Threads => model::Endpoints::Threads,
        }
    }
}

/// Message sizes, as one list.
#[derive(Debug, Clone)]
pub struct SizesOption(pub Vec<Size>);

/// Parses [`SizesOption`]; a type of its own because clap would take a bare vector for a repeated option.
#[derive(Debug, Clone)]
struct SizesParser;

impl clap::builder::TypedValueParser for SizesParser {
    type Value = SizesOption;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<SizesOption, clap::Error> {
        let sizes = parse_sizes(&value.to_string_lossy()).map(SizesOption);
        sizes.map_err(|invalid: Invalid| {
            clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("--size: {invalid}\n"))
                .with_cmd(command)
        })
    }
}

/// How results are shown.
#[derive(Debug, Args)]
pub struct ShowOptions {
    /// Form in which the answer is printed: table, markdown, csv or json
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: report::Format,
    /// Show every case with all its columns, and the study in full
    #[arg(long, conflicts_with = "format")]
    pub detail: bool,
    /// Draw a small chart below the table
    #[arg(long, conflicts_with = "format")]
    pub plot: bool,
    /// Column that charts show, by its title, such as p99, cpu or ×floor [default: the first of each workload]
    #[arg(long, value_name = "COLUMN", value_parser = report::parse_metric)]
    pub metric: Option<String>,
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct FormatOption {
    /// Form in which the answer is printed: table, markdown, csv or json
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: report::Format,
}

/// What becomes of files that exist.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct OverwriteOption {
    /// Replace files that exist; without this, naming one is an error
    #[arg(long)]
    pub overwrite: bool,
}

/// The page of an answer.
#[derive(Debug, Clone, Default, Args)]
pub struct PageOption {
    /// Make an HTML page of the answer too, which needs no other file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub existing: OverwriteOption,
}

/// How an answer is printed and kept.
#[derive(Debug, Clone, Default, Args)]
pub struct AnswerOptions {
    #[command(flatten)]
    pub printed: FormatOption,
    /// Keep the answer in this file too, as JSON
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub page: PageOption,
}

impl From<OverwriteOption> for Existing {
    fn from(option: OverwriteOption) -> Self {
        option.overwrite.into()
    }
}

/// Files that are made instead of showing anything.
#[derive(Debug, Args)]
pub struct FileOptions {
    /// Make one HTML page of all results, which needs no other file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "plot"])]
    pub html: Option<PathBuf>,
    /// Draw each figure as an SVG file in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "plot"])]
    pub svg: Option<PathBuf>,
    /// Draw each figure as a PNG file in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "plot"])]
    pub png: Option<PathBuf>,
    /// Write the iterations that a timeline probe recorded as traces for Perfetto (ui.perfetto.dev) into this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "plot"])]
    pub traces: Option<PathBuf>,
}

impl FileOptions {
    /// Whether any is asked for.
    pub fn are_wanted(&self) -> bool {
        self.html.is_some() || self.svg.is_some() || self.png.is_some() || self.traces.is_some()
    }
}

/// `ipcmark suite`.
#[derive(Debug, Args)]
#[command(after_help = examples::SUITE)]
pub struct SuiteArguments {
    /// What to do
    #[command(subcommand)]
    pub command: SuiteCommand,
}

/// The sub-commands of `ipcmark suite`.
#[derive(Debug, Subcommand)]
pub enum SuiteCommand {
    /// List the suites that come with the program
    List,
    /// Check a suite, and print what it would measure and draw
    Check {
        /// Name of a suite, or path of a suite file
        #[arg(value_name = "SUITE")]
        suite: String,
    },
}

/// `ipcmark list`.
#[derive(Debug, Args)]
#[command(after_help = examples::LIST)]
pub struct ListArguments {
    /// Mechanisms and operations to show in full [default: a line for each of all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub answer: FormatOption,
}

/// `ipcmark doctor`.
#[derive(Debug, Args)]
#[command(after_help = examples::DOCTOR)]
pub struct DoctorArguments {
    #[command(flatten)]
    pub answer: FormatOption,
    /// Examine the server's host too, through this command
    #[arg(long, value_name = "COMMAND")]
    pub server_via: Option<String>,
    /// Path of ipcmark there [default: the path of this program, or else ipcmark]
    #[arg(long, value_name = "PATH", requires = "server_via")]
    pub via_program: Option<String>,
}

/// `ipcmark report`.
#[derive(Debug, Args)]
#[command(after_help = examples::REPORT)]
pub struct ReportArguments {
    /// Results files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Show the study that a suite repeats, with its conclusions, instead of the cases
    #[arg(long, conflicts_with_all = ["detail", "plot", "metric"])]
    pub study: bool,
    #[command(flatten)]
    pub show: ShowOptions,
    #[command(flatten)]
    pub make: FileOptions,
    #[command(flatten)]
    pub existing: OverwriteOption,
}

/// `ipcmark compare`.
#[derive(Debug, Args)]
#[command(after_help = examples::COMPARE, after_long_help = with_codes(examples::COMPARE))]
pub struct CompareArguments {
    /// A and B: two mechanisms, which are measured interleaved, or two results files; several files of like runs, with commas
    /// between, say how much runs differ. With --against: the mechanisms and operations to compare, or a suite [default: the
    /// suite default]
    #[arg(value_name = "MECHANISM|FILE", required_unless_present = "against")]
    pub what: Vec<String>,
    /// Compare this build with another, interleaved: A is this ipcmark binary, B the one that runs
    #[arg(long, value_name = "BINARY")]
    pub against: Option<PathBuf>,
    /// Say how long it takes to find the difference of --find, from a pilot of a few seconds, and stop
    #[arg(long, conflicts_with = "html")]
    pub plan: bool,
    /// The difference that --plan plans for
    #[arg(long, value_name = "PERCENT", default_value = "5%", requires = "plan")]
    pub find: Percent,
    /// Exit with status 3 if B is slower than A by more than this in any case, and with 4 if it may be and that is undecided
    #[arg(long, value_name = "PERCENT")]
    pub fail_above: Option<Percent>,
    /// With --fail-above: what is undecided fails with status 4, or passes
    #[arg(long, value_name = "OUTCOME", default_value = "fail", requires = "fail_above")]
    pub undecided: UndecidedOption,
    #[command(flatten)]
    pub answer: AnswerOptions,
    #[command(flatten, next_help_heading = "If mechanisms or builds are compared")]
    pub axes: AxesOptions,
    /// Delay every iteration of B by this much, as 5% (of what B takes without), 200ns or server:200ns; A and B may be the same
    #[arg(long, value_name = "DELAY", allow_hyphen_values = true)]
    pub inject: Option<Inject>,
    #[command(flatten)]
    pub effort: EffortOptions,
}

/// What becomes of a gate whose answer is undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UndecidedOption {
    /// The command ends with status 4
    Fail,
    /// The command ends with status 0
    Pass,
}

/// `ipcmark explain`.
#[derive(Debug, Args)]
#[command(after_help = examples::EXPLAIN, after_long_help = with_codes(examples::EXPLAIN))]
pub struct ExplainArguments {
    /// Mechanisms and operations to explain, as NAME or NAME:key=value,…; or, with --case, results file that has the case, which
    /// is measured again
    #[arg(value_name = "MECHANISM|FILE", required = true)]
    pub what: Vec<String>,
    /// Case of the results file to explain, as `compare` and messages name it: 'pipe latency 1 same-core'
    #[arg(long, value_name = "CASE")]
    pub case: Option<String>,
    /// Explain why it is slower or faster than this: another mechanism, another size of the same, or the same with the endpoints of
    /// another build, named by its path
    #[arg(
        long,
        value_name = "MECHANISM|SIZE|BINARY",
        conflicts_with_all = ["case", "probes", "counters", "traces", "timelines", "flames"]
    )]
    pub against: Option<String>,
    /// Delay every iteration by this much, as 5%, 10us, server:10us or server:sleep:50us: it is in the name of the case, and
    /// shows what an explanation finds of it. What is named with --against has no delay
    #[arg(long, value_name = "DELAY", conflicts_with = "case", allow_hyphen_values = true)]
    pub inject: Option<Inject>,
    #[command(flatten)]
    pub axes: AxesOptions,
    #[command(flatten)]
    pub effort: EffortOptions,
    #[command(flatten)]
    pub profile: ProfileOptions,
}

/// How probes observe cases, and what is made of it.
#[derive(Debug, Default, Args)]
pub struct ProfileOptions {
    /// Make exactly this many iterations in each trial with a probe [default: as many as its time allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2000))]
    pub iterations: Option<u64>,
    /// Probes to use; the critical path is recorded with `scheduler` [default: all that work here]
    #[arg(long, value_name = "PROBES", value_delimiter = ',', value_parser = parse_probe)]
    pub probes: Vec<Probe>,
    /// Further counter: a name, a raw event (r01c2), an event of a unit (cpu/cache-misses/), or several at once {one,two};
    /// repeat for several
    #[arg(long = "counter", value_name = "COUNTER")]
    pub counters: Vec<String>,
    #[command(flatten)]
    pub answer: AnswerOptions,
    /// Show the whole path, system calls, scheduling, faults, counters, and what the probes cost
    #[arg(long)]
    pub detail: bool,
    /// Write the observed iterations of each case as a trace for Perfetto (ui.perfetto.dev) into this directory
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
    /// Draw typical iterations and a slow one of each case as SVG files in this directory
    #[arg(long, value_name = "DIR")]
    pub timelines: Option<PathBuf>,
    /// Draw flame graphs of client and server as SVG files in this directory, beside their folded stacks; of two cases, the
    /// difference too
    #[arg(long, value_name = "DIR")]
    pub flames: Option<PathBuf>,
}

/// `ipcmark schema`.
#[derive(Debug, Args)]
#[command(after_help = examples::SCHEMA)]
pub struct SchemaArguments {
    /// File whose schema to print
    #[arg(value_name = "FILE", default_value = "results")]
    pub of: SchemaOption,
}

/// The files that have a schema.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SchemaOption {
    /// One line of a results file
    Results,
    /// A scenario file, whose TOML it describes as JSON
    Scenario,
    /// A message between the coordinator and an endpoint of another language
    Protocol,
}

/// `ipcmark completions`.
#[derive(Debug, Args)]
#[command(after_help = examples::COMPLETIONS)]
pub struct CompletionsArguments {
    /// Shell that the script is for
    pub shell: clap_complete::Shell,
}

/// `ipcmark man`.
#[derive(Debug, Args)]
#[command(after_help = examples::MAN)]
pub struct ManArguments {
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    #[command(flatten)]
    pub existing: OverwriteOption,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
