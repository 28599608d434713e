//! What can be typed after `record`, `replay`, `try`, `predict` and `advise`.

use super::examples::{self, with_codes};
use super::{AnswerOptions, FormatOption, PageOption};
use crate::try_metric::PrintedMetric;
use clap::Args;
use harness::programs::ready::Ready;
use model::need::{Objective, Pattern, Requirement};
use model::units::{parse_duration, parse_some_time};
use model::{Percent, Placements, Size};
use observe::recorder::RecordBy;
use std::path::PathBuf;
use std::time::Duration;

/// `ipcmark record`.
#[derive(Debug, Args)]
#[command(after_help = examples::RECORD, after_long_help = with_codes(examples::RECORD))]
pub struct RecordArguments {
    /// Keep the scenario in this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Record for this long at most; in the last two fifths of it, or sooner where it costs much, recording is switched off and on to
    /// tell what it costs, and stays off once it has cost the program 4% of this time. A command goes on unrecorded
    /// afterwards, and is waited for
    #[arg(long, value_name = "DURATION", value_parser = parse_some_time, default_value = "10s")]
    pub time: Duration,
    /// By what calls are recorded: bpf, programs in the kernel; tracepoints, records of the kernel, which cost more and tell less; both
    /// take privileges; or ptrace, which stops threads at every call and takes the rights from a program that has them by its file (setuid,
    /// setgid, capabilities), which is recorded so only if this is said [default: the first of these that may be used]
    #[arg(long, value_name = "WAY")]
    pub by: Option<RecordBy>,
    #[command(flatten)]
    pub answer: FormatOption,
    /// Draw processes and flows as an SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub page: PageOption,
    /// Processes to record, with what they have started and what they start; repeat for several
    #[arg(long = "pid", value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pub pids: Vec<u32>,
    /// Command to start and record, with its arguments and all that it starts
    #[arg(
        required_unless_present = "pids",
        conflicts_with = "pids",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<String>,
}

/// `ipcmark replay`.
#[derive(Debug, Args)]
#[command(after_help = examples::REPLAY, after_long_help = with_codes(examples::REPLAY))]
pub struct ReplayArguments {
    /// Scenario file (docs/reference/scenario.md)
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// Have a flow go over another mechanism, as query=unix-stream:sndbuf=1M, or flows with such names, as 'query-*=pipe'; repeat for
    /// several
    #[arg(long = "set", value_name = "FLOW=MECHANISM")]
    pub exchanges: Vec<String>,
    /// Run this in turn with the scenario, and say how it differs: other mechanisms, as query=pipe,fetch=tcp, or another scenario
    /// file
    #[arg(long, value_name = "FLOW=MECHANISM|FILE")]
    pub against: Option<String>,
    /// Time that measuring may take
    #[arg(long, value_name = "DURATION", value_parser = parse_some_time, default_value = "10s", allow_hyphen_values = true)]
    pub time: Duration,
    /// End the replay when nothing happens for this long, beyond what its flows wait by themselves
    #[arg(long, value_name = "DURATION", value_parser = parse_some_time, default_value = "10s")]
    pub timeout: Duration,
    #[command(flatten)]
    pub answer: AnswerOptions,
}

/// `ipcmark try`.
#[derive(Debug, Args)]
#[command(after_help = examples::TRY, after_long_help = with_codes(examples::TRY))]
pub struct TryArguments {
    /// Start this server first, a command as for a shell, 'redis-server --port 7777'; it has to stay in the foreground; repeat for
    /// several
    #[arg(long = "server", value_name = "COMMAND")]
    pub servers: Vec<String>,
    /// By what it is known that the servers can be used: a TCP port, line=TEXT for what one prints, or a command that succeeds
    /// [default: each listens]
    #[arg(long, value_name = "PORT|line=TEXT|COMMAND")]
    pub ready: Option<Ready>,
    /// Say how this process, which runs already and cannot be exchanged, is started with --server
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["servers", "command"])]
    pub pid: Option<u32>,
    /// Exchange this, as tcp:7777=unix-stream:sndbuf=1M, tcp=tcp:nodelay=on or pipe=pipe:capacity=1M; several with blanks between
    /// them are one variant; repeat for several variants [default: what the program uses, each by what its mechanism allows]
    #[arg(long = "set", value_name = "WHAT=MECHANISM")]
    pub exchanges: Vec<String>,
    /// A number that the command prints, as 'rps=([0-9.]+) requests per second' or rps=/json/pointer, less:NAME=… where less is better;
    /// the first decides; repeat for several [default: the wall time]
    #[arg(long = "metric", value_name = "NAME=REGEX")]
    pub metrics: Vec<PrintedMetric>,
    /// Time that trying may take; it ends before that when it knows
    #[arg(long, value_name = "DURATION", value_parser = parse_some_time, default_value = "2m", allow_hyphen_values = true)]
    pub time: Duration,
    /// End a start or a run that takes longer than this
    #[arg(long, value_name = "DURATION", value_parser = parse_some_time, default_value = "60s")]
    pub timeout: Duration,
    /// What is no change worth the name
    #[arg(long, value_name = "PERCENT", default_value = "1%")]
    pub margin: Percent,
    #[command(flatten)]
    pub answer: AnswerOptions,
    /// Command that is run again and again, with its arguments
    #[arg(
        value_name = "COMMAND",
        required_unless_present = "pid",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<String>,
}

