//! What arguments mean, from command lines as people type them.

use super::*;
use crate::cli::{Cli, Command};
use crate::exit::Error;
use clap::Parser;
use model::{Pace, Peers, Workload};

fn typed(line: &str) -> Command {
    let cli = Cli::try_parse_from(format!("ipcmark {line}").split_whitespace());
    cli.unwrap_or_else(|error| panic!("{line}: {error}")).command.unwrap_or_default()
}

fn run(line: &str) -> Result<RunRequest, Invalid> {
    let Command::Run(arguments) = typed(line) else { panic!("{line}") };
    RunRequest::new(arguments).map_err(Error::invalid)
}

fn compare(line: &str) -> Result<CompareRequest, Invalid> {
    let Command::Compare(arguments) = typed(line) else { panic!("{line}") };
    CompareRequest::new(arguments).map_err(Error::invalid)
}

fn explain(line: &str) -> Result<ExplainRequest, Invalid> {
    let Command::Explain(arguments) = typed(line) else { panic!("{line}") };
    ExplainRequest::new(arguments).map_err(Error::invalid)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn nothing_typed_is_a_run_of_the_default_suite_as_it_is() {
    let suite = suites::find(suites::DEFAULT).unwrap();
    for line in ["", "run", "run default"] {
        let request = run(line).unwrap();
        assert_eq!(request.suite_name.as_deref(), Some("default"));
        assert_eq!((request.suite.time, &request.suite.blocks), (suite.time, &suite.blocks));
        assert_eq!((request.timeout, request.iterations, request.check), (seconds(10), None, false));
        assert!(!request.dry_run && request.output.is_none() && request.explanation.is_none());
        assert!(request.show.format == report::Format::Table && !request.show.plot);
    }
}

#[test]
fn what_is_typed_replaces_what_the_suite_says() {
    let line = "run barefoot --precision 5% --time 7s --rounds 3 --total 1M --endpoints threads --timeout 2s \
                --observe 0s -s 64 --think-time 1us --iterations 9";
    let Err(_) = Cli::try_parse_from(format!("ipcmark {line}").split_whitespace()) else {
        panic!("--total and --iterations contradict each other")
    };
    let request = run(line.trim_end_matches(" --iterations 9")).unwrap();
    let suite = request.suite;
    assert_eq!((suite.precision, suite.time), (Percent(0.05).into(), seconds(7)));
    assert_eq!((suite.rounds, suite.total), (Some(3), Some(Size(1 << 20))));
    assert_eq!((suite.endpoints, request.timeout), (Some(Endpoints::Threads), seconds(2)));
    assert_eq!(suite.observe, Some(Duration::ZERO));
    assert!(suite.blocks.iter().all(|block| block.sizes == [Size(64)]));
    assert!(suite.blocks.iter().all(|block| block.paces == [Pace::think_time("1us").unwrap()]));
}

#[test]
fn a_shorter_run_observes_for_as_much_less() {
    let whole = suites::find("l41").unwrap();
    let half = run(&format!("run l41 --time {}s", whole.time.as_secs() / 2)).unwrap().suite;
    let observe = half.observe.unwrap();
    assert!(observe < whole.observe.unwrap() && !observe.is_zero(), "{observe:?}");
    let quick = run("run l41 --quick").unwrap().suite;
    assert_eq!(Some(quick.time), whole.quick);
}

#[test]
fn mechanisms_by_hand_are_no_suite_and_have_no_quick_time() {
    for line in
        ["run pipe --quick", "run pipe --observe 1s", "run pipe mueller", "run mueller pipe", "run mueler"]
    {
        run(line).unwrap_err();
    }
    assert!(run("run mueler").unwrap_err().remedy.contains("'mueller'"));
    let request = run("run pipe unix-stream -s 1,4K -p unpinned").unwrap();
    assert_eq!(request.suite_name, None);
    assert_eq!(request.suite.blocks.len(), 2);
    assert!(request.suite.blocks.iter().all(|block| block.sizes == [Size(1), Size(4096)]));
    assert!(quick_time(&request.suite).unwrap_err().problem.contains("no quick time"));
}

#[test]
fn an_explanation_after_a_run_has_its_timeout_and_every_probe() {
    let explanation = run("run pipe --explain --timeout 3s").unwrap().explanation.unwrap();
    assert_eq!((explanation.timeout, explanation.time), (seconds(3), None));
    assert_eq!(
        (&explanation.probes, explanation.answer.printed.format),
        (&Probe::explaining(), report::Format::Table)
    );
}

#[test]
fn a_second_host_is_named_by_a_command() {
    let remote = run("run tcp --server-via ssh --push").unwrap().remote.unwrap();
    assert_eq!((remote.server.unwrap().words().len(), remote.client, remote.push), (1, None, true));
    assert!(run("run tcp --push").unwrap_err().problem.contains("about a second host"));
    run("run tcp --server-via ssh --endpoints threads").unwrap_err();
}

#[test]
fn paces_that_are_none_are_refused() {
    for line in ["run pipe --think-time never", "compare pipe fifo --rate 0", "explain pipe --rate x"] {
        let invalid = match typed(line) {
            Command::Run(arguments) => RunRequest::new(arguments).err(),
            Command::Compare(arguments) => CompareRequest::new(arguments).err(),
            Command::Explain(arguments) => ExplainRequest::new(arguments).err(),
            _ => None,
        };
        assert!(invalid.is_some(), "{line}");
    }
}

#[test]
fn two_mechanisms_are_measured_and_two_other_names_are_files() {
    let request = compare("compare pipe unix-stream:wait=spin -w throughput --fail-above 5%").unwrap();
    let Sides::Interleaved(ratio) = &request.sides else { panic!("{request:?}") };
    let [a, b] = &ratio.blocks;
    assert_eq!((a[0].specs[0].to_string(), b[0].specs[0].to_string()), {
        ("pipe".to_owned(), "unix-stream:wait=spin".to_owned())
    });
    assert_eq!(
        (&a[0].workloads, &b[0].workloads),
        (&vec![Workload::Throughput], &vec![Workload::Throughput])
    );
    assert_eq!((ratio.margin, ratio.time), (RATIO_MARGIN, RATIO_TIME));
    let gate = GateRequest { above: Percent(0.05), undecided: UndecidedOption::Fail };
    assert_eq!((request.gate, request.answer.printed.format), (Some(gate), report::Format::Table));

    let request = compare("compare before.jsonl after.jsonl --format=json").unwrap();
    assert!(
        matches!(&request.sides, Sides::Files([a, b]) if a[0].ends_with("before.jsonl") && b[0].ends_with("after.jsonl"))
    );
    assert!(request.answer.printed.format == report::Format::Json);
    let request = compare("compare one.jsonl,two.jsonl after.jsonl").unwrap();
    assert!(matches!(&request.sides, Sides::Files([a, b]) if a.len() == 2 && b.len() == 1));
    compare("compare pipe after.jsonl").unwrap_err();
    compare("compare before.jsonl pipe").unwrap_err();
    compare("compare pipe pipe:wait=sleep").unwrap_err();
}

#[test]
fn two_builds_are_compared_in_the_same_cases_of_the_default_suite_unless_mechanisms_are_named() {
    let sides = |line: &str| {
        let Sides::Interleaved(request) = compare(line).unwrap().sides else { panic!("{line}") };
        assert_eq!(request.blocks[0], request.blocks[1]);
        assert_eq!(request.against.as_deref(), Some(Path::new("old/ipcmark")));
        request
    };
    let named = sides("compare --against old/ipcmark pipe tcp -s 64");
    assert_eq!((named.blocks[0].len(), named.find), (2, None));
    let all = sides("compare --against old/ipcmark");
    assert_eq!(all.blocks[0], suites::find(suites::DEFAULT).unwrap().blocks);
    let planned = sides("compare --against old/ipcmark --plan --find 2%");
    assert_eq!((planned.find, planned.time), (Some(Percent(0.02)), PILOT_TIME));
    for line in ["compare pipe", "compare pipe fifo tcp", "compare pipe mueller"] {
        compare(line).unwrap_err();
    }
    for line in ["compare", "compare pipe fifo --find 2%"] {
        Cli::try_parse_from(format!("ipcmark {line}").split_whitespace()).unwrap_err();
    }
    compare("compare a.jsonl b.jsonl --plan").unwrap_err();
}

#[test]
fn an_explanation_takes_all_its_time_and_tries_every_probe_unless_told_otherwise() {
    let request = explain("explain pipe -s 64 -p unpinned --peers pairs=2").unwrap();
    assert_eq!(request.blocks[0].sizes, [Size(64)]);
    assert_eq!(request.blocks[0].peers, [Peers::Pairs(2)]);
    assert_eq!((request.explanation.precision, request.explanation.time), (Percent(0.0).into(), None));
    assert_eq!(request.explanation.probes, Probe::explaining());
    let request = explain("explain pipe --probes ptrace,faults --time 3s --html page.html").unwrap();
    assert_eq!(request.explanation.probes, [Probe::Ptrace, Probe::Faults]);
    assert_eq!(request.explanation.time, Some(seconds(3)));
    assert!(request.explanation.answer.page.html.is_some_and(|path| path.ends_with("page.html")));
}

#[test]
fn a_counter_or_a_results_file_that_is_none_is_refused() {
    let invalid = explain("explain pipe --counter cycle").unwrap_err();
    assert!(invalid.problem.starts_with("--counter cycle: "), "{invalid}");
    explain("explain /nonexistent.jsonl --case pipe").unwrap_err();
    let invalid = explain("explain Cargo.toml").unwrap_err();
    assert!(invalid.remedy.contains("--case"), "{invalid}");
    explain("explain pip").unwrap_err();
}

#[test]
fn an_explanation_is_of_what_is_named_and_against_a_mechanism_a_size_or_a_build() {
    let request = explain("explain unix-stream --against pipe:capacity=1M -s 64").unwrap();
    let name = |blocks: &[Block]| blocks[0].specs[0].to_string();
    let cases = |against: Option<Against>| match against {
        Some(Against::Cases(blocks)) => blocks,
        other => panic!("{other:?}"),
    };
    let against = cases(request.against);
    assert_eq!((name(&request.blocks), name(&against)), ("unix-stream".into(), "pipe:capacity=1M".into()));
    assert_eq!((&request.blocks[0].sizes, &against[0].sizes), (&vec![Size(64)], &vec![Size(64)]));
    let request = explain("explain pipe --against 1 -s 64K").unwrap();
    let against = cases(request.against);
    assert_eq!((name(&against), &against[0].sizes), ("pipe".into(), &vec![Size(1)]));
    assert!(explain("explain pipe").unwrap().against.is_none());
    let build = explain("explain pipe --against ../old/ipcmark").unwrap().against;
    assert!(matches!(build, Some(Against::Build(path)) if path == Path::new("../old/ipcmark")));
    explain("explain pipe --against nothing").unwrap_err();
}
