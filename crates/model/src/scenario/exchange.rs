//! The exchange of the mechanism of a flow, or of flows with such names, for another: `query=unix-stream:sndbuf=1M`, `query-*=pipe`.

use super::Scenario;
use crate::card::Card;
use crate::diagnostic::Diagnostic;
use crate::invalid::{Invalid, printable};
use crate::spec::Spec;
use wildmatch::WildMatch;

/// Another mechanism for some flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The name of a flow, or of several: `*` stands for any letters, and `?` for one.
    pub flow: String,
    /// What they go over instead.
    pub mechanism: Spec,
    /// Whether it says how endpoints wait. If not, they wait as before: that is the program's way.
    pub says_wait: bool,
}

impl Exchange {
    /// Parses `FLOW=MECHANISM` or `FLOW=MECHANISM:k=v,…` against the cards of the registry.
    pub fn parse(text: &str, cards: &[Card]) -> Result<Self, Invalid> {
        let Some((flow, mechanism)) = text.split_once('=') else {
            return Err(Invalid::new(
                format!("'{}' names no flow and mechanism", printable(text)),
                "give FLOW=MECHANISM, such as query=unix-stream:sndbuf=1M",
            ));
        };
        let parameters = mechanism.split_once(':').map_or("", |(_, parameters)| parameters).split(',');
        let says_wait = parameters
            .filter_map(|parameter| parameter.split_once('='))
            .any(|(name, _)| name.trim() == "wait");
        Ok(Self { flow: flow.trim().to_owned(), mechanism: Spec::parse(mechanism.trim(), cards)?, says_wait })
    }

    /// Whether the flow `name` is meant.
    fn is_of(&self, name: &str) -> bool {
        WildMatch::new(&self.flow).matches(name)
    }
}

impl Scenario {
    /// Parses exchanges with commas between them. A comma stands between parameters too: what comes after it is another exchange
    /// if it begins with the name of a flow.
    pub fn exchanges(&self, text: &str, cards: &[Card]) -> Result<Vec<Exchange>, Invalid> {
        let names_flow = |part: &str| {
            let pattern = part.split_once('=').map(|(name, _)| WildMatch::new(name.trim()));
            pattern.is_some_and(|pattern| self.flows.iter().any(|flow| pattern.matches(&flow.name)))
        };
        let mut texts: Vec<String> = Vec::new();
        for part in text.split(',') {
            match texts.last_mut().filter(|_| !names_flow(part)) {
                Some(text) => *text += &format!(",{part}"),
                None => texts.push(part.to_owned()),
            }
        }
        texts.iter().map(|text| Exchange::parse(text, cards)).collect()
    }

