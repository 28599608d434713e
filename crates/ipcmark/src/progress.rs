//! What is shown while a run goes on, on standard error: a bar on a terminal, else a line now and then.

use harness::coordinator::schedule::TrialProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::observation::Probe;
use std::io::{IsTerminal, Write};

/// How many plain lines a run that uses all its time prints.
const LINES: f64 = 10.0;

/// The progress of one run.
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

    /// Shows how far a run or a comparison is.
    pub fn show(&mut self, progress: TrialProgress) {
        let TrialProgress { done, of, share, left, .. } = progress;
        let text =
            format!("{}, {done} of {of} cases settled, at most {} s left", stage(progress), left.as_secs());
        self.say(share, &text);
    }

    fn say(&mut self, share: f64, text: &str) {
        match self {
            Progress::Bar(bar) => {
                bar.set_position((share * 1000.0) as u64);
                bar.set_message(text.to_owned());
            }
            Progress::Lines(due) if share >= *due => {
                *due = share + 1.0 / LINES;
                // Measuring goes on when nobody reads of it.
                let _ = writeln!(anstream::stderr(), "{text}");
            }
            Progress::Lines(_) => {}
        }
    }

    /// Shows how far a profile is, which has just had a trial with `probe`.
    pub fn show_probe(&mut self, probe: Probe, progress: TrialProgress) {
        let left = progress.left.as_secs();
        let text = format!("observing by {probe}, {}, at most {left} s left", stage(progress));
        self.say(progress.share, &text);
    }

    /// Removes the bar, so that the table stands alone.
    pub fn finish(&self) {
        if let Progress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// The round in words.
fn stage(progress: TrialProgress) -> String {
    progress.round.map_or("warming up".to_owned(), |round| format!("round {}", round + 1))
}
