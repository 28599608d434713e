//! Shells that send each other signals, for tests that record them.

use super::exchange::{PEER, REQUESTS};
use std::process::Command;

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
