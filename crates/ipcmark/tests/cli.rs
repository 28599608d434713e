//! The command line.
mod common;
#[test] fn smoke() { let p = common::Place::new(); common::run(&mut p.ipcmark(["list"])).expect(0); }
#[test]
fn transcripts() {
    trycmd::TestCases::new().register_bin("ipcmark", std::path::Path::new(common::IPCMARK)).case("tests/cli/*.md");
}
