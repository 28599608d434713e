//! The nouns of ipcmark: units, cards, cases, plans, records, results files, suites, studies and scenarios as data.
//!
//! Nothing here does I/O, reads a clock, starts a process or knows a mechanism by name, and nothing is computed of what
//! was measured: that is in `analysis`. Every other crate knows `model`; `model` knows none of them.
#![forbid(unsafe_code)]

pub mod block;
pub mod card;
pub mod case;
pub mod communication;
pub mod cpu_list;
pub mod diagnostic;
mod driver;
pub mod elsewhere;
pub mod endpoint;
pub mod estimate;
pub mod fact;
pub mod floor;
pub mod histogram;
pub mod host_address;
pub mod inject;
pub mod invalid;
pub mod need;
pub mod network;
pub mod observation;
pub mod pace;
pub mod param;
pub mod params;
pub mod peers;
pub mod placement;
pub mod plan;
pub mod precision;
pub mod record;
pub mod results;
pub mod sample;
pub mod scenario;
pub mod semantics;
pub mod spec;
pub mod speed;
pub mod study;
pub mod suite;
pub mod summary;
#[doc(hidden)]
pub mod testing;
mod text;
pub mod topology;
pub mod units;
pub mod visible;
pub mod warning;
pub mod workload;

pub use block::Block;
pub use card::{ByName, Card, CardKind, Framing, Payload, Reach};
pub use case::Case;
pub use driver::{CaseDrivers, DriverName};
pub use endpoint::{EndpointRole, Endpoints};
pub use fact::Fact;
pub use histogram::Histogram;
pub use host_address::{HostAddress, InterfaceName};
pub use inject::Inject;
pub use invalid::Invalid;
pub use need::Need;
pub use pace::Pace;
pub use param::{Domain, Param};
pub use params::Params;
pub use peers::Peers;
pub use placement::{CpuPair, Placement, Placements};
pub use precision::Precision;
pub use record::{Header, Line, Outcome, Record};
pub use sample::Sample;
pub use scenario::Scenario;
pub use semantics::Semantics;
pub use spec::{CODEC, Spec};
pub use units::{Percent, Size};
pub use workload::{Session, Workload};
