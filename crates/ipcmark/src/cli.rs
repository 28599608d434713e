//! What can be typed. It computes nothing: values are parsed by the types of `model`.

use crate::exit;
use clap::{Args, Parser, Subcommand, ValueEnum};
use model::observation::{Probe, parse_probe};
use model::suite::parse_total;
use model::units::{parse_duration, parse_sizes, parse_some_time};
use model::{Invalid, Peers, Percent, Placements, Size, Workload};
use std::path::PathBuf;
use std::time::Duration;

/// Measure the ways in which processes communicate on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "ipcmark",
    version,
    after_help = "Without a command, `ipcmark` runs the default suite.",
    after_long_help = exit::CODES,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do; `run` when nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The sub-commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure: a suite, or the mechanisms and operations named with -m
    Run(Run),
    /// List every mechanism and operation, and whether it works here
    List(List),
    /// Say what on this host spoils or limits measurements, and what mends it
    Doctor(Doctor),
    /// Show results files
    Report(Report),
    /// Compare two results files, or two mechanisms measured side by side
    Compare(Compare),
    /// Say why a case costs what it does: where the time goes, and what to try
    Explain(Explain),
    /// List the suites, or say what one would measure and draw
    Suite(Suite),
    /// Remove what dead runs left behind
    Clean,
    /// Print the JSON Schema of the results file
    Schema,
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual page, or write those of all commands
    Man(Man),
}

impl Default for Command {
    fn default() -> Self {
        Command::Run(Run::default())
    }
}

/// `ipcmark run`.
#[derive(Debug, Args)]
#[command(after_long_help = exit::CODES)]
pub struct Run {
    /// A suite by name, or a suite file
    #[arg(default_value = crate::suites::DEFAULT, value_name = "SUITE")]
    pub suite: String,
    /// A mechanism or operation to measure instead of a suite's, as NAME or NAME:key=value,…; all for everything
    #[arg(short, long = "mechanism", value_name = "MECH", conflicts_with = "suite")]
    pub mechanisms: Vec<String>,
    #[command(flatten)]
    pub axes: Axes,
    #[command(flatten)]
    pub effort: Effort,
    /// Take exactly this many trials of each case, unless it settles or time runs out before
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,
    /// Make exactly this many iterations in each part of a trial, instead of as many as fill a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub iterations: Option<u64>,
    /// Send so many bytes in each trial of throughput, instead of as many as fill a time, as of empty messages
    /// [default: the suite's]
    #[arg(long, value_name = "SIZE", value_parser = parse_total, conflicts_with = "iterations")]
    pub total: Option<Size>,
    /// Take the suite's short time: enough to see that all works, too little to lean on the numbers
    #[arg(long, conflicts_with_all = ["time", "mechanisms"])]
    pub quick: bool,
    /// The time in which cases are then looked at by the probes that the suite's study needs; 0s for none
    /// [default: the suite's, shortened as --quick and --time shorten the run]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "mechanisms")]
    pub observe: Option<Duration>,
    /// Check every byte of every payload in the timed part too, not only sequence numbers
    #[arg(long)]
    pub check: bool,
    /// Say what would be measured, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Then explain each case as `ipcmark explain` does, which takes some twelve seconds a case
    #[arg(long, conflicts_with = "format")]
    pub explain: bool,
    /// Where to keep the results; an existing file is never overwritten
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub show: Show,
}

impl Default for Run {
    fn default() -> Self {
        /// `run` with nothing typed after it, so that every default stands in one place.
        #[derive(Parser)]
        struct Nothing {
            #[command(flatten)]
            run: Run,
        }
        Nothing::parse_from(["ipcmark"]).run
    }
}

