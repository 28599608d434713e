//! A single-producer, single-consumer ring in shared memory.
