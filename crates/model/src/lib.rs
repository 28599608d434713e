//! The nouns of ipcmark and its pure decisions: units, cards, plans, records, statistics, comparison.
//!
//! Nothing here does I/O, reads a clock, starts a process or knows a mechanism by name. Every other
//! crate knows `model`; `model` knows nobody.
#![forbid(unsafe_code)]

pub mod card;
pub mod case;
pub mod diagnostic;
pub mod estimate;
pub mod floor;
pub mod histogram;
pub mod invalid;
pub mod observation;
pub mod pace;
pub mod params;
pub mod peers;
pub mod plan;
pub mod record;
pub mod results;
pub mod study;
pub mod suite;
pub mod summary;
#[doc(hidden)]
pub mod testing;
pub mod topology;
pub mod units;
pub mod warning;

pub use card::{Card, CardKind, Framing, Payload, Reach};
pub use case::{Case, Endpoints, Placement, Placements, Session, Spec, Workload};
pub use histogram::Histogram;
pub use invalid::Invalid;
pub use pace::Pace;
pub use params::{Domain, Param, Params};
pub use peers::Peers;
pub use record::{Header, Line, Outcome, Record, Sample};
pub use units::{Percent, Size};
