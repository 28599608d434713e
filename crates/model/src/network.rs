//! What the network did to the messages of a case between two hosts, as the kernels of its endpoints count it. Reading the
//! counters is not done here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the kernels of both endpoints say of the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkSample {
    /// At the client's host.
    pub client: NetworkReadings,
    /// At the server's host.
    pub server: NetworkReadings,
}

/// What the kernel of one endpoint says: the way to the peer, and what did not go well on it. What it does not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkReadings {
    /// The network interface by which the peer is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// What the interface says of its speed, in megabits per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_mbit_per_s: Option<u64>,
    /// The largest packet that the route to the peer takes whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u32>,
    /// Segments that the endpoint's TCP connection sent again (`TCP_INFO`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted: Option<u64>,
    /// Messages that the endpoint's socket dropped because it had no room (`SO_MEMINFO`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Segments that all TCP connections in the endpoint's network namespace sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_retransmitted: Option<u64>,
    /// Datagrams that reached the endpoint's network namespace and no program: damaged ones, and those that found no room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_udp_errors: Option<u64>,
    /// Those of them that found no room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_udp_no_room: Option<u64>,
}

/// One counter of readings.
type Counter = fn(&mut NetworkReadings) -> &mut Option<u64>;

impl NetworkReadings {
    const COUNTERS: [Counter; 5] = [
        |readings| &mut readings.retransmitted,
        |readings| &mut readings.dropped,
        |readings| &mut readings.host_retransmitted,
        |readings| &mut readings.host_udp_errors,
        |readings| &mut readings.host_udp_no_room,
    ];

    /// What was counted between `earlier` readings and these. Counters that began again count from nothing.
    pub fn since(mut self, earlier: &Self) -> Self {
        let mut earlier = earlier.clone();
        self.combine(&mut earlier, u64::saturating_sub);
        self
    }

    /// What was counted in these and in `later` readings, and the way as it was later.
    pub fn and_then(mut self, mut later: Self) -> Self {
        later.combine(&mut self, u64::saturating_add);
        later
    }

    fn combine(&mut self, other: &mut Self, combined: fn(u64, u64) -> u64) {
        for counter in Self::COUNTERS {
            if let (Some(own), Some(other)) = (counter(self), *counter(other)) {
                *own = combined(*own, other);
            }
        }
    }

    /// The counters that there are.
    pub fn counts(&self) -> impl Iterator<Item = u64> + use<> {
        let mut readings = self.clone();
        Self::COUNTERS.map(|counter| *counter(&mut readings)).into_iter().flatten()
    }
}

impl NetworkSample {
    /// Whether both sides have a link with a name that can be shown, and counts of at most `most`.
    pub fn is_within(&self, most: u64) -> bool {
        const LONGEST_LINK: usize = 64;
        [&self.client, &self.server].into_iter().all(|readings| {
            let is_link = readings.link.as_ref().is_none_or(|link| link.len() <= LONGEST_LINK);
            is_link && readings.counts().chain(readings.link_mbit_per_s).all(|count| count <= most)
        })
    }

    /// What all of `samples` counted together, and the way as it was last; `None` where there is none.
    pub fn sum<'a>(samples: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        samples.into_iter().cloned().reduce(|sum, sample| Self {
            client: sum.client.and_then(sample.client),
            server: sum.server.and_then(sample.server),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(retransmitted: u64, mtu_bytes: u32) -> NetworkReadings {
        NetworkReadings {
            mtu_bytes: Some(mtu_bytes),
            retransmitted: Some(retransmitted),
            ..NetworkReadings::default()
        }
    }

    #[test]
    fn counters_are_subtracted_and_added_and_the_way_is_the_last() {
        assert_eq!(readings(7, 1500).since(&readings(5, 1400)), readings(2, 1500));
        assert_eq!(readings(1, 1500).since(&readings(5, 1500)).retransmitted, Some(0));
        // What was not read before is taken as it is.
        assert_eq!(readings(7, 1500).since(&NetworkReadings::default()), readings(7, 1500));
        let sample = |count, mtu| NetworkSample { client: readings(count, mtu), ..NetworkSample::default() };
        let sum = NetworkSample::sum(&[sample(2, 1500), sample(3, 1400)]).unwrap();
        assert_eq!(sum, sample(5, 1400));
        assert_eq!(sum.client.counts().collect::<Vec<_>>(), [5]);
        assert_eq!(NetworkSample::sum(&[]), None);
        assert!(sum.is_within(5) && !sum.is_within(4));
        let long = NetworkReadings { link: Some("x".repeat(65)), ..NetworkReadings::default() };
        assert!(!NetworkSample { server: long, ..NetworkSample::default() }.is_within(u64::MAX));
    }
}
