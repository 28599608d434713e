//! `explain` of what drivers measure: the suite that measures a mechanism of a driver, and the same with one layer after the other left out.
//!
//! Which layer is left out next, the drivers' manifests say; what it adds, `analysis::study` works out.

use crate::cli::{ExplainArguments, ProfileOptions};
use crate::drivers::{self, TypedDrivers};
use crate::exit::Error;
use crate::request::{RunRequest, ShowRequest};
use crate::selection::Axes;
use mechanisms::registry;
use model::suite::Suite;
use model::units::Size;
use model::{CODEC, CaseDrivers, Invalid, Params, Placements, Spec, Workload};
use serde_json::{Value, json};

/// The name of the suite, which no file has.
const NAME: &str = "layers";
/// How long each case is measured where no time is given.
const SECONDS_OF_A_CASE: usize = 6;
/// The most layers of a mechanism: more are a circle.
const MOST_LAYERS: usize = 10;
const SIZE: Size = Size(64);

/// A layer of a mechanism.
struct Layer {
    /// What it is called.
    name: String,
    /// What has it and those below.
    spec: Spec,
}

/// Whether `texts` name mechanisms of drivers, of which the layers are explained.
pub fn are_asked_for(texts: &[String]) -> bool {
    texts.iter().any(|text| drivers::are_named(text))
}

/// The request for the layers of the mechanisms of drivers that `arguments` ask to explain.
pub fn request(arguments: ExplainArguments) -> Result<RunRequest, Error> {
    let ExplainArguments { what, case, against, inject, axes, effort, profile } = arguments;
    let is_observed =
        !profile.probes.is_empty() || !profile.counters.is_empty() || profile.iterations.is_some();
    let draws = profile.traces.is_some() || profile.timelines.is_some() || profile.flames.is_some();
    if case.is_some() || against.is_some() || inject.is_some() || is_observed || draws {
        return Err(Invalid::new(
                "what drivers measure is explained by leaving out one layer after the other, without probes and delays",
                "leave out the other options, or name the mechanism without its driver",
            )
            .into());
    }
    let mut suite = suite(&what, &Axes::try_from(axes)?)?;
    suite.precision = effort.precision.unwrap_or(suite.precision);
    suite.time = effort.time.unwrap_or(suite.time);
    let drivers = drivers::meet(TypedDrivers::default(), effort.timeout, &mut suite.blocks)?;
    let specs = suite.blocks.iter().flat_map(|block| &block.specs);
    if let Some(missing) =
        specs.flat_map(|spec| spec.drivers.names()).find(|name| drivers.get(name).is_none())
    {
        return Err(drivers::not_built(missing).into());
    }
    let ProfileOptions { answer, detail, .. } = profile;
    Ok(RunRequest {
        remote: None,
        drivers,
        suite_name: None,
        suite,
        iterations: None,
        inject: None,
        check: false,
        timeout: effort.timeout,
        dry_run: false,
        output: answer.output,
        page: answer.page,
        show: ShowRequest { format: answer.printed.format, detail, plot: false, metric: None, study: true },
        explanation: None,
    })
}

/// The suite that measures the layers of the mechanisms in `texts`.
fn suite(texts: &[String], axes: &Axes) -> Result<Suite, Error> {
    let specs = texts.iter().map(|text| Spec::parse(text, &registry::cards()));
    let chains = specs.map(|spec| layers(spec?)).collect::<Result<Vec<_>, Invalid>>()?;
    let mut cases: Vec<&Spec> = Vec::new();
    for layer in chains.iter().flatten() {
        if !cases.contains(&&layer.spec) {
            cases.push(&layer.spec);
        }
    }
    let workloads = if axes.workloads.is_empty() { vec![Workload::Latency] } else { axes.workloads.clone() };
    let sizes = axes.sizes.clone().unwrap_or_else(|| vec![SIZE]);
    let placements = if axes.placements.is_empty() { default_placements()? } else { axes.placements.clone() };
    let place = Places { cases: &cases, workloads: &workloads, sizes: &sizes, placements: &placements };
    let bars: Vec<Value> = chains.iter().flat_map(|chain| place.bars(chain)).collect();
    let seconds = SECONDS_OF_A_CASE * cases.len() * workloads.len() * sizes.len() * placements.len();
    let document = json!({
        "name": NAME,
        "summary": "what each layer adds",
        "precision": "3%",
        "time": format!("{seconds}s"),
        "block": [{
            "mechanisms": texts_of(&cases),
            "workloads": texts_of(&workloads),
            "sizes": texts_of(&sizes).join(","),
            "placements": texts_of(&placements),
        }],
        "study": {
            "title": "What each layer adds",
            "source": "by leaving it out, and all above it",
            "cases": place.names(),
            "stack": [{ "name": "Layers", "title": "layer by layer", "bar": bars }],
        },
    });
    let text = toml::to_string(&document).map_err(|error| {
        Invalid::new(format!("the layers cannot be written as a suite: {error}"), "report this bug")
    })?;
    Ok(Suite::parse(&text, &registry::cards())?)
}

