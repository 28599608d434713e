//! `ipcmark suite`: the suites that there are, and what one would measure and draw.

use crate::cli::{SuiteArguments, SuiteCommand};
use crate::drivers::{self, TypedDrivers};
use crate::exit::{Error, Exit};
use crate::output::{print, style};
use crate::planning::plan_with;
use crate::profile;
use crate::suites::{self, SUITES};
use harness::coordinator::driver::DriverSet;
use harness::coordinator::slices::{estimate, slice_for};
use mechanisms::registry::cards;
use model::block::Block;
use model::observation::Probe;
use model::plan::Plan;
use model::study::Study;
use model::suite::Suite;
use model::{Invalid, Size};
use std::path::Path;
use std::time::Duration;

/// How long a driver may take to say what it is.
const GREETS_WITHIN: Duration = Duration::from_secs(10);

/// Lists suites, or checks one.
pub fn run(arguments: SuiteArguments) -> Result<Exit, Error> {
    drivers::register()?;
    let text = match arguments.command {
        SuiteCommand::List => list()?,
        SuiteCommand::Check { suite } => {
            let mut suite = suites::find(&suite)?;
            let drivers = drivers::meet(TypedDrivers::default(), GREETS_WITHIN, &mut suite.blocks)?;
            description(&suite, &drivers)
        }
    };
    print(&text)?;
    Ok(Exit::Success)
}

fn list() -> Result<String, Invalid> {
    let longest = SUITES.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, text): &(&str, &str)| {
        let suite = Suite::parse(text, &cards())?;
        Ok(report::wrapped_after(&format!("{name:longest$}  "), &suite.summary, &style()))
    };
    SUITES.iter().map(line).collect()
}

/// What `suite` would measure on this host, how long it would take, and what would be drawn.
fn description(suite: &Suite, drivers: &DriverSet) -> String {
    let topology = harness::host::facts::read(Path::new("/")).topology;
    let planned =
        |blocks: &[Block]| plan_with(blocks, suite.endpoints.unwrap_or_default(), &topology, drivers);
    let all = planned(&suite.blocks);
    let mut text = format!("{}: {}\n\n", suite.name, suite.summary);
    text += &format!(
        "measures {} cases and {} floors, to {}\n",
        all.cases.len() + all.awaited.len(),
        all.floors.len(),
        suite.precision.words()
    );
    for block in &suite.blocks {
        text += &item(&block_line(block, &planned(std::slice::from_ref(block))));
    }
    text += &format!("takes at most\n{}", times(suite, &all));
    text += &probes(suite, &all);
    if !all.dropped.is_empty() {
        text += "leaves out\n";
    }
    for dropped in &all.dropped {
        text += &item(&format!("{}: {}", dropped.case, dropped.reason));
    }
    text + &suite.study.as_ref().map_or("draws nothing\n".to_owned(), draws)
}

fn block_line(block: &Block, plan: &Plan) -> String {
    let words = |items: Vec<String>| items.join(", ");
    let mechanisms = words(block.specs.iter().map(ToString::to_string).collect());
    let workloads = words(block.workloads.iter().map(ToString::to_string).collect());
    let places = words(block.placements.iter().map(ToString::to_string).collect());
    let sizes = match block.sizes.as_slice() {
        [] => String::new(),
        [first, second, .., last] if block.sizes.len() > 4 => {
            format!(" of {first}, {second} … {last} ({} sizes)", block.sizes.len())
        }
        sizes => format!(" of {}", words(sizes.iter().map(Size::to_string).collect())),
    };
    let cases = plan.cases.len() + plan.awaited.len();
    format!("{cases}: {workloads}{sizes}, {places}: {mechanisms}")
}

/// How long a run may take, and how many rounds that is about.
fn times(suite: &Suite, plan: &Plan) -> String {
    let slices = plan.cases.len() + plan.floors.len();
    let line = |time: Duration, how: &str| {
        let slice = suite.slice.unwrap_or_else(|| slice_for(time, slices));
        let rounds = time.as_secs_f64() / estimate(slices.max(1), slice).as_secs_f64();
        let most = suite.rounds.map_or(String::new(), |most| format!(", of which {most} are taken"));
        let most =
            if suite.rounds.is_some_and(|most| f64::from(most) < rounds) { most } else { String::new() };
        item(&format!(
            "{} {how}: about {rounds:.0} rounds of {slices} slices{most}",
            humantime::format_duration(time)
        ))
    };
    let quick = suite.quick.map(|quick| line(quick, "with --quick")).unwrap_or_default();
    line(suite.time, "in full") + &quick
}

/// How many cases each probe observes afterwards, and for how long.
fn probes(suite: &Suite, plan: &Plan) -> String {
    let (Some(observe), Some(study)) = (suite.observe, &suite.study) else { return String::new() };
    let subjects = profile::subjects(study, plan, suite.total);
    let quick = suite.quick.map(|quick| {
        let whole = Duration::from_secs(suite.observe_in(quick).as_secs());
        format!(", {} with --quick", humantime::format_duration(whole))
    });
    let time = humantime::format_duration(observe);
    let line = |probe: Probe| {
        let cases = subjects.iter().filter(|subject| subject.probes.contains(&probe)).count();
        (cases > 0).then(|| item(&format!("{probe}: {cases} cases")))
    };
    let lines: String = Probe::ALL.iter().copied().filter_map(line).collect();
    format!("then has probes observe, for {time}{}\n{lines}", quick.unwrap_or_default())
}

fn draws(study: &Study) -> String {
    let mut text = format!("draws {}\n", study.title);
    let mut list = |what: &str, items: Vec<(&str, &str, Option<&str>)>| {
        for (name, title, absent) in items {
            let absent = absent.map(|why| format!("; not here: {why}")).unwrap_or_default();
            text += &item(&format!("{what}{name}: {title}{absent}"));
        }
    };
    let tables = study.tables.iter().map(|t| (t.name.as_str(), t.title.as_str(), t.absent.as_deref()));
    let figures = study.figures.iter().map(|f| (f.name.as_str(), f.title.as_str(), f.absent.as_deref()));
    list("", tables.collect());
    list("", figures.collect());
    let conclusions = study.conclusions.iter().map(|c| ("conclusion", c.claim.as_str(), c.absent.as_deref()));
    list("", conclusions.collect());
    text
}

/// `text` under a heading, wrapped.
fn item(text: &str) -> String {
    report::wrapped(text, &style())
}
