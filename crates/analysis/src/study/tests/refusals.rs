//! Studies that are refused, and studies that travel in the header of results.

use super::fixture::*;

#[test]
fn a_suite_that_cannot_be_drawn_is_refused_with_line_and_column() {
    let table = |cells: &str| {
        format!(
            "[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c']\nrows = [{{ name = 'r', cells = {cells} }}]"
        )
    };
    let test = |test: &str| format!("[[study.conclusion]]\nclaim = 'c'\ntests = [{{ {test} }}]");
    let figure = |series: &str| {
        format!("[[study.figure]]\nname = 'n'\ntitle = 't'\nseries = [{{ name = 's', {series} }}]")
    };
    for (more, marked, says) in [
        ("new = 'pip latency'".to_owned(), "'pip latency'", "unknown mechanism or operation 'pip'"),
        ("new = 'pipe cost'".to_owned(), "'pipe cost'", "no [[block]] of the suite measures 'pipe cost'"),
        (
            "new = 'pipe'".to_owned(),
            "'pipe'",
            "'pipe' names several cases: pipe latency same-core; pipe throughput same-core",
        ),
        ("new = 'pipe latency 3K'".to_owned(), "'pipe latency 3K'", "measures pipe latency same-core at 3K"),
        ("new = 'pipe latency cost'".to_owned(), "'pipe latency cost'", "the second of its kind"),
        ("New = 'getpid'".to_owned(), "'getpid'", "'New' is not a name"),
        (table("[]"), "[]", "the row has 0 cells and its table 1 columns"),
        (table("['time of pip at 1K']"), "'time of pip at 1K'", "unknown case of the study 'pip'"),
        (table("['tim of pipe']"), "'tim of pipe'", "'tim' is not a metric"),
        (table("['time of pipe']"), "'time of pipe'", "is of several sizes"),
        (
            table("['time of pipe at 3K']"),
            "'time of pipe at 3K'",
            "no [[block]] of the suite measures 'pipe' at 3K",
        ),
        (
            table("['rate of pipe at 1K']"),
            "'rate of pipe at 1K'",
            "'pipe' has no rate: only throughput, transfer",
        ),
        (table("['3us']"), "'3us'", "the cell names no case"),
        (table("[{ least = [] }]"), "[]", "nothing to choose from"),
        (table("[{ setting = { name = 'X', of = 'pipe' } }]"), "'pipe'", "of several sizes"),
        (table("[{ word = 'x' }]"), "word", "unknown variant `word`"),
        (test("of = 'time of getpid'"), "{ of = 'time of getpid' }", "has no bound"),
        (test("of = 'time of getpid', at_least = 3"), "3", "'3' is counted in another unit"),
        (
            test("of = 'time of getpid', at_least = '3us', at_most = '2us'"),
            "'3us'",
            "nothing is at least 3us and at most 2us",
        ),
        (test("of = 'time of getpid', sizes = '1K', at_least = '3us'"), "'1K'", "does not go over sizes"),
        (
            test("of = 'flat 10% time of getpid', at_least = '1K'"),
            "'flat 10% time of getpid'",
            "does not go over sizes",
        ),
        (figure("of = 'time of getpid'"), "'time of getpid'", "does not go over sizes"),
        (figure("published = [['1us', '1us']]"), "['1us', '1us']", "'1us' is counted in another unit"),
        (
            "[[study.figure]]\nname = 'n'\ntitle = 't'".to_owned(),
            "[[study.figure]]",
            "there are no series, and nothing",
        ),
        (
            format!("{0}\n{0}", "[[study.figure]]\nname = 'n'\ntitle = 't'\nabsent = 'a'"),
            "'n'",
            "'n' is there already",
        ),
    ] {
        let (said, of_text) = refused(&more);
        assert!(said.contains(says), "{says}\n{said}");
        assert_eq!(of_text, marked, "{said}");
    }
}

#[test]
fn a_study_travels_in_the_header() {
    let suite = suite(
        "[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c', 'd', 'e', 'f']\nrows = [\n\
         { name = 'r', cells = ['time of getpid / 2', '', { words = 'w' }, { host = 'cpu' }] },\n\
         { name = 's', published = true, cells = ['3.2us', '4K', { missing = 'm' }, ''] }]\n\
         [[study.figure]]\nname = 'f'\ntitle = 't'\nx = 'size'\nseries = [{ name = 'a', of = 'time of pipe' }, { name = 'b', published = [['1K', '3us']] }]\n\
         [[study.conclusion]]\nclaim = 'c'\ntests = [{ of = 'time of pipe', sizes = '1K,2K', at_least = '1ns', published = '1us' }]",
    );
    let mut results = results();
    results.header.study = suite.study;
    let line = model::results::to_line(&model::record::Line::Header(Box::new(results.header.clone())));
    let back = model::results::parse(line.as_bytes(), "r").unwrap();
    assert_eq!(back.header, results.header);
    // What a file says of formulas is checked as a suite's is.
    for (from, to, says) in [
        ("time of getpid / 2", "time of nobody", "unknown case of the study 'nobody'"),
        ("time of getpid / 2", "time of", "the name of a case must follow"),
        (r#""words":"w""#, r#""words":"\u001b[2J""#, "control characters"),
    ] {
        let broken = line.replace(from, to);
        let invalid = model::results::parse(broken.as_bytes(), "r").unwrap_err();
        assert!(invalid.problem.contains(says), "{invalid}");
    }
}
