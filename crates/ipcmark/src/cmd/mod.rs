//! The sub-commands, one file each. Each reads as the data flows, and none uses another: what two need is a module beside `cmd`.

pub mod advise;
pub mod clean;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod driver;
pub mod endpoint;
pub mod explain;
pub mod list;
pub mod man;
pub mod predict;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod schema;
pub mod suite;
pub mod try_exchange;
