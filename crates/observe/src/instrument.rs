//! What every probe can do. Each probe is a file of its own.

use model::observation::EndpointObservation;
use sys::Failure;

/// Something that is opened, switched on around the timed iterations, and read afterwards.
pub(crate) trait ProbeInstrument {
    /// Switches it on. The iterations follow at once.
    fn begin(&mut self) -> Result<(), Failure>;
    /// Switches it off. The iterations are just over.
    fn end(&mut self) -> Result<(), Failure>;
    /// What it saw.
    fn observation(self: Box<Self>) -> Result<EndpointObservation, Failure>;
}
