//! Results in words: for a terminal and as Markdown.
//!
//! `sheet` and `study` say what a report says, `layout` decides where words stand in a terminal. The pages of `html` and the
//! charts of `svg` take their words from here too.

pub(crate) mod advice;
pub(crate) mod against;
pub(crate) mod answer;
pub(crate) mod block;
pub(crate) mod columns;
pub(crate) mod compared;
pub(crate) mod comparison;
pub(crate) mod explanation;
pub(crate) mod explanation_tables;
pub(crate) mod grid;
pub(crate) mod head;
pub(crate) mod host_effects;
pub(crate) mod layout;
pub(crate) mod markdown;
pub(crate) mod marks;
pub(crate) mod matrix;
pub(crate) mod path;
pub(crate) mod plot;
pub(crate) mod prediction;
pub(crate) mod recording;
pub(crate) mod replay;
pub(crate) mod sheet;
pub(crate) mod study;
pub(crate) mod table;
pub(crate) mod tried;
