//! What is shown while a run goes on, on standard error: a bar on a terminal, else a line now and then.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::observation::Probe;
use std::io::{IsTerminal, Write};
use std::time::Duration;

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

    /// Shows how far the run is: `round` is `None` in the warm-up, `share` is of the time.
    pub fn show(&mut self, round: Option<u32>, done: usize, cases: usize, share: f64, left: Duration) {
        let stage = round.map_or("warming up".to_owned(), |round| format!("round {}", round + 1));
        self.say(
            share,
            &format!("{stage}, {done} of {cases} cases settled, at most {} s left", left.as_secs()),
        );
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

    /// Shows how far looking is, of which `elapsed` of `time` is over.
    pub fn look(&mut self, probe: Probe, round: u32, elapsed: Duration, time: Duration) {
        let stage = if round == 0 { "warming up".to_owned() } else { format!("round {round}") };
        let left = time.saturating_sub(elapsed).as_secs();
        let share = elapsed.as_secs_f64() / time.as_secs_f64();
        self.say(share, &format!("looking by {probe}, {stage}, at most {left} s left"));
    }

    /// Removes the bar, so that the table stands alone.
    pub fn finish(&self) {
        if let Progress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
