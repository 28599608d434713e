//! The tests that open what `report` writes in a browser: one program, for each program costs a link of all crates.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

mod browser;
#[path = "../../src/explained.rs"]
mod explained;
mod explanation_page;
#[path = "../../src/fixture.rs"]
mod fixture;
#[path = "../../src/observed.rs"]
mod observed;
mod page;
mod picture;
mod study;
#[path = "../../../../xtask/src/test_notes.rs"]
mod test_notes;
mod trace_viewer;
mod viewer;

use browser::Browser;

/// A browser for a test. Without one, says that no page is tested, or fails with `CI=true`.
fn browser() -> Option<Browser> {
    let Some(name) = browser::name() else {
        test_notes::tool_is_missing("chromium", "chromium", "no page is opened in a browser");
        return None;
    };
    Some(Browser::start(name))
}
