//! Pages that open by themselves: of results and their studies, of comparisons and explanations, and of what was recorded.

pub(crate) mod advice;
mod answer;
pub(crate) mod difference;
mod document;
pub(crate) mod explanation;
mod number;
pub(crate) mod page;
pub(crate) mod ratios;
pub(crate) mod recording;
mod speed;
mod study;
pub(crate) mod template;
