//! The frame of a page that runs nothing: an explanation, a recommendation, a recording. It knows none of them.
//!
//! The page of results, which has a script, is `page`.

use super::template::{STYLE, escape, filled, shell_words};
use maud::Markup;

const TEMPLATE: &str = include_str!("document.html");

/// A page without a script.
pub(super) struct Document<'a> {
    /// What the browser calls it. It is escaped here.
    pub(super) title: &'a str,
    /// What stands above all.
    pub(super) heading: &'a str,
    /// What it adds to the style of all pages.
    pub(super) style: &'a str,
    /// It has pictures as data, and may show them.
    pub(super) has_images: bool,
    /// What it says.
    pub(super) body: Markup,
    /// What made it.
    pub(super) command: &'a [String],
}

impl Document<'_> {
    /// The page as a file.
    pub(super) fn html(&self) -> String {
        let images = if self.has_images { " img-src data:;" } else { "" };
        filled(TEMPLATE, |name| match name {
            "policy" => format!(
                "default-src 'none'; style-src 'unsafe-inline';{images} base-uri 'none'; form-action 'none'"
            ),
            "title" => escape(self.title),
            "heading" => escape(self.heading),
            "style" => format!("{STYLE}{}", self.style),
            "body" => self.body.0.clone(),
            "command" => escape(&shell_words(self.command)),
            _ => String::new(),
        })
    }
}
