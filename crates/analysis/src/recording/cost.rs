//! What recording costs the program: how much further it comes without than with it, in stretches in the order off, on, on, off.

use crate::interval::{MeanEstimate, mean_over_trials};
use model::communication::{RecordingStretch, progress};

/// Off, on, on, off.
const GROUP: usize = 4;
/// Less progress in a group tells nothing.
const LEAST_PROGRESS: u64 = 40;
/// Fewer groups give no interval.
const LEAST_GROUPS: usize = 3;

/// How much longer the program takes for the same while it is recorded, as a share, or why that is not known.
pub fn slowdown(stretches: &[RecordingStretch]) -> Result<MeanEstimate, String> {
    if stretches.is_empty() {
        return Err("what recording cost is not known: the program ended before it was recorded off and on"
            .to_owned());
    }
    if stretches.len() < LEAST_GROUPS * GROUP {
        return Err("what recording cost is not known: there was too little time to record it off and on; give more by --time"
            .to_owned());
    }
    let rate = |recorded: bool, group: &[(&RecordingStretch, u64)]| {
        let chosen = group.iter().filter(|(stretch, _)| stretch.recorded == recorded);
        let (ns, progress) =
            chosen.fold((0, 0), |sum, (stretch, progress)| (sum.0 + stretch.ns, sum.1 + progress));
        progress as f64 / ns as f64
    };
    let all: Vec<(&RecordingStretch, u64)> = stretches.iter().zip(progress(stretches)).collect();
    let groups = all.chunks_exact(GROUP);
    let enough = |group: &&[(&RecordingStretch, u64)]| {
        group.iter().map(|(_, progress)| progress).sum::<u64>() >= LEAST_PROGRESS
    };
    let ratios: Vec<f64> = groups
        .filter(enough)
        .map(|group| (rate(false, group) / rate(true, group)).ln())
        .filter(|ratio| ratio.is_finite())
        .collect();
    if ratios.len() < LEAST_GROUPS {
        return Err("what recording cost is not known: the program sent and was switched too rarely to tell how far it came"
            .to_owned());
    }
    let share = |ratio: f64| ratio.exp_m1();
    mean_over_trials(&ratios)
        .map(|found| MeanEstimate {
            mean: share(found.mean),
            interval: found.interval.map(|(low, high)| (share(low), share(high))),
        })
        .ok_or_else(|| "what recording cost is not known: there were too few stretches".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::communication::RecordedProgress;

    /// So many, in which there are so many switches and so many sends while it is recorded, and while it is not.
    fn stretches_of(count: usize, on: (u64, u64), off: (u64, u64)) -> Vec<RecordingStretch> {
        let stretch = |at: usize| {
            let recorded = [false, true, true, false][at % 4];
            let (switches, sends) = if recorded { on } else { off };
            let more = (at as u64 * 7) % 3;
            let progress = RecordedProgress { switches: switches + more, sends: sends + more };
            RecordingStretch { recorded, ns: 50_000_000, progress }
        };
        (0..count).map(stretch).collect()
    }

    fn stretches(count: usize, on: u64, off: u64) -> Vec<RecordingStretch> {
        stretches_of(count, (on, 0), (off, 0))
    }

    #[test]
    fn what_is_sent_through_sockets_tells_more_than_switches() {
        let mean = |on, off| slowdown(&stretches_of(40, on, off)).unwrap().mean;
        assert!((mean((1_200, 1_000), (1_000, 1_080)) - 0.08).abs() < 0.005);
        // A program of pipes that says little through sockets.
        assert!((mean((1_000, 30), (1_080, 60)) - 0.08).abs() < 0.005);
    }

    #[test]
    fn a_program_that_does_less_is_slowed() {
        let found = slowdown(&stretches(40, 1_000, 1_080)).unwrap();
        assert!((found.mean - 0.08).abs() < 0.005, "{found:?}");
        assert!(found.interval.is_some_and(|(low, high)| low < found.mean && found.mean < high), "{found:?}");
    }

    #[test]
    fn it_says_why_it_does_not_know() {
        assert!(slowdown(&[]).unwrap_err().contains("ended before"));
        assert!(slowdown(&stretches(11, 1_000, 1_080)).unwrap_err().contains("too little time"));
        assert!(slowdown(&stretches(40, 0, 0)).unwrap_err().contains("too rarely"));
    }
}
