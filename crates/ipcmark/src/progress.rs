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
    /// Variants of a program are run in turn.
    Variants,
    /// The events of CPUs are recorded.
    Events,
    /// A probe observes cases.
    Probe(Probe),
}

/// The progress display of one scheduler.
#[derive(Debug)]
pub struct Progress {
    /// On a terminal; elsewhere there are lines.
    bar: Option<ProgressBar>,
    /// The share of the time at which the next line is due, or what leads is looked for again.
    due: f64,
    /// What leads, as it was when it was looked for.
    leader: Option<String>,
}

impl Progress {
    /// Of the kind that standard error is.
    pub fn new() -> Self {
        const STEPS: u64 = 1000;
        let lines = Self { bar: None, due: 0.0, leader: None };
        if !std::io::stderr().is_terminal() {
            return lines;
        }
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr_with_hz(5));
        // The template is constant and valid; the default stands in if the library should change its mind.
        let style =
            ProgressStyle::with_template("{bar:20} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        Self { bar: Some(bar), ..lines }
    }

    /// Shows how far `doing` is.
    pub fn show(&mut self, doing: Doing, progress: TrialProgress) {
        self.show_with(doing, progress, || None);
    }

    /// The same with what `leader` says is the fastest so far. It is asked now and then only, for it takes time.
    pub fn show_with(
        &mut self,
        doing: Doing,
        progress: TrialProgress,
        leader: impl FnOnce() -> Option<String>,
    ) {
        let is_due = progress.share >= self.due;
        if is_due {
            self.due = progress.share + 1.0 / LINES;
            self.leader = leader();
        }
        let text = line(doing, progress, self.leader.as_deref());
        match &self.bar {
            Some(bar) => {
                bar.set_position((progress.share * 1000.0) as u64);
                bar.set_message(text);
            }
            None if is_due => complain(&format!("{text}\n")),
            None => {}
        }
    }

    /// Removes the bar, so that the table stands alone.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(
    doing: Doing,
    TrialProgress { round, done, of, left, .. }: TrialProgress,
    leader: Option<&str>,
) -> String {
    let what = match (doing, leader) {
        (Doing::Cases, Some(leader)) => leader.to_owned(),
        (Doing::Cases, None) => match round {
            None => "warm-up".to_owned(),
            Some(round) => format!("round {}, {of} cases", round + 1),
        },
        (Doing::Pairs, _) => format!("{done} of {of} pairs decided"),
        (Doing::Variants, Some(leader)) => leader.to_owned(),
        (Doing::Variants, None) => format!("pass {}, {of} variants", round.map_or(1, |round| round + 1)),
        (Doing::Events, _) => "events of the CPUs".to_owned(),
        (Doing::Probe(probe), _) => format!("probe {probe}"),
    };
    format!("{what}, at most {} s left", left.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_line_says_what_leads_or_what_is_done_and_the_time_left() {
        let progress =
            TrialProgress { round: None, done: 1, of: 3, share: 0.5, left: Duration::from_millis(2900) };
        assert_eq!(line(Doing::Cases, progress, None), "warm-up, at most 2 s left");
        let progress = TrialProgress { round: Some(0), ..progress };
        assert_eq!(line(Doing::Cases, progress, None), "round 1, 3 cases, at most 2 s left");
        let leader = Some("pipe leads, 4.07 µs ±3%");
        assert_eq!(line(Doing::Cases, progress, leader), "pipe leads, 4.07 µs ±3%, at most 2 s left");
        assert_eq!(line(Doing::Pairs, progress, None), "1 of 3 pairs decided, at most 2 s left");
        assert_eq!(line(Doing::Probe(Probe::Ptrace), progress, None), "probe ptrace, at most 2 s left");
    }
}
