//! A scenario in the form of its file: names where [`Scenario`] has indices, and text where it has specs.

use super::check::check_names;
use super::{Begin, Concurrency, Flow, Mix, Process, RecordedFlow, RecordedProcess, Recording, Scenario};
use crate::card::Card;
use crate::diagnostic::{Diagnostic, unreadable};
use crate::invalid::{Invalid, printable};
use crate::pace::Pace;
use crate::spec::Spec;
use crate::units::{Nanoseconds, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the errors call the document.
const DOCUMENT: &str = "scenario";

/// A scenario in the form of its file.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "An ipcmark scenario")]
pub(super) struct File {
    name: String,
    #[serde(default)]
    summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recorded: Option<Recording>,
    process: Vec<ProcessInFile>,
    flow: Vec<FlowInFile>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProcessInFile {
    name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cpus: Vec<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    roots: Concurrency,
    #[serde(default, skip_serializing_if = "is_default")]
    serves: Concurrency,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recorded: Option<RecordedProcess>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FlowInFile {
    name: String,
    from: String,
    to: String,
    mechanism: String,
    size: Mix<Size>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Mix<Size>>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    messages: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    fds: u32,
    /// A size, as `8K`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    think_time: Option<Mix<Nanoseconds>>,
    /// Messages a second, as `10k` or `10k-poisson`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<String>,
    /// The name of the flow whose messages begin this one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    per_message: Option<f64>,
    #[serde(default = "none", skip_serializing_if = "Mix::is_zero")]
    client_work: Mix<Nanoseconds>,
    #[serde(default = "none", skip_serializing_if = "Mix::is_zero")]
    server_work: Mix<Nanoseconds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recorded: Option<RecordedFlow>,
}

fn one() -> u32 {
    1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

fn none() -> Mix<Nanoseconds> {
    Mix::only(Nanoseconds(0))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Scenario {
    /// Parses a scenario file against the cards of the registry. Errors carry line and column.
    pub fn parse(text: &str, cards: &[Card]) -> Result<Self, Invalid> {
        let file: File = toml::from_str(text).map_err(|error| {
            unreadable(DOCUMENT, text, &error, "see docs/reference/scenario.md for the form")
        })?;
        let scenario = file.resolve(cards).and_then(|scenario| scenario.check(cards).map(|()| scenario));
        scenario.map_err(|diagnostic| diagnostic.in_text(DOCUMENT, text))
    }

    /// The text of its file, which [`parse`](Self::parse) reads.
    pub fn to_toml(&self) -> String {
        toml::to_string(&File::from_scenario(self)).expect("a scenario has nothing that TOML has not")
    }

    /// The JSON Schema of its file.
    pub fn schema() -> schemars::Schema {
        schemars::schema_for!(File)
    }
}

impl File {
    fn resolve(self, cards: &[Card]) -> Result<Scenario, Diagnostic> {
        let process_names: Vec<String> = self.process.iter().map(|process| process.name.clone()).collect();
        let flow_names: Vec<String> = self.flow.iter().map(|flow| flow.name.clone()).collect();
        check_names(&process_names, &flow_names)?;
        let process_at = |name: &str| index("process", name, &process_names);
        let flow_at = |name: &str| index("flow", name, &flow_names);
        let flow = |(at, flow): (usize, FlowInFile)| {
            flow.resolve(cards, process_at, flow_at).map_err(|diagnostic| diagnostic.under(at).under("flow"))
        };
        let flows = self.flow.into_iter().enumerate().map(flow).collect::<Result<_, _>>()?;
        let process = |process: ProcessInFile| Process {
            name: process.name,
            cpus: process.cpus,
            roots: process.roots,
            serves: process.serves,
            recorded: process.recorded,
        };
        Ok(Scenario {
            name: self.name,
            summary: self.summary,
            recorded: self.recorded,
            processes: self.process.into_iter().map(process).collect(),
            flows,
        })
    }

    fn from_scenario(scenario: &Scenario) -> Self {
        let process = |process: &Process| ProcessInFile {
            name: process.name.clone(),
            cpus: process.cpus.clone(),
            roots: process.roots,
            serves: process.serves,
            recorded: process.recorded.clone(),
        };
        Self {
            name: scenario.name.clone(),
            summary: scenario.summary.clone(),
            recorded: scenario.recorded.clone(),
            process: scenario.processes.iter().map(process).collect(),
            flow: scenario.flows.iter().map(|flow| FlowInFile::from_flow(flow, scenario)).collect(),
        }
    }
}

impl FlowInFile {
    fn resolve(
        self,
        cards: &[Card],
        process_at: impl Fn(&str) -> Result<usize, Invalid>,
        flow_at: impl Fn(&str) -> Result<usize, Invalid>,
    ) -> Result<Flow, Diagnostic> {
        let begin = self.begin(flow_at)?;
        let at = |key: &'static str| move |invalid: Invalid| Diagnostic::from(invalid).under(key);
        Ok(Flow {
            from: process_at(&self.from).map_err(at("from"))?,
            to: process_at(&self.to).map_err(at("to"))?,
            mechanism: Spec::parse(&self.mechanism, cards).map_err(at("mechanism"))?,
            read: self.read.as_deref().map(str::parse).transpose().map_err(at("read"))?,
            begin,
            name: self.name,
            size: self.size,
            reply: self.reply,
            messages: self.messages,
            fds: self.fds,
            client_work: self.client_work,
            server_work: self.server_work,
            recorded: self.recorded,
        })
    }

    fn begin(&self, flow_at: impl Fn(&str) -> Result<usize, Invalid>) -> Result<Begin, Diagnostic> {
        let at = |key: &'static str| move |invalid: Invalid| Diagnostic::from(invalid).under(key);
        if self.after.is_none() && self.per_message.is_some() {
            return Err(Diagnostic::new(
                "per_message counts messages for each of another flow, and no other flow is named",
                "name it as after = \"…\", or leave per_message out",
            )
            .under("per_message"));
        }
        match (&self.after, &self.rate, &self.think_time) {
            (Some(after), None, None) => Ok(Begin::After {
                flow: flow_at(after).map_err(at("after"))?,
                per_message: self.per_message.unwrap_or(1.0),
            }),
            (None, Some(rate), None) => match Pace::rate(rate).map_err(at("rate"))? {
                Pace::Rate(rate) => Ok(Begin::Open(rate)),
                Pace::BackToBack | Pace::ThinkTime(_) => {
                    unreachable!("a rate was parsed")
                }
            },
            (None, None, think_time) => {
                Ok(Begin::Closed { think_time: think_time.clone().unwrap_or_else(none) })
            }
            _ => Err(Diagnostic::new(
                "a flow begins after another, or at a rate, or after a think time",
                "give one of after, rate and think_time",
            )
            .under("name")),
        }
    }

    fn from_flow(flow: &Flow, scenario: &Scenario) -> Self {
        let (mut think_time, mut rate, mut after, mut per_message) = (None, None, None, None);
        match &flow.begin {
            Begin::Closed { think_time: time } => think_time = (!time.is_zero()).then(|| time.clone()),
            Begin::Open(open) => {
                rate = Pace::Rate(*open).to_string().strip_prefix("rate=").map(str::to_owned);
            }
            Begin::After { flow, per_message: count } => {
                after = Some(scenario.flows[*flow].name.clone());
                per_message = (*count != 1.0).then_some(*count);
            }
        }
        Self {
            name: flow.name.clone(),
            from: scenario.processes[flow.from].name.clone(),
            to: scenario.processes[flow.to].name.clone(),
            mechanism: flow.mechanism.to_string(),
            size: flow.size.clone(),
            reply: flow.reply.clone(),
            messages: flow.messages,
            fds: flow.fds,
            read: flow.read.map(|size| size.to_string()),
            think_time,
            rate,
            after,
            per_message,
            client_work: flow.client_work.clone(),
            server_work: flow.server_work.clone(),
            recorded: flow.recorded.clone(),
        }
    }
}

/// The place of `name` among `names`.
fn index(noun: &str, name: &str, names: &[String]) -> Result<usize, Invalid> {
    names
        .iter()
        .position(|known| known == name)
        .ok_or_else(|| Invalid::unknown(noun, &printable(name), names.iter().map(String::as_str)))
}
