//! Memory that two processes map: a memfd. What is laid out in it is not known here.
