//! The exchange of a flow's mechanism for another: `query=unix-stream:sndbuf=1M`.

use super::Scenario;
use crate::card::Card;
use crate::diagnostic::Diagnostic;
use crate::invalid::{Invalid, printable};
use crate::spec::Spec;

/// Another mechanism for a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The name of the flow.
    pub flow: String,
    /// What it goes over instead.
    pub mechanism: Spec,
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
        Ok(Self { flow: flow.trim().to_owned(), mechanism: Spec::parse(mechanism.trim(), cards)? })
    }
}

impl Scenario {
    /// Parses exchanges with commas between them. A comma stands between parameters too: what comes after it is another exchange
    /// if it begins with the name of a flow.
    pub fn exchanges(&self, text: &str, cards: &[Card]) -> Result<Vec<Exchange>, Invalid> {
        let names_flow = |part: &str| {
            let name = part.split_once('=').map(|(name, _)| name.trim());
            self.flows.iter().any(|flow| Some(flow.name.as_str()) == name)
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
        for Exchange { flow: name, mechanism } in exchanges {
            let names = self.flows.iter().map(|flow| flow.name.as_str());
            let flow = changed.flows.iter_mut().find(|flow| flow.name == *name);
            let flow = flow.ok_or_else(|| Invalid::unknown("flow", &printable(name), names))?;
            flow.mechanism = mechanism.clone();
        }
        changed.check(cards).map_err(Diagnostic::without_place)?;
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::CardKind;
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
        assert_eq!(scenario.exchanged(&both, CARDS).unwrap(), scenario);
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