/// In what mechanisms are measured: each workload at each size in each placement at each pace.
#[derive(Debug, Args)]
pub struct Axes {
    /// Workloads: latency, throughput, transfer, connect, session or session:5x4 (messages, and descriptors
    /// of each), cost, accuracy
    #[arg(short, long = "workload", value_name = "WORKLOAD", value_delimiter = ',')]
    pub workloads: Vec<Workload>,
    /// Message sizes in bytes or binary units: 1,64,4K or 1..1M, which doubles, or 1..max, up to what each mechanism takes;
    /// 0 where a message may be empty
    #[arg(short, long, value_name = "SIZES", value_parser = SizesParser, allow_hyphen_values = true)]
    pub sizes: Option<Sizes>,
    /// Where the endpoints run: same-core, smt, same-llc, cross-llc, cross-node, unpinned or cpus=A,B;
    /// repeat for several, join with | for the first that this host has
    #[arg(short, long = "placement", value_name = "PLACEMENT")]
    pub placements: Vec<Placements>,
    /// How long client waits, awake, before each iteration, so that server has gone to sleep: 0,1us,10ms; 0 is back to back
    #[arg(long = "think-time", value_name = "DURATIONS", allow_hyphen_values = true)]
    pub think_times: Option<String>,
    /// Iterations due a second, whatever they take, each timed from when it was due: 1000,10k; 10k-poisson at random
    #[arg(long = "rate", value_name = "RATES", allow_hyphen_values = true)]
    pub rates: Option<String>,
    /// How many endpoints communicate at once: pairs=4, fan-in=4 (so many client, one server that serves whoever is
    /// ready), fan-out=4 (one client that asks so many server)
    #[arg(long, value_name = "PEERS", value_delimiter = ',')]
    pub peers: Vec<Peers>,
}

/// How much effort measuring is worth.
#[derive(Debug, Args)]
pub struct Effort {
    /// A case is settled when its 95% interval is within ± this [default: the suite's, or 2%]
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    pub precision: Option<Percent>,
    /// The time that measuring may take [default: the suite's, or 60s; of explain 12s a case]
    #[arg(long, value_name = "DURATION", value_parser = parse_some_time, allow_hyphen_values = true)]
    pub time: Option<Duration>,
    /// What the endpoints are [default: the suite's, or processes]
    #[arg(long, value_name = "WHAT")]
    pub endpoints: Option<Endpoints>,
    /// How long a trial may go without a report before it is killed
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10s")]
    pub timeout: Duration,
}

/// What the endpoints are.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Endpoints {
    /// Two fresh processes
    Processes,
    /// Two threads of one fresh process
    Threads,
}

impl From<Endpoints> for model::Endpoints {
    fn from(typed: Endpoints) -> Self {
        match typed {
            Endpoints::Processes => model::Endpoints::Processes,
            Endpoints::Threads => model::Endpoints::Threads,
        }
    }
}

/// Message sizes, as one list.
#[derive(Debug, Clone)]
pub struct Sizes(pub Vec<Size>);

/// Parses [`Sizes`]; a type of its own because clap would take a bare vector for a repeated option.
#[derive(Debug, Clone)]
struct SizesParser;

impl clap::builder::TypedValueParser for SizesParser {
    type Value = Sizes;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Sizes, clap::Error> {
        let sizes = parse_sizes(&value.to_string_lossy()).map(Sizes);
        sizes.map_err(|invalid: Invalid| {
            clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("--sizes: {invalid}\n"))
                .with_cmd(command)
        })
    }
}

/// How results are shown.
#[derive(Debug, Args)]
pub struct Show {
    /// The form of what is shown: table, markdown, csv, study-csv or json
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: report::Format,
    /// Show every case with all its columns, and the study in full
    #[arg(long, conflicts_with = "format")]
    pub detail: bool,
    /// Draw a small chart below the table
    #[arg(long, conflicts_with = "format")]
    pub plot: bool,
    /// What charts show, by the title of its column, such as p99, cpu or ×floor [default: each workload's first]
    #[arg(long, value_name = "COLUMN", value_parser = report::parse_metric)]
    pub metric: Option<String>,
}

/// Files that are made instead of showing anything. One that was made before is replaced.
#[derive(Debug, Args)]
pub struct Files {
    /// Make one page of all results, which opens by itself in a browser
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "plot"])]
    pub html: Option<PathBuf>,
    /// Draw each figure as SVG into this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "plot"])]
    pub svg: Option<PathBuf>,
    /// Draw each figure as PNG into this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "plot"])]
    pub png: Option<PathBuf>,
    /// Write the iterations that were kept from moment to moment as traces for Perfetto (ui.perfetto.dev) into this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "plot"])]
    pub traces: Option<PathBuf>,
}

