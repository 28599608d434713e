//! Processes that send each other signals, for the programs that tests record.

use super::{PEER, REQUESTS};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether a signal came.
pub(super) fn signal_flag() -> Arc<AtomicBool> {
    let came = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(Signal::USR1.as_raw(), Arc::clone(&came)).unwrap();
    came
}

/// Sends `peer` signals through a descriptor, and takes as many.
pub(super) fn signals_through(peer: Pid, came: &AtomicBool, begins: bool) {
    let process = pidfd_open(peer, PidfdFlags::empty()).unwrap();
    let take = || {
        while !came.swap(false, Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    for _ in 0..REQUESTS {
        if begins {
            pidfd_send_signal(&process, Signal::USR1).unwrap();
            take();
        } else {
            take();
            pidfd_send_signal(&process, Signal::USR1).unwrap();
        }
    }
}

/// A shell that sends signals to another, which answers each with a signal.
pub(super) fn signals() -> Command {
    let parent = format!(
        "n=0; trap 'n=$((n+1))' USR2; sh -c \"$CHILD\" sh $$ & child=$!
        while [ ! -e \"${PEER}\" ]; do sleep 0.01; done; i=0
        while [ $i -lt {REQUESTS} ]; do
            kill -USR1 $child; i=$((i+1)); while [ $n -lt $i ]; do sleep 0.01; done
        done"
    );
    let child = format!(
        "n=0; trap 'n=$((n+1))' USR1; : > \"${PEER}\"; i=0
        while [ $i -lt {REQUESTS} ]; do
            i=$((i+1)); while [ $n -lt $i ]; do sleep 0.01; done; kill -USR2 $1
        done"
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &parent]).env("CHILD", child);
    shell
}
