//! The page in a browser: it draws the right numbers, obeys its controls, and shows every text as text.
//!
//! `IPCMARK_SCREENSHOTS=DIR` keeps pictures of it, for people to look at. Nothing here judges its beauty or its speed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

mod browser;
#[path = "../src/fixture.rs"]
mod fixture;

use browser::Browser;
use model::drawn::{Axis, Cell, Conclusion, Drawn, Figure, Point, Row, Series, Table, Unit, Verdict};
use model::record::Results;
use model::stats::Estimate;
use report::{Input, html};
use std::fs;
use std::path::PathBuf;
