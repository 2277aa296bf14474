//! Tests of Talaria from outside: real processes, real sockets, real files.
