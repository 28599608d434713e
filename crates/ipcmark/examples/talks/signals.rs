//! Processes that send each other signals through descriptors.

use crate::exchange::REQUESTS;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether a signal came.
pub(crate) fn signal_flag() -> Arc<AtomicBool> {
    let came = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(Signal::USR1.as_raw(), Arc::clone(&came)).unwrap();
    came
}

/// Sends `peer` signals through a descriptor, and takes as many.
pub(crate) fn signals_through(peer: Pid, came: &AtomicBool, begins: bool) {
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
