//! Pages that open by themselves: of results and their studies, and of explanations.

pub(crate) mod advice;
pub(crate) mod explanation;
mod number;
pub(crate) mod page;
mod speed;
mod study;
pub(crate) mod template;
