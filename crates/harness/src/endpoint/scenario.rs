//! A process of a scenario: its endpoints of several flows, and what it does with them.

mod draws;
mod flow_end;
mod gate;
mod meters;
mod plan;
pub(super) mod process;
mod strand;
