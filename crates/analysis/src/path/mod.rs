//! The critical path of an iteration through both endpoints, from the events of both CPUs: its segments add up to exactly the
//! iteration as it was observed. What observing costs is found by dose and taken from the segments in which it lies.
//!
//! Nothing here records events, and nothing is laid out. docs/explanation/explain.md has the method with an example.

mod against;
mod dose;
mod group;
mod requests;
#[cfg(test)]
mod requests_tests;
mod segment;
mod service;
mod shares;
mod spans;
mod split;
mod sum;
#[cfg(test)]
mod sum_tests;
mod tail;
mod tally;
#[cfg(test)]
mod tests;
mod walk;

pub use self::against::{ExplainedDifference, PathDifference, SegmentDifference, differ};
pub use self::dose::RecordedSets;
pub use self::group::PathGroup;
pub use self::segment::{CriticalPath, EventCounts, Segment, SegmentKind, SegmentPlace};
pub use self::split::{CallSplit, RateTrials, SampleCounts, SubsystemPart};
pub use self::sum::{DoseSwitches, DosedTrials, EventCost, PathSum, SegmentSum, SliceMeans};
pub use self::tail::{GroupDifference, SlowIterations, SlowSegment, TwoGroups};
pub use self::walk::critical_paths;
