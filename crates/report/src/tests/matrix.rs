//! Results in short.

use super::{PLAIN, matrix};
use crate::fixture;

#[test]
fn the_fixture_in_80_columns() {
    insta::assert_snapshot!(matrix(&fixture::results(), &PLAIN), @"");
}