impl Files {
    /// Whether any is asked for.
    pub fn are_wanted(&self) -> bool {
        self.html.is_some() || self.svg.is_some() || self.png.is_some() || self.traces.is_some()
    }
}

/// `ipcmark suite`.
#[derive(Debug, Args)]
pub struct Suite {
    /// What to do
    #[command(subcommand)]
    pub command: SuiteCommand,
}

/// The sub-commands of `ipcmark suite`.
#[derive(Debug, Subcommand)]
pub enum SuiteCommand {
    /// List the suites that come with the program
    List,
    /// Check a suite, and say what it would measure and draw
    Check {
        /// A suite by name, or a suite file
        #[arg(value_name = "SUITE")]
        suite: String,
    },
}

/// `ipcmark list`.
#[derive(Debug, Args)]
pub struct List {
    /// Rows to show in full; all rows in short when none is named
    pub names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `ipcmark doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `ipcmark report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Results files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub show: Show,
    #[command(flatten)]
    pub make: Files,
}

/// `ipcmark compare`.
#[derive(Debug, Args)]
#[command(after_long_help = exit::CODES)]
pub struct Compare {
    /// A results file, or a mechanism: what is compared against
    #[arg(value_name = "A")]
    pub before: String,
    /// A results file, or a mechanism: what is judged
    #[arg(value_name = "B")]
    pub after: String,
    /// Exit with code 3 when B is slower than A by more than this in some case
    #[arg(long, value_name = "PERCENT")]
    pub fail_above: Option<Percent>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten, next_help_heading = "When A and B are mechanisms")]
    pub axes: Axes,
    #[command(flatten)]
    pub effort: Effort,
}

/// `ipcmark explain`.
#[derive(Debug, Args)]
#[command(after_long_help = exit::CODES)]
pub struct Explain {
    /// A results file whose case is to be explained, measured anew
    #[arg(value_name = "FILE", requires = "case")]
    pub file: Option<PathBuf>,
    /// The case of the results file, as `compare` and messages name it: 'pipe latency 1 same-core'
    #[arg(long, value_name = "CASE", requires = "file")]
    pub case: Option<String>,
    /// A mechanism or operation to explain, as NAME or NAME:key=value,…
    #[arg(
        short,
        long = "mechanism",
        value_name = "MECH",
        conflicts_with = "file",
        required_unless_present = "file"
    )]
    pub mechanisms: Vec<String>,
    #[command(flatten)]
    pub axes: Axes,
    #[command(flatten)]
    pub effort: Effort,
    #[command(flatten)]
    pub looks: Looks,
}

/// How cases are looked at, and what is made of it.
#[derive(Debug, Default, Args)]
pub struct Looks {
    /// Look at exactly this many iterations in each trial, instead of as many as fill a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2000))]
    pub iterations: Option<u64>,
    /// By which probes to look [default: all that work here]
    #[arg(long, value_name = "PROBE,…", value_delimiter = ',', value_parser = parse_probe)]
    pub probes: Vec<Probe>,
    /// A further counter: a name, a raw event (r01c2), one of a unit (cpu/cache-misses/), or {several,together}
    #[arg(long = "counter", value_name = "COUNTER")]
    pub counters: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the iterations of each case that was looked at as traces for Perfetto (ui.perfetto.dev) into this directory
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
    /// Draw typical iterations and a slow one of each case as SVG into this directory
    #[arg(long, value_name = "DIR")]
    pub timelines: Option<PathBuf>,
    /// Draw flame graphs of each end as SVG into this directory, beside folded stacks; of two cases, their difference too
    #[arg(long, value_name = "DIR")]
    pub flames: Option<PathBuf>,
    /// Make one page of it too, with pictures of iterations and flame graphs, which opens by itself in a browser
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// `ipcmark completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `ipcmark man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
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