    /// The same with other mechanisms for some flows. What was recorded of it stays, so that it can be shown beside.
    pub fn exchanged(&self, exchanges: &[Exchange], cards: &[Card]) -> Result<Self, Invalid> {
        let mut changed = self.clone();
        for (at, exchange) in exchanges.iter().enumerate() {
            let Exchange { flow: pattern, mechanism, says_wait } = exchange;
            let names = || self.flows.iter().map(|flow| flow.name.as_str());
            if !names().any(|name| exchange.is_of(name)) {
                return Err(Invalid::unknown("flow", &printable(pattern), names()));
            }
            let is_before = |name: &&str| exchanges[..at].iter().any(|before| before.is_of(name));
            if let Some(name) = names().filter(|name| exchange.is_of(name)).find(is_before) {
                let problem = format!("flow '{name}' is exchanged twice");
                return Err(Invalid::new(problem, "give each flow one mechanism"));
            }
            for flow in changed.flows.iter_mut().filter(|flow| exchange.is_of(&flow.name)) {
                let wait = flow.mechanism.params.given("wait").filter(|_| !says_wait).map(str::to_owned);
                flow.mechanism = match wait {
                    Some(way) => mechanism.clone().waiting(&way, cards),
                    None => mechanism.clone(),
                };
            }
        }
        changed.check(cards).map_err(Diagnostic::without_place)?;
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::CardKind;
    use crate::param::{Domain, Param};
    use crate::testing::cards::card;
    use crate::workload::Workload;

    const BOTH: &[Workload] = &[Workload::Latency, Workload::Throughput];
    const CARDS: &[Card] = &[
        card("pipe", CardKind::Mechanism, BOTH, true),
        card("tcp", CardKind::Mechanism, BOTH, true),
        card("read", CardKind::Operation, &[Workload::Cost], true),
    ];
    const TWO: &str = "name = \"n\"\n[[process]]\nname = \"a\"\n[[process]]\nname = \"b\"\n\
        [[flow]]\nname = \"q\"\nfrom = \"a\"\nto = \"b\"\nmechanism = \"tcp\"\nsize = \"64\"\nreply = \"1\"\n";

    #[test]
    fn a_mechanism_is_exchanged_and_nothing_else() {
        let scenario = Scenario::parse(TWO, CARDS).unwrap();
        let exchange = Exchange::parse("q=pipe", CARDS).unwrap();
        let changed = scenario.exchanged(&[exchange], CARDS).unwrap();
        assert_eq!(changed.flows[0].mechanism, Spec::plain("pipe"));
        let back = Exchange::parse("q = tcp", CARDS).unwrap();
        assert_eq!(changed.exchanged(&[back], CARDS).unwrap(), scenario);
        let both = scenario.exchanges("q=pipe,q=tcp", CARDS).unwrap();
        assert_eq!(both.len(), 2);
        assert!(scenario.exchanged(&both, CARDS).unwrap_err().problem.contains("exchanged twice"));
    }

    #[test]
    fn a_flow_goes_on_waiting_as_its_program_does() {
        let domain = Domain::Choice(&["block", "epoll"]);
        let wait = Param { name: "wait", summary: "", domain, default: Some("block") };
        let params: &'static [Param] = vec![wait].leak();
        let with = |name| Card { params, ..card(name, CardKind::Mechanism, BOTH, true) };
        let cards = [with("tcp"), with("unix-stream"), CARDS[0]];
        let scenario = Scenario::parse(&TWO.replace("\"tcp", "\"tcp:wait=epoll"), &cards).unwrap();
        let changed = |text: &str| {
            let exchange = Exchange::parse(text, &cards).unwrap();
            scenario.exchanged(&[exchange], &cards).unwrap().flows[0].mechanism.to_string()
        };
        assert_eq!(changed("q=unix-stream"), "unix-stream:wait=epoll");
        assert_eq!(changed("q=unix-stream:wait=block"), "unix-stream");
        assert_eq!(changed("q=pipe"), "pipe", "it has no such way");
    }

    #[test]
    fn flows_with_such_names_are_exchanged_together() {
        let more = |name: &str| TWO[TWO.find("[[flow]]").unwrap()..].replace("\"q\"", &format!("\"{name}\""));
        let text = TWO.to_owned() + &more("q-2") + &more("q-3") + &more("log");
        let scenario = Scenario::parse(&text, CARDS).unwrap();
        let changed = |texts: &str| {
            let exchanges = scenario.exchanges(texts, CARDS)?;
            let changed = scenario.exchanged(&exchanges, CARDS)?;
            Ok::<_, Invalid>(changed.flows.iter().map(|flow| flow.mechanism.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(changed("q*=pipe").unwrap(), ["pipe", "pipe", "pipe", "tcp"]);
        assert_eq!(changed("*=pipe").unwrap(), ["pipe"; 4]);
        assert_eq!(changed("q-?=pipe,log=pipe").unwrap(), ["tcp", "pipe", "pipe", "pipe"]);
        assert!(changed("q*=pipe,q-2=tcp").unwrap_err().problem.contains("'q-2' is exchanged twice"));
        assert!(changed("r*=pipe").unwrap_err().problem.contains("unknown flow 'r*'"));
    }

    #[test]
    fn what_cannot_be_exchanged_is_named() {
        let scenario = Scenario::parse(TWO, CARDS).unwrap();
        let refused = |text: &str| {
            let exchange = Exchange::parse(text, CARDS);
            exchange.and_then(|exchange| scenario.exchanged(&[exchange], CARDS)).unwrap_err().problem
        };
        assert!(refused("q").contains("names no flow"));
        assert!(refused("r=pipe").contains("unknown flow 'r'"));
        assert!(refused("q=pip").contains("unknown mechanism"));
        assert!(refused("q=read").contains("does not carry requests"));
    }
}
