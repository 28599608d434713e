//! CSV: one line a case, for spreadsheets and data frames.
//!
//! Columns keep their names and their order; new ones are added at the end. Names end in the unit where
//! there is one. What is missing is an empty field, never 0.

use super::written::{field, written};
use analysis::analysed::{AnalysedRecord, AnalysedResults};
use model::Case;
use model::estimate::Estimate;
use model::network::NetworkReadings;
use model::record::Outcome;
use model::summary::{PerIteration, Quantiles, SpeedSummary, Summary};
use std::io;

/// One case on its way to a line.
struct Row<'a> {
    run: &'a str,
    analysed: &'a AnalysedRecord<'a>,
}

/// A column: its name, and its field where the case has one.
type Column = (&'static str, fn(&Row<'_>) -> Option<String>);

/// Writes `results` as CSV (RFC 4180, but for lines that end in a bare line feed), with one line of names.
pub fn csv(analysed: &AnalysedResults<'_>, mut out: impl io::Write) -> io::Result<()> {
    let mut lines = ::csv::Writer::from_writer(Vec::new());
    lines.write_record(COLUMNS.iter().map(|(name, _)| name))?;
    for record in &analysed.records {
        let row = Row { run: &analysed.results.header.run, analysed: record };
        lines.write_record(COLUMNS.iter().map(|(_, of)| field(&of(&row).unwrap_or_default())))?;
    }
    out.write_all(&written(lines)?)
}

