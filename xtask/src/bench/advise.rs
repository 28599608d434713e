//! `cargo xtask bench advise [N [FIRST]]`: how often what `ipcmark advise` says is the best, or within 5% of it, by measuring every
//! candidate for longer. A table in Markdown for docs/lab/choose.md, of all thirty needs, or of N from the one with the number FIRST.

use super::ipcmark::Ipcmark;
use super::setup::numbers;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Pattern, size, what is needed, and where.
const NEEDS: [(&str, &str, &str, &str); 30] = [
    ("request-reply", "1", "", "same-core"),
    ("request-reply", "64", "", "same-llc"),
    ("request-reply", "64", "boundaries", "same-core"),
    ("request-reply", "256", "reliable", "same-llc"),
    ("request-reply", "1K", "descriptors", "same-core"),
    ("request-reply", "1K", "named,other-users", "same-llc"),
    ("request-reply", "4K", "", "same-core"),
    ("request-reply", "4K", "descriptors,boundaries", "same-llc"),
    ("request-reply", "4K", "hosts", "same-core"),
    ("request-reply", "4K", "hosts,reliable", "same-llc"),
    ("request-reply", "16K", "poll", "same-core"),
    ("request-reply", "16K", "peer-death,named", "same-llc"),
    ("request-reply", "64K", "", "same-core"),
    ("request-reply", "64K", "credentials", "same-llc"),
    ("request-reply", "256K", "", "same-core"),
    ("request-reply", "1M", "reliable", "same-llc"),
    ("stream", "1", "", "same-core"),
    ("stream", "64", "boundaries", "same-llc"),
    ("stream", "64", "atomic", "same-core"),
    ("stream", "256", "outlives", "same-llc"),
    ("stream", "1K", "named", "same-core"),
    ("stream", "4K", "", "same-llc"),
    ("stream", "4K", "hosts", "same-core"),
    ("stream", "16K", "containers,reliable", "same-llc"),
    ("stream", "64K", "", "same-core"),
    ("stream", "64K", "poll,back-pressure", "same-llc"),
    ("stream", "1M", "", "same-core"),
    ("stream", "1M", "hosts", "same-llc"),
    ("signal", "", "", "same-core"),
    ("signal", "", "named", "same-llc"),
];

/// The time of an answer, and of each candidate when all are measured.
const ADVICE_TIME: &str = "30s";
const S_OF_A_CANDIDATE: usize = 4;
/// Within this of the best, the answer is right.
const CLOSE: f64 = 1.05;

/// Prints the table, of as many needs as `arguments` say, from the one that they say.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let [many, first] = numbers(arguments, [NEEDS.len() as u64, 0])?;
    let ipcmark = Ipcmark::build("bench-advise")?;
    println!("| need | advised | the best of all | advised over the best |");
    println!("| --- | --- | --- | --- |");
    let (mut right, mut judged) = (0, 0);
    for (number, need) in (0..).zip(&NEEDS).skip(first as usize).take(many as usize) {
        let (pattern, size, needs, placement) = need;
        let advised = advised(&ipcmark, need)?;
        let times = measured(&ipcmark, need, &advised, &format!("need-{number}"))?;
        let best = times.iter().min_by(|a, b| a.1.total_cmp(b.1));
        let first = advised.first().and_then(|name| times.get(name));
        let Some(((best, best_ns), advised_ns)) = best.zip(first) else {
            println!("| {pattern} {size} {needs} {placement} | not measured | | |");
            continue;
        };
        let over = advised_ns / best_ns;
        judged += 1;
        right += u32::from(over <= CLOSE);
        println!("| {pattern} {size} {needs} {placement} | {} | {best} | {over:.3} |", advised[0]);
    }
    println!("\n{right} of {judged} answers are the best or within 5% of it");
    Ok(())
}

/// What is advised for a need: all candidates, the advised first.
fn advised(ipcmark: &Ipcmark, need: &(&str, &str, &str, &str)) -> Result<Vec<String>, String> {
    let (pattern, size, needs, placement) = need;
    let mut command = Command::new(&ipcmark.program);
    command.args(["advise", "--format=json", "--time", ADVICE_TIME, "--pattern", pattern, "-p", placement]);
    for (option, value) in [("--size", size), ("--needs", needs)] {
        if !value.is_empty() {
            command.args([option, value]);
        }
    }
    let said = ipcmark.said_by(&mut command)?;
    let json: Value = serde_json::from_str(&said).map_err(|error| error.to_string())?;
    let ranked = json[0]["advice"]["ranked"].as_array().cloned().unwrap_or_default();
    Ok(ranked.iter().filter_map(|one| one["spec"]["name"].as_str().map(str::to_owned)).collect())
}

/// What an iteration takes of each of `names`, measured interleaved for longer, in nanoseconds.
fn measured(
    ipcmark: &Ipcmark,
    need: &(&str, &str, &str, &str),
    names: &[String],
    file: &str,
) -> Result<BTreeMap<String, f64>, String> {
    let (pattern, size, _, placement) = need;
    let workload = if *pattern == "stream" { "throughput" } else { "latency" };
    let time = format!("{}s", S_OF_A_CANDIDATE * names.len().max(1));
    let mut arguments = vec!["-w", workload, "-p", placement, "--time", &time, "--format", "json"];
    if !size.is_empty() {
        arguments.extend(["-s", size]);
    }
    arguments.extend(names.iter().map(String::as_str));
    ipcmark.run(&arguments, file)?;
    let path = ipcmark.file(file);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let records = records.filter(|line| line["type"] == "record" && line["floor"] != true);
    let time = |record: Value| {
        let name = record["case"]["spec"]["name"].as_str()?.to_owned();
        Some((name, record["summary"]["iteration_ns"]["median"].as_f64()?))
    };
    Ok(records.filter_map(time).collect())
}