fn texts_of(all: &[impl ToString]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

fn default_placements() -> Result<Vec<Placements>, Invalid> {
    ["same-core", "same-llc|cross-llc|cross-node|smt|unpinned"].iter().map(|text| text.parse()).collect()
}

/// The layers of `spec`, the lowest first.
fn layers(spec: Spec) -> Result<Vec<Layer>, Invalid> {
    let (mut spec, mut layers) = (spec, Vec::new());
    loop {
        let (name, below) = uppermost(&spec)?;
        layers.push(Layer { name, spec });
        let Some(below) = below else { break };
        if layers.len() == MOST_LAYERS {
            let problem = format!("{below} stands on itself, by the manifests of the drivers");
            return Err(Invalid::new(problem, "mend 'without' in their driver.toml"));
        }
        spec = below;
    }
    layers.reverse();
    Ok(layers)
}

/// The uppermost layer of `spec`, and what is left without it.
fn uppermost(spec: &Spec) -> Result<(String, Option<Spec>), Invalid> {
    if let Some(codec) = spec.params.given(CODEC.name) {
        let without = Spec { params: Params::default(), ..spec.clone() };
        return Ok((format!("serialisation: {codec}"), Some(without)));
    }
    let Some(server) = &spec.drivers.server else { return Ok(("the mechanism".to_owned(), None)) };
    // What two drivers have in common, no manifest says.
    if spec.drivers.client.as_ref() != Some(server) {
        return Ok(("the mechanism and the runtimes".to_owned(), None));
    }
    let manifest = drivers::manifest(server)?;
    let offered = manifest.iter().flat_map(|manifest| &manifest.mechanisms);
    let offered = offered.into_iter().find(|offered| offered.name.as_str() == spec.name);
    match offered.and_then(|offered| Some((offered, offered.without.as_ref()?))) {
        Some((offered, without)) => {
            let text = if without.contains('/') { without.clone() } else { format!("{server}/{without}") };
            Ok((offered.adds.clone(), Some(Spec::parse(&text, &registry::cards())?)))
        }
        None if registry::CARDS.iter().any(|card| card.name == spec.name) => {
            let own = Spec { drivers: CaseDrivers::default(), ..spec.clone() };
            Ok(("the runtime".to_owned(), Some(own)))
        }
        None => Ok(("the mechanism and the runtime".to_owned(), None)),
    }
}

/// Where, and with which messages, each case is measured.
struct Places<'a> {
    cases: &'a [&'a Spec],
    workloads: &'a [Workload],
    sizes: &'a [Size],
    placements: &'a [Placements],
}

impl Places<'_> {
    /// The cases, by the names that bars use.
    fn names(&self) -> Value {
        let mut names = serde_json::Map::new();
        for (at, case) in self.cases.iter().enumerate() {
            for (nth, workload) in self.workloads.iter().enumerate() {
                for (place, placements) in self.placements.iter().enumerate() {
                    names.insert(
                        format!("c{at}-{nth}-{place}"),
                        format!("{case} {workload} {placements}").into(),
                    );
                }
            }
        }
        Value::Object(names)
    }

    /// The bars of the mechanism that is `layers`: one for each workload, size and placement.
    fn bars(&self, layers: &[Layer]) -> Vec<Value> {
        let mut bars = Vec::new();
        for (place, placements) in self.placements.iter().enumerate() {
            for (nth, workload) in self.workloads.iter().enumerate() {
                for size in self.sizes {
                    let of_layer = |layer: &Layer| {
                        let at = self.cases.iter().position(|case| **case == layer.spec).unwrap_or_default();
                        json!({ "name": layer.name, "of": format!("c{at}-{nth}-{place}") })
                    };
                    let spec = layers.last().map(|layer| layer.spec.to_string()).unwrap_or_default();
                    let first = placements.0.first().map(ToString::to_string).unwrap_or_default();
                    let workload = match self.workloads {
                        [Workload::Latency] => String::new(),
                        _ => format!(" {workload}"),
                    };
                    bars.push(json!({
                        "name": format!("{spec}{workload} {size} {first}"),
                        "at": size.to_string(),
                        "layers": layers.iter().map(of_layer).collect::<Vec<_>>(),
                    }));
                }
            }
        }
        bars
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(String, String)> {
        drivers::register().unwrap();
        let all = layers(Spec::parse(text, &registry::cards()).unwrap()).unwrap();
        all.into_iter().map(|layer| (layer.spec.to_string(), layer.name)).collect()
    }

    #[test]
    fn a_mechanism_stands_on_what_its_manifest_says() {
        let specs = |text: &str| names(text).into_iter().map(|(spec, _)| spec).collect::<Vec<_>>();
        assert_eq!(
            specs("python/multiprocessing-queue"),
            [
                "unix-stream",
                "python/unix-stream",
                "python/multiprocessing-pipe",
                "python/multiprocessing-pipe:codec=pickle",
                "python/multiprocessing-queue"
            ]
        );
        assert_eq!(specs("go/tcp"), ["tcp", "go/tcp"]);
        assert_eq!(
            names("python/pipe:codec=json").last().unwrap(),
            &("python/pipe:codec=json".to_owned(), "serialisation: json".to_owned())
        );
    }

    #[test]
    fn every_mechanism_that_comes_with_the_program_has_layers_of_its_own() {
        drivers::register().unwrap();
        for shipped in crate::shipped::SHIPPED {
            for offered in shipped.manifest().unwrap().mechanisms {
                let text = format!("{}/{}", shipped.name, offered.name);
                let all = names(&text);
                assert!(all.iter().all(|(_, name)| !name.is_empty()), "{all:?}");
                let suite = suite(&[text], &Axes::default()).unwrap();
                let stack = &suite.study.unwrap().stacks[0];
                assert_eq!(stack.bars.len(), 2);
                assert_eq!(stack.bars[0].layers.len(), all.len());
            }
        }
    }
}