/// `ipcmark predict`.
#[derive(Debug, Args)]
#[command(after_help = examples::PREDICT, after_long_help = with_codes(examples::PREDICT))]
pub struct PredictArguments {
    /// Scenario file that 'ipcmark record' made
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// Exchange the mechanism of a flow, as FLOW=MECHANISM or FLOW=MECHANISM:key=value,…, or of flows with such names, as
    /// 'FLOW-*=MECHANISM'; repeat for several
    #[arg(long = "set", value_name = "FLOW=MECHANISM", required = true)]
    pub exchanges: Vec<String>,
    /// Results file of this machine with the costs of the mechanisms; repeat for several
    #[arg(long = "costs", value_name = "FILE")]
    pub costs: Vec<PathBuf>,
    /// Time that measuring what is not in these files may take
    #[arg(long, value_name = "DURATION", value_parser = parse_some_time, default_value = "30s", allow_hyphen_values = true)]
    pub time: Duration,
    /// Kill a trial that goes this long without a report
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10s")]
    pub timeout: Duration,
    #[command(flatten)]
    pub answer: FormatOption,
}

/// `ipcmark advise`.
#[derive(Debug, Args)]
#[command(after_help = examples::ADVISE, after_long_help = with_codes(examples::ADVISE))]
pub struct AdviseArguments {
    /// Scenario file, for each flow of which a mechanism is to be found, unless --pattern says what is needed; then the mechanisms
    /// to choose among [default: all]
    #[arg(value_name = "SCENARIO|MECHANISM")]
    pub what: Vec<String>,
    /// How the processes talk: request-reply, stream (messages one way) or signal (a wake-up)
    #[arg(long, value_name = "PATTERN")]
    pub pattern: Option<Pattern>,
    /// Size of a message in bytes or binary units, such as 64 or 4K; a signal has none
    #[arg(short, long, value_name = "SIZE", requires = "pattern", allow_hyphen_values = true)]
    pub size: Option<Size>,
    /// How many are due each second: 1000, 20k; 20k-poisson at random intervals
    #[arg(long, value_name = "RATE", requires = "pattern", allow_hyphen_values = true)]
    pub rate: Option<String>,
    /// What the mechanism must have: descriptors, boundaries, order, reliable, back-pressure, credentials, named, other-users,
    /// containers, hosts, peer-death, outlives, atomic, poll, unprivileged, connected, connectionless
    #[arg(long, value_name = "NEEDS", value_delimiter = ',')]
    pub needs: Vec<Requirement>,
    /// CPUs of the two processes, as for run [default: two CPUs, as near as there are]
    #[arg(short, long, value_name = "PLACEMENT")]
    pub placement: Option<Placements>,
    /// What to be best in: latency, cpu or throughput [default: throughput of a stream, else latency]
    #[arg(long, value_name = "OBJECTIVE")]
    pub optimise: Option<Objective>,
    /// Time that measuring may take for each need
    #[arg(long, value_name = "DURATION", value_parser = parse_some_time, default_value = "20s", allow_hyphen_values = true)]
    pub time: Duration,
    /// Kill a trial that goes this long without a report
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10s")]
    pub timeout: Duration,
    #[command(flatten)]
    pub answer: AnswerOptions,
    /// Draw the time of candidates against their CPU time as an SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}