const COLUMNS: &[Column] = &[
    ("run", |row| Some(row.run.to_owned())),
    ("workload", |row| Some(row.case().workload.to_string())),
    ("size_bytes", |row| row.case().size_bytes.map(|size| size.0.to_string())),
    ("placement", |row| Some(row.case().placement.to_string())),
    ("cpu_client", |row| row.case().cpus.map(|cpus| cpus.client.to_string())),
    ("cpu_server", |row| row.case().cpus.map(|cpus| cpus.server.to_string())),
    ("endpoints", |row| Some(row.case().endpoints.to_string())),
    ("name", |row| Some(row.case().spec.name.clone())),
    ("params", |row| Some(row.case().spec.params.to_string())),
    ("floor", |row| Some(row.analysed.record.floor.to_string())),
    ("outcome", |row| Some(row.analysed.outcome_name().to_owned())),
    ("trials", |row| row.summary_value(|s| s.trials)),
    ("slices", |row| row.summary_value(|s| s.slices)),
    ("iterations", |row| row.summary_value(|s| s.iterations)),
    ("iteration_ns_median", |row| row.summary_value(|s| s.iteration_ns.median)),
    ("iteration_ns_low", |row| row.and(|s| low(s.iteration_ns))),
    ("iteration_ns_high", |row| row.and(|s| high(s.iteration_ns))),
    ("as_found_ns", |row| row.speed(|speed| speed.as_found_ns)),
    ("host_speed_median", |row| row.speed(|speed| Some(speed.median_speed))),
    ("client_speed_slope", |row| row.speed(|speed| Some(speed.client?.slope))),
    ("server_speed_slope", |row| row.speed(|speed| Some(speed.server?.slope))),
    ("pair_slope", |row| row.speed(|speed| Some(speed.pair?.slope))),
    ("wake_slope", |row| row.speed(|speed| Some(speed.wake?.slope))),
    ("rate_bytes_per_s_median", |row| row.and(|s| Some(s.bytes_per_s?.median))),
    ("rate_bytes_per_s_low", |row| row.and(|s| low(s.bytes_per_s?))),
    ("rate_bytes_per_s_high", |row| row.and(|s| high(s.bytes_per_s?))),
    ("p50_ns", |row| row.quantile(|q| q.p50_ns)),
    ("p90_ns", |row| row.quantile(|q| q.p90_ns)),
    ("p99_ns", |row| row.quantile(|q| q.p99_ns)),
    ("p99_low_ns", |row| row.and(|s| Some(s.quantiles?.p99_interval_ns?.0 as f64))),
    ("p99_high_ns", |row| row.and(|s| Some(s.quantiles?.p99_interval_ns?.1 as f64))),
    ("p999_ns", |row| row.quantile(|q| q.p999_ns)),
    ("max_ns", |row| row.quantile(|q| q.max_ns)),
    ("each_over_total_median", |row| row.and(|s| Some(s.each_over_total?.median))),
    ("each_over_total_low", |row| row.and(|s| low(s.each_over_total?))),
    ("each_over_total_high", |row| row.and(|s| high(s.each_over_total?))),
    ("floor_multiple_median", |row| row.and(|s| Some(s.floor_multiple?.median))),
    ("floor_multiple_low", |row| row.and(|s| low(s.floor_multiple?))),
    ("floor_multiple_high", |row| row.and(|s| high(s.floor_multiple?))),
    ("client_cpu_ns", |row| row.client(|client| client.cpu_ns)),
    ("client_user_ns", |row| row.client(|client| client.user_ns)),
    ("client_system_ns", |row| row.client(|client| client.system_ns)),
    ("client_voluntary_switches", |row| row.client(|client| client.voluntary_switches)),
    ("client_involuntary_switches", |row| row.client(|client| client.involuntary_switches)),
    ("client_faults", |row| row.client(|client| client.faults)),
    ("server_cpu_ns", |row| row.server(|server| server.cpu_ns)),
    ("server_user_ns", |row| row.server(|server| server.user_ns)),
    ("server_system_ns", |row| row.server(|server| server.system_ns)),
    ("server_voluntary_switches", |row| row.server(|server| server.voluntary_switches)),
    ("server_involuntary_switches", |row| row.server(|server| server.involuntary_switches)),
    ("server_faults", |row| row.server(|server| server.faults)),
    ("fast_mode_ns", |row| row.and(|s| Some(s.modes?.fast))),
    ("slow_mode_ns", |row| row.and(|s| Some(s.modes?.slow))),
    ("fast_mode_share", |row| row.and(|s| Some(s.modes?.fast_share))),
    ("warnings", |row| {
        Some(row.analysed.record.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }),
    ("error", |row| error(&row.analysed.record.outcome)),
    ("wake_floor_multiple_median", |row| row.and(|s| Some(s.wake_floor_multiple?.median))),
    ("wake_floor_multiple_low", |row| row.and(|s| low(s.wake_floor_multiple?))),
    ("wake_floor_multiple_high", |row| row.and(|s| high(s.wake_floor_multiple?))),
    ("lost", |row| row.and(|s| s.lost)),
    ("lost_low", |row| row.and(|s| Some(s.lost_interval?.0))),
    ("lost_high", |row| row.and(|s| Some(s.lost_interval?.1))),
    ("client_link", |row| row.client_network(|n| n.link.clone())),
    ("client_link_mbit_per_s", |row| row.client_network(|n| shown(n.link_mbit_per_s))),
    ("client_mtu_bytes", |row| row.client_network(|n| shown(n.mtu_bytes))),
    ("client_retransmitted", |row| row.client_network(|n| shown(n.retransmitted))),
    ("client_dropped", |row| row.client_network(|n| shown(n.dropped))),
    ("client_host_retransmitted", |row| row.client_network(|n| shown(n.host_retransmitted))),
    ("client_host_udp_errors", |row| row.client_network(|n| shown(n.host_udp_errors))),
    ("client_host_udp_no_room", |row| row.client_network(|n| shown(n.host_udp_no_room))),
    ("server_link", |row| row.server_network(|n| n.link.clone())),
    ("server_link_mbit_per_s", |row| row.server_network(|n| shown(n.link_mbit_per_s))),
    ("server_mtu_bytes", |row| row.server_network(|n| shown(n.mtu_bytes))),
    ("server_retransmitted", |row| row.server_network(|n| shown(n.retransmitted))),
    ("server_dropped", |row| row.server_network(|n| shown(n.dropped))),
    ("server_host_retransmitted", |row| row.server_network(|n| shown(n.host_retransmitted))),
    ("server_host_udp_errors", |row| row.server_network(|n| shown(n.host_udp_errors))),
    ("server_host_udp_no_room", |row| row.server_network(|n| shown(n.host_udp_no_room))),
    ("total_ns", |row| row.and(|s| s.total_ns)),
    ("stalled_slices", |row| row.summary_value(|s| s.stalls.map_or(0, |stalls| stalls.slices))),
    ("longest_stall_ns", |row| row.and(|s| Some(s.stalls?.longest_ns))),
    ("elsewhere_slices", |row| Some(row.analysed.record.elsewhere.slices.to_string())),
];

impl Row<'_> {
    fn case(&self) -> &Case {
        &self.analysed.record.case
    }

    fn summary_value<T: ToString>(&self, value: fn(&Summary) -> T) -> Option<String> {
        self.analysed.summary.as_ref().map(|summary| value(summary).to_string())
    }

    fn and(&self, value: fn(&Summary) -> Option<f64>) -> Option<String> {
        self.analysed.summary.as_ref().and_then(value).map(|value| value.to_string())
    }

    fn speed(&self, value: fn(SpeedSummary) -> Option<f64>) -> Option<String> {
        value(self.analysed.summary.as_ref()?.speed?).map(|value| value.to_string())
    }

    fn quantile(&self, value: fn(Quantiles) -> u64) -> Option<String> {
        let quantiles = self.analysed.summary.as_ref()?.quantiles?;
        Some(value(quantiles).to_string())
    }

    fn client(&self, value: fn(PerIteration) -> f64) -> Option<String> {
        self.analysed.summary.as_ref().map(|summary| value(summary.client).to_string())
    }

    fn client_network(&self, value: fn(&NetworkReadings) -> Option<String>) -> Option<String> {
        value(&self.analysed.summary.as_ref()?.network.as_ref()?.client)
    }

    fn server_network(&self, value: fn(&NetworkReadings) -> Option<String>) -> Option<String> {
        value(&self.analysed.summary.as_ref()?.network.as_ref()?.server)
    }

    fn server(&self, value: fn(PerIteration) -> f64) -> Option<String> {
        let server = self.analysed.summary.as_ref()?.server?;
        Some(value(server).to_string())
    }
}

/// A number as text.
fn shown(number: Option<impl ToString>) -> Option<String> {
    number.map(|number| number.to_string())
}

fn low(estimate: Estimate) -> Option<f64> {
    estimate.interval.map(|(low, _)| low)
}

fn high(estimate: Estimate) -> Option<f64> {
    estimate.interval.map(|(_, high)| high)
}

fn error(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Failed { error } => Some(error.clone()),
        _ => None,
    }
}
