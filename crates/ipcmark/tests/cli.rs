//! The command line.
mod common;
#[test]
fn transcripts() {
    trycmd::TestCases::new()
        .register_bin("ipcmark", std::path::Path::new(common::IPCMARK))
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .timeout(common::PATIENCE)
        .case("tests/cli/*.md");
}
