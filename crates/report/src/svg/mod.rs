//! Pictures: charts, iterations, sums, layers, scenarios and flame graphs, as SVG, and charts as PNG too.
//!
//! `figures` decides which charts there are, `canvas` what a picture is made of.

pub(crate) mod canvas;
pub(crate) mod chart;
pub(crate) mod figures;
pub(crate) mod flame;
pub(crate) mod front;
pub(crate) mod line_style;
pub(crate) mod png;
pub(crate) mod ratios;
pub(crate) mod recording;
pub(crate) mod speed;
pub(crate) mod stacks;
pub(crate) mod sums;
pub(crate) mod timeline;
