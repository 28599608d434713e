//! Mechanisms whose descriptors all exist from the start. Not a mechanism itself.

use crate::contract::{Mechanism, Ticket, TrialContext};
use crate::support::descriptor::{DescriptorEndpoint, Fds, OverDescriptors};
use crate::support::probe::try_message;
use model::Params;
use model::card::{Card, Support};
use model::record::Setting;
use std::marker::PhantomData;
use sys::Failure;

/// A mechanism whose four descriptors all exist from the start. The server's travel in the ticket.
pub(crate) trait Pair {
    /// What the mechanism declares about itself.
    const CARD: Card;

    /// Whether the mechanism works with `params`. Tries it for real.
    fn probe(params: &Params) -> Support;

    /// The descriptors of the client and of the server, and what was set on them.
    fn open(params: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure>;
}

impl<P: Pair> Mechanism for P {
    const CARD: Card = P::CARD;
    type Bound = DescriptorEndpoint;
    type End = DescriptorEndpoint;

    fn probe(params: &Params) -> Support {
        P::probe(params)
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(DescriptorEndpoint, Ticket), Failure> {
        bind_pair::<P, _>(trial)
    }

    fn accept(bound: DescriptorEndpoint) -> Result<DescriptorEndpoint, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<DescriptorEndpoint, Failure> {
        connect_pair::<P, _>(trial, ticket)
    }
}

/// A [`Pair`] as a mechanism whose endpoints are `E`.
#[derive(Debug)]
pub(crate) struct PairWith<P, E>(PhantomData<(P, E)>);

impl<P: Pair, E: OverDescriptors> Mechanism for PairWith<P, E> {
    const CARD: Card = P::CARD;
    type Bound = E;
    type End = E;

    fn probe(params: &Params) -> Support {
        match P::probe(params) {
            Support::Yes { .. } => try_message::<Self>(params),
            no => no,
        }
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(E, Ticket), Failure> {
        bind_pair::<P, E>(trial)
    }

    fn accept(bound: E) -> Result<E, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<E, Failure> {
        connect_pair::<P, E>(trial, ticket)
    }
}

fn bind_pair<P: Pair, E: OverDescriptors>(trial: &TrialContext<'_>) -> Result<(E, Ticket), Failure> {
    let (client, server, settings) = P::open(trial.params)?;
    let endpoint = E::over(client, trial.params, trial.shape, &P::CARD, settings)?;
    Ok((endpoint, Ticket { address: Vec::new(), fds: vec![server.input, server.output] }))
}

fn connect_pair<P: Pair, E: OverDescriptors>(trial: &TrialContext<'_>, ticket: Ticket) -> Result<E, Failure> {
    let [input, output] = ticket.descriptors(P::CARD.name)?;
    E::over(Fds { input, output }, trial.params, trial.shape, &P::CARD, Vec::new())
}
