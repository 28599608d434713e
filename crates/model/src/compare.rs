//! Comparison of two results: is B faster than A, slower, or can it not be told?
