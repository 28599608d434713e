//! Why a case costs what it does: from what was measured and what probes observed to a path, copies and sentences.
//!
//! Pure: it reads no clock, starts nothing, and knows a probe only by what it observed. What is shown of it, and how, is
//! `report`'s affair.

mod case_observations;
mod control_cases;
mod copies;
mod cross_check;
mod evidence;
mod explanation;
mod facts;
mod knee;
mod rules;

pub use self::case_observations::{CaseObservations, CounterRate, FaultRate, ProbeUse, SubsystemShare};
pub use self::control_cases::{ControlDifference, control_cases};
pub use self::copies::{Copies, CopyKind, MovedBytes};
pub use self::cross_check::{CheckedTerm, CrossCheck};
pub use self::explanation::{Explanation, explain};
pub use self::knee::{Knee, Landmark, SizeCurve, size_curves};
pub use self::rules::Advice;
