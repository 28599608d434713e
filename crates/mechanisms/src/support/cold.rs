//! Whether messages lie in memory that was touched before: a parameter that the endpoints' loops heed. Not a mechanism itself.

use model::params::MEMORY;
use model::{Domain, Param};

/// The parameter that says whether the endpoints' memory for messages is touched beforehand.
pub(crate) const MESSAGE_MEMORY: Param = Param {
    name: MEMORY,
    summary: "the endpoints' memory for messages, in whole pages: warm, as the iterations before leave it; cold: given back to the kernel before the timed iterations, so that these touch it first",
    domain: Domain::Choice(&["warm", "cold"]),
    default: Some("warm"),
};
