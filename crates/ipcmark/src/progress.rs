//! What is shown on standard error while measuring goes on: a bar on a terminal, else a line now and then.

use crate::streams::complain;
use harness::coordinator::schedule::TrialProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::observation::Probe;
use std::io::IsTerminal;

/// How many plain lines measuring prints that uses all its time.
const LINES: f64 = 10.0;

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Cases are measured.
    Cases,
    /// Pairs of cases are compared.
    Pairs,
    /// The events of CPUs are recorded.
    Events,
    /// A probe observes cases.
    Probe(Probe),
}

/// The progress display of one scheduler.
#[derive(Debug)]
pub enum Progress {
    /// On a terminal.
    Bar(ProgressBar),
    /// Elsewhere: the share of the time at which the next line is due.
    Lines(f64),
}

impl Progress {
    /// Of the kind that standard error is.
    pub fn new() -> Self {
        const STEPS: u64 = 1000;
        if !std::io::stderr().is_terminal() {
            return Progress::Lines(0.0);
        }
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr_with_hz(5));
        // The template is constant and valid; the default stands in if the library should change its mind.
        let style =
            ProgressStyle::with_template("{bar:30} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        Progress::Bar(bar)
    }

    /// Shows how far `doing` is.
    pub fn show(&mut self, doing: Doing, progress: TrialProgress) {
        match self {
            Progress::Bar(bar) => {
                bar.set_position((progress.share * 1000.0) as u64);
                bar.set_message(line(doing, progress));
            }
            Progress::Lines(due) if progress.share >= *due => {
                *due = progress.share + 1.0 / LINES;
                complain(&format!("{}\n", line(doing, progress)));
            }
            Progress::Lines(_) => {}
        }
    }

    /// Removes the bar, so that the table stands alone.
    pub fn finish(&self) {
        if let Progress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn line(doing: Doing, TrialProgress { round, done, of, left, .. }: TrialProgress) -> String {
    let stage = round.map_or("warm-up".to_owned(), |round| format!("round {}", round + 1));
    let what = match doing {
        Doing::Cases => format!("{done} of {of} cases settled"),
        Doing::Pairs => format!("{done} of {of} pairs settled"),
        Doing::Events => "events of the CPUs".to_owned(),
        Doing::Probe(probe) => format!("probe {probe}"),
    };
    format!("{stage}, {what}, at most {} s left", left.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_line_says_the_round_what_is_done_and_the_time_left() {
        let progress =
            TrialProgress { round: None, done: 1, of: 3, share: 0.5, left: Duration::from_millis(2900) };
        assert_eq!(line(Doing::Cases, progress), "warm-up, 1 of 3 cases settled, at most 2 s left");
        let progress = TrialProgress { round: Some(0), ..progress };
        assert_eq!(line(Doing::Pairs, progress), "round 1, 1 of 3 pairs settled, at most 2 s left");
        assert_eq!(line(Doing::Probe(Probe::Ptrace), progress), "round 1, probe ptrace, at most 2 s left");
    }
}
