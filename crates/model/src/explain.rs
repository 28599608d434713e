//! What was measured and seen, explained: pure decisions over curves, tables and observations.

pub mod knee;
