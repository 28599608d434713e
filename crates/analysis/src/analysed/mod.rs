//! Everything that is computed before anything is shown: one value for each thing that a report can be of.
//!
//! `report` takes these and computes nothing, so that no form of a report can say another number than the others. What is
//! measured is in `model`; how a number is written and drawn is decided in `report`.

mod explanation;
mod host;
mod leaders;
mod record;
mod results;
mod timeline;
mod worth;

pub use explanation::{AnalysedExplanation, TimeQuantiles};
pub use host::{AnalysedSlice, CpuSpeed, SpeedSpan};
pub use leaders::{Leader, WIDEST};
pub use record::{AnalysedFloor, AnalysedRecord};
pub use results::{AnalysedResults, PERCENTILES};
pub use timeline::AnalysedTimeline;
pub use worth::{MoreTime, PlaceWorth, RunWorth};
